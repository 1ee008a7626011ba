"""Glassloop against LiteLLM's proxy (PyPI): mock models, and one that the gateway passes on to aimock."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from tests.peers.kit import Peer, Ran, Relay, Weather, run

from glassloop import Limits
from glassloop.core import errors
from glassloop.models.window import context_window

HELLO = "Hello from the gateway. 你好 🎒"


def ask(
    litellm: Peer,
    model: str,
    stream: bool,
    task: str = "Hello",
    weather: Weather | None = None,
    **options: Any,
) -> Ran:
    connection = {name: options.pop(name) for name in ("key", "profile") if name in options}
    endpoint = litellm.endpoint(model, stream=stream, **connection)
    return asyncio.run(run(endpoint, task, tools=(weather or Weather()).tools, **options))


def test_an_answer_arrives_whole_with_its_usage(litellm: Peer, stream: bool) -> None:
    ran = ask(litellm, "says", stream, profile={"stream_options": True})
    assert ran.result.text == ran.shown == HELLO
    assert (ran.result.rounds, ran.result.mends) == (1, ())
    assert ran.result.usage.prompt_tokens
    assert ran.result.usage.completion_tokens


def test_parallel_calls_run_though_the_gateway_says_stop(litellm: Peer) -> None:
    """LiteLLM gives its mock calls with the finish reason "stop". The mock calls again and again: the limit ends it."""
    weather = Weather()
    ran = ask(litellm, "calls", False, "Oslo and Rome?", weather, limits=Limits(rounds=1))
    assert sorted(weather.cities) == ["Oslo", "Rome"]
    assert [state for state, _ in ran.tool_results[:2]] == ["ok", "ok"]
    assert ran.result.stop_reason == "rounds"


def test_the_same_calls_again_and_again_are_stopped(litellm: Peer) -> None:
    weather = Weather()
    ran = ask(litellm, "calls", False, "Oslo and Rome?", weather)
    assert ran.result.stop_reason == "repeated_calls"
    assert len(weather.cities) <= 2 * 5


@pytest.mark.parametrize(
    ("task", "cities", "answer"),
    [
        ("Say hello", [], "Hello there, my good friend! 你好 🎒"),
        ("Weather in Oslo?", ["Oslo"], "It is 20 °C in Oslo."),
        ("Oslo and Rome?", ["Oslo", "Rome"], "20 °C in both."),
    ],
)
def test_what_it_passes_on_arrives_as_from_the_server_itself(
    litellm: Peer, stream: bool, task: str, cities: list[str], answer: str
) -> None:
    weather = Weather()
    ran = ask(litellm, "relayed", stream, task, weather)
    assert ran.result.text == answer
    assert sorted(weather.cities) == cities
    assert ran.result.mends == ()


def test_a_call_cut_off_by_length_never_runs(litellm: Peer, stream: bool) -> None:
    weather = Weather()
    ran = ask(litellm, "relayed", stream, "Cut off by length", weather)
    assert weather.cities == []
    assert ran.result.text == "I could not finish the call."


@pytest.mark.parametrize(
    ("model", "kind", "words", "tries"),
    [
        ("throttled", errors.RateLimited, "mock rate limit error", 5),
        ("broken", errors.EndpointError, "mock internal server error", 5),
        ("overloaded", errors.EndpointError, "mock error raised mid-stream", 5),
        ("dead", errors.EndpointError, "Connection error", 5),
        ("filtered", errors.ContentFiltered, "content_filter_policy", 1),
        ("no-such-model", errors.ModelNotFound, "Invalid model name", 1),
    ],
)
def test_a_failure_is_a_typed_error_that_quotes_the_gateway(
    litellm: Peer, stream: bool, model: str, kind: type[Exception], words: str, tries: int
) -> None:
    ran = ask(litellm, model, stream)
    assert isinstance(ran.error, kind)
    assert words in ran.error.provider_text
    assert len(ran.wire.requests) == tries
    assert ran.result.stop_reason == "failed"


def test_an_overflow_without_end_is_compacted_first_and_then_raised(litellm: Peer, stream: bool) -> None:
    filler = [{"role": role, "content": "old words " * 300} for role in ("user", "assistant") * 4]
    ran = ask(litellm, "full", stream, history=filler)
    assert isinstance(ran.error, errors.ContextOverflow)
    first, *_, last = ran.wire.requests
    assert len(str(last["messages"])) < len(str(first["messages"])) / 2


def test_a_key_that_it_cannot_check_is_said_at_once_and_shown_nowhere(litellm: Peer, stream: bool) -> None:
    """Without a database, the gateway answers any key but its own with a 400 that says no word of keys."""
    ran = ask(litellm, "says", stream, key="sk-wrong-key-of-mine")
    assert isinstance(ran.error, errors.AuthenticationFailed)
    assert (ran.error.status, ran.error.provider_text) == (400, "No connected db.")
    assert "sk-wrong-key-of-mine" not in str(ran.error)
    assert len(ran.wire.requests) == 1


def test_runs_of_one_endpoint_share_one_connection(litellm: Peer, stream: bool) -> None:
    async def three_runs(root: str) -> list[str]:
        endpoint = litellm.endpoint(base_url=f"{root}/v1", stream=stream)
        texts = [(await run(endpoint, f"Hello {n}", close=False)).result.text for n in range(3)]
        await endpoint.close()
        return texts

    with Relay(litellm.root) as relay:
        assert asyncio.run(three_runs(relay.root)) == [HELLO] * 3
        assert relay.connections == 1


def test_its_models_are_listed_and_it_tells_no_window(litellm: Peer) -> None:
    command = [sys.executable, "-m", "glassloop", "models", "--base-url", litellm.base_url]
    env = {**os.environ, "GLASSLOOP_API_KEY": str(litellm.key), "GLASSLOOP_BASE_URL": litellm.base_url}
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert listed.returncode == 0, listed.stderr
    assert {"says", "calls", "relayed"} <= set(listed.stdout.split())

    async def window() -> int | None:
        endpoint = litellm.endpoint()
        found = await context_window(endpoint)
        await endpoint.close()
        return found

    assert asyncio.run(window()) is None
