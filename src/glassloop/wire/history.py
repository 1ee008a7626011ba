"""Conversations in Chat Completions shape, from anywhere → entries, and back.

Read with the same tolerance as replies. What a call's results lack to be sendable (an id, their place) is
mended here once, so that everything behind it sees a history as our own runs leave it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from glassloop.core.entries import JSON, Entry, File, Image, Part, Reply, System, Text, ToolResult, User
from glassloop.wire.compact import dumps
from glassloop.wire.groups import divided, groups_of
from glassloop.wire.messages import render
from glassloop.wire.parts import Message
from glassloop.wire.profile import Profile


def entries_from_messages(messages: Iterable[Mapping[str, JSON]]) -> tuple[Entry, ...]:
    """Read messages of any age and origin: legacy `function_call`, the developer role, content as text or parts,
    null, arguments as text or object, ids that are missing or used twice.

    A result goes to the call with its id, else to the first call of its name that has none, else to the first
    that has none at all; results without a call are dropped. Raises ValueError naming the message for what is no
    message.
    """
    reader = _Reader()
    for position, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise ValueError(f"message {position} of the history must be an object, not {message!r:.80}")
        reader.read(message, position)
    return tuple(reader.entries())


def messages_from_entries(entries: Sequence[Entry]) -> list[Message]:
    """The messages that a neutral endpoint would be sent."""
    systems, rest = divided(entries)
    text = "\n\n".join(system.text for system in systems if system.text.strip())
    leading: list[Message] = [{"role": "system", "content": text}] if text else []
    neutral = Profile()
    return [*leading, *(message for group in groups_of(rest) for message in render(group, neutral))]


@dataclass(slots=True)
class _Turn:
    """An assistant turn: `sent_ids` are its calls' ids as they came, `results` by the call's position."""

    reply: Reply
    sent_ids: list[str]
    results: dict[int, ToolResult] = field(default_factory=dict)

    def place_for(self, call_id: str, name: str) -> int | None:
        open_calls = [index for index in range(len(self.sent_ids)) if index not in self.results]
        if call_id:
            return next((index for index in open_calls if self.sent_ids[index] == call_id), None)
        named = (index for index in open_calls if self.reply.tool_calls[index].name == name)
        return next(named, open_calls[0] if open_calls and not name else None)


class _Reader:
    """Reads messages one after the other; results find their turn even where they come late."""

    def __init__(self) -> None:
        self._items: list[Entry | _Turn] = []
        self._used: set[str] = set()

    def read(self, message: Mapping[str, JSON], position: int) -> None:
        role = str(message.get("role") or "user").lower()
        match role:
            case "system" | "developer":
                self._items.append(System(_text(message.get("content"))))
            case "assistant" | "model" | "ai":
                self._read_reply(message)
            case "tool" | "function" | "ipython" | "tool_result":
                self._read_result(message)
            case "user" | "human":
                self._read_user(message)
            case _:
                raise ValueError(f"message {position} of the history has the unknown role {role!r:.40}")

    def entries(self) -> Iterator[Entry]:
        for item in self._items:
            if not isinstance(item, _Turn):
                yield item
                continue
            yield item.reply
            yield from (item.results[index] for index in sorted(item.results))

    def _read_reply(self, message: Mapping[str, JSON]) -> None:
        from glassloop.wire.names import with_unique_ids
        from glassloop.wire.reply import read_completion

        reply = read_completion({"choices": [{"message": dict(message)}]}, {})
        if not isinstance(reply, Reply):
            return
        calls = with_unique_ids(reply.tool_calls, len(self._items), self._used)
        self._used.update(call.id for call in calls)
        sent_ids = [call.id for call in reply.tool_calls]
        self._items.append(_Turn(replace(reply, tool_calls=calls), sent_ids))

    def _read_user(self, message: Mapping[str, JSON]) -> None:
        content = message.get("content")
        rest = content
        if isinstance(content, list):
            for part in content:
                if _is_result(part):
                    self._read_result(part)
            rest = [part for part in content if not _is_result(part)]
            if content and not rest:
                return
        self._items.append(User(tuple(_parts(rest))))

    def _read_result(self, message: Mapping[str, JSON]) -> None:
        call_id = str(message.get("tool_call_id") or message.get("tool_use_id") or message.get("id") or "")
        name = str(message.get("name") or "")
        for item in reversed(self._items):
            if isinstance(item, _Turn) and (place := item.place_for(call_id, name)) is not None:
                call = item.reply.tool_calls[place]
                parts = tuple(_parts(message.get("content")))
                failed = message.get("is_error") is True
                item.results[place] = ToolResult(call.id, call.name, parts, "error" if failed else "ok")
                return


def _is_result(part: JSON) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "tool_result"


def _text(content: JSON) -> str:
    return "\n\n".join(part.text for part in _parts(content) if isinstance(part, Text) and part.text)


def _parts(content: JSON) -> list[Part]:
    if content is None:
        return [Text("")]
    if isinstance(content, list):
        return [_part(each) for each in content if each is not None] or [Text("")]
    return [_part(content)]


def _part(value: JSON) -> Part:
    if isinstance(value, str):
        return Text(value)
    if not isinstance(value, Mapping):
        return Text(dumps(value))
    for key in ("text", "input_text", "output_text", "content"):
        if isinstance(value.get(key), str):
            return Text(value[key])
    for key in ("image_url", "file", "source"):
        if key in value and (part := _attachment(value[key], value)) is not None:
            return part
    return Text(dumps(dict(value)))


def _attachment(value: JSON, part: Mapping[str, JSON]) -> Part | None:
    """An image or a file, from a URL, a data URL or base64 text beside a media type."""
    inner: Mapping[str, Any] = value if isinstance(value, Mapping) else {"url": value}
    url = inner.get("url") or inner.get("file_data")
    if isinstance(inner.get("data"), str) and isinstance(inner.get("media_type"), str):
        url = f"data:{inner['media_type']};base64,{inner['data']}"
    if not isinstance(url, str):
        return None
    if not url.startswith("data:"):
        return Image(url=url) if part.get("type") != "file" else None
    header, _, payload = url[len("data:") :].partition(",")
    media_type = header.partition(";")[0] or "application/octet-stream"
    try:
        data = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        return None
    if media_type.startswith("image/"):
        return Image(media_type, data)
    return File(str(inner.get("filename") or "file"), media_type, data)
