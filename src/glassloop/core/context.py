"""What is sent of a conversation, how full the model's window is with it, and when that is done something about.

The whole conversation is kept beside it, untouched. Everything here follows from that and from what endpoints
reported in it, so that the same journal gives the same requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from glassloop.core.entries import Entry, Reply, Summary
from glassloop.core.events import Compacted
from glassloop.core.summary import most_tokens, summary_request
from glassloop.core.tokens import Meter, estimate_entries
from glassloop.core.values import Value
from glassloop.core.window import Window, first_kept, is_pinned, is_task, preface_of, replaced, sent, trim

_AFTERWARDS = 0.5
"""How full the window may be after it was emptied: so far below `Window.share` that it is not soon full again."""

_KEPT = 0.25
"""The part of the window that the turns behind a summary may take."""

_ASKED = 0.6
"""The part of the window that a request for a summary may take."""

_MORE = 0.1
"""The part of the window by which history must have grown before it is made smaller once more."""

_WORTH_SUMMARISING = 200
"""Tokens of old turns below which a summary would hardly be shorter."""


How = Literal["summary", "trim"]


class SummaryDue(Value, frozen=True):
    """A summary to ask for: what is sent, how many entries of the conversation it will stand for, its most tokens.

    `worth`: about how many tokens these come to, without what is sent all the same.
    """

    entries: tuple[Entry, ...]
    replaces: int
    most: int
    worth: int


class Context:
    """`entries` is the whole conversation, `sent` what a model is sent of it.

    `window`: see `Window`. `size`: the window in tokens, as far as it is known when the run begins.
    """

    def __init__(self, entries: Sequence[Entry], window: Window, size: int | None = None) -> None:
        self.entries = list(entries)
        self.sent = sent(self.entries)
        self.window = window
        self.size = window.size or size or _last_known(self.entries)
        self.compacted: Compacted | None = None
        """What was done since a model last answered."""
        self._meter = Meter()
        self._counts = _counts(self.sent)
        self._full_again_at = 0

    def add(self, entry: Entry) -> None:
        """Something was said that is sent from now on."""
        self.entries.append(entry)
        self.sent.append(entry)

    def keep(self, entry: Entry) -> None:
        """Something was said that is never sent."""
        self.entries.append(entry)

    # ── how full it is ───────────────────────────────────────────────────

    def heard(self, reply: Reply, entries: int) -> None:
        """A model answered to so many of the entries. If it took more than its window holds, that is not known."""
        self.compacted = None
        counted = reply.usage.prompt_tokens or 0
        self._counts.append((entries, counted))
        if self.window.size is None:
            known = reply.context_window or self.size
            self.size = known if known and counted <= known else None

    @property
    def tokens(self) -> int:
        """About how many tokens are sent, all told."""
        return self._metered().tokens(self.sent)

    @property
    def is_full(self) -> bool:
        """Is it time to make it smaller? Never where the window is not known: then an overflow says so."""
        if self.size is None:
            return False
        return self.tokens >= max(self.window.share * self.size, self._full_again_at)

    def overflowed(self, size: int | None) -> None:
        """The endpoint refused what is sent as too long; `size` is the window, where it says so."""
        if self.window.size is None:
            self.size = size or min(self.size or self.tokens, self.tokens)

    def _metered(self) -> Meter:
        """The meter with all counts heard: estimates are made only where somebody asks."""
        for entries, counted in self._counts:
            self._meter.heard(counted, self.sent, entries)
        self._counts.clear()
        return self._meter

    # ── making it smaller ────────────────────────────────────────────────

    def due(self, hint: str = "", least: int = _WORTH_SUMMARISING) -> SummaryDue | None:
        """The summary to ask for; None if there are not `least` tokens of turns that one could stand for."""
        conversation = self.entries[preface_of(self.entries) :]
        before, (kept, asked) = replaced(conversation), self._rooms()
        cut = first_kept(conversation, self.window.keep_last, kept)
        new = [one for one in conversation[before:cut] if not isinstance(one, Summary)]
        first = next((one for one in conversation if is_task(one)), None)
        worth = estimate_entries(one for one in new if one is not first and not is_pinned(one))
        if worth < least:
            return None
        earlier = [one for one in self.sent if isinstance(one, Summary)]
        most = most_tokens(self.size)
        request = summary_request([*earlier, *new], asked, most, hint)
        return SummaryDue(request, cut, most, worth + estimate_entries(earlier))

    def _rooms(self) -> tuple[int, int]:
        """Estimates of what the turns behind a summary may take, and the request for it: all, in an unknown window."""
        if self.size is None:
            now = estimate_entries(self.sent)
            return int(now * _KEPT), 2 * now + most_tokens(None)
        meter = self._metered()
        return meter.estimated(self.size * _KEPT), meter.estimated(self.size * _ASKED)

    def summarised(self, summary: Summary) -> None:
        """The summary came: it and the last turns are sent from now on."""
        before, goal = self.tokens, self._goal(1.0)
        self.entries.append(summary)
        self._now_sent(trim(sent(self.entries), goal), "summary", before)

    def trim(self, *, overflowed: bool = False) -> bool:
        """Shorten and leave out what is old. False if there is nothing left to shorten."""
        before, now = self.tokens, estimate_entries(self.sent)
        trimmed = trim(self.sent, self._goal(0.5 if overflowed else 1.0))
        less = estimate_entries(trimmed) < now
        if less:
            self._now_sent(trimmed, "trim", before)
        else:
            self._full_again_at = before + int(_MORE * (self.size or before))
        return less

    def _goal(self, share: float) -> int:
        """The estimate of what may be sent afterwards: half the window, and never over `share` of what is sent now."""
        now = int(estimate_entries(self.sent) * share)
        return now if self.size is None else min(now, self._metered().estimated(self.size * _AFTERWARDS))

    def _now_sent(self, entries: Sequence[Entry], how: How, before: int) -> None:
        self._metered().restart()
        self.sent = list(entries)
        after = self.tokens
        self._full_again_at = after + int(_MORE * (self.size or after))
        first = self.compacted.before if self.compacted else before
        self.compacted = Compacted(how, first, after)


def _last_known(entries: Sequence[Entry]) -> int | None:
    known = (one.context_window for one in reversed(entries) if isinstance(one, Reply))
    return next((size for size in known if size), None)


def _counts(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """What servers counted in earlier runs: how many entries, and their tokens."""
    replies = ((at, one) for at, one in enumerate(entries) if isinstance(one, Reply))
    return [(at, one.usage.prompt_tokens) for at, one in replies if one.usage.prompt_tokens]
