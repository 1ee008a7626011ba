"""Whether a request triggers a quirk: by the catalogue's `when`, else by where the conversation stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from glassloop.core.entries import JSON

Body = Mapping[str, JSON]

_HISTORY = frozenset(
    (
        "content",
        "assistant_empty",
        "assistant_with",
        "tool_call_without",
        "tool_content",
        "between",
        "history_arguments",
    )
)


def triggered(action: str, when: Mapping[str, JSON] | None, body: Body, *, played_before: bool) -> bool:
    """Whether the quirk is to be played for this request.

    A reply that is run, shown or fed back is played for a new question only, so that the conversation can go
    on. What is to be retried is played every other time; so is what is to be adapted to without a `when`.
    """
    if when is not None and not all(_holds(name, value, body) for name, value in when.items()):
        return False
    if action == "retry" or (action == "adapt_request" and when is None):
        return not played_before
    if action in ("adapt_request", "raise"):
        return True
    return not has_history(body)


def has_history(body: Body) -> bool:
    """Whether the conversation holds more than a question."""
    return any(message.get("role") in ("assistant", "tool") for message in _messages(body))


def is_about_history(when: Mapping[str, JSON]) -> bool:
    """Whether only a request with calls and results in it can trigger it."""
    role, name = when.get("role"), when.get("tool_name")
    return role in ("assistant", "tool") or name == "absent" or bool(_HISTORY & when.keys())


def _holds(name: str, value: JSON, body: Body) -> bool:
    rule = _RULES.get(name)
    if rule is not None:
        return rule(value, body)
    return name in body and bool(body[name] == value)


def _messages(body: Body) -> list[Body]:
    messages = body.get("messages")
    return (
        [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    )


def _of(role: str, body: Body) -> Iterator[Body]:
    return (message for message in _messages(body) if message.get("role") == role)


def _calls(body: Body) -> Iterator[Body]:
    return (call for message in _of("assistant", body) for call in message.get("tool_calls") or ())


def _functions(body: Body) -> Iterator[Body]:
    return (tool.get("function") or {} for tool in body.get("tools") or ())


def _tool_content(value: JSON, body: Body) -> bool:
    contents = (message.get("content") for message in _of("tool", body))
    return any(isinstance(content, list) if value == "list" else content == value for content in contents)


def _tool_name(value: JSON, body: Body) -> bool:
    if value == "absent":
        return any("name" not in message for message in _of("tool", body))
    return any(function.get("name") == value for function in _functions(body))


def _between(role: JSON, body: Body) -> bool:
    """Whether a message of that role stands between a turn with calls and a result of it."""
    roles = [str(message.get("role")) for message in _messages(body)]
    return bool(
        re.search(rf"assistant (?:tool )*{re.escape(str(role))} (?:\S+ )*?tool ", " ".join(roles) + " ")
    )


def _schema(value: JSON, body: Body) -> bool:
    """Whether a tool's schema is `value`, or holds a keyword that the words of `value` name."""
    schemas = [function.get("parameters") for function in _functions(body)]
    if not isinstance(value, str):
        return value in schemas
    if value.endswith(" []"):
        return f'"{value.removesuffix(" []")}": []' in json.dumps(schemas)
    words = set(re.findall(r"\$?\w+", value))
    return bool(words & set(_keys(schemas)))


def _keys(value: JSON) -> Iterable[str]:
    if isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from _keys(each)
    elif isinstance(value, list):
        for each in value:
            yield from _keys(each)


_RULES: Mapping[str, Callable[[JSON, Body], bool]] = {
    "any": lambda value, body: True,
    "env": lambda value, body: False,  # what a client's environment makes it do cannot be seen from here
    "has": lambda value, body: value in body,
    "stream": lambda value, body: body.get("stream", False) == value,
    "role": lambda value, body: any(_of(str(value), body)),
    "system_count": lambda value, body: sum(1 for _ in _of("system", body)) >= value,
    "content": lambda value, body: any(
        "content" in message and message["content"] == value for message in _of("assistant", body)
    ),
    "assistant_empty": lambda value, body: any(
        not message.get("content") and not message.get("tool_calls") for message in _of("assistant", body)
    ),
    "assistant_with": lambda value, body: any(
        message.get(value) is not None for message in _of("assistant", body)
    ),
    "tool_call_without": lambda value, body: any(value not in call for call in _calls(body)),
    "tool_content": _tool_content,
    "tool_name": _tool_name,
    "between": _between,
    "history_arguments": lambda value, body: any(
        (call.get("function") or {}).get("arguments") == value for call in _calls(body)
    ),
    "schema": _schema,
}
"""The properties of a request that are no plain field of it."""
