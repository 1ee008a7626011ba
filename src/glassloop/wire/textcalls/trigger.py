"""What ends a stretch of plain text while an answer is read: one pattern, so that common text costs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from glassloop.wire.textcalls.source import Words
from glassloop.wire.textcalls.tokens import CLOSERS, CONTROL_WORDS, OPENERS, RESULT_OPENERS
from glassloop.wire.textcalls.whole import Begins, beginnings

_DECIDING = 5  # characters of a word that tell it from common text


def _any_of(words: Iterable[str]) -> str:
    """A pattern for each of `words`, and for the beginning of one at the end of the text. A tree, so that a
    character is compared once, however many words there are."""
    tails: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""
        tails.setdefault(word[0], []).append(word[1:])
    branches = (re.escape(first) + _any_of(sorted(rest, key=len)) for first, rest in tails.items())
    return "(?:" + "|".join((*branches, r"\Z")) + ")"


def _trigger(lines: frozenset[str], messages: tuple[str, ...]) -> re.Pattern[str]:
    """What ends a stretch of plain text: what may be a marker, a control token, or a line that begins with one
    of `lines`. `messages` are the markers that begin a message. Nothing else ends it, so that `<`, `[` and the
    lines of common text cost nothing."""
    markers = {"<|", "<｜", *OPENERS, *messages, *RESULT_OPENERS, *CLOSERS, *CONTROL_WORDS}
    starts: dict[str, set[str]] = {}
    for word in markers:
        starts.setdefault(word[0], set()).add(word[1:_DECIDING])
    inside = (re.escape(first) + _any_of(sorted(rest, key=len)) for first, rest in sorted(starts.items()))
    line = _any_of(sorted({"\n", *(word[:_DECIDING] for word in lines)}))
    return re.compile("|".join((r"\n[^\S\n]*" + line, *inside)))


class Notation(NamedTuple):
    """What a line may begin with where it is a call, these words, and what ends a stretch of plain text."""

    beginnings: Mapping[str, Begins]
    words: Words
    trigger: re.Pattern[str]


@lru_cache(maxsize=32)
def notation(names: frozenset[str], shapes: bool, messages: tuple[str, ...]) -> Notation:
    """How calls of these tools are written. Without `shapes`, only control tokens can be a call: where no tools
    are offered, all other shapes are somebody's own text."""
    table, words = beginnings(names) if shapes else ({}, Words(()))
    return Notation(table, words, _trigger(frozenset(table), messages))
