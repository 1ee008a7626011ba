"""Fragments of tool calls as a stream brings them → whole call objects, in the shape of a body that came at once.

Which fragment belongs to which call: the same index with a new id *and* a name opens a new call; without
a name a fragment continues whatever its id; null and "" never overwrite; a complete JSON object followed
by the beginning of another is a boundary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glassloop.core.entries import JSON
from glassloop.core.tools import ToolSpec
from glassloop.wire import strictjson
from glassloop.wire.arguments import ARGUMENT_FIELDS
from glassloop.wire.calls import NAME_FIELDS, decoded, first_given, first_text, id_text
from glassloop.wire.fits import fits
from glassloop.wire.slot import Slot

_READ_HERE = frozenset(("id", "index", "function", "custom", *NAME_FIELDS, *ARGUMENT_FIELDS))
_FRAGMENT = frozenset(("index", "id", "type", "function"))
_FUNCTION = frozenset(("name", "arguments"))


def _object(arguments: JSON) -> Mapping[str, JSON] | None:
    """The object that complete arguments are, None for anything else."""
    try:
        value = (
            strictjson.parse(arguments, control_characters=True) if isinstance(arguments, str) else arguments
        )
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class CallSlots:
    """Takes the fragments of one message's calls in the order in which they came."""

    def __init__(self, tools: Mapping[str, ToolSpec]) -> None:
        self._tools = tools
        self._slots: list[Slot] = []
        self._row: list[Slot] = []  # of the last delta that held several fragments
        self._by_index: dict[int, Slot] = {}
        self._by_id: dict[str, Slot] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def add_all(self, fragments: Sequence[Mapping[str, JSON]]) -> None:
        """A delta's `tool_calls`. Where several come without index and id, their position in the list tells."""
        row = self._row if len(self._row) == len(fragments) > 1 else [None] * len(fragments)
        slots = [self.add(fragment, before) for fragment, before in zip(fragments, row, strict=True)]
        if len(slots) > 1:
            self._row = slots

    def add_ordinary(self, fragments: JSON) -> bool:
        """Add the one fragment of an ordinary delta: the head of a call, or more arguments of one, by index.

        It comes to what `add_all` does. False for any other `tool_calls`, which are left alone.
        """
        if type(fragments) is not list or len(fragments) != 1 or type(fragments[0]) is not dict:
            return False
        [fragment] = fragments
        index, function = fragment.get("index"), fragment.get("function")
        if type(index) is not int or type(function) is not dict:
            return False
        if not (fragment.keys() <= _FRAGMENT and function.keys() <= _FUNCTION):
            return False
        piece, call_id, name = function.get("arguments"), fragment.get("id") or "", function.get("name") or ""
        if not type(piece) is type(call_id) is type(name) is str:
            return False
        slot = self._by_index.get(index)
        if slot is None:
            if not (call_id and name) or call_id in self._by_id:
                return False
            slot = self._by_index[index] = self._by_id[call_id] = self._open()
            slot.id, slot.name = call_id, name
        elif name or call_id not in ("", slot.id) or _begins_another(slot, piece):
            return False
        slot.pieces.append(piece)
        if (kind := fragment.get("type")) is not None:
            slot.extra["type"] = kind
        return True

    def add(self, fragment: Mapping[str, JSON], before: Slot | None = None) -> Slot:
        """One fragment; `before` is the call that stood in its place in the delta before."""
        function = decoded(fragment.get("function") or fragment.get("custom"))
        if isinstance(function, str):
            function = {"name": function}
        source: Mapping[str, JSON] = {**fragment, **(function if isinstance(function, dict) else {})}
        name = first_text(source, NAME_FIELDS)
        piece = first_given(source, ARGUMENT_FIELDS)
        call_id = id_text(fragment.get("id"))
        index = _index(fragment.get("index"))
        if before is None or index is not None or call_id or name:
            slot = self._slot_for(index, call_id, name, piece)
        else:
            slot = before
        if index is not None:
            self._by_index[index] = slot
        if call_id and not slot.id:
            slot.id = call_id
        if call_id:
            self._by_id.setdefault(call_id, slot)
        slot.add_name(name, self._tools)
        slot.add_arguments(piece)
        slot.extra |= {
            key: value for key, value in fragment.items() if key not in _READ_HERE and value is not None
        }
        return slot

    def are_snapshots(self) -> bool:
        """Whether a call's fragments each held all of its arguments so far."""
        return any(slot.snapshot() is not None for slot in self._slots)

    def items(self) -> list[dict[str, JSON]]:
        """The calls, whole. A named slot without arguments takes those of the unnamed slot after it."""
        slots: list[Slot] = []
        for slot in self._slots:
            before = slots[-1] if slots else None
            if before and before.name and not before.has_arguments and not slot.name and slot.has_arguments:
                before.pieces, before.whole = slot.pieces, slot.whole
            elif not slot.after or self._is_call_of_its_own(slot, slot.after):
                slots.append(slot)
        return [slot.item() for slot in slots]

    def _slot_for(self, index: int | None, call_id: str, name: str, piece: JSON) -> Slot:
        if not self._slots:
            return self._open()
        if index is None:
            return self._without_index(call_id, name, piece)
        slot = self._by_index.get(index)
        if slot is not None and slot.id != call_id:
            slot = self._by_id.get(call_id, slot)  # an id that was opened outweighs an index
        if slot is None:
            return self._at_new_index(call_id, name, piece)
        return self._open() if self._is_another(slot, call_id, name, piece) else self._after(slot, piece)

    def _after(self, slot: Slot, piece: JSON) -> Slot:
        """The slot itself, or a new one if this begins a second object behind its complete arguments."""
        if not (isinstance(piece, str) and _begins_another(slot, piece)):
            return slot
        opened = self._open()
        opened.after = slot
        return opened

    def _is_call_of_its_own(self, slot: Slot, first: Slot) -> bool:
        """Whether an object behind a call's complete arguments, without another name, is a call of its own.

        It is if it can be no other tool's. What repeats the arguments or fills their place is none, and what
        else it may be, `arguments` has to judge with the text before it.
        """
        if slot.name not in ("", first.name):
            return True
        before, value = _object(first.arguments()), _object(slot.arguments())
        if not before and value is not None:
            first.pieces = slot.pieces
        elif value != before:
            if (
                before
                and value
                and [n for n, tool in self._tools.items() if fits(value, tool.parameters)] == [first.name]
            ):
                slot.name = first.name
                return True
            first.pieces = [*first.pieces, *slot.pieces]
        return False

    def _at_new_index(self, call_id: str, name: str, piece: JSON) -> Slot:
        """An index never seen opens a call if anything says so; else it is the last call under another number."""
        last = self._slots[-1]
        if call_id and call_id == last.id:
            another = name and _begins_object(piece) and last.is_complete() and piece != last.arguments()
            return self._open() if another else last
        if call_id or name or (last.is_complete() and _begins_object(piece)):
            return self._open()
        return last

    def _without_index(self, call_id: str, name: str, piece: JSON) -> Slot:
        known = self._by_id.get(call_id) if call_id else None
        if known is not None:
            return known
        last = self._slots[-1]
        begins = bool(call_id) and _begins_object(piece) and last.is_complete()
        another = begins or self._is_another(last, call_id, name, piece)
        return self._open() if another else self._after(last, piece)

    def _is_another(self, slot: Slot, call_id: str, name: str, piece: JSON) -> bool:
        """Whether a fragment with a name opens a call of its own although it came where `slot` is."""
        if not name or (call_id and call_id == slot.id):
            return False
        if call_id and slot.id:
            goes_on = name == slot.name and slot.has_arguments and not slot.is_complete()
            return not goes_on or _begins_object(piece)
        if not slot.name:
            return slot.has_arguments and slot.is_complete() and _begins_object(piece)
        if name != slot.name and not name.startswith(slot.name):
            return name in self._tools and (slot.name in self._tools or slot.is_complete())
        begins = _begins_object(piece) and slot.has_arguments and slot.is_complete()
        return begins and piece != slot.arguments()

    def _open(self) -> Slot:
        self._slots.append(Slot())
        return self._slots[-1]


def _begins_object(piece: JSON) -> bool:
    return isinstance(piece, dict) or (isinstance(piece, str) and piece.lstrip().startswith("{"))


def _begins_another(slot: Slot, piece: JSON) -> bool:
    """Whether this begins a second object behind the call's complete arguments."""
    return _begins_object(piece) and bool(slot.pieces) and slot.is_complete()


def _index(value: JSON) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
