"""What the tests of reading share: the catalogue's tools, bodies in wire form, and where the corpora are."""

import base64
import gzip
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from glassloop.core.entries import Reply
from glassloop.core.events import Delta, ReasoningDelta, TextDelta
from glassloop.core.tools import ToolSpec
from glassloop.wire.completion import Failure
from glassloop.wire.stream import StreamReader

REPOSITORY = Path(__file__).resolve().parents[2]
END = b"data: [DONE]\n\n"


def _schema(required: Iterable[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


STRING = {"type": "string"}
TOOLS: Mapping[str, ToolSpec] = {
    name: ToolSpec(name, "", parameters)
    for name, parameters in {
        "get_weather": _schema(["city"], city=STRING, unit={"type": "string", "enum": ["C", "F"]}),
        "add": _schema(["a", "b"], a={"type": "integer"}, b={"type": "integer"}),
        "list_cities": _schema(),
        "plan_route": _schema(
            ["stops"],
            stops={"type": "array", "items": STRING},
            fast={"type": "boolean"},
            note={"type": ["string", "null"]},
        ),
        "write_note": _schema(["path", "text"], path=STRING, text=STRING),
    }.items()
}
"""The tools that the catalogue's README says are assumed in every example."""


def shared(variable: str, folder: str, file: str) -> Path:
    """A file of the data kept beside the repository. Skips the test, saying so, where there is none."""
    path = Path(os.environ.get(variable) or REPOSITORY.parent / "shared" / folder) / file
    if not path.exists():
        pytest.skip(f"{path} is absent; set {variable} to the folder that holds {file}")
    return path


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def wire_bytes(wire: Mapping[str, Any]) -> list[bytes] | None:
    """The socket writes of a catalogue entry, content encoding undone. None for an entry about something else."""
    if wire["mode"] == "sse":
        if wire.get("encoding") == "base64":
            return [gzip.decompress(base64.b64decode("".join(wire["events"])))]
        return [event.encode() for event in wire["events"]]
    if wire["mode"] == "json" or (wire["mode"] == "http" and wire["status"] == 200):
        body = wire["body"]
        return [body.encode() if isinstance(body, str) else json.dumps(body).encode()]
    return None


def completion(message: Mapping[str, Any], finish: str | None = "stop", **fields: Any) -> bytes:
    """A body that came at once."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "m", "choices": [choice], **fields}).encode()


def event(delta: Any, finish: str | None = None, **fields: Any) -> bytes:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: " + json.dumps({"id": "c1", "model": "m", "choices": [choice], **fields}).encode() + b"\n\n"
    )


def stream(*deltas: Any, finish: str | None = "stop", end: bytes = END) -> bytes:
    """A whole stream of these deltas."""
    return b"".join(map(event, deltas)) + event({}, finish) + end


def calls_stream(*fragments: Any, finish: str | None = "tool_calls") -> bytes:
    """A stream with one fragment of a call in each delta."""
    return stream(*({"tool_calls": [fragment]} for fragment in fragments), finish=finish)


def fragment(arguments: Any = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    """One element of a delta's `tool_calls`, without what was not given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**fields, "function": function}


def read_in(
    pieces: Iterable[bytes], tools: Mapping[str, ToolSpec] = TOOLS
) -> tuple[str, str, Reply | Failure]:
    """The text and the reasoning shown while these reads came in, tail included, and what came of them."""
    reader = StreamReader(tools)
    deltas: list[Delta] = []
    for piece in pieces:
        deltas += reader.feed(piece)
    outcome = reader.finish()
    deltas += reader.tail
    return joined(deltas, TextDelta), joined(deltas, ReasoningDelta), outcome


def joined(deltas: Iterable[Delta], kind: type[TextDelta] | type[ReasoningDelta]) -> str:
    """All text of the deltas of one kind."""
    return "".join(delta.text for delta in deltas if isinstance(delta, kind))


def reply_in(body: bytes, tools: Mapping[str, ToolSpec] = TOOLS) -> Reply:
    """The reply that a body holds."""
    outcome = read_in([body], tools)[2]
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure_in(body: bytes) -> Failure:
    """The failure that a body is."""
    outcome = read_in([body])[2]
    assert isinstance(outcome, Failure), outcome
    return outcome


def ready(reply: Reply) -> list[tuple[str, Any]]:
    """Name and arguments of the calls that may run."""
    return [(call.name, call.arguments) for call in reply.tool_calls if call.problem is None]


def catalogue(families: str) -> list[dict[str, Any]]:
    """The quirks of these families."""
    entries = json_lines(shared("GLASSLOOP_QUIRKS", "quirks", "quirks.jsonl"))
    return [entry for entry in entries if re.match(rf"[{families}]\d", entry["id"])]
