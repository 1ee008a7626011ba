"""Text that is still arriving, and the few steps every grammar reads it with. What a call looks like is not known here.

A grammar is a generator: it yields where it needs more text and goes on when there is some. So one
description of a format reads a whole text and a stream, any split gives the same result, and each
character is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from typing import Literal, TypeVar

T = TypeVar("T")
Scan = Generator[None, None, T]
"""A reading that yields where it must wait for more text."""

SPACE = re.compile(r"\s*")

BrokenBy = Literal["", "end", "bracket", "marker"]
"""What broke a bracketed value off: nothing, the end of the text, a bracket that closes another kind (consumed),
or a `<` outside strings, which begins a marker (not consumed)."""


class Source:
    """The text not yet consumed, and a record of what was consumed since the last `mark`."""

    __slots__ = ("_settled", "_taken", "cut_off", "ended", "pos", "text")

    def __init__(self) -> None:
        self.text = ""
        self.pos = 0
        self.ended = False
        self.cut_off = False
        self._taken: list[str] = []
        self._settled = 0

    def add(self, text: str) -> None:
        self.text = self.text[self.pos :] + text
        self.pos = 0

    def left(self) -> int:
        return len(self.text) - self.pos

    def peek(self) -> str:
        """The next character, or nothing if none has arrived."""
        return self.text[self.pos : self.pos + 1]

    def take(self, count: int) -> str:
        piece = self.text[self.pos : self.pos + count]
        self.pos += count
        self._taken.append(piece)
        return piece

    def mark(self) -> None:
        self._taken.clear()
        self._settled = 0

    def settle(self) -> None:
        """What was consumed so far is part of a call, whatever comes next."""
        self._settled = len(self._taken)

    def unsettled(self) -> str:
        """What was consumed since then."""
        return "".join(self._taken[self._settled :])

    def taken(self) -> str:
        """Everything consumed since the mark."""
        return "".join(self._taken)


class Words:
    """A set of literal words, matched where the source stands; the longest one wins.

    The pattern is compiled when it is first needed: most answers need few of them.
    """

    __slots__ = ("_beginnings", "_ordered", "_pattern", "longest")

    def __init__(self, words: Iterable[str]) -> None:
        self._ordered = ordered = sorted(set(words), key=lambda word: (-len(word), word))
        self.longest = len(ordered[0]) if ordered else 0
        self._pattern: re.Pattern[str] | None = None
        self._beginnings = frozenset(word[:size] for word in ordered for size in range(1, len(word)))

    def at(self, text: str, pos: int) -> str:
        found = (self._pattern or self._compile()).match(text, pos)
        return found.group() if found else ""

    def first(self, text: str, pos: int) -> re.Match[str] | None:
        return (self._pattern or self._compile()).search(text, pos)

    def _compile(self) -> re.Pattern[str]:
        self._pattern = re.compile("|".join(map(re.escape, self._ordered)) if self._ordered else r"(?!)")
        return self._pattern

    def may_grow(self, text: str, pos: int) -> bool:
        """Whether all that has arrived from `pos` on is the beginning of a longer word."""
        size = len(text) - pos
        return size < self.longest and (size == 0 or text[pos:] in self._beginnings)

    def held(self, text: str, pos: int) -> int:
        """How many characters at the end may be the beginning of a word."""
        end = len(text)
        for size in range(min(self.longest - 1, end - pos), 0, -1):
            if text[end - size :] in self._beginnings:
                return size
        return 0


def ahead(source: Source, words: Words) -> Scan[str]:
    """The word that comes next, or an empty string; nothing is consumed."""
    while not source.ended and words.may_grow(source.text, source.pos):
        yield
    return words.at(source.text, source.pos)


def char(source: Source) -> Scan[str]:
    """The next character, or an empty string at the end; nothing is consumed."""
    while not source.left() and not source.ended:
        yield
    return source.peek()


def spaces(source: Source) -> Scan[str]:
    """Consume white space."""
    return (yield from run_of(source, SPACE))


def run_of(source: Source, pattern: re.Pattern[str], limit: int = 1 << 62) -> Scan[str]:
    """Consume what `pattern` (a repeated character class) matches, up to one character more than `limit`."""
    pieces: list[str] = []
    size = 0
    while True:
        found = pattern.match(source.text, source.pos, source.pos + limit + 1 - size)
        if found and found.group():
            pieces.append(source.take(len(found.group())))
            size += len(pieces[-1])
        if source.left() or source.ended or size > limit:
            return "".join(pieces)
        yield


def until(source: Source, words: Words, limit: int = 1 << 62) -> Scan[tuple[str, str]]:
    """Consume text up to one of `words`; the word itself stays. Where none begins within `limit` characters, so many
    are consumed, or all to the end, and the word is empty.
    """
    pieces: list[str] = []
    size = 0
    while True:
        found = words.first(source.text, source.pos)
        held = 0 if source.ended else words.held(source.text, source.pos)
        sure, reach = len(source.text) - held, source.pos + limit - size
        if found and found.start() <= sure and found.start() < reach:
            pieces.append(source.take(found.start() - source.pos))
            return "".join(pieces), found.group()
        pieces.append(source.take(min(sure, reach) - source.pos))
        size += len(pieces[-1])
        if source.ended or size >= limit:
            return "".join(pieces), ""
        yield


_OUTSIDE = re.compile(r"""["'\[\](){}<]""")
_INSIDE = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_CLOSER = {"(": ")", "[": "]", "{": "}"}


def bracketed(source: Source, closers: str = "") -> Scan[tuple[str, BrokenBy]]:
    """Consume one bracketed value with its strings, JSON or Python: its text, and what broke it off, if anything.

    `closers` are the brackets still open where the reading starts.
    """
    open_brackets = list(closers)
    pieces: list[str] = []
    quote = ""
    while True:
        pattern = _INSIDE[quote] if quote else _OUTSIDE
        found = pattern.search(source.text, source.pos)
        if not found:
            pieces.append(source.take(source.left()))
            if source.ended:
                return "".join(pieces), "end"
            yield
            continue
        mark = found.group()
        if mark == "\\" and found.end() == len(source.text) and not source.ended:
            pieces.append(source.take(found.start() - source.pos))
            yield
            continue
        if mark == "<":
            pieces.append(source.take(found.start() - source.pos))
            return "".join(pieces), "marker"
        pieces.append(source.take(found.end() - source.pos + (mark == "\\")))
        if quote:
            quote = "" if mark == quote else quote
        elif mark in _INSIDE:
            quote = mark
        elif mark in _CLOSER:
            open_brackets.append(_CLOSER[mark])
        elif not open_brackets or open_brackets.pop() != mark:
            return "".join(pieces), "bracket"
        elif not open_brackets:
            return "".join(pieces), ""
