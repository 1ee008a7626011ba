"""Entries, tools and a profile → the bytes of a request. Nothing here sends them.

A body ends with its messages, and each group of messages is encoded once, so that a request's bytes up to the
end of its messages are a prefix of the next request's and a round costs no work over old history but copying.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from glassloop.core.entries import JSON, Entry, Reply, Summary, System
from glassloop.core.errors import ConfigError
from glassloop.core.tools import ToolSpec
from glassloop.wire import diet
from glassloop.wire.compact import encoded, encoded_exactly, encoded_quickly
from glassloop.wire.groups import divided, groups_of, is_sent
from glassloop.wire.labels import wire_name
from glassloop.wire.messages import GO_ON, render
from glassloop.wire.parts import Message
from glassloop.wire.profile import OUTPUT_LIMITS, REQUEST_FIELDS, Profile

_INSTEAD = {
    "messages": "they are the conversation; pass `history=` or a task",
    "model": "it is the agent's first argument",
    "stream": "pass `stream=` to `Endpoint`, or --no-stream",
    "tools": "pass `tools=` to `Agent`",
}
_MOVING = frozenset((System, Summary))
"""Entries that are not sent where they stand."""

_ONLY_WITH_TOOLS = frozenset(("tool_choice", "parallel_tool_calls"))

T = TypeVar("T")


class _Encoded(NamedTuple):
    """A history as bytes: its messages with commas between, without the brackets.

    `entries` are those before the last one, which is the cache's key and held weakly. `role` is the last message's.
    `settled` is the same, as numbers of entries and bytes and a role, without the last group, which may still grow.
    """

    entries: tuple[Entry, ...]
    body: bytes
    role: str
    settled: tuple[int, int, str]

    def shared_with(self, history: tuple[Entry, ...]) -> tuple[int, int, str]:
        """What a history that goes on from this one need not encode again: all of it, if a turn follows."""
        end = len(self.entries) + 1
        following = history[end] if end < len(history) else None
        if following is None or (isinstance(following, Reply) and is_sent(following)):
            return end, len(self.body), self.role
        return self.settled


class Encoder:
    """Builds request bodies for one profile. Remembers what it encoded for as long as the entries live."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._in_text = profile.text_tools
        self.names_back: dict[str, str] = {}
        """Every tool's name as it is sent → its real name."""
        self._histories: _ByIdentity[Entry, _Encoded] = _ByIdentity()
        self._tools: _ByIdentity[ToolSpec, bytes] = _ByIdentity()
        # Of the last request, since an agent's tools are the very same tuple from one request to the next.
        self._joined: tuple[Sequence[ToolSpec], bytes] = ((), b"")
        self._offered: tuple[Sequence[ToolSpec], Mapping[str, ToolSpec]] = ((), {})
        self._heads: dict[tuple[str, bool, bool], bytes] = {}
        self._instructions: weakref.WeakValueDictionary[str, System] = weakref.WeakValueDictionary()

    def wire_name(self, name: str) -> str:
        """A tool's name as this endpoint is told it."""
        return wire_name(name, self.profile.names)

    def offered(self, tools: tuple[ToolSpec, ...]) -> Mapping[str, ToolSpec]:
        """The tools by the names under which a reply may call them: their real ones where they are told in text."""
        offered = self._offered  # looked at once: another thread may be asking for another agent
        if tools is not offered[0]:
            named = str if self._in_text else self.wire_name
            offered = self._offered = tools, {named(tool.name): tool for tool in tools}
        return offered[1]

    def encode(
        self,
        model: str,
        entries: Sequence[Entry],
        tools: Sequence[ToolSpec],
        settings: Mapping[str, JSON],
        *,
        stream: bool,
    ) -> bytes:
        """The body of one request. The same arguments give the same bytes.

        `settings` are request fields, sent as given except for what the profile knows to be refused; nulls are
        left out. Raises `ConfigError` for a setting that is ours to fill in (model, messages, tools, stream).
        """
        tools = tools[: self.profile.max_tools]
        if not tools and self.profile.calls_need_tools:
            tools = _of_past_calls(entries)
            settings = {**settings, "tool_choice": "none"}
        joined = self._joined
        if tools is not joined[0]:
            self.names_back.update((self.wire_name(tool.name), tool.name) for tool in tools)
            joined = self._joined = tools, b",".join(map(self._tool, tools))
        native = bool(tools) and not self._in_text
        streamed = self.profile.streams(stream, tools=bool(tools))
        head = self._head(model, settings, native, streamed)
        named = (b',"tools":[', joined[1], b"]") if native else ()
        return b"".join((head, *named, b',"messages":[', *self._messages(entries, tools), b"]}"))

    def _head(self, model: str, settings: Mapping[str, JSON], native: bool, streamed: bool) -> bytes:
        """The body without tools and messages, open at its end. Without settings it is made once."""
        key = (model, native, streamed)
        if not settings and (known := self._heads.get(key)):
            return known
        fields = request_fields(settings, self.profile, tools=native, stream=streamed)
        head = _head(model, fields)[:-1]
        if not settings:
            self._heads[key] = head
        return head

    def _tool(self, tool: ToolSpec) -> bytes:
        known = self._tools.get(tool)
        return known if known is not None else self._tools.put(tool, encoded(tool_json(tool, self.profile)))

    def _messages(self, entries: Sequence[Entry], tools: Sequence[ToolSpec]) -> list[bytes]:
        history = tuple(entries)
        known = self._gone_on_with(history, tools)
        if known is None:
            systems, rest = divided(entries)
            instructions = self._system(systems, tools)
            history = tuple(rest if instructions is None else (instructions, *rest))
            known = self._remembered(history)
        start, size, role = settled = known.shared_with(history) if known is not None else (0, 0, "system")
        body = known.body[:size] if known is not None else b""
        if start < len(history):
            pieces = [body]
            for group in groups_of(history[start:]):
                settled = start, size, role
                start += len(group)
                if messages := render(group, self.profile):
                    pieces.append((b"," if size else b"") + self._group(messages, role))
                    size += len(pieces[-1])
                    role = str(messages[-1]["role"])
            body = b"".join(pieces)
            if known is not None:  # it is no longer needed: the conversation went on
                self._histories.drop(history[len(known.entries)])
            self._histories.put(history[-1], _Encoded(history[:-1], body, role, settled))
        if self.profile.alternate and role == "assistant":
            return [body, b",", _GO_ON]
        return [body]

    def _group(self, messages: Sequence[Message], role: str) -> bytes:
        """Messages that come behind one of this role.

        Where turns must alternate, a word of the user's stands between two replies.
        """
        encoded_ones = encoded_quickly(messages)[1:-1]
        if self.profile.alternate and messages[0]["role"] == "assistant" and role not in ("user", "tool"):
            return _GO_ON + b"," + encoded_ones
        return encoded_ones

    def _gone_on_with(self, entries: tuple[Entry, ...], tools: Sequence[ToolSpec]) -> _Encoded | None:
        """`_remembered` for a conversation that only went on, so that nothing has to be looked for in what is old.

        One system message at the beginning is sent as it is; a later one, or a summary, changes what goes before it.
        """
        first = entries[0] if len(entries) > 1 else None
        if not isinstance(first, System) or not first.text.strip() or isinstance(entries[1], System):
            return None
        if (tools and self._in_text) or (isinstance(entries[1], Summary) and entries[1].replaces):
            return None
        known = self._remembered(entries)
        if known is None or not _MOVING.isdisjoint(map(type, entries[len(known.entries) + 1 :])):
            return None
        return known

    def _system(self, systems: Sequence[System], tools: Sequence[ToolSpec]) -> System | None:
        told = bool(tools) and self._in_text
        if len(systems) == 1 and not told and systems[0].text.strip():
            return systems[0]
        texts = [system.text for system in systems if system.text.strip()]
        if told:
            from glassloop.wire import textcalls

            texts.append(textcalls.render_tools(self.profile.tool_mode, tools))
        if not texts:
            return None
        text = "\n\n".join(texts)
        # The same object for the same text: what is encoded is remembered by identity.
        return self._instructions.setdefault(text, System(text))

    def _remembered(self, history: tuple[Entry, ...]) -> _Encoded | None:
        """The longest beginning of this history that was encoded before."""
        for index in range(len(history) - 1, -1, -1):
            known = self._histories.get(history[index])
            if known is not None and len(known.entries) == index and _same(known.entries, history):
                return known
        return None


_GO_ON = encoded({"role": "user", "content": GO_ON})


def _same(known: Sequence[Entry], history: Sequence[Entry]) -> bool:
    """Whether a history begins with these very objects."""
    return all(map(operator.is_, known, history))


def request_fields(
    settings: Mapping[str, JSON], profile: Profile, *, tools: bool, stream: bool
) -> dict[str, JSON]:
    """The optional fields of a request: `stream`, then the settings as the profile lets them through."""
    if ours := sorted(REQUEST_FIELDS & settings.keys()):
        raise ConfigError(f"settings cannot hold {', '.join(ours)}: {_INSTEAD[ours[0]]}")
    fields: dict[str, JSON] = {}
    if stream:
        fields["stream"] = True
        if profile.stream_options:
            fields["stream_options"] = {"include_usage": True}
    wanted = {**settings, **profile.set_fields}
    if profile.max_output is not None and not any(wanted.get(name) for name in OUTPUT_LIMITS):
        wanted["max_tokens"] = profile.max_output
    for name, value in wanted.items():
        if (name in _ONLY_WITH_TOOLS and not tools) or (name == "stream_options" and not stream):
            continue
        taken = _tool_choice(value, profile) if name == "tool_choice" else value
        if taken is not None:
            sent_as = profile.rename_fields.get(name, name)
            fields[sent_as] = _clamped(taken, sent_as, profile)
    return {name: value for name, value in fields.items() if name not in profile.drop_fields}


def _head(model: str, fields: Mapping[str, JSON]) -> bytes:
    """The body without messages and tools. Raises `ConfigError` for a field that JSON cannot hold."""
    try:
        return encoded_exactly({"model": model, **fields})
    except (TypeError, ValueError, RecursionError) as error:
        name = next(name for name, value in fields.items() if not _is_json(value))
        words = f"settings[{name!r}] cannot be sent as JSON ({error}): {repr(fields[name])[:100]}"
        raise ConfigError(words) from error


def _is_json(value: JSON) -> bool:
    try:
        encoded_exactly(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _clamped(value: JSON, name: str, profile: Profile) -> JSON:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    value = min(value, profile.max_values.get(name, value))
    return max(value, profile.min_values.get(name, value))


def _tool_choice(value: JSON, profile: Profile) -> JSON:
    """The profile's spelling of a choice, None where it is to be dropped."""
    if isinstance(value, Mapping):
        function = value.get("function")
        if isinstance(function, Mapping) and isinstance(name := function.get("name"), str):
            value = {**value, "function": {**function, "name": wire_name(name, profile.names)}}
        spelling = profile.tool_choice.get("function")
    else:
        spelling = profile.tool_choice.get(value) if isinstance(value, str) else None
    return value if spelling is None else (spelling or None)


def tool_json(tool: ToolSpec, profile: Profile) -> dict[str, JSON]:
    """One element of a request's `tools`."""
    function: dict[str, JSON] = {"name": wire_name(tool.name, profile.names)}
    if tool.description:
        function["description"] = _shortened(tool.description, profile.max_description)
    parameters = diet.parameters(tool.parameters, profile.schema_diet)
    if profile.no_properties == "omit":
        parameters = diet.without_empty_objects(parameters)
    if parameters:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


def _shortened(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"


def _of_past_calls(entries: Sequence[Entry]) -> list[ToolSpec]:
    """Tools by the names of past calls, for endpoints that take those only along with tools."""
    names = dict.fromkeys(
        call.name for entry in entries if isinstance(entry, Reply) for call in entry.tool_calls
    )
    return [ToolSpec(name, "No longer available.", {"type": "object", "properties": {}}) for name in names]


K = TypeVar("K")


class _Ref(weakref.ref[K]):
    """A weak reference that knows under which key it is kept."""

    __slots__ = ("key",)
    key: int


class _ByIdentity(Generic[K, T]):
    """Values that belong to objects, kept while those live. Nothing is hashed: that would read whole entries."""

    def __init__(self) -> None:
        self._items: dict[int, tuple[_Ref[K], T]] = {}
        self._forgetting = self._forget  # made once: a function for each item would weigh as much as the item

    def get(self, owner: K) -> T | None:
        item = self._items.get(id(owner))
        return item[1] if item is not None and item[0]() is owner else None

    def put(self, owner: K, value: T) -> T:
        reference = _Ref(owner, self._forgetting)
        reference.key = id(owner)
        self._items[reference.key] = (reference, value)
        return value

    def _forget(self, dead: weakref.ref[K]) -> None:
        assert isinstance(dead, _Ref)
        if (item := self._items.get(dead.key)) is not None and item[0] is dead:
            del self._items[dead.key]

    def __len__(self) -> int:
        return len(self._items)

    def drop(self, owner: K) -> None:
        self._items.pop(id(owner), None)
