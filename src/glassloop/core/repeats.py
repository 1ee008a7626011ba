"""Notices the same call again and again, in any rhythm (A A A, A B A B), but lets a poll whose results change go on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from glassloop.core.entries import ToolCall, ToolResult

Fingerprint = tuple[str, str, str, str]


def fingerprint(call: ToolCall, result: ToolResult) -> Fingerprint:
    """Name, canonical arguments and result. For a call that never could run, its problem stands for its arguments."""
    arguments = call.problem if call.problem else canonical(call)
    return call.name, arguments, result.state, result.text


def canonical(call: ToolCall) -> str:
    """The arguments as one text, whatever the order of keys and the spacing in which they came."""
    if call.arguments is None:
        return call.text
    return _canonical(call.arguments)


_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str).encode


@dataclass(slots=True)
class Repeats:
    """Counts each fingerprint since anything new happened. A round that brings one new fingerprint starts afresh."""

    counts: dict[Fingerprint, int] = field(default_factory=dict)
    seen: dict[Fingerprint, None] = field(default_factory=dict)  # a third of a set's size

    def add(self, turn: list[tuple[ToolCall, ToolResult]]) -> tuple[int, str]:
        """Take in a finished turn; give the highest count in it and the name of that call's tool."""
        prints = [fingerprint(call, result) for call, result in turn]
        new = [one for one in prints if one not in self.seen]
        if new:
            self.counts.clear()
            self.seen.update(dict.fromkeys(new))
        highest, name = 0, ""
        for one, (call, _) in zip(prints, turn, strict=True):
            self.counts[one] = self.counts.get(one, 0) + 1
            if self.counts[one] > highest:
                highest, name = self.counts[one], call.name
        return highest, name
