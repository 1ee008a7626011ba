"""Entries as Chat Completions messages, rebuilt from a whitelist so that any history can be sent to any profile.

A history is cut into groups, a reply and what follows it up to the next, and each group is rendered by itself:
that is what lets `wire/request` encode every group once.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from glassloop.core.entries import (
    JSON,
    Entry,
    File,
    Image,
    Note,
    Part,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from glassloop.wire.compact import dumps
from glassloop.wire.labels import wire_id, wire_name
from glassloop.wire.profile import Profile

Message = dict[str, Any]

NO_RESULT = "(no result was recorded for this call)"
NO_OUTPUT = "(no output)"
NO_TEXT = "(no text)"
CALL_WORDS = "(tool call)"
GO_ON = "Continue."
PLACEHOLDER_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Google's documentation gives for calls that another model made."""

STRUCTURED_REASONING = ("reasoning_details", "thinking_blocks", "extra_content")
"""Fields of a received message that go back verbatim where the profile sends reasoning back."""

_CALL_FIELDS = frozenset(("id", "type", "function", "index"))
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def divided(entries: Sequence[Entry]) -> tuple[list[System], list[Entry]]:
    """A history's instructions, and the rest of what is sent: the newest summary stands for what it replaces."""
    lead = 0
    while lead < len(entries) and isinstance(entries[lead], System):
        lead += 1
    rest: list[Entry] = list(entries[lead:])
    systems = [entry for entry in entries[:lead] if isinstance(entry, System)]
    kinds = set(map(type, rest))  # at C speed, as histories get long
    if System in kinds:
        systems += [entry for entry in rest if isinstance(entry, System)]
        rest = [entry for entry in rest if not isinstance(entry, System)]
    return systems, _summarised(rest) if Summary in kinds else rest


def _summarised(rest: list[Entry]) -> list[Entry]:
    summary = next(entry for entry in reversed(rest) if isinstance(entry, Summary))
    cut = _whole_turns(rest, summary.replaces)
    return [summary, *(entry for entry in rest[cut:] if not isinstance(entry, Summary))]


def _whole_turns(entries: Sequence[Entry], cut: int) -> int:
    """`cut`, moved back to before the turn whose results it would separate from their calls."""
    cut = max(0, min(cut, len(entries)))
    if not any(isinstance(entry, ToolResult) for entry in _until_reply(entries[cut:])):
        return cut
    for index in range(cut - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, Reply) and is_sent(entry):
            return index if entry.tool_calls else cut
    return cut


def _until_reply(entries: Iterable[Entry]) -> Iterable[Entry]:
    for entry in entries:
        if isinstance(entry, Reply) and is_sent(entry):
            return
        yield entry


def is_sent(reply: Reply) -> bool:
    """A turn with neither text nor calls is never sent."""
    return bool(reply.tool_calls or reply.text.strip())


def groups_of(entries: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """What can be rendered by itself: each reply that is sent, with all that follows it up to the next."""
    groups: list[tuple[Entry, ...]] = []
    start = 0
    for index, entry in enumerate(entries):
        if index > start and isinstance(entry, Reply) and is_sent(entry):
            groups.append(tuple(entries[start:index]))
            start = index
    if start < len(entries):
        groups.append(tuple(entries[start:]))
    return groups


def render(group: Sequence[Entry], profile: Profile) -> list[Message]:
    """One group's messages. The list is empty if nothing of it is sent."""
    messages = _Messages(profile)
    first = group[0]
    if isinstance(first, Reply) and is_sent(first):
        rest = _render_turn(first, group[1:], messages)
    else:
        rest = [entry for entry in group if not isinstance(entry, ToolResult)]
    for entry in rest:
        messages.add_entry(entry)
    return messages.items


@dataclass(slots=True)
class _Messages:
    """A group's messages as they come together."""

    profile: Profile
    items: list[Message] = field(default_factory=list)

    def add_entry(self, entry: Entry) -> None:
        match entry:
            case System():
                self.add_system(entry.text)
            case User():
                self.add_user(user_content(entry.parts, self.profile))
            case Note() | Summary():
                self.add_user(entry.text or NO_TEXT)

    def add_system(self, text: str) -> None:
        if not text.strip():
            return
        if self.profile.system == "user":
            self.add_user(text)
        else:
            self.items.append({"role": self.profile.system, "content": text})

    def add_user(self, content: str | list[Message]) -> None:
        last = self.items[-1] if self.items else None
        if last is None or not self._merges_with(last):
            self.items.append({"role": "user", "content": content})
        elif isinstance(last["content"], str) and isinstance(content, str):
            last["content"] = f"{last['content']}\n\n{content}"
        elif last["role"] == "user":
            last["content"] = [*_as_parts(last["content"]), *_as_parts(content)]
        else:
            self.items.append({"role": "user", "content": content})

    def _merges_with(self, last: Message) -> bool:
        if last["role"] == "tool":
            return self.profile.user_after_tool == "fold"
        folded = self.profile.system == "user" and len(self.items) == 1
        return last["role"] == "user" and (self.profile.alternate or folded)


def _render_turn(reply: Reply, following: Sequence[Entry], messages: _Messages) -> list[Entry]:
    """The assistant's message and one result a call; returns the entries that are still to be rendered."""
    profile = messages.profile
    texts, pictures, rest = _results(reply, following, profile)
    if profile.text_tools:
        _render_text_turn(reply, texts, messages)
    else:
        messages.items += _native_turn(reply, texts, profile)
    if pictures:
        messages.add_user(pictures)
    return rest


def _native_turn(reply: Reply, contents: Sequence[JSON], profile: Profile) -> list[Message]:
    if len(reply.tool_calls) > 1 and not profile.parallel_calls:
        turns = _one_call_each(reply)
        return [
            message
            for turn, content in zip(turns, contents, strict=True)
            for message in _native_turn(turn, [content], profile)
        ]
    ids = _ids(reply.tool_calls, profile)
    results = (
        _tool_message(call, call_id, content, profile)
        for call, call_id, content in zip(reply.tool_calls, ids, contents, strict=True)
    )
    return [_assistant(reply, ids, profile), *results]


def _one_call_each(reply: Reply) -> list[Reply]:
    """The reply as several, the text with the first."""
    first, *others = reply.tool_calls
    return [replace(reply, tool_calls=(first,)), *(Reply(tool_calls=(call,)) for call in others)]


def _render_text_turn(reply: Reply, texts: Sequence[JSON], messages: _Messages) -> None:
    from glassloop.wire import textcalls

    mode = messages.profile.tool_mode
    raw = reply.raw.get("content")
    if not isinstance(raw, str) or not raw.strip() or reply.raw.get("tool_calls"):
        raw = textcalls.render_calls(mode, reply.text, reply.tool_calls)
    messages.items.append({"role": "assistant", "content": raw})
    for call, text in zip(reply.tool_calls, texts, strict=True):
        role, content = textcalls.render_result(mode, call, text)
        last = messages.items[-1]
        if last["role"] == role:
            last["content"] = f"{last['content']}\n{content}"
        else:
            messages.items.append({"role": role, "content": content})


def _results(
    reply: Reply, following: Sequence[Entry], profile: Profile
) -> tuple[list[JSON], list[Message], list[Entry]]:
    """In call order one content a call, then the pictures that must follow, then what is no result.

    Results without a call are dropped, as are second ones. A note directly after results joins the last one.
    """
    found: dict[str, list[ToolResult]] = {}
    rest: list[Entry] = []
    notes: list[str] = []
    for entry in following:
        if isinstance(entry, ToolResult):
            found.setdefault(entry.call_id, []).append(entry)
        elif isinstance(entry, Note) and reply.tool_calls and not rest:
            notes.append(entry.text)
        elif not isinstance(entry, Reply):
            rest.append(entry)
    contents: list[JSON] = []
    pictures: list[Message] = []
    for call in reply.tool_calls:
        waiting = found.get(call.id)
        result = waiting.pop(0) if waiting else None
        content, shown = _result_content(result, call, profile)
        contents.append(content)
        pictures += shown
    if notes:
        contents[-1] = _with_text(contents[-1], "\n\n".join(notes))
    return contents, pictures, rest


def _result_content(
    result: ToolResult | None, call: ToolCall, profile: Profile
) -> tuple[str | list[Message], list[Message]]:
    if result is None:
        return NO_RESULT, []
    if profile.images_in_tools and profile.images and not profile.text_tools:
        return user_content(result.parts, profile, empty=NO_OUTPUT), []
    pieces: list[str] = []
    pictures: list[Message] = []
    for part in result.parts:
        if isinstance(part, Text):
            pieces.append(part.text)
            continue
        shown = _shown(part, profile)
        if shown is None:
            pieces.append(_left_out(part))
            continue
        pieces.append(f"({_described(part)}; it follows in the next message)")
        pictures += [_text_part(f"{_described(part)}, from the result of {call.name or 'a tool'}:"), shown]
    text = "\n".join(pieces) if len(result.parts) > 1 else "".join(pieces)
    return (text if text.strip() else NO_OUTPUT), pictures


def _with_text(content: JSON, text: str) -> JSON:
    return f"{content}\n\n{text}" if isinstance(content, str) else [*content, _text_part(text)]


def _ids(calls: Sequence[ToolCall], profile: Profile) -> list[str]:
    ids: list[str] = []
    for call in calls:
        ids.append(wire_id(call.id, profile.ids, ids))
    return ids


def _assistant(reply: Reply, ids: Sequence[str], profile: Profile) -> Message:
    message: Message = {"role": "assistant"}
    message.update(_content(reply, profile))
    message.update(_reasoning(reply, profile))
    if reply.tool_calls:
        message["tool_calls"] = [
            _call(call, call_id, profile) for call, call_id in zip(reply.tool_calls, ids, strict=True)
        ]
    return message


_CALL_ONLY: Mapping[str, Message] = {
    "": {"content": ""},
    "omit": {},
    "null": {"content": None},
    "blank": {"content": " "},
    "words": {"content": CALL_WORDS},
}


def _content(reply: Reply, profile: Profile) -> Message:
    if reply.text.strip():
        return {"content": reply.text}
    return _CALL_ONLY[profile.call_content]


def _reasoning(reply: Reply, profile: Profile) -> Message:
    """The reasoning under the name in which it came, or under the one that this endpoint insists on."""
    if profile.reasoning_back == "never" or (profile.reasoning_back == "loop" and not reply.tool_calls):
        return {}
    if profile.reasoning_name is not None:
        return {profile.reasoning_name: reply.reasoning or " "}
    if profile.call_extra:
        structured = {key: reply.raw[key] for key in STRUCTURED_REASONING if reply.raw.get(key)}
        if structured:
            return structured
    if reply.reasoning and reply.reasoning_field in reply.raw:
        return {str(reply.reasoning_field): reply.reasoning}
    return {}


def _call(call: ToolCall, call_id: str, profile: Profile) -> Message:
    arguments = dict(call.arguments or {})
    function = {
        "name": wire_name(call.name, profile.names),
        "arguments": arguments if profile.arguments == "object" else dumps(arguments),
    }
    return {"id": call_id, "type": "function", "function": function, **_extra(call, profile)}


def _extra(call: ToolCall, profile: Profile) -> Message:
    extra: Message = {}
    if profile.call_extra and call.extra:
        extra = {
            key: value for key, value in call.extra.items() if key not in _CALL_FIELDS and value is not None
        }
    if profile.signature:
        extra.setdefault("extra_content", PLACEHOLDER_SIGNATURE)
    return extra


def _tool_message(call: ToolCall, call_id: str, content: JSON, profile: Profile) -> Message:
    message: Message = {"role": "tool", "tool_call_id": call_id}
    if profile.tool_name:
        message["name"] = wire_name(call.name, profile.names)
    message["content"] = content
    return message


def user_content(parts: Sequence[Part], profile: Profile, *, empty: str = NO_TEXT) -> str | list[Message]:
    """A plain string if it is all text, else a list of content parts. Never empty."""
    shown = [
        _text_part(part.text) if isinstance(part, Text) else _shown_or_said(part, profile) for part in parts
    ]
    if all(part["type"] == "text" for part in shown):
        text = "\n\n".join(part["text"] for part in shown)
        return text if text.strip() else empty
    return [part for part in shown if part["type"] != "text" or part["text"].strip()]


def _as_parts(content: str | list[Message]) -> list[Message]:
    return [_text_part(content)] if isinstance(content, str) else content


def _text_part(text: str) -> Message:
    return {"type": "text", "text": text}


def _shown_or_said(part: Image | File, profile: Profile) -> Message:
    return _shown(part, profile) or _text_part(_left_out(part))


def _shown(part: Image | File, profile: Profile) -> Message | None:
    """The content part for it, or None if this endpoint takes no such thing."""
    match part:
        case Image(url=str(url)) if profile.images:
            return {"type": "image_url", "image_url": {"url": url}}
        case Image(data=bytes(data)) if profile.images:
            return {"type": "image_url", "image_url": {"url": _data_url(part.media_type, data)}}
        case File() if profile.files:
            data_url = _data_url(part.media_type, part.data)
            return {"type": "file", "file": {"filename": part.name, "file_data": data_url}}
    return None


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def _described(part: Image | File) -> str:
    if isinstance(part, File):
        return f"file {part.name!r}, {part.media_type}, {len(part.data)} bytes"
    return f"image, {part.media_type}"


def _left_out(part: Image | File) -> str:
    """Text files are quoted where files cannot be sent; of anything else it is said that it was there."""
    if isinstance(part, File) and part.media_type.startswith(_TEXT_TYPES):
        return f"{part.name}:\n{part.data.decode('utf-8', 'replace')}"
    return f"({_described(part)}; it was left out, as this model cannot be shown it)"
