"""How tool calls differ from their published shape, whole or in a stream's deltas. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise

from glassloop.core.entries import JSON
from glassloop.doctor.strict import Look, kind_of, strict_json

_ID = re.compile(r"[A-Za-z0-9_\-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


def look_at_call(call: JSON, look: Look, *, whole: bool) -> None:
    """A call of an answer that is no stream. Not `whole`: it was cut off, and its arguments may be too."""
    if not isinstance(call, dict):
        look.add("tool_calls", f"hold {kind_of(call)}", call)
        return
    if "index" in call:
        look.add("tool_calls.index", "stands in an answer that is no stream", call["index"])
    _look_at_id(call, look)
    if call.get("type") != "function":
        look.add("tool_calls.type", "is missing" if not call.get("type") else "is not function", call)
    function = call.get("function")
    if not isinstance(function, dict):
        look.add("tool_calls.function", "is missing" if "function" not in call else "is no object", call)
        return
    _look_at_name(function.get("name"), look)
    if "arguments" not in function:
        look.add("arguments", "are missing", function)
        return
    if whole:
        look_at_arguments(function["arguments"], look)


def look_at_arguments(arguments: JSON, look: Look) -> None:
    """The arguments of a complete call: one object as strict JSON text."""
    if not isinstance(arguments, str):
        look.add("arguments", f"are {kind_of(arguments)}, not text", arguments)
    elif not arguments.strip():
        look.add("arguments", "are empty text")
    elif (value := strict_json(arguments)) is None and not _is_null(arguments):
        look.add("arguments", "are no strict JSON", arguments)
    elif not isinstance(value, dict):
        look.add("arguments", f"are {kind_of(value)} as text, not an object", arguments)


def _is_null(text: str) -> bool:
    return text.strip() == json.dumps(None)


def _look_at_id(call: dict[str, JSON], look: Look) -> None:
    value = call.get("id")
    if value in (None, ""):
        look.add("tool_calls.id", "is missing" if "id" not in call else "is null or empty", call)
    elif not isinstance(value, str):
        look.add("tool_calls.id", f"is {kind_of(value)}", value)
    elif not _ID.fullmatch(value):
        look.add("tool_calls.id", "holds unusual characters", value)


def _look_at_name(name: JSON, look: Look) -> None:
    if not name:
        look.add("tool_calls.name", "is missing or empty", name)
    elif not isinstance(name, str) or not _NAME.fullmatch(name):
        look.add("tool_calls.name", "holds what no tool name can", name)


@dataclass(slots=True)
class Pieces:
    """The pieces in which a text came: each should add to those before it, and not repeat them."""

    place: str
    _pieces: list[str] = field(default_factory=list)

    def add(self, piece: JSON) -> None:
        if isinstance(piece, str) and piece:
            self._pieces.append(piece)

    def end(self, look: Look) -> bool:
        """Whether each piece held all that came before it."""
        repeats = len(self._pieces) > 1 and len(self._pieces[0]) > 1
        repeats = repeats and all(later.startswith(before) for before, later in pairwise(self._pieces))
        if repeats and self._pieces[-1] != self._pieces[0]:
            look.add(self.place, "come whole in each piece, not as what is new")
            return True
        return False


@dataclass(slots=True)
class _Slot:
    """One call under construction."""

    arguments: str = ""
    pieces: Pieces = field(default_factory=lambda: Pieces("arguments"))
    seen: set[str] = field(default_factory=set)


@dataclass(slots=True)
class CallDeltas:
    """Reads the calls of a stream's deltas as the reference has them: opened once with index, id, type and name."""

    look: Look
    _slots: dict[int, _Slot] = field(default_factory=dict)
    any: bool = False

    def add(self, calls: JSON) -> None:
        """The `tool_calls` of one delta."""
        if calls in (None, []):
            return
        if not isinstance(calls, list):
            self.look.add("tool_calls", f"are {kind_of(calls)}", calls)
            return
        for call in calls:
            self.any = True
            if isinstance(call, dict):
                self._piece(call)
            else:
                self.look.add("tool_calls", f"hold {kind_of(call)}", call)

    def end(self, *, whole: bool) -> None:
        """The stream is over. Not `whole`: it was cut off, and arguments may be too."""
        for slot in self._slots.values():
            if slot.pieces.end(self.look) or not whole:
                continue
            look_at_arguments(slot.arguments, self.look)

    def _piece(self, call: dict[str, JSON]) -> None:
        slot = self._slot(call)
        function = call.get("function")
        if function is not None and not isinstance(function, dict):
            self.look.add("tool_calls.function", f"is {kind_of(function)}", call)
        parts = function if isinstance(function, dict) else {}
        fields = {"id": call.get("id"), "type": call.get("type"), "name": parts.get("name")}
        opening = not slot.seen and not slot.arguments
        if opening:
            self._opening(call, fields)
        for name, value in fields.items():
            if value and not opening:
                how = "is repeated in later pieces" if name in slot.seen else "comes late"
                self.look.add(f"tool_calls.{name}", how, call)
            if value:
                slot.seen.add(name)
        slot.seen.add("opened")
        self._arguments(slot, parts.get("arguments"))

    def _opening(self, call: dict[str, JSON], fields: dict[str, JSON]) -> None:
        _look_at_id(call, self.look)
        if not fields["type"]:
            self.look.add("tool_calls.type", "is missing", call)
        _look_at_name(fields["name"], self.look)

    def _arguments(self, slot: _Slot, value: JSON) -> None:
        if value is None:
            return
        if isinstance(value, str):
            slot.arguments += value
            slot.pieces.add(value)
        else:
            self.look.add("arguments", f"are {kind_of(value)}, not text", value)
            slot.arguments += json.dumps(value)

    def _slot(self, call: dict[str, JSON]) -> _Slot:
        index = call.get("index")
        if index is None:
            how = "is missing" if "index" not in call else "is null"
            self.look.add("tool_calls.index", how, call)
            index = max(self._slots, default=-1) + bool(call.get("id"))
        elif isinstance(index, bool) or not isinstance(index, int):
            self.look.add("tool_calls.index", f"is {kind_of(index)}", call)
            index = int(index) if str(index).isdigit() else 0
        if index not in self._slots and index != len(self._slots):
            self.look.add("tool_calls.index", "does not count from 0", call)
        return self._slots.setdefault(max(index, 0), _Slot())
