"""A chunk in the middle of a stream that cannot be read: what came around it may parse, with a hole in it."""

import asyncio
import json

from tests.models.asking import heard_from

from glassloop.core.errors import ConnectionLost
from glassloop.core.events import Learned
from glassloop.core.tools import ToolSpec
from glassloop.testing.server import calls, events

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
