"""The most ordinary completion, read in few steps: one choice, text or standard calls of known tools, nothing else.

Almost every reply is one. Whatever deviates in any way is left to `completion`, which gives the same `Reply`
for these: this module decides nothing of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glassloop.core.entries import JSON, Mend, Reply, ToolCall
from glassloop.core.tools import ToolSpec
from glassloop.wire.arguments import read_arguments
from glassloop.wire.reasoning import may_hold_thinking
from glassloop.wire.strictjson import has_surrogates
from glassloop.wire.textcalls import find_calls
from glassloop.wire.usage import read_cost, read_usage, usage_object

BODY_FIELDS = frozenset(
    ("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "provider")
)
_CHOICE = frozenset(("index", "message", "finish_reason", "logprobs", "native_finish_reason"))
_MESSAGE = frozenset(("role", "content", "tool_calls"))
_CALL = frozenset(("id", "type", "function"))
_FUNCTION = frozenset(("name", "arguments"))
_FINISHES = ("stop", "tool_calls")
_NATIVE_FINISHES = (None, *_FINISHES)
_LIST_OR_NONE = (list, type(None))


def ordinary_reply(body: JSON, tools: Mapping[str, ToolSpec], tool_mode: str) -> Reply | None:
    """The reply of a completion that deviates in nothing, None for any other."""
    choice = _only_choice(body)
    if choice is None:
        return None
    message = choice["message"]
    content = message.get("content")
    if content and not _is_plain_text(content, tools, tool_mode):
        return None
    if content is not None and type(content) is not str:
        return None
    calls: list[ToolCall] = []
    mends: tuple[Mend, ...] = ()
    for item in message.get("tool_calls") or ():
        call = _call(item, tools)
        if call is None:
            return None
        calls.append(call[0])
        mends += call[1]
    counts = usage_object(body)
    model, response_id = body.get("model"), body.get("id")
    return Reply(
        text=content or "",
        tool_calls=tuple(calls),
        finish_reason=choice["finish_reason"],
        usage=read_usage(counts),
        cost=read_cost(counts),
        mends=mends,
        raw=message,
        model=model if type(model) is str and model else None,
        response_id=response_id if type(response_id) is str and response_id else None,
    )


def _is_plain_text(content: JSON, tools: Mapping[str, ToolSpec], tool_mode: str) -> bool:
    """Whether a content is text, and no thinking or call is written in it."""
    if type(content) is not str or may_hold_thinking(content) or has_surrogates(content):
        return False
    found = find_calls(content, tools, tool_mode)
    return found.content == content and not (found.calls or found.mends or found.reasoning)


def _only_choice(body: JSON) -> Mapping[str, Any] | None:
    """The one choice, if it and its message hold what everybody's do and nothing that says more."""
    if type(body) is not dict or not body.keys() <= BODY_FIELDS:
        return None
    try:
        [choice] = body["choices"]
        message, finish, role = choice["message"], choice["finish_reason"], choice["message"]["role"]
    except (KeyError, TypeError, ValueError):
        return None
    if type(choice) is not dict or not choice.keys() <= _CHOICE or finish not in _FINISHES:
        return None
    if choice.get("native_finish_reason") not in _NATIVE_FINISHES:
        return None
    if type(message) is not dict or role != "assistant":
        return None
    if not message.keys() <= _MESSAGE:
        for field, value in message.items():
            if field not in _MESSAGE and (value or not field.isascii()):
                return None
    return choice if type(message.get("tool_calls")) in _LIST_OR_NONE else None


def _call(item: JSON, tools: Mapping[str, ToolSpec]) -> tuple[ToolCall, tuple[Mend, ...]] | None:
    """A call in the standard shape of a tool that exists."""
    if type(item) is not dict or not item.keys() <= _CALL or item.get("type", "function") != "function":
        return None
    function = item.get("function")
    if type(function) is not dict or not function.keys() <= _FUNCTION:
        return None
    try:
        call_id, name, text = item["id"], function["name"], function["arguments"]
    except KeyError:
        return None
    if type(call_id) is not str or type(name) is not str or type(text) is not str:
        return None
    spec = tools.get(name)
    if spec is None or has_surrogates(call_id) or has_surrogates(text):
        return None
    read = read_arguments(text, spec.parameters, name=name)
    if read.value is None:
        return None
    return ToolCall(call_id, name, read.value, text, read.problem), read.mends
