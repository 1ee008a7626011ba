"""Entries as Chat Completions messages, rebuilt from a whitelist so that any history can be sent to any profile.

Each group of entries (`wire/groups`) is rendered by itself: that is what lets `wire/request` encode it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from glassloop.core.entries import (
    JSON,
    Entry,
    Note,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from glassloop.wire.compact import dumps
from glassloop.wire.groups import is_sent
from glassloop.wire.labels import wire_id, wire_name
from glassloop.wire.parts import (
    NO_TEXT,
    Message,
    as_parts,
    described,
    left_out,
    shown,
    text_part,
    user_content,
)
from glassloop.wire.profile import Profile
from glassloop.wire.reasoning import split_thinking

NO_RESULT = "(no result was recorded for this call)"
NO_OUTPUT = "(no output)"
CALL_WORDS = "(tool call)"
GO_ON = "Continue."
PLACEHOLDER_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Google's documentation gives for calls that another model made."""

STRUCTURED_REASONING = ("reasoning_details", "thinking_blocks", "extra_content")
"""Fields of a received message that go back verbatim where the profile sends reasoning back."""

_CALL_FIELDS = frozenset(("id", "type", "function", "index"))


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
            last["content"] = [*as_parts(last["content"]), *as_parts(content)]
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
    results = [
        _tool_message(call, call_id, content, profile)
        for call, call_id, content in zip(reply.tool_calls, ids, contents, strict=True)
    ]
    return [_assistant(reply, ids, profile), *results]


def _one_call_each(reply: Reply) -> list[Reply]:
    """The reply as several, the text with the first."""
    first, *others = reply.tool_calls
    return [replace(reply, tool_calls=(first,)), *(Reply(tool_calls=(call,)) for call in others)]


def _render_text_turn(reply: Reply, texts: Sequence[JSON], messages: _Messages) -> None:
    from glassloop.wire import textcalls

    mode = messages.profile.tool_mode
    raw = reply.raw.get("content")
    if isinstance(raw, str) and not _thinks_back(reply, messages.profile):
        _, raw, _ = split_thinking(raw)
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
    if len(result.parts) == 1 and isinstance(only := result.parts[0], Text):
        return (only.text if only.text.strip() else NO_OUTPUT), []
    if profile.images_in_tools and profile.images and not profile.text_tools:
        return user_content(result.parts, profile, empty=NO_OUTPUT), []
    pieces: list[str] = []
    pictures: list[Message] = []
    for part in result.parts:
        if isinstance(part, Text):
            pieces.append(part.text)
            continue
        picture = shown(part, profile)
        if picture is None:
            pieces.append(left_out(part))
            continue
        pieces.append(f"({described(part)}; it follows in the next message)")
        pictures += [text_part(f"{described(part)}, from the result of {call.name or 'a tool'}:"), picture]
    text = "\n".join(pieces) if len(result.parts) > 1 else "".join(pieces)
    return (text if text.strip() else NO_OUTPUT), pictures


def _with_text(content: JSON, text: str) -> JSON:
    return f"{content}\n\n{text}" if isinstance(content, str) else [*content, text_part(text)]


def _ids(calls: Sequence[ToolCall], profile: Profile) -> list[str]:
    ids: list[str] = []
    for call in calls:
        ids.append(wire_id(call.id, profile.ids, ids))
    return ids


def _assistant(reply: Reply, ids: Sequence[str], profile: Profile) -> Message:
    message: Message = {"role": "assistant"}
    if reply.text.strip():
        message["content"] = reply.text
    else:
        message |= _CALL_ONLY[profile.call_content]
    if _thinks_back(reply, profile):
        message |= _reasoning(reply, profile)
    if reply.tool_calls:
        calls = [_call(call, call_id, profile) for call, call_id in zip(reply.tool_calls, ids, strict=True)]
        numbered = profile.call_index
        message["tool_calls"] = (
            [{"index": index, **call} for index, call in enumerate(calls)] if numbered else calls
        )
    return message


_CALL_ONLY: Mapping[str, Message] = {
    "": {"content": ""},
    "omit": {},
    "null": {"content": None},
    "blank": {"content": " "},
    "words": {"content": CALL_WORDS},
}


def _thinks_back(reply: Reply, profile: Profile) -> bool:
    """Whether the turn goes back with its reasoning, in a field or in the text."""
    if profile.reasoning_back == "loop":
        return bool(reply.tool_calls)
    return profile.reasoning_back == "always"


def _reasoning(reply: Reply, profile: Profile) -> Message:
    """The reasoning under the name in which it came, or under the one that this endpoint insists on."""
    if profile.reasoning_name is not None:
        return {profile.reasoning_name: reply.reasoning or " "}
    if profile.call_extra and not reply.raw.keys().isdisjoint(STRUCTURED_REASONING):
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
    message: Message = {"id": call_id, "type": "function", "function": function}
    if profile.call_extra and call.extra:
        message.update(
            (key, value) for key, value in call.extra.items() if key not in _CALL_FIELDS and value is not None
        )
    if profile.signature:
        message.setdefault("extra_content", PLACEHOLDER_SIGNATURE)
    return message


def _tool_message(call: ToolCall, call_id: str, content: JSON, profile: Profile) -> Message:
    message: Message = {"role": "tool", "tool_call_id": call_id}
    if profile.tool_name:
        message["name"] = wire_name(call.name, profile.names)
    message["content"] = content
    return message
