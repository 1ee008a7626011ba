"""Events as JSON lines, for `--json`: one object a line, `type` first, then the event's fields by their names.

`type` is the event's class name in snake case (`text_delta`, `tool_started`, `finished`, …; the list is in
`glassloop.core.events`). Values inside (a reply, a tool call) are objects of their fields, without a type, save
that content parts and entries carry one. Bytes are base64. `finished` has the result's `text`, `stop_reason`,
`rounds`, `usage`, `cost`, `mends` and `session` (its id), and `error` with `type` and `message` where the run ended so.
Fields may be added; none is renamed or removed within a major version.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from glassloop.cli.safe_text import INVISIBLE
from glassloop.core.entries import File, Image, Note, Reply, Summary, System, Text, ToolResult, User
from glassloop.core.events import Event, Finished
from glassloop.core.values import Value

_TYPED = (Text, Image, File, System, User, Reply, ToolResult, Note, Summary)
_RESULT_FIELDS = ("text", "stop_reason", "rounds", "usage", "cost", "mends")


def json_line(event: Event) -> str:
    """The event as one line of JSON. Exact, yet safe in a terminal: what could hide or move is a `\\u` escape."""
    text = json.dumps(event_object(event), ensure_ascii=False, separators=(", ", ": "), default=str)
    return INVISIBLE.sub(_json_escape, text)


def event_object(event: Event) -> dict[str, Any]:
    """The event as plain JSON values."""
    if isinstance(event, Finished):
        return {"type": "finished", **_result(event.result), "error": _error(event.error)}
    return {"type": snake_case(type(event).__name__), **_fields(event)}


def snake_case(name: str) -> str:
    """`TextDelta` → `text_delta`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _result(result: Any) -> dict[str, Any]:
    session = getattr(getattr(result, "session", None), "id", None)  # its journal is no news, and may be long
    return {**{name: _plain(getattr(result, name, None)) for name in _RESULT_FIELDS}, "session": session}


def _error(error: BaseException | None) -> dict[str, Any] | None:
    return None if error is None else {"type": type(error).__name__, "message": str(error)}


def _fields(value: Value) -> dict[str, Any]:
    return {name: _plain(getattr(value, name)) for name in value.__struct_fields__ if name != "bound"}


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        typed = {"type": snake_case(type(value).__name__)} if isinstance(value, _TYPED) else {}
        return {**typed, **_fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _json_escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
