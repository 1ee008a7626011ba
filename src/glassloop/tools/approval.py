"""Who must be asked before a call runs. A `Policy` rules on one call; nothing here asks anybody."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Literal

from glassloop.core.entries import JSON
from glassloop.core.values import Value
from glassloop.core.visible import exact
from glassloop.tools.tool import Tool


class Ruling(Value, frozen=True):
    """What a policy says of one call. `reason` is shown to the person asked, or told to the model.

    `firm`, of an `allow`: it holds also where others' words were read in the run, and the tool can carry something
    away or run a program.
    """

    outcome: Literal["allow", "ask", "deny"]
    reason: str = ""
    firm: bool = False


_ALLOW, _ASK = Ruling("allow"), Ruling("ask")

Policy = Callable[[Tool, Mapping[str, JSON]], Ruling]
"""Rules on a call from its tool and its fitted arguments. Without any effect: it may be asked more than once.
Where it raises, a person is asked."""


def by_tool_and_origin(tool: Tool, arguments: Mapping[str, JSON]) -> Ruling:
    """The default. The tool's own `approve` decides; else a programmer's function is allowed, and a tool
    that came by name (ready-made, loaded from a file, a server's) is asked about unless it only reads."""
    if tool.approve is None:
        trusted = tool.origin == "code" or (tool.effect == "read" and tool.origin != "mcp")
        return _ALLOW if trusted else _ASK
    if isinstance(tool.approve, bool):
        return _ASK if tool.approve else _ALLOW
    answer = tool.approve(arguments)
    if not answer:
        return _ALLOW
    return Ruling("ask", answer if isinstance(answer, str) else "")


def question(tool: Tool, arguments: Mapping[str, JSON], reason: str = "") -> str:
    """What would happen, exactly: the tool's own preview, or every argument in full; with nothing invisible in it."""
    name = f"{exact(tool.name)} ({tool.effect})"
    if tool.preview is not None:
        lines = [f"{name} would do this:", *(f"  {line}" for line in _previewed(tool, arguments))]
    elif arguments:
        lines = [f"{name} would run with:"]
        lines += [f"  {exact(key)}: {exact(_written(value))}" for key, value in arguments.items()]
    else:
        lines = [f"{name} would run without arguments."]
    return "\n".join([*lines, *([f"Asked because {exact(reason)}"] if reason else [])])


def _previewed(tool: Tool, arguments: Mapping[str, JSON]) -> list[str]:
    """The preview's lines, as they may be shown. Where there is none, the arguments."""
    try:
        shown = tool.preview(arguments) if tool.preview else ""
    except Exception as error:  # it would fail when it runs, too; the person sees why, and what was asked for
        shown = f"It would fail: {type(error).__name__}: {error}\n{_written(dict(arguments))}"
    return [exact(line.replace("\t", "    ")) for line in shown.split("\n")]


def _written(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)
