"""Glassloop against aimock (npm): fixtures over real HTTP, broken streams, chaos on demand."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import Any

import pytest
from tests.peers.kit import Peer, Ran, Weather, run

from glassloop.core import errors
from glassloop.core.events import Learned, Retrying
from glassloop.models.window import context_window

_fresh = itertools.count()


def ask(peer: Peer, task: str, stream: bool, weather: Weather | None = None, **options: Any) -> Ran:
    """A run under a test id of its own: aimock counts how often a fixture was used by this header."""
    headers = {"X-Test-Id": f"test-{next(_fresh)}", **options.pop("headers", {})}
    connection = {name: options.pop(name) for name in ("key", "model", "profile") if name in options}
    endpoint = peer.endpoint(stream=stream, headers=headers, **connection)
    return asyncio.run(run(endpoint, task, tools=(weather or Weather()).tools, **options))


def test_an_answer_arrives_whole_with_its_usage(aimock: Peer, stream: bool) -> None:
    ran = ask(aimock, "Say hello", stream, profile={"stream_options": True})
    assert ran.result.text == ran.shown == "Hello there, my good friend! 你好 🎒"
    assert (ran.result.rounds, ran.result.mends) == (1, ())
    usage = ran.result.usage
    assert usage.prompt_tokens
    assert usage.completion_tokens
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


@pytest.mark.parametrize(
    ("task", "cities", "answer"),
    [
        ("Weather in Oslo?", ["Oslo"], "It is 20 °C in Oslo."),
        ("Oslo and Rome?", ["Oslo", "Rome"], "20 °C in both."),
        ("Call first, then talk", ["Oslo"], "20 °C."),
    ],
)
def test_calls_run_and_their_results_lead_to_the_answer(
    aimock: Peer, stream: bool, task: str, cities: list[str], answer: str
) -> None:
    weather = Weather()
    ran = ask(aimock, task, stream, weather)
    assert ran.result.text == answer
    assert sorted(weather.cities) == cities
    assert len(ran.wire.requests) == 2
    assert ran.result.mends == ()
    sent = ran.wire.requests[1]["messages"]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == [
        c["id"] for c in sent[-1 - len(cities)]["tool_calls"]
    ]


def test_a_call_cut_off_by_length_never_runs(aimock: Peer, stream: bool) -> None:
    weather = Weather()
    ran = ask(aimock, "Cut off by length", stream, weather)
    assert weather.cities == []
    assert [state for state, _ in ran.tool_results] == ["error"]
    assert ran.result.text == "I could not finish the call."


def test_a_stream_that_ends_in_a_call_is_asked_again_and_the_half_call_never_runs(aimock: Peer) -> None:
    weather = Weather()
    ran = ask(aimock, "Cut in a call", True, weather)
    assert weather.cities == []
    assert ran.result.text == "No call at all, then."
    assert len(ran.of(Retrying)) == 1


def test_a_stream_that_ends_in_its_text_is_asked_again_and_shown_once(aimock: Peer) -> None:
    ran = ask(aimock, "Cut the stream", True)
    assert ran.result.text == ran.shown == "This answer is long enough to be cut in the middle of it."
    assert [event.discard for event in ran.of(Retrying)] == [True]


def test_an_invented_tool_is_told_to_the_model(aimock: Peer, stream: bool) -> None:
    weather = Weather()
    ran = ask(aimock, "An invented tool", stream, weather)
    assert weather.cities == []
    ((state, text),) = ran.tool_results
    assert state == "error"
    assert "get_weather" in text
    assert ran.result.text == "There is no such tool."


def test_a_throttle_is_waited_out(aimock: Peer, stream: bool) -> None:
    ran = ask(aimock, "Busy at first", stream)
    assert ran.result.text == "Now I have time."
    assert ran.wire.statuses == [429, 200]


def test_an_overflow_is_compacted_and_sent_once_more(aimock: Peer, stream: bool) -> None:
    filler = [{"role": role, "content": "old words " * 300} for role in ("user", "assistant") * 4]
    ran = ask(aimock, "Overflow at first", stream, history=filler)
    assert ran.result.text == "Now it fits."
    first, *_, last = ran.wire.requests
    assert len(str(last["messages"])) < len(str(first["messages"])) / 2
    assert last["messages"][-1]["content"] == "Overflow at first"


def test_a_refusal_of_tools_is_learned_and_calls_are_read_from_the_text(aimock: Peer, stream: bool) -> None:
    weather = Weather()
    ran = ask(aimock, "No tools here: Oslo?", stream, weather)
    assert weather.cities == ["Oslo"]
    assert ran.result.text == "It is 20 °C in Oslo."
    assert [bool(request.get("tools")) for request in ran.wire.requests] == [True, False, False]
    assert len(ran.of(Learned)) == 1
    assert "tool_call" not in ran.shown


@dataclass
class Person:
    name: str
    age: int


def test_an_answer_of_a_type_comes_as_that_type(aimock: Peer, stream: bool) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": {"type": "object"}}}
    ran = ask(aimock, "Who is Ann?", stream, output=Person, settings={"response_format": schema})
    assert ran.result.output == Person("Ann", 30)


def test_reasoning_is_kept_apart_from_the_answer(aimock: Peer, stream: bool) -> None:
    ran = ask(aimock, "Think first", stream, model="o3-mini")
    assert ran.result.text == ran.shown == "Good morning."
    assert ran.result.entries[-1].reasoning == "A greeting will do."


def test_a_wrong_key_and_an_unknown_model_are_said_at_once(aimock: Peer, stream: bool) -> None:
    wrong = ask(aimock, "Say hello", stream, key="wrong")
    assert isinstance(wrong.error, errors.AuthenticationFailed)
    assert "wrong" not in str(wrong.error)
    unknown = ask(aimock, "Unknown model", stream)
    assert isinstance(unknown.error, errors.ModelNotFound)
    assert "`nope` does not exist" in str(unknown.error)
    assert [len(one.wire.requests) for one in (wrong, unknown)] == [1, 1]


@pytest.mark.parametrize(
    ("chaos", "kind"),
    [
        ("drop", errors.EndpointError),
        ("malformed", errors.EndpointError),
        ("disconnect", errors.ConnectionLost),
        ("ratelimit", errors.RateLimited),
    ],
)
def test_chaos_without_end_is_a_typed_error_and_the_question_is_kept(
    aimock: Peer, stream: bool, chaos: str, kind: type[Exception]
) -> None:
    ran = ask(aimock, "Say hello", stream, headers={f"X-AIMock-Chaos-{chaos}": "1"})
    assert isinstance(ran.error, kind)
    assert 1 < len(ran.wire.requests) <= 5
    assert ran.result.messages[0]["content"] == "Say hello"


def test_its_models_are_listed_and_it_tells_no_window(aimock: Peer) -> None:
    async def both() -> tuple[list[str], int | None]:
        endpoint = aimock.endpoint()
        names, window = await endpoint.models(), await context_window(endpoint)
        await endpoint.close()
        return names, window

    names, window = asyncio.run(both())
    assert "gpt-4o" in names
    assert window is None
