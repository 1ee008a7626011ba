"""JSON that describes calls, in each shape that models write: which keys name the tool and which hold its arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.wire.arguments import ARGUMENT_FIELDS, read_arguments
from glassloop.wire.textcalls.found import Found

NAME_KEYS = ("name", "tool_name", "function_name", "tool", "function", "action")
ARGUMENT_KEYS = (*ARGUMENT_FIELDS, "action_input")
ID_KEYS = ("id", "tool_call_id", "call_id")
LIST_KEYS = ("tool_calls", "function_calls", "calls")
WRAPPER_KEYS = ("tool_call", "function_call", "function")
TYPES = ("function", "tool_call", "function_call", "tool_use")
CALL_KEYS = frozenset(
    (*NAME_KEYS, *ARGUMENT_KEYS, *ID_KEYS, *LIST_KEYS, *WRAPPER_KEYS, "type", "index", "role", "thought")
)

_NAME_IN_TEXT = (
    re.compile(rf'"(?:{"|".join(NAME_KEYS)})"\s*:\s*"([^"\\]+)"'),
    re.compile(r"^\[?\s*([A-Za-z_][\w.]*)\s*\("),
    re.compile(r'^\[?\s*\{\s*"([\w.-]+)"\s*:\s*\{'),
)


def read_json(text: str) -> tuple[JSON, str | None]:
    """A value of any type by the arguments ladder, and why it could not be read."""
    read = read_arguments(f'{{"value": {text}}}', {})
    if read.value is None or read.problem:
        return None, read.problem or "no JSON value"
    return read.value.get("value"), None


def name_in(text: str) -> str:
    """The tool's name in a call that cannot be read, or an empty string."""
    return next((found.group(1) for pattern in _NAME_IN_TEXT if (found := pattern.search(text))), "")


def calls_in(value: JSON) -> tuple[Found, ...] | None:
    """The calls that `value` describes, or None where any part of it describes none."""
    if isinstance(value, list):
        inner = [calls_in(item) for item in value]
        if not inner or any(calls is None for calls in inner):
            return None
        return tuple(call for calls in inner if calls for call in calls)
    if not isinstance(value, Mapping):
        return None
    for key in LIST_KEYS:
        if isinstance(value.get(key), list):
            return calls_in(value[key])
    return _one_call(value)


def _one_call(value: Mapping[str, JSON]) -> tuple[Found, ...] | None:
    for key in WRAPPER_KEYS:
        if isinstance(value.get(key), Mapping):
            inner = calls_in(value[key])
            return inner and tuple(Found(c.name, c.arguments, c.id or _id(value)) for c in inner)
    name = next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str)), "")
    if name:
        return (_named(name, value),)
    if len(value) == 1 and isinstance(next(iter(value.values())), Mapping):  # Apertus: {"get_weather": {...}}
        return tuple(Found(key, arguments) for key, arguments in value.items())
    return None


def _named(name: str, value: Mapping[str, JSON]) -> Found:
    key = next((key for key in ARGUMENT_KEYS if key in value), None)
    others = bool(set(value) - CALL_KEYS)
    if key is None and others:
        beside = {key: inner for key, inner in value.items() if key not in NAME_KEYS or inner != name}
        return Found(name, beside, _id(value), is_flat=True)
    return Found(name, _as_object(value[key] if key else {}), _id(value), has_other_keys=others)


def _as_object(arguments: JSON) -> Mapping[str, JSON] | str:
    if isinstance(arguments, (Mapping, str)):
        return arguments
    return {} if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _id(value: Mapping[str, JSON]) -> str:
    return next((value[key] for key in ID_KEYS if isinstance(value.get(key), str)), "")
