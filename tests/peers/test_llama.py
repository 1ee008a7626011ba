"""Glassloop against llama.cpp's server with a real, very small model: what it says is worth little, its bytes are real."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from tests.peers.kit import Peer, Ran, Relay, Weather, run

from glassloop import Limits
from glassloop.core import errors
from glassloop.core.entries import Reply
from glassloop.core.events import Retrying
from glassloop.models.window import context_window

GREEDY = {"temperature": 0, "seed": 1}


def ask(
    llama: Peer, task: str, stream: bool, weather: Weather | None = None, *, most: int = 48, **options: Any
) -> Ran:
    """A run of short, repeatable answers."""
    settings = {**GREEDY, "max_tokens": most, **options.pop("settings", {})}
    connection = {name: options.pop(name) for name in ("key", "profile", "tool_mode") if name in options}
    endpoint = llama.endpoint(stream=stream, **connection)
    tools = weather.tools if weather else ()
    return asyncio.run(run(endpoint, task, tools=tools, settings=settings, **options))


def replies(ran: Ran) -> list[Reply]:
    return [entry for entry in ran.result.entries if isinstance(entry, Reply)]


def test_an_answer_is_the_same_streamed_and_whole(llama: Peer) -> None:
    streamed, whole = (ask(llama, "Say hello in five words.", stream) for stream in (True, False))
    assert streamed.result.text == streamed.shown == whole.result.text
    assert whole.result.text
    assert streamed.result.mends == whole.result.mends == ()


def test_usage_comes_in_a_stream_too(llama: Peer, stream: bool) -> None:
    ran = ask(llama, "Say hello in five words.", stream, profile={"stream_options": True})
    usage = ran.result.usage
    assert usage.prompt_tokens
    assert usage.total_tokens == usage.prompt_tokens + (usage.completion_tokens or 0)


@pytest.mark.parametrize(
    "choice",
    ["required", {"type": "function", "function": {"name": "get_weather"}}],
    ids=["required", "named"],
)
def test_talk_in_place_of_a_forced_call_is_an_answer_and_no_call_is_made_up(
    llama: Peer, stream: bool, choice: Any
) -> None:
    """This build takes a forced tool_choice and does not enforce it: the model just talks about the tool."""
    weather = Weather()
    ran = ask(
        llama, "What is the weather in Paris?", stream, weather, most=24, settings={"tool_choice": choice}
    )
    assert ran.error is None
    assert weather.cities == []
    assert ran.wire.requests[0]["tool_choice"] == choice
    assert len(ran.wire.requests) == 1
    assert ran.result.text


def test_a_call_cut_off_by_length_never_runs(llama: Peer, stream: bool) -> None:
    weather = Weather()
    settings = {"tool_choice": "required", "max_tokens": 12}
    ran = ask(
        llama, "What is the weather in Paris?", stream, weather, settings=settings, limits=Limits(rounds=1)
    )
    assert weather.cities == []
    assert replies(ran)[0].cut_off


def test_an_answer_cut_off_by_length_is_said_to_be(llama: Peer, stream: bool) -> None:
    ran = ask(llama, "Tell a long story.", stream, most=8)
    assert ran.result.stop_reason == "answered"
    assert replies(ran)[-1].cut_off


def test_with_tool_choice_none_it_only_talks(llama: Peer, stream: bool) -> None:
    weather = Weather()
    ran = ask(llama, "Say hello.", stream, weather, settings={"tool_choice": "none"})
    assert weather.cities == []
    assert len(ran.wire.requests) == 1
    assert ran.result.text


@dataclass
class Person:
    name: str
    age: int


def test_an_answer_of_a_type_comes_as_that_type(llama: Peer, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
    settings = {"response_format": wanted}
    ran = ask(llama, "Give a person named Ann aged 30.", stream, output=Person, settings=settings)
    assert isinstance(ran.result.output, Person)
    assert ran.result.rounds == 1


def test_an_overflow_is_compacted_and_answered(llama: Peer, stream: bool) -> None:
    filler = [{"role": role, "content": "old words " * 300} for role in ("user", "assistant") * 3]
    ran = ask(llama, "Say hello.", stream, history=filler, most=8)
    assert ran.error is None
    assert ran.wire.statuses[0] == 400
    assert ran.wire.statuses[-1] == 200
    assert ran.wire.requests[-1]["messages"][-1]["content"] == "Say hello."


def test_tools_described_in_the_text_leave_the_endpoint_a_plain_conversation(
    llama: Peer, stream: bool
) -> None:
    weather = Weather()
    ran = ask(llama, "Weather in Paris?", stream, weather, tool_mode="hermes", limits=Limits(rounds=2))
    assert ran.error is None
    for request in ran.wire.requests:
        assert "tools" not in request
        assert {m["role"] for m in request["messages"]} <= {"system", "user", "assistant"}
    assert "get_weather" in ran.wire.requests[0]["messages"][0]["content"]


def test_a_field_that_it_refuses_is_left_out_and_learned(llama: Peer, stream: bool) -> None:
    ran = ask(llama, "Say hello.", stream, most=8, settings={"n": 2})
    assert ran.error is None
    assert ran.wire.statuses == [400, 200]
    assert [request.get("n") for request in ran.wire.requests] == [2, 1]


def test_a_wrong_key_is_said_at_once(llama: Peer, stream: bool) -> None:
    ran = ask(llama, "Say hello.", stream, key="sk-wrong-key-of-mine")
    assert isinstance(ran.error, errors.AuthenticationFailed)
    assert "sk-wrong-key-of-mine" not in str(ran.error)
    assert len(ran.wire.requests) == 1


def test_a_wrong_path_says_what_to_check(llama: Peer, stream: bool) -> None:
    endpoint = llama.endpoint(base_url=f"{llama.root}/api/v9", stream=stream)
    ran = asyncio.run(run(endpoint, "Say hello."))
    assert isinstance(ran.error, errors.RequestRejected)
    assert "base URL" in ran.error.hint


def test_runs_of_one_endpoint_share_a_connection_for_as_long_as_the_server_keeps_it(
    llama: Peer, stream: bool
) -> None:
    """It hangs up after every stream, though its header promises to keep the connection.

    A question that is asked in that very moment meets the dying connection, and is asked once more.
    """

    async def two_runs(root: str) -> None:
        endpoint = llama.endpoint(base_url=f"{root}/v1", stream=stream)
        for task in ("Say hello.", "Say goodbye."):
            ran = await run(endpoint, task, close=False, settings={**GREEDY, "max_tokens": 8})
            assert ran.result.text
            assert all("hung up before it answered" in retry.reason for retry in ran.of(Retrying))
        await endpoint.close()

    with Relay(llama.root) as relay:
        asyncio.run(two_runs(relay.root))
        assert relay.connections == (2 if stream else 1)


def test_its_window_is_what_it_runs_with(llama: Peer) -> None:
    async def window() -> int | None:
        endpoint = llama.endpoint()
        found = await context_window(endpoint)
        await endpoint.close()
        return found

    assert asyncio.run(window()) == 2048


def test_its_models_are_listed_by_the_command(llama: Peer) -> None:
    command = [sys.executable, "-m", "glassloop", "models", "--base-url", llama.base_url]
    env = {**os.environ, "GLASSLOOP_API_KEY": str(llama.key), "GLASSLOOP_BASE_URL": llama.base_url}
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert (listed.returncode, listed.stdout) == (0, "smollm2\n"), listed.stderr
