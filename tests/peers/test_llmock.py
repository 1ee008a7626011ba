"""Glassloop against llmock (PyPI), which breaks answers on demand and then judges how its client took it.

Every run ends with its verdict, in which a warning counts as a failure.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from tests.peers.kit import Peer, Ran, Weather, run

from glassloop.core import errors
from glassloop.core.events import Retrying
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.window import context_window

ANSWER = "Scripted words of some length, so that they come in many pieces. 你好 🎒"


def script(llmock: Peer, *behaviors: dict[str, Any]) -> None:
    llmock.ask("/_llmock/scenario", {"behaviors": list(behaviors)})


def fault(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": 3, **fields}


def ask(llmock: Peer, task: str, stream: bool = True, weather: Weather | None = None, **options: Any) -> Ran:
    """A run with the usual retries, only with shorter pauses, and llmock's clean verdict on it."""
    connection = {name: options.pop(name) for name in ("deadlines", "profile") if name in options}
    endpoint = llmock.endpoint(stream=stream, **{"retries": Retries(base=0.1), **connection})
    tools = options.pop("tools", (weather or Weather()).tools)
    ran = asyncio.run(run(endpoint, task, tools=tools, **options))
    assert llmock.ask("/_llmock/verdict")["findings"] == []
    return ran


# ── nothing is wrong ─────────────────────────────────────────────────────────


def test_an_answer_arrives_whole_with_its_usage(llmock: Peer, stream: bool) -> None:
    script(llmock, {"type": "reply", "text": ANSWER})
    ran = ask(llmock, "Say something", stream, profile={"stream_options": True})
    assert ran.result.text == ran.shown == ANSWER
    assert ran.result.mends == ()
    assert ran.result.usage.prompt_tokens
    assert ran.result.usage.completion_tokens


def test_a_call_runs_and_its_result_leads_to_the_answer(llmock: Peer, stream: bool) -> None:
    script(llmock, {"type": "reply", "tool_calls": [{"name": "get_weather", "arguments": {"city": "東京"}}]})
    weather = Weather()
    ran = ask(llmock, "Weather in Tokyo?", stream, weather)
    assert weather.cities == ["東京"]
    assert ran.tool_results == [("ok", "東京: 20 °C")]
    assert (ran.result.stop_reason, ran.result.rounds) == ("answered", 2)


def test_several_calls_of_one_reply_run(llmock: Peer, stream: bool) -> None:
    cities = ["Oslo", "Rome", "Lima"]
    calls = [{"name": "get_weather", "arguments": {"city": city}} for city in cities]
    script(llmock, {"type": "reply", "text": "Three at once.", "tool_calls": calls})
    weather = Weather()
    ran = ask(llmock, "Three cities", stream, weather)
    assert sorted(weather.cities) == sorted(cities)
    assert [text for _, text in ran.tool_results] == [f"{city}: 20 °C" for city in cities]
    ids = [m["tool_call_id"] for m in ran.wire.requests[1]["messages"] if m["role"] == "tool"]
    assert len(set(ids)) == 3


def test_a_forced_tool_is_forced_once_and_the_run_ends(llmock: Peer, stream: bool) -> None:
    weather = Weather()
    ran = ask(llmock, "Hello", stream, weather, settings={"tool_choice": "required"})
    assert len(weather.cities) == 1
    assert ran.result.stop_reason == "answered"
    assert [request.get("tool_choice") for request in ran.wire.requests] == ["required", None]


def test_with_tool_choice_none_it_only_talks(llmock: Peer, stream: bool) -> None:
    weather = Weather()
    ran = ask(llmock, "Weather?", stream, weather, settings={"tool_choice": "none"})
    assert weather.cities == []
    assert (ran.result.stop_reason, ran.result.rounds) == ("answered", 1)


@dataclass
class Invoice:
    number: str
    amount: float


def test_an_answer_of_a_type_comes_as_that_type(llmock: Peer, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"number": {"type": "string"}, "amount": {"type": "number"}},
        "required": ["number", "amount"],
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "invoice", "schema": schema}}
    ran = ask(llmock, "Invoice?", stream, tools=(), output=Invoice, settings={"response_format": wanted})
    assert isinstance(ran.result.output, Invoice)


# ── something is ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "failures",
    [
        [{"status": 429, "retry_after": 1}],
        [{"status": 429, "retry_after": 0.5}, {"status": 503}],
        [{"status": 500}, {"status": 502}, {"status": 529}],
        [{"status": 408}, {"status": 409}],
    ],
)
def test_what_passes_is_waited_out(llmock: Peer, stream: bool, failures: list[dict[str, Any]]) -> None:
    script(llmock, *({"type": "fail", **each} for each in failures), {"type": "reply", "text": ANSWER})
    ran = ask(llmock, "Say something", stream)
    assert ran.result.text == ANSWER
    assert ran.wire.statuses == [*(each["status"] for each in failures), 200]


BREAKS = pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])


@BREAKS
def test_a_broken_stream_is_asked_again_and_shown_once(llmock: Peer, kind: str) -> None:
    script(llmock, fault(kind), {"type": "reply", "text": ANSWER, "times": 2})
    ran = ask(llmock, "Say something")
    assert ran.result.text == ran.shown == ANSWER
    assert len(ran.of(Retrying)) == 1


@BREAKS
def test_no_call_of_a_broken_stream_runs(llmock: Peer, kind: str) -> None:
    calls = [{"name": "get_weather", "arguments": {"city": "Oslo, the capital of Norway"}}]
    script(llmock, fault(kind), {"type": "reply", "tool_calls": calls}, {"type": "reply", "text": ANSWER})
    weather = Weather()
    ran = ask(llmock, "Weather?", True, weather)
    assert ran.result.text == ANSWER
    assert weather.cities == []


def test_a_stream_that_hangs_is_given_up_and_asked_again(llmock: Peer) -> None:
    script(llmock, fault("stall", stall_seconds=20), {"type": "reply", "text": ANSWER, "times": 2})
    ran = ask(llmock, "Say something", deadlines=Deadlines(silence=1.0))
    assert ran.result.text == ran.shown == ANSWER
    assert ran.result.seconds < 15


def test_a_slow_first_token_is_waited_for(llmock: Peer) -> None:
    script(llmock, {"type": "slow_first_token", "seconds": 1.5}, {"type": "reply", "text": ANSWER})
    assert ask(llmock, "Say something").result.text == ANSWER


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.RequestRejected),
        (401, errors.AuthenticationFailed),
        (403, errors.AuthenticationFailed),
        (404, errors.EndpointError),
        (422, errors.RequestRejected),
    ],
)
def test_what_cannot_pass_is_said_at_once(llmock: Peer, stream: bool, status: int, kind: type) -> None:
    script(llmock, {"type": "fail", "status": status})
    ran = ask(llmock, "Say something", stream)
    assert isinstance(ran.error, kind)
    assert ran.error.status == status
    assert ran.error.provider_text
    assert len(ran.wire.requests) == 1


def test_an_outage_ends_in_a_typed_error_after_a_few_tries(llmock: Peer, stream: bool) -> None:
    script(llmock, {"type": "fail", "status": 503, "times": None})
    ran = ask(llmock, "Say something", stream)
    assert isinstance(ran.error, errors.EndpointError)
    assert ran.error.status == 503
    assert 2 <= len(ran.wire.requests) <= 6
    assert ran.result.messages[0]["content"] == "Say something"


def test_a_prompt_that_is_too_long_is_compacted_and_sent_once_more(llmock: Peer, stream: bool) -> None:
    filler = [{"role": role, "content": "old words " * 500} for role in ("user", "assistant") * 4]
    ran = ask(llmock, "And now?", stream, history=filler, settings={"tool_choice": "none"})
    assert ran.error is None
    assert ran.wire.statuses[0] == 400
    assert ran.wire.statuses[-1] == 200
    assert ran.wire.requests[-1]["messages"][-1]["content"] == "And now?"


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_a_broken_call_never_runs_and_the_model_is_told(llmock: Peer, stream: bool, kind: str) -> None:
    script(llmock, {"type": "tool_fault", "kind": kind})
    weather = Weather()
    ran = ask(llmock, "Weather?", stream, weather)
    assert weather.cities == []
    assert [state for state, _ in ran.tool_results] == ["error"]
    assert ran.result.stop_reason == "answered"


# ── facts about it ───────────────────────────────────────────────────────────


def test_its_models_are_listed_and_it_tells_no_window(llmock: Peer) -> None:
    async def both() -> tuple[list[str], int | None]:
        endpoint = llmock.endpoint()
        names, window = await endpoint.models(), await context_window(endpoint)
        await endpoint.close()
        return names, window

    names, window = asyncio.run(both())
    assert "gpt-4o" in names
    assert window is None
