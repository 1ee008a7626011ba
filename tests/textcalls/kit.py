"""The tools that all cases offer, and how a text is read: whole, and in pieces."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from glassloop.core.tools import ToolSpec
from glassloop.wire.textcalls import TextCallReader, TextCalls, find_calls

REPO = Path(__file__).parents[2]
CORPORA = Path(os.environ.get("GLASSLOOP_CORPORA", REPO.parent / "shared" / "corpora"))
QUIRKS = Path(os.environ.get("GLASSLOOP_QUIRKS", REPO.parent / "shared" / "quirks"))


def spec(name, required=(), **properties):
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, f"The tool {name}.", parameters)


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
TOOLS = {
    tool.name: tool
    for tool in (
        spec("get_weather", ["city"], city=STRING, unit={"type": "string", "enum": ["C", "F"]}),
        spec("add", ["a", "b"], a=INTEGER, b=INTEGER),
        spec("list_cities"),
        spec(
            "plan_route",
            ["stops"],
            stops={"type": "array", "items": STRING},
            fast={"type": "boolean"},
            note={"type": ["string", "null"]},
        ),
        spec("write_note", ["path", "text"], path=STRING, text=STRING),
        spec("set_options", ["options"], options={"type": "object"}, level={"type": "number"}),
    )
}


def calls_of(read: TextCalls):
    """The calls that may run."""
    return [(call.name, dict(call.arguments)) for call in read.calls if call.problem is None]


def problems_of(read: TextCalls):
    return [(call.name, call.problem) for call in read.calls if call.problem is not None]


def read_in_pieces(pieces: Iterable[str], tools=TOOLS, tool_mode="native", **finish) -> tuple[str, TextCalls]:
    """What was shown while streaming (with the tail), and the result."""
    reader = TextCallReader(tools, tool_mode)
    shown = "".join(reader.feed(piece) for piece in pieces)
    read = reader.finish(**finish)
    return shown + read.tail, read


def without_tail(read: TextCalls):
    return (read.content, read.calls, read.mends, read.reasoning)


def assert_same_in_pieces(text: str, tools=TOOLS, sizes=(1, 2, 3, 5, 8, 13), every_split=False):
    """Streaming shows the same text and finds the same calls, however the text is cut."""
    whole = find_calls(text, tools)
    splits = [[text[i : i + size] for i in range(0, len(text), size)] for size in sizes]
    if every_split:
        splits += [[text[:at], text[at:]] for at in range(1, len(text))]
    for pieces in splits:
        shown, read = read_in_pieces(pieces, tools)
        assert without_tail(read) == without_tail(whole), pieces
        assert shown.strip() == read.content.strip(), pieces
    return whole


def quirks(family: str):
    return [
        quirk
        for line in (QUIRKS / "quirks.jsonl").read_text(encoding="utf-8").splitlines()
        if (quirk := json.loads(line))["family"] == family
    ]
