"""Notices the same call again and again, in any rhythm (A A A, A B A B), but lets a poll whose results change go on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from glassloop.core.entries import ToolCall, ToolResult

_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str).encode


def same_call(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls of a tool ask for the same: whatever the order of keys and the spacing in which they came.

    Of calls that never could run, the problem stands for the arguments.
    """
    if one.problem or other.problem or one.arguments is None or other.arguments is None:
        return one.problem == other.problem and (bool(one.problem) or one.text == other.text)
    if one.arguments != other.arguments:
        return False
    # Python takes 1 for true and for 1.0.
    same_text = one.text != "" and one.text == other.text
    return same_text or _canonical(one.arguments) == _canonical(other.arguments)


def _outline(call: ToolCall) -> int:
    """A number that calls which ask for the same have in common, and few others."""
    if call.problem or not call.arguments:
        return 0
    try:
        return hash(frozenset(call.arguments.items()))
    except TypeError:  # a list or an object is among them
        return len(call.arguments)


@dataclass(slots=True)
class _Kind:
    """All calls that ask for the same with the same outcome: the first of them, and how often it came of late."""

    first: ToolCall
    count: int = 0


@dataclass(slots=True)
class Repeats:
    """Counts each call with its result since anything new happened. A round that brings a new one starts afresh."""

    kinds: dict[tuple[str, int, str, str], list[_Kind]] = field(default_factory=dict)
    counted: list[_Kind] = field(default_factory=list)

    def add(self, turn: list[tuple[ToolCall, ToolResult]]) -> tuple[int, str]:
        """Take in a finished turn; give the highest count in it and the name of that call's tool."""
        found = [self._kind(call, result) for call, result in turn]
        if any(new for _, new in found):
            for kind in self.counted:
                kind.count = 0
            self.counted.clear()
        highest, name = 0, ""
        for kind, _ in found:
            if not kind.count:
                self.counted.append(kind)
            kind.count += 1
            if kind.count > highest:
                highest, name = kind.count, kind.first.name
        return highest, name

    def _kind(self, call: ToolCall, result: ToolResult) -> tuple[_Kind, bool]:
        """The call's kind, and whether it is new."""
        alike = self.kinds.setdefault((call.name, _outline(call), result.state, result.text), [])
        for kind in alike:
            if same_call(kind.first, call):
                return kind, False
        alike.append(kind := _Kind(call))
        return kind, True
