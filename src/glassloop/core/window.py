"""What is sent when history outgrows the context. A call is never split from its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glassloop.core.entries import Entry, Note, Reply, System, Text, ToolResult, User
from glassloop.core.tokens import estimate_entry

_SHORTEST = 200
"""Characters that are left of a result or message when it is shortened, at the least."""

_GAP = 80
"""Characters that the words about the gap take, at the most."""


def turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries in groups that may be kept or dropped only as a whole: a reply with its results and notes."""
    groups: list[list[Entry]] = []
    for entry in entries:
        if isinstance(entry, (ToolResult, Note)) and groups and isinstance(groups[-1][0], Reply):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def trim(entries: Sequence[Entry], target: int) -> tuple[Entry, ...]:
    """Entries cut down to about `target` tokens.

    In this order: old tool results are shortened, old turns are dropped (never the instructions, the
    first task or the last turn), and at last whatever is longest is shortened.
    """
    groups = turns(entries)
    groups = _shorten_results(groups, target, last=len(groups) - 1)
    groups = _drop_old(groups, target)
    return _shorten_longest([entry for group in groups for entry in group], target)


def _size(groups: Sequence[Sequence[Entry]]) -> int:
    return sum(estimate_entry(entry) for group in groups for entry in group)


def _shorten_results(groups: list[list[Entry]], target: int, last: int) -> list[list[Entry]]:
    shortened = [list(group) for group in groups]
    excess = _size(shortened) - target
    for group in shortened[:last]:
        for place, entry in enumerate(group):
            if excess <= 0:
                return shortened
            if isinstance(entry, ToolResult) and len(entry.text) > _SHORTEST + _GAP:
                group[place] = shorten(entry, _SHORTEST)
                excess -= estimate_entry(entry) - estimate_entry(group[place])
    return shortened


def _drop_old(groups: list[list[Entry]], target: int) -> list[list[Entry]]:
    excess = _size(groups) - target
    first_task = next((i for i, group in enumerate(groups) if _is_task(group[0])), -1)
    kept = []
    for place, group in enumerate(groups):
        pinned = isinstance(group[0], System) or place == first_task or place >= len(groups) - 2
        if excess > 0 and not pinned:
            excess -= _size([group])
            continue
        kept.append(group)
    return kept


def _is_task(entry: Entry) -> bool:
    return isinstance(entry, User) and entry.kind != "example"


def _shorten_longest(entries: list[Entry], target: int) -> tuple[Entry, ...]:
    long_enough = _SHORTEST + 2 * _GAP
    while (excess := sum(map(estimate_entry, entries)) - target) > 0:
        said = [(i, entry) for i, entry in enumerate(entries) if isinstance(entry, (ToolResult, User))]
        candidates = [(estimate_entry(entry), i, entry) for i, entry in said if len(entry.text) > long_enough]
        if not candidates:
            break
        size, place, entry = max(candidates, key=lambda one: one[0])
        length = len(entry.text)
        wanted = int(length * max(0.0, 1 - excess / size))
        entries[place] = shorten(entry, max(_SHORTEST, min(wanted, length - 2 * _GAP)))
    return tuple(entries)


def shorten(entry: ToolResult | User, length: int) -> ToolResult | User:
    """The entry with its text cut to about `length` characters, head and tail kept, and the gap named."""
    text = entry.text
    if len(text) <= length:
        return entry
    head, tail = length * 2 // 3, length // 3
    gap = f"\n[… {len(text) - head - tail} characters left out to fit the model's context …]\n"
    return replace(entry, parts=(Text(text[:head] + gap + text[len(text) - tail :]),))
