"""A model's call of one tool → its fitted arguments, or what is wrong. Pure; `coerce.py` does the types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace

from glassloop.core.entries import JSON, ToolCall
from glassloop.core.values import Value
from glassloop.tools.coerce import Fitting, is_as_declared
from glassloop.tools.values import number_literals, read_json
from glassloop.tools.wording import expected, shorten

_WRAPPERS = frozenset(
    {
        "arguments",
        "parameters",
        "input",
        "kwargs",
        "args",
        "params",
        "properties",
        "tool_input",
        "action_input",
        "function",
        "function_call",
    }
)
_LABELS = frozenset({"function", "object", "tool", "tool_call", "function_call"})
_MAX_WRAPPERS = 3
_MOST_LINES = 10


class Fitted(Value, frozen=True):
    """Arguments as the schema has them, what was changed on the way, and what is wrong (empty: nothing)."""

    arguments: Mapping[str, JSON]
    problems: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def fit_arguments(call: ToolCall, name: str, schema: Mapping[str, Any]) -> Fitted:
    """Fit a call's arguments to the schema of the tool `name`, inside a wrapper if the model sent one."""
    if is_as_declared(call.arguments, schema):
        return Fitted(dict(call.arguments or {}))
    sent: Any = _as_object(call.arguments) if call.arguments else {}
    if sent is None:
        return Fitted({}, (f"expected an object, you sent {shorten(call.arguments)}",))
    fitted = _fitted(call, sent, schema)
    for _ in range(_MAX_WRAPPERS):
        if not fitted.problems or (inner := _unwrapped(sent, name, schema)) is None:
            break
        sent, fitted = inner, _fitted(call, inner, schema)
        fitted = replace(fitted, changes=("wrapper around the arguments removed", *fitted.changes))
    return fitted


def explain(name: str, problems: tuple[str, ...], schema: Mapping[str, Any]) -> str:
    """The problems as a model should read them, followed by what the tool takes."""
    required = set(schema.get("required", ()))
    takes = [
        f"{each} ({expected(part)}{', required' if each in required else ''})"
        for each, part in schema.get("properties", {}).items()
    ]
    lines = [
        f"The arguments do not fit `{name}`, so it did not run:",
        *(f"- {problem}" for problem in first_few(problems)),
    ]
    lines.append(f"Its parameters: {', '.join(takes)}." if takes else "It takes no parameters: send {}.")
    return "\n".join(lines)


def first_few(lines: tuple[str, ...]) -> tuple[str, ...]:
    """At most ten of them, and how many more there are: a list of thousands can be wrong in each item."""
    left_out = len(lines) - _MOST_LINES
    return (*lines[:_MOST_LINES], f"and {left_out} more") if left_out > 0 else lines


def _fitted(call: ToolCall, sent: Mapping[str, JSON], schema: Mapping[str, Any]) -> Fitted:
    fitting = Fitting(cache(lambda: number_literals(call.text)))
    arguments = fitting.fit(sent, {"additionalProperties": False, **schema})
    return Fitted(arguments, tuple(fitting.problems), tuple(fitting.changes))


def _unwrapped(sent: Any, name: str, schema: Mapping[str, Any]) -> Mapping[str, JSON] | None:
    """What is inside `{"arguments": {...}}` or `{"name": <this tool>, "arguments": {...}}`, or None."""
    if not isinstance(sent, Mapping):
        return None
    declared = schema.get("properties", {})
    rest = [key for key, value in sent.items() if key in declared or value not in (name, *_LABELS)]
    if len(rest) != 1 or rest[0] in declared or rest[0].strip().lower() not in _WRAPPERS:
        return None
    return _as_object(sent[rest[0]])


def _as_object(value: JSON) -> Mapping[str, JSON] | None:
    if isinstance(value, str):
        try:
            value = read_json(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, Mapping) else None
