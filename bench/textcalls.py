"""Calls that are written as text: CPU to read a megabyte of prose and of calls, and what describing tools costs."""

from __future__ import annotations

import json
import statistics
import time

from table import Outcome, Size, main

from glassloop.core.tokens import estimate
from glassloop.core.tools import ToolSpec
from glassloop.tools.builtin import load
from glassloop.wire.textcalls import FAMILIES, TextCallReader, render_tools

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
    for label, tokens in _prompt_tokens().items():
        figures[f"tokens for three tools, {label}"] = {"median": tokens, "min": tokens, "max": tokens}
        lines.append(f"  {'three tools described, ' + label:52} {tokens:10,} tokens (estimated)")
    return Outcome("textcalls", ("glassloop",), figures, tuple(lines))


def _prompt_tokens() -> dict[str, int]:
    """Estimated tokens that three ready-made tools take, as the native `tools` field and in each text family."""
    specs = [tool.spec for tool in load("basics")]
    functions = [
        {"name": one.name, "description": one.description, "parameters": one.parameters} for one in specs
    ]
    native = [{"type": "function", "function": each} for each in functions]
    tokens = {"native": estimate(json.dumps(native, ensure_ascii=False, separators=(",", ":")))}
    return tokens | {family: estimate(render_tools(family, specs)) for family in FAMILIES}


def _milliseconds_per_mb(text: str, step: int) -> float:
    reader = TextCallReader(_TOOLS)
    began = time.process_time()
    for start in range(0, len(text), step):
        reader.feed(text[start : start + step])
    reader.finish()
    return (time.process_time() - began) / len(text) * 1e9


if __name__ == "__main__":
    main(run, __doc__)
