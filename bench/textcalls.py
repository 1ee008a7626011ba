"""Reading calls that are written as text: CPU for a megabyte of prose, and of prose with calls."""

from __future__ import annotations

import statistics
import time

from table import Outcome, Size, main

from glassloop.core.tools import ToolSpec
from glassloop.wire.textcalls import TextCallReader

_TOOLS = {
    "add": ToolSpec("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
}
_PROSE = "The answer is < 3 and > 1, see [1]; `x = {}` holds. Here is a line of ordinary prose.\n"
_CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>\n'
_TEXTS = {
    "prose": _PROSE * 12_000,
    "prose and a call each 8 KB": (_PROSE * 95 + _CALL) * 126,
    "one call with a long argument": _CALL.replace("1}", '"' + "x" * 1_000_000 + '"}'),
}
_PIECES = {"in tokens": 5, "in reads of 4 KB": 4096}


def run(size: Size) -> Outcome:
    figures = {}
    lines = []
    for label, text in _TEXTS.items():
        for how, step in _PIECES.items():
            times = [_milliseconds_per_mb(text, step) for _ in range(size.repeats)]
            figures[f"{label}, {how}"] = {
                "median": statistics.median(times),
                "min": min(times),
                "max": max(times),
            }
            lines.append(f"  {label + ', ' + how:52} {statistics.median(times):10,.1f} ms a MB")
    return Outcome("textcalls", ("glassloop",), figures, tuple(lines))


def _milliseconds_per_mb(text: str, step: int) -> float:
    reader = TextCallReader(_TOOLS)
    began = time.process_time()
    for start in range(0, len(text), step):
        reader.feed(text[start : start + step])
    reader.finish()
    return (time.process_time() - began) / len(text) * 1e9


if __name__ == "__main__":
    main(run, __doc__)
