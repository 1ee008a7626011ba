"""What the doctor concludes: no false pass, no false failure, a weak model told from a broken endpoint, and an end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.doctor.healthy import completion_for, plain
from tests.doctor.ward import endpoint_at, examined

from glassloop.doctor.examination import examine, plan_of
from glassloop.doctor.findings import Probed, Report
from glassloop.doctor.kit import EVERY_KIND
from glassloop.doctor.patient import Budget, Patient
from glassloop.doctor.probe import Probe
from glassloop.doctor.probes import PROBES, QUICK
from glassloop.doctor.report import curl_of, summary, telling, to_json, to_markdown
from glassloop.testing.server import ChatServer, Completion, Reply, Request, calls, fails, says

Script = Callable[[Request], Reply]


def report_of(script: Script, names: Sequence[str] = (), **options: Any) -> Report:
    """The doctor's report on a server that answers so; of these probes and what they need, or of all."""
    gets = options.pop("gets", None)

    async def examine_it() -> Report:
        async with ChatServer(script, gets=gets) as server:
            return await examined(server.base_url, only(*names), **options)

    return asyncio.run(examine_it())


def only(*names: str) -> Sequence[Probe]:
    first = ("reachable", "models", "plain", "streamed", "answer", "key", "model")
    return [probe for probe in PROBES if not names or probe.name in (*first, *names)]


def probed(report: Report, name: str) -> Probed:
    return next(one for one in report.probes if one.name == name)


def codes(report: Report) -> list[str]:
    return [one.code for one in report.findings]


def choosing(change: Callable[[Any], Any]) -> Script:
    """A healthy server that sees another `tool_choice` than was sent."""

    def script(request: Request) -> Reply:
        if "tool_choice" not in request.body:
            return plain(request)
        return plain(
            replace(request, body={**request.body, "tool_choice": change(request.body["tool_choice"])})
        )

    return script


# ── the two traps ────────────────────────────────────────────────────────────────────────────────────────────────

CHOICES = ("tool_choice_required", "tool_choice_named", "tool_choice_auto")


def test_a_willing_model_is_no_proof_that_tool_choice_is_heeded() -> None:
    report = report_of(choosing(lambda choice: "auto"), (*CHOICES, "forced_call"))
    assert probed(report, "tool_choice_auto").outcome == "ok"
    assert probed(report, "forced_call").outcome == "ok"
    assert [probed(report, name).outcome for name in CHOICES[:2]] == ["no", "no"]
    assert "not enforced" in probed(report, "tool_choice_required").seen
    assert report.verdict == "ready"


def test_a_refused_tool_choice_is_no_pass_though_the_call_then_comes() -> None:
    def script(request: Request) -> Reply:
        if request.body.get("tool_choice") not in (None, "auto"):
            return fails(400, "tool_choice is not supported, only auto")
        return plain(request)

    report = report_of(script, CHOICES)
    assert probed(report, "tool_choice_required").outcome in ("mended", "no")
    assert report.facts["tool_choice_required"] is False
    assert report.facts["tool_choice_named"] is False
    assert report.facts["calls_by_itself"] == 3


@pytest.mark.parametrize(
    ("refused", "probe"),
    [
        (lambda body: "$ref" in json.dumps(body.get("tools") or []), "schema_ref"),
        (lambda body: any(one["role"] == "developer" for one in body["messages"]), "developer"),
        (lambda body: "strict" in json.dumps(body.get("tools") or []), "strict"),
    ],
    ids=["$ref", "developer", "strict"],
)
def test_what_glassloop_never_sends_is_no_failure_where_it_is_refused(
    refused: Callable[[Any], bool], probe: str
) -> None:
    def script(request: Request) -> Reply:
        wrong = isinstance(request.body.get("messages"), list) and refused(request.body)
        return fails(400, "invalid request: unsupported value") if wrong else plain(request)

    report = report_of(script, (probe,))
    assert probed(report, probe).outcome == "no"
    assert (report.verdict, report.adaptations) == ("ready", ())
    assert [one.level for one in report.findings if one.code.startswith("refus")] == ["trait"]


def test_what_fails_now_and_then_is_not_called_refused() -> None:
    seen: list[int] = []

    def script(request: Request) -> Reply:
        seen.append(1)
        return fails(503, "overloaded") if len(seen) % 2 else plain(request)

    report = report_of(script)
    assert [code for code in codes(report) if code.startswith("refus")] == []
    assert "outage" in codes(report)
    assert report.verdict == "ready"


# ── a weak model, a broken endpoint ──────────────────────────────────────────────────────────────────────────────


def _talks(request: Request) -> Completion:
    """A model that only talks, its prompt counted as it should be."""
    counted = completion_for(request.body)
    return replace(says("It is probably sunny."), usage=counted.usage)


def test_a_model_that_never_calls_is_weak_and_its_endpoint_is_ready() -> None:
    report = report_of(_talks, ("forced_call", "tool_choice_auto"))
    assert probed(report, "forced_call").outcome == "weak"
    assert "a weak model" in probed(report, "forced_call").seen
    assert "0 of 3" in probed(report, "tool_choice_auto").seen
    assert report.verdict == "ready"
    assert summary(report)[0].endswith("is ready, but this model did not call a tool as it was told to.")
    assert [one.code for one in report.diagnoses] == ["imagination"]


def test_an_endpoint_that_drops_the_tools_is_no_weak_model() -> None:
    """The model calls as soon as it is told of the tools, which natively it never is."""

    def script(request: Request) -> Reply:
        if not isinstance(request.body.get("messages"), list):
            return plain(request)
        body = {key: value for key, value in request.body.items() if key not in ("tools", "tool_choice")}
        if "place_order" not in body["messages"][0]["content"]:
            return plain(replace(request, body=body))
        wanted = json.dumps({"name": "place_order", "arguments": EVERY_KIND}, ensure_ascii=False)
        return says(f"<tool_call>\n{wanted}\n</tool_call>")

    report = report_of(script, ("forced_call",))
    assert probed(report, "forced_call").outcome == "failed"
    assert "tools_dropped" in codes(report)
    assert [one.code for one in report.diagnoses] == ["tools_dropped"]


def test_wrong_values_in_a_call_are_the_models_doing() -> None:
    def script(request: Request) -> Reply:
        answer = completion_for(request.body)
        if "tool_calls" not in answer.message:
            return plain(request)
        wrong = {
            "item": "tea",
            "count": 1,
            "gift": False,
            "tags": [],
            "address": {"street": "a", "town": "b"},
        }
        return replace(calls(("place_order", {**wrong, "size": "small"})), usage=answer.usage)

    report = report_of(script, ("forced_call", "streamed_call"))
    assert probed(report, "forced_call").outcome == "weak"
    assert "other values for item, count" in probed(report, "forced_call").seen
    assert report.verdict == "ready"


# ── what the server says and does ────────────────────────────────────────────────────────────────────────────────


def test_a_prompt_that_is_silently_cut_is_found_by_its_count() -> None:
    def script(request: Request) -> Reply:
        counted = completion_for(request.body)
        prompt = min(counted.usage["prompt_tokens"], 1000)
        return replace(counted, usage={**counted.usage, "prompt_tokens": prompt})

    report = report_of(script, ("long_prompt",))
    assert "silent_truncation" in codes(report)
    assert probed(report, "long_prompt").outcome == "failed"
    assert report.verdict == "ready"


def test_a_told_window_is_learned_and_bounds_the_long_prompt() -> None:
    listed = {"data": [{"id": "m", "max_model_len": 4096}]}
    report = report_of(plain, ("window", "long_prompt"), gets={"/v1/models": listed})
    assert report.facts["window"] == 4096
    assert report.learnt.profile["context_window"] == 4096
    assert report.facts["long_sent"] < 4096


def test_usage_that_comes_only_when_asked_is_asked_for_from_then_on() -> None:
    from tests.doctor.healthy import usage_when_asked

    report = report_of(usage_when_asked, ("stream_usage",))
    assert report.learnt.profile == {"stream_options": True}


def test_a_misspelt_model_is_answered_with_the_nearest_ones() -> None:
    listed = {"data": [{"id": "qwen3:8b"}, {"id": "llama3.2"}, {"id": "qwen3:32b"}]}
    script = lambda request: fails(404, 'model "qwen3:8" not found')  # noqa: E731
    report = report_of(script, model="qwen3:8", gets={"/v1/models": listed})
    assert report.verdict == "unusable"
    (diagnosis,) = report.diagnoses
    assert diagnosis.code == "model_misspelt"
    assert diagnosis.words.endswith("Nearest: qwen3:8b, qwen3:32b.")
    assert diagnosis.fix.endswith("-m qwen3:8b")


def test_a_model_name_of_the_server_is_quoted_in_a_command() -> None:
    listed = {"data": [{"id": "m; rm -rf ~"}]}
    report = report_of(lambda request: fails(404, "model not found: m"), gets={"/v1/models": listed})
    assert report.diagnoses[0].fix.endswith("-m 'm; rm -rf ~'")


def test_after_a_refused_key_nothing_more_is_asked() -> None:
    script = lambda request: fails(401, "Incorrect API key provided: sk-or-v1-0123456789abcdef")  # noqa: E731
    report = report_of(script, key="sk-or-v1-0123456789abcdef")
    assert sum(one.requests for one in report.probes) == 3
    assert probed(report, "key").outcome == "failed"
    assert probed(report, "forced_call").outcome == "skipped"
    assert [one.code for one in report.diagnoses] == ["foreign_key"]


def test_nothing_that_listens_is_said_at_the_first_probe() -> None:
    report = asyncio.run(examined("http://127.0.0.1:9/v1"))
    assert report.verdict == "unusable"
    assert codes(report) == ["transport:unreachable"]
    assert {one.outcome for one in report.probes[1:]} == {"skipped"}


# ── budget, end, secrets ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_quick_examination_sends_fewer_than_ten_requests_whatever_happens() -> None:
    async def run(script: Script) -> int:
        async with ChatServer(script) as server:
            report = await examined(server.base_url, QUICK, budget=Budget(requests=9), tries=1)
            return sum(one.requests for one in report.probes)

    seen: list[int] = []

    def failing(request: Request) -> Reply:
        seen.append(1)
        return fails(500, "no") if len(seen) % 3 else plain(request)

    assert plan_of(QUICK).requests <= 9
    assert asyncio.run(run(plain)) <= 9
    assert asyncio.run(run(failing)) <= 9


def test_an_examination_stops_at_its_cost() -> None:
    def script(request: Request) -> Reply:
        answer = completion_for(request.body)
        return replace(answer, usage={**answer.usage, "cost": 0.01})

    report = report_of(script, budget=Budget(cost=0.045))
    assert report.verdict == "stopped"
    assert "$0.045" in report.why
    assert sum(one.cost or 0 for one in report.probes) == pytest.approx(0.05)


def test_a_cost_limit_that_cannot_be_kept_stops_at_once() -> None:
    report = report_of(plain, budget=Budget(cost=1), model="no-price-is-known-of-this")
    assert report.verdict == "stopped"
    assert sum(one.outcome != "skipped" for one in report.probes) <= 4


def test_a_cancelled_examination_reports_what_it_found() -> None:
    async def run() -> Report:
        async with ChatServer(plain) as server:
            patient = Patient(endpoint_at(server.base_url))
            task = asyncio.current_task()
            assert task is not None

            def show(probe: Probe, done: Probed | None) -> None:
                if probe.name == "forced_call" and done is None:
                    asyncio.get_running_loop().call_soon(task.cancel)

            report = await examine(patient, PROBES, show)
            task.uncancel()
            await patient.endpoint.close()
            return report

    report = asyncio.run(run())
    assert report.verdict == "interrupted"
    assert probed(report, "plain").outcome == "ok"
    assert probed(report, "forced_call").seen == "interrupted"


def test_a_key_stands_in_no_report_even_where_the_endpoint_echoes_it() -> None:
    key = "sk-or-v1-0123456789abcdef"

    def script(request: Request) -> Reply:
        if not isinstance(request.body.get("messages"), list):
            return plain(request)
        return fails(400, f"cannot take this: {request.headers['Authorization']}")

    report = report_of(script, key=key)
    assert key not in json.dumps(to_json(report, wire=True))
    assert key not in to_markdown(report)


def test_each_failed_probe_comes_with_a_command_that_shows_it() -> None:
    report = report_of(lambda request: fails(400, "it's wrong"), key="sk-or-v1-0123456789abcdef")
    exchange = telling(probed(report, "plain"))
    assert exchange is not None
    command = curl_of(exchange)
    assert command.startswith("curl -sS -N http://127.0.0.1:")
    assert '-H "Authorization: Bearer $KEY"' in command
    assert command in to_markdown(report)


def test_the_keys_of_the_json_are_these() -> None:
    value = to_json(report_of(plain, ("forced_call",)))
    assert list(value) == [
        *("format", "name", "base_url", "model", "verdict", "why", "adaptations", "profile", "learnt"),
        *("findings", "diagnoses", "facts", "probes", "requests", "tokens"),
    ]
    assert list(value["probes"][0]) == [
        *(
            "name",
            "family",
            "outcome",
            "seen",
            "does",
            "findings",
            "facts",
            "requests",
            "tokens",
            "cost",
            "seconds",
        ),
    ]
