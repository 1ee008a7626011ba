"""What is sent when history outgrows the context. A call is never split from its result.

How full the context is, and when something is done about it, is `context.py`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec.structs import replace

from glassloop.core.entries import Entry, Note, Reply, Summary, System, Text, ToolResult, User
from glassloop.core.errors import ConfigError
from glassloop.core.tokens import estimate_entry
from glassloop.core.values import Value

Policy = Literal["auto", "summarise", "trim"]

_SHORTEST = 200
"""Characters that are left of a result or message when it is shortened, at the least."""

_GAP = 80
"""Characters that the words about the gap take, at the most."""

_SMALLEST_SIZE = 256


class Window(Value, frozen=True):
    """What is done when history outgrows the model's context window.

    `policy`: "auto" has the model summarise old turns, after a second overflow error in a row trims; "summarise"
    only trims where a summary fails; "trim" never asks the model: it shortens old results, then drops old turns.
    `share`: the part of the window from which on that happens (default 0.8). `keep_last`: turns that are kept
    word for word behind a summary, at the most (default 4; fewer if they are long). `size`: the window in
    tokens, where you know it better than the endpoint tells. Instructions, the first task, the task at hand
    and messages with `pinned=True` always stay, and all that was said stays in the journal.

    Raises `ConfigError` for values that cannot be.
    """

    policy: Policy = "auto"
    share: float = 0.8
    keep_last: int = 4
    size: int | None = None

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            names = ", ".join(map(repr, get_args(Policy)))
            raise ConfigError(f"Window(policy={self.policy!r}): give one of {names}")
        if not _is_number(self.share) or not 0.1 <= self.share <= 0.95:
            raise ConfigError(f"Window(share={self.share!r}): give a part of the window from 0.1 to 0.95")
        if not _is_whole(self.keep_last, 1):
            raise ConfigError(f"Window(keep_last={self.keep_last!r}): give a whole number of turns from 1 on")
        if self.size is not None and not _is_whole(self.size, _SMALLEST_SIZE):
            raise ConfigError(
                f"Window(size={self.size!r}): give tokens from {_SMALLEST_SIZE} on, or None to have it found out"
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


# ── what stands where ────────────────────────────────────────────────────────────────────────────────


def turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries in groups that may be kept or dropped only as a whole: a reply with its results and notes."""
    groups: list[list[Entry]] = []
    for entry in entries:
        if isinstance(entry, (ToolResult, Note)) and groups and isinstance(groups[-1][0], Reply):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def preface_of(entries: Sequence[Entry]) -> int:
    """How many entries come before the conversation: the instructions, and the examples with all that is in them."""
    at = 0
    while at < len(entries) and isinstance(entries[at], System):
        at += 1
    in_example = False
    for index in range(at, len(entries)):
        entry = entries[index]
        if isinstance(entry, User):
            in_example = entry.kind == "example"
        if not in_example:
            return index
    return len(entries)


def sent(entries: Sequence[Entry]) -> list[Entry]:
    """What is sent of a history: its newest summary stands for what it replaces, save what is pinned in that.

    The same history gives the same in every run, so that the beginning of requests stays the same.
    """
    start = preface_of(entries)
    conversation = entries[start:]
    at = _newest_summary(conversation)
    if at is None:
        return list(entries)
    summary = conversation[at]
    assert isinstance(summary, Summary)
    cut = _whole_turns(conversation, summary.replaces)
    first = next((one for one in conversation if is_task(one)), None)
    at_hand = next((one for one in reversed(conversation[:at]) if is_task(one)), None)
    pinned = [one for one in conversation[:cut] if one is first or is_pinned(one)]
    task = [one for one in conversation[:cut] if one is at_hand and one is not first and not is_pinned(one)]
    after = [one for one in conversation[cut:] if not isinstance(one, Summary)]
    return [*entries[:start], *pinned, replace(summary, replaces=0), *task, *after]


def is_task(entry: Entry) -> bool:
    """Is it something that a person said in this conversation?"""
    return isinstance(entry, User) and entry.kind != "example"


def is_pinned(entry: Entry) -> bool:
    """Does it stay whatever is left out?"""
    return isinstance(entry, System) or (isinstance(entry, User) and entry.pinned)


def replaced(conversation: Sequence[Entry]) -> int:
    """How many entries of a conversation its newest summary stands for; 0 without one."""
    at = _newest_summary(conversation)
    summary = conversation[at] if at is not None else None
    return _whole_turns(conversation, summary.replaces) if isinstance(summary, Summary) else 0


def _newest_summary(conversation: Sequence[Entry]) -> int | None:
    for index in range(len(conversation) - 1, -1, -1):
        entry = conversation[index]
        if isinstance(entry, Summary) and entry.replaces > 0 and entry.text.strip():
            return index
    return None


def _whole_turns(entries: Sequence[Entry], cut: int) -> int:
    """`cut`, moved back to before the turn that it would split."""
    cut = max(0, min(cut, len(entries)))
    while 0 < cut < len(entries) and isinstance(entries[cut], (ToolResult, Note)):
        cut -= 1
    return cut


def first_kept(conversation: Sequence[Entry], keep_last: int, room: int) -> int:
    """Where the last turns begin: at most `keep_last` of them, of about `room` tokens, but one at the least."""
    groups = turns(conversation)
    kept = 0
    for group in reversed(groups):
        size = sum(map(estimate_entry, group))
        if kept and (kept == keep_last or size > room):
            break
        room -= size
        kept += 1
    return sum(map(len, groups[: len(groups) - kept]))


# ── making it shorter ────────────────────────────────────────────────────────────────────────────────


def trim(entries: Sequence[Entry], target: int) -> tuple[Entry, ...]:
    """Entries cut down to about `target` tokens.

    In this order: old tool results are shortened, old turns are dropped (never the instructions, the
    first task, what is pinned, a summary, the task at hand or the last turns), and at last whatever is
    longest is shortened.
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
    tasks = [place for place, group in enumerate(groups) if is_task(group[0])]
    stay = {*tasks[:1], *tasks[-1:], len(groups) - 1, len(groups) - 2}
    stay.update(
        place for place, group in enumerate(groups) if is_pinned(group[0]) or isinstance(group[0], Summary)
    )
    kept = []
    for place, group in enumerate(groups):
        if excess > 0 and place not in stay:
            excess -= _size([group])
            continue
        kept.append(group)
    return kept


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
    return replace(entry, parts=(Text(shortened(text, length)),))


def shortened(text: str, length: int) -> str:
    """Text cut to about `length` characters: head and tail, and how much is missing between them."""
    if len(text) <= length:
        return text
    head, tail = length * 2 // 3, length // 3
    gap = f"\n[… {len(text) - head - tail} characters left out to fit the model's context …]\n"
    return text[:head] + gap + text[len(text) - tail :]
