"""What is searched for in files and what is found, for both engines; and the plain one, which looks for a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from glassloop.tools.builtin.files_text import NotText, around, decode, lines_of
from glassloop.tools.builtin.rooted import read_bytes
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root
from glassloop.tools.builtin.rooted_walk import Entry

MAX_FILE = 5_000_000
SHOWN_LINE = 300
"""Characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Query:
    """One search: at most `limit` matches a file with `context` lines around each, until the clock is at `deadline`."""

    text: str
    ignore_case: bool
    context: int
    limit: int
    deadline: float


@dataclass(frozen=True, slots=True)
class Found:
    """What is in one file: the lines to show by number (from 0), and which of them match. Both may be empty."""

    parts: Parts
    lines: dict[int, str]
    matching: frozenset[int]


def search_plainly(root: Root, files: Iterable[Entry], query: Query) -> Iterator[Found | None]:
    """What each file has; None for one that is no text or cannot be read."""
    for entry in files:
        try:
            content = decode(read_bytes(root, entry.parts, MAX_FILE)[0]).text
        except (NotText, OSError, Refused):
            yield None
            continue
        yield _in_text(entry.parts, content, query)


def _in_text(parts: Parts, content: str, query: Query) -> Found:
    wanted = _folded(query.text, query.ignore_case)
    if wanted not in _folded(content, query.ignore_case):
        return Found(parts, {}, frozenset())
    lines = lines_of(content)
    places = [_folded(line, query.ignore_case).find(wanted) for line in lines]
    matching = [at for at, place in enumerate(places) if place >= 0][: query.limit]
    around_them = {at + near for at in matching for near in range(-query.context, query.context + 1)}
    numbers = sorted(at for at in around_them if 0 <= at < len(lines))
    shown = {at: around(lines[at], max(0, places[at]), SHOWN_LINE) for at in numbers}
    return Found(parts, shown, frozenset(matching))


def _folded(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text
