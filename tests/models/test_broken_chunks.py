"""A chunk in the middle of a stream that cannot be read: what came around it may parse, with a hole in it."""

import asyncio
import json

import pytest
from tests.models.asking import heard_from

from glassloop.core.errors import ConnectionLost
from glassloop.core.events import Learned, Retrying
from glassloop.core.tools import ToolSpec
from glassloop.testing.server import Raw, calls, events, says

NOTE = ToolSpec(
    "write_note", "", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
)


def chunk(arguments: str, finish: str | None = None, **opening: str) -> str:
    function = {"arguments": arguments, **({"name": "write_note"} if opening else {})}
    delta = {"tool_calls": [{"index": 0, "function": function, **opening}]} if finish is None else {}
    return json.dumps({"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


HOLED = events(
    chunk('{"text": "never delete t', id="call_1"),
    chunk("he old backu")[:60],
    chunk('ps before Friday"}'),
    chunk("", "tool_calls"),
)
TEXT = "never delete the old backups before Friday"


def test_a_call_with_a_hole_in_it_is_asked_for_again():
    script = [HOLED, calls(("write_note", {"text": TEXT}))]
    said, requests = asyncio.run(heard_from(script, tools=(NOTE,)))
    assert [(call.arguments, call.problem) for call in said.reply.tool_calls] == [({"text": TEXT}, None)]
    assert len(requests) == 2


def test_a_call_that_comes_with_a_hole_every_time_never_runs_and_teaches_nothing():
    said, requests = asyncio.run(heard_from(lambda request: HOLED, tools=(NOTE,)))
    assert isinstance(said.error, ConnectionLost)
    assert said.of(Learned) == []
    assert len(requests) == 5


def words(content: str, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return json.dumps({"id": "c1", "choices": [choice]})


def holed_text(last: str | None, *, done: bool) -> Raw:
    chunks = [words("Never delete t"), words("he old backu")[:60], words("ps before Friday.")]
    return events(*chunks, *([words("", last)] if last else []), done=done)


BROKEN_TEXTS = pytest.mark.parametrize(
    "broken", [holed_text("stop", done=True), holed_text(None, done=True), holed_text(None, done=False)]
)


@BROKEN_TEXTS
def test_a_text_with_a_hole_in_it_is_asked_for_again_and_shown_once(broken: Raw) -> None:
    said, requests = asyncio.run(heard_from([broken, says(TEXT)]))
    assert said.reply.text == said.shown == TEXT
    assert [event.discard for event in said.of(Retrying)] == [True]
    assert len(requests) == 2


@BROKEN_TEXTS
def test_where_streams_break_again_and_again_the_whole_answer_is_asked_for(broken: Raw) -> None:
    said, requests = asyncio.run(
        heard_from(lambda request: broken if request.body.get("stream") else says(TEXT))
    )
    assert said.reply.text == TEXT
    assert [bool(request.body.get("stream")) for request in requests] == [True, True, False]
    assert said.of(Learned) == []


@BROKEN_TEXTS
def test_a_text_that_never_comes_whole_ends_in_an_error_with_what_came_before_the_hole(broken: Raw) -> None:
    said, requests = asyncio.run(heard_from(lambda request: broken))
    assert isinstance(said.error, ConnectionLost)
    assert said.error.partial.text == "Never delete t"
    assert said.of(Learned) == []
    assert len(requests) == 5


def test_what_follows_a_broken_chunk_is_not_waited_for() -> None:
    endless = events(words("It "), words("is 4.")[:40], done=False, end="stall")
    said, requests = asyncio.run(heard_from([endless, says(TEXT)]))
    assert said.reply.text == TEXT
    assert len(requests) == 2
