"""A history cut into what can be encoded by itself: its instructions, and each reply with what follows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glassloop.core.entries import Entry, Reply, Summary, System, ToolResult


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
    """A summary that replaces nothing (any more) stands where it is, as the loop has put it."""
    replacing = (entry for entry in reversed(rest) if isinstance(entry, Summary) and entry.replaces)
    summary = next(replacing, None)
    if summary is None:
        return rest
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
