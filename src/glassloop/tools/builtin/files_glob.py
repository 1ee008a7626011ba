"""Glob patterns, matched without regular expressions in time that only grows with both lengths; and `.gitignore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

MAX_PATTERN = 500
MAX_BRACES = 64
_ANY = "*"
_DEEP = "**"

Parts = tuple[str, ...]
_P = TypeVar("_P")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class _One:
    """One character: any (`allowed` empty and `negated`), or one inside or outside the ranges."""

    allowed: tuple[tuple[str, str], ...]
    negated: bool = False

    def takes(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.allowed) != self.negated


_ANY_ONE = _One((), negated=True)


def matches(pattern: Parts, path: Parts) -> bool:
    """Whether a pattern, split at its slashes, takes the whole path. `**` stands for any number of folders."""
    return _wild(pattern, path, _DEEP, matches_name)


def matches_name(pattern: str, name: str) -> bool:
    """Whether a pattern takes one whole name: `*`, `?`, `[a-z]`, `[!a-z]`, and `\\` before what is meant as it is."""
    return _wild(_tokens(pattern), name, _ANY, _takes)


def _takes(token: str | _One, char: str) -> bool:
    return token.takes(char) if isinstance(token, _One) else token == char


def _wild(pattern: Sequence[_P], value: Sequence[_V], star: str, takes: Callable[[_P, _V], bool]) -> bool:
    """Match with a star for any run. Only the last star seen is ever tried again: an earlier one cannot do better."""
    at = place = 0
    last_star, resumed = -1, 0
    while place < len(value):
        if at < len(pattern) and pattern[at] == star:
            last_star, resumed = at, place
            at += 1
        elif at < len(pattern) and takes(pattern[at], value[place]):
            at, place = at + 1, place + 1
        elif last_star >= 0:
            resumed += 1
            at, place = last_star + 1, resumed
        else:
            return False
    return all(rest == star for rest in pattern[at:])


@lru_cache(maxsize=512)
def _tokens(pattern: str) -> tuple[str | _One, ...]:
    """The pattern's tokens. A star that is meant as such is a `_One`, so that it is not taken for the wildcard."""
    tokens: list[str | _One] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            tokens.append(_One(((pattern[at + 1], pattern[at + 1]),)))
            at += 2
        elif (
            char == "[" and (end := pattern.find("]", at + 2 + (pattern[at + 1 : at + 2] in ("!", "^")))) > 0
        ):
            tokens.append(_ranges(pattern[at + 1 : end]))
            at = end + 1
        else:
            if not (char == _ANY and tokens[-1:] == [_ANY]):
                tokens.append(_ANY_ONE if char == "?" else char)
            at += 1
    return tuple(tokens)


def _ranges(inside: str) -> _One:
    negated = inside[0] in "!^"
    chars = inside[1:] if negated else inside
    ranges: list[tuple[str, str]] = []
    while chars:
        is_range = len(chars) > 2 and chars[1] == "-"
        ranges.append((chars[0], chars[2 if is_range else 0]))
        chars = chars[3 if is_range else 1 :]
    return _One(tuple(ranges), negated)


def expanded(pattern: str) -> list[str]:
    """`*.{py,md}` as the patterns that it stands for. Raises `ValueError` for too many of them."""
    waiting, done = [pattern], []
    while waiting:
        each = waiting.pop(0)
        end = each.find("}")
        start = each.rfind("{", 0, end) if end >= 0 else -1
        if start < 0:
            done.append(each)
        else:
            choices = each[start + 1 : end].split(",")
            waiting += [each[:start] + choice + each[end + 1 :] for choice in choices]
        if len(waiting) + len(done) > MAX_BRACES:
            raise ValueError(f"the pattern stands for more than {MAX_BRACES} others; use fewer {{…,…}}")
    return done


# ── .gitignore ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a `.gitignore` that stands in folder `base`."""

    base: Parts
    pattern: Parts
    negated: bool
    folders_only: bool


def rules_of(text: str, base: Parts) -> tuple[Rule, ...]:
    """The rules of a `.gitignore` file in `base`. Lines longer than any pattern are left out."""
    lines = [line.rstrip() for line in text.splitlines() if len(line) <= MAX_PATTERN]
    return tuple(_rule(line, base) for line in lines if line.strip("/!") and not line.startswith("#"))


def _rule(line: str, base: Parts) -> Rule:
    negated = line.startswith("!")
    pattern = line[negated:]
    folders_only = pattern.endswith("/")
    anchored = "/" in pattern.rstrip("/")
    names = tuple(name for name in pattern.split("/") if name)
    inside = (_ANY,) if names[-1] == _DEEP else ()  # `a/**` is what is in a, and not a
    return Rule(base, (*(() if anchored else (_DEEP,)), *names, *inside), negated, folders_only)


def is_ignored(rules: tuple[Rule, ...], path: Parts, is_folder: bool) -> bool:
    """What the last rule says that takes the path. Whether a folder above it is ignored is the walker's to see."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and matches(rule.pattern, path[len(rule.base) :]):
            return not rule.negated
    return False
