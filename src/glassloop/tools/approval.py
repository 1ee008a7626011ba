"""Who must be asked before a call runs. A `Policy` rules on one call; nothing here asks anybody."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from glassloop.core.entries import JSON
from glassloop.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a policy says of one call. `reason` is shown to the person asked, or told to the model."""

    outcome: Literal["allow", "ask", "deny"]
    reason: str = ""


Policy = Callable[[Tool, Mapping[str, JSON]], Ruling]
"""Rules on a call from its tool and its fitted arguments. Pure: it may be asked more than once.
Where it raises, a person is asked."""


def by_tool_and_origin(tool: Tool, arguments: Mapping[str, JSON]) -> Ruling:
    """The default. The tool's own `approve` decides; else a programmer's function is allowed, and a tool
    that came by name (ready-made, loaded from a file, a server's) is asked about unless it only reads."""
    if tool.approve is None:
        trusted = tool.origin == "code" or (tool.effect == "read" and tool.origin != "mcp")
        return Ruling("allow") if trusted else Ruling("ask")
    if isinstance(tool.approve, bool):
        return Ruling("ask") if tool.approve else Ruling("allow")
    answer = tool.approve(arguments)
    if not answer:
        return Ruling("allow")
    return Ruling("ask", answer if isinstance(answer, str) else "")


def question(tool: Tool, arguments: Mapping[str, JSON], reason: str = "") -> str:
    """What would happen, exactly: every argument in full, with nothing invisible in it."""
    lines = [f"{visible(tool.name)} ({tool.effect}) would run with:"]
    lines += [f"  {visible(name)}: {visible(_written(value))}" for name, value in arguments.items()]
    if not arguments:
        lines = [f"{visible(tool.name)} ({tool.effect}) would run without arguments."]
    return "\n".join([*lines, *([f"Asked because {visible(reason)}"] if reason else [])])


def visible(text: str) -> str:
    """Text with control, format, private and unusual space characters shown as escapes."""
    return "".join(_escaped(char) if _is_hidden(char) else char for char in text)


def _is_hidden(char: str) -> bool:
    return char != " " and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _written(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)
