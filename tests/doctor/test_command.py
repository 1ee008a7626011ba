"""`glassloop doctor` as people run it: what it prints, how it ends, and what its profile is worth to the next run."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.terminal import PROGRAM, Done, environment, glassloop, glassloop_here
from tests.doctor.healthy import plain

from glassloop.testing.server import ChatServer, Reply, Request, fails

QUESTION = "Greet me in one sentence."
_KEY = "sk-or-v1-0123456789abcdef"


def _fussy(request: Request) -> Reply:
    """Refuses what many agents send: a temperature, empty content beside calls, tools with long descriptions."""
    body = request.body
    if isinstance(body.get("messages"), list):
        if "temperature" in body:
            return fails(400, "Unsupported parameter: 'temperature' is not supported with this model.")
        if any(one["role"] == "assistant" and one.get("content") == "" for one in body["messages"]):
            return fails(400, "messages.2.content: content must not be empty")
    return plain(request)


@contextmanager
def served(script: object = plain) -> Iterator[ChatServer]:
    with ChatServer(script) as server:  # type: ignore[arg-type]
        yield server


Doctor = Callable[..., Done]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Doctor:
    """`doctor(server, …)` without a child process."""

    def run(server: ChatServer, *more: str) -> Done:
        return glassloop_here(
            monkeypatch, capfd, tmp_path, "doctor", "--base-url", server.base_url, "-m", "m", *more
        )

    return run


def test_a_profile_of_the_doctors_spares_the_next_run_every_failed_request(tmp_path: Path) -> None:
    def refused(server: ChatServer) -> int:
        return sum("temperature" in (one.body or {}) for one in server.requests)

    (tmp_path / "glassloop.toml").write_text("[settings]\ntemperature = 0\n")
    with served(_fussy) as server:
        ask = ("run", "--base-url", server.base_url, "-m", "m", "--no-save", QUESTION)
        untaught = tmp_path / "untaught"
        untaught.mkdir()
        before = glassloop(*ask, folder=tmp_path, env={"GLASSLOOP_DATA_DIR": str(untaught)})
        assert (before.code, len(server.requests), refused(server)) == (0, 2, 1)
        done = glassloop("doctor", "--base-url", server.base_url, "-m", "m", "--write", folder=tmp_path)
        assert done.code == 0, done.err
        assert "Kept" in done.err
        server.requests.clear()
        after = glassloop(*ask, folder=tmp_path)
        assert (after.code, len(server.requests), refused(server)) == (0, 1, 0)


def test_without_write_nothing_is_kept(doctor: Doctor, tmp_path: Path) -> None:
    with served(_fussy) as server:
        assert doctor(server, "--quick").code == 0
    assert list(tmp_path.rglob("profiles/*.json")) == []


def test_quick_says_its_size_first_and_each_probe_as_it_ends(doctor: Doctor) -> None:
    with served() as server:
        done = doctor(server, "--quick")
        assert len(server.requests) < 10
    first, *rest = done.err.splitlines()
    assert "at most 9 requests" in first
    assert rest[0].startswith("ok      reachable: HTTP 200")
    assert rest[-1].endswith("is ready.")
    names = [line.split("\t")[0] for line in done.out.splitlines()]
    assert names[:3] == ["reachable", "models", "plain"]


def test_json_is_one_document_on_standard_output(doctor: Doctor) -> None:
    with served(_fussy) as server:
        done = doctor(server, "--quick", "--json", "-v")
    value = json.loads(done.out)
    assert (value["format"], value["verdict"]) == (1, "ready")
    assert [one["code"] for one in value["adaptations"]] == [
        code for code in (one["code"] for one in value["adaptations"]) if code.startswith("call_content")
    ]
    assert value["probes"][2]["exchanges"][0]["status"] == 200


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--max-tokens", "200"), 3, "the limit of 200 tokens is reached"),
        (("--max-cost", "0.01"), 3, "does not say what a request costs"),
        (("some-model",), 2, "behind --compare"),
        (("--compare",), 2, "behind --compare"),
        (("--compare", "a", "b"), 2, "-m names one model"),
        (("--markdown", "nowhere/report.md"), 2, "there is no folder 'nowhere'"),
    ],
)
def test_how_it_ends(doctor: Doctor, arguments: Sequence[str], code: int, words: str) -> None:
    with served() as server:
        done = doctor(server, *arguments)
    assert done.code == code, done.err
    assert words in done.err


def test_an_endpoint_that_cannot_be_used_ends_with_1_and_says_why(tmp_path: Path) -> None:
    with served(lambda request: fails(401, f"Incorrect API key provided: {_KEY}")) as server:
        env = {"GLASSLOOP_API_KEY": _KEY, "GLASSLOOP_BASE_URL": server.base_url, "GLASSLOOP_MODEL": "m"}
        file = tmp_path / "report.md"
        done = glassloop("doctor", "--quick", "--markdown", str(file), folder=tmp_path, env=env)
    assert done.code == 1
    assert "cannot be used" in done.err
    assert "openrouter" in done.err
    assert 'Authorization: Bearer $KEY"' in file.read_text()
    assert _KEY not in done.out + done.err + file.read_text()


def test_several_are_shown_side_by_side(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with served() as one, served(_fussy) as other:
        specs = [f"{one.base_url}#通义千问", f"{other.base_url}#m"]
        done = glassloop_here(monkeypatch, capfd, tmp_path, "doctor", "--quick", "--compare", *specs)
    assert done.code == 0, done.err
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in done.out.splitlines()}
    assert rows["verdict"] == ["ready", "ready"]
    assert rows["adaptations"] == ["0", "1"]
    assert rows["call_then_answer"] == ["ok", "mended"]


def test_no_model_is_measured_where_another_cannot_be_asked(tmp_path: Path) -> None:
    with served() as server:
        specs = [f"{server.base_url}#m", "deepseek:deepseek-chat"]
        done = glassloop("doctor", "--quick", "--compare", *specs, folder=tmp_path)
        assert server.requests == []
    assert done.code == 2
    assert "No key for deepseek" in done.err


def test_ctrl_c_prints_what_was_found_until_then(tmp_path: Path) -> None:
    reached, release = threading.Event(), threading.Event()

    async def slow(request: Request) -> Reply:
        if (request.body or {}).get("tools"):
            reached.set()
            await asyncio.to_thread(release.wait, 30)
        return plain(request)

    with served(slow) as server:
        process = subprocess.Popen(
            [*PROGRAM, "doctor", "--base-url", server.base_url, "-m", "m"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert reached.wait(60)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        release.set()
    assert process.returncode == 130, err
    assert "plain\tok" in out
    assert "Interrupted" in err
