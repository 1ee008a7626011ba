"""A message's tool calls, in whatever place and shape they came → `ToolCall`s. What a tool is, is not known here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from glassloop.core.entries import JSON, Mend, ToolCall
from glassloop.core.tools import ToolSpec
from glassloop.wire.arguments import ARGUMENT_FIELDS, read_arguments
from glassloop.wire.names import resolve_name

CALL_FIELDS = ("tool_calls", "tool_call", "toolCalls", "function_calls")
"""Where calls are. The legacy `function_call` counts only when none of these holds any."""

NAME_FIELDS = ("name", "tool_name", "function_name")
_CALL_PARTS = ("tool_use", "tool_call", "function_call", "function")
_NOT_EXTRA = frozenset((*NAME_FIELDS, *ARGUMENT_FIELDS, "id", "type", "function", "index", "custom"))

CUT_OFF = "The reply was cut off before it was complete, so this call did not run. Send it again, shorter or in parts."


NOT_ASKED_FOR = "No tool may be called now (tool_choice is none), so this call did not run. Answer in words."


def call_items(message: Mapping[str, JSON]) -> tuple[list[dict[str, JSON]], list[Mend]]:
    """The wire's calls of one message as a list of objects, and a mend for each unusual place."""
    mends: list[Mend] = []
    for field in CALL_FIELDS:
        items = items_of(message.get(field))
        if items:
            if field != "tool_calls" or not isinstance(message[field], list):
                mends.append(Mend("calls_shape", f"calls were read from {field} in an unusual shape"))
            return items, mends
    legacy = decoded(message.get("function_call"))
    if isinstance(legacy, dict) and any(legacy.get(key) for key in (*NAME_FIELDS, *ARGUMENT_FIELDS)):
        return [{"function": legacy}], [Mend("legacy_function_call", "the call came as function_call")]
    content = message.get("content")
    parts = [part for part in content if is_call_part(part)] if isinstance(content, list) else []
    if parts:
        mends.append(Mend("calls_in_content", "calls were read from parts of the content"))
    return parts, mends


def read_calls(
    items: Sequence[Mapping[str, JSON]], tools: Mapping[str, ToolSpec], *, cut_off: bool = False
) -> tuple[list[ToolCall], list[Mend]]:
    """The calls of a turn. `cut_off` blocks them all: the last may lack its end, and the others are half a plan."""
    calls: list[ToolCall] = []
    mends: list[Mend] = []
    for item in _unbundled(items, tools, mends):
        call, call_mends = _read_call(item, tools)
        if call is None:
            mends.append(Mend("empty_call", "a call without name, arguments and id was dropped"))
            continue
        mends += call_mends
        calls.append(blocked(call) if cut_off else call)
    return calls, mends


_BUNDLE = re.compile(r"(?:functions\.)?(?:multi_tool_use[._])?parallel|multi_tool_use")


def _unbundled(
    items: Sequence[Mapping[str, JSON]], tools: Mapping[str, ToolSpec], mends: list[Mend]
) -> Iterator[Mapping[str, JSON]]:
    """The calls, and in place of one that bundles others, which some models invent, those others.

    A bundle names each tool and its arguments as a call does; nothing is guessed.
    """
    for item in items:
        function = _function_of(item)
        name = first_text(function, NAME_FIELDS)
        bundled = _bundled(function) if name not in tools and _BUNDLE.fullmatch(name) else []
        if bundled:
            mends.append(Mend("bundled_calls", f"{len(bundled)} calls were read from one of {name!r}"))
        yield from bundled or [item]


def _bundled(function: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    arguments = read_arguments(first_given(function, ARGUMENT_FIELDS)).value or {}
    uses = arguments.get("tool_uses")
    uses = uses if isinstance(uses, list) else []
    named = [use for use in uses if isinstance(use, dict) and isinstance(use.get("recipient_name"), str)]
    if len(named) != len(uses):
        return []
    return [
        {"function": {"name": use["recipient_name"], "arguments": use.get("parameters")}} for use in named
    ]


def blocked(call: ToolCall) -> ToolCall:
    """The call, which must not run because the reply it stands in is not complete."""
    return ToolCall(call.id, call.name, call.arguments, call.text, CUT_OFF, call.extra)


def withheld(calls: Sequence[ToolCall]) -> tuple[tuple[ToolCall, ...], Mend]:
    """The calls of a reply that was asked to hold none: they must not run, and the model is told why."""
    told = tuple(call if call.problem else replace(call, problem=NOT_ASKED_FOR) for call in calls)
    return told, Mend("unasked_call", f"{len(told)} calls did not run: tool_choice was none")


def is_call_part(part: JSON) -> bool:
    """Whether a part of a content list is a tool call."""
    return isinstance(part, dict) and part.get("type") in _CALL_PARTS


def items_of(value: JSON) -> list[dict[str, JSON]]:
    """A list of call objects, from a list, one object, a mapping of objects, or any of these as JSON text."""
    value = decoded(value)
    if isinstance(value, dict):
        is_call = any(key in value for key in ("function", "custom", "index", *NAME_FIELDS, *ARGUMENT_FIELDS))
        value = [value] if is_call else [_at(key, item) for key, item in value.items()]
    if not isinstance(value, list):
        return []
    items: list[dict[str, JSON]] = []
    for item in map(decoded, value):
        if isinstance(item, dict):
            items.append(item)
        elif isinstance(item, list):
            items += [inner for inner in item if isinstance(inner, dict)]
    return items


def _at(key: str, item: JSON) -> JSON:
    """An item of a mapping whose keys are positions, which tell a stream's fragments apart."""
    return {"index": key, **item} if key.isdecimal() and isinstance(item, dict) else item


def decoded(value: JSON) -> JSON:
    """What stands in a place for an object or a list: the same as JSON text counts too."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def _read_call(item: Mapping[str, JSON], tools: Mapping[str, ToolSpec]) -> tuple[ToolCall | None, list[Mend]]:
    function = _function_of(item)
    raw_name = first_text(function, NAME_FIELDS)
    raw_arguments = first_given(function, ARGUMENT_FIELDS)
    call_id = id_text(item.get("id")) or id_text(item.get("call_id")) or id_text(item.get("tool_call_id"))
    if not raw_name and raw_arguments in (None, "") and not call_id:
        return None, []
    name, renamed = resolve_name(raw_name, tools)
    mends = [renamed] if renamed else []
    spec = tools.get(name)
    arguments = read_arguments(raw_arguments, spec.parameters if spec else None, name=name)
    problem = (
        arguments.problem if name.strip() else "The call names no tool. Send it again with the tool's name."
    )
    extra = {key: value for key, value in item.items() if key not in _NOT_EXTRA and value is not None}
    call = ToolCall(call_id, name, arguments.value, _as_text(raw_arguments), problem, extra or None)
    return call, [*mends, *arguments.mends]


def _function_of(item: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The object that holds name and arguments; a plain string beside arguments is the name."""
    for field in ("function", "custom"):
        value = decoded(item.get(field))
        if isinstance(value, dict) and value:
            missing = {key: item[key] for key in (*NAME_FIELDS, *ARGUMENT_FIELDS) if key in item}
            return {**missing, **{key: inner for key, inner in value.items() if inner is not None}}
        if isinstance(value, str):
            return {**item, "name": value}
    return item


def first_text(value: Mapping[str, JSON], fields: Sequence[str]) -> str:
    """The first of the fields that holds a string that is not empty."""
    return next((text for field in fields if isinstance(text := value.get(field), str) and text), "")


def first_given(value: Mapping[str, JSON], fields: Sequence[str]) -> JSON:
    """The first of the fields that holds something, else the first that is not null."""
    given = [value[field] for field in fields if value.get(field) is not None]
    return next((each for each in given if each not in ("", {})), given[0] if given else None)


def id_text(value: JSON) -> str:
    """An id as text: some endpoints count with numbers."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def _as_text(raw: JSON) -> str:
    if raw is None or isinstance(raw, str):
        return raw or ""
    return json.dumps(raw, ensure_ascii=False, separators=(",", ":"))
