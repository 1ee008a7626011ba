"""Strict JSON and the list of deviations that a strict reading collects. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from glassloop.core.entries import JSON

_QUOTED = 120


@dataclass(frozen=True, slots=True)
class Deviation:
    """What differs: where, how, and the beginning of what stood there."""

    place: str
    how: str
    seen: str = ""


@dataclass(slots=True)
class Look:
    """Collects deviations, each place and kind once."""

    found: list[Deviation] = field(default_factory=list)

    def add(self, place: str, how: str, seen: JSON = "") -> None:
        if any((one.place, one.how) == (place, how) for one in self.found):
            return
        self.found.append(Deviation(place, how, shown(seen)))


def shown(value: JSON) -> str:
    """A value on one line, shortened."""
    if isinstance(value, bytes):
        text = repr(value)
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


def strict_json(text: str) -> JSON:
    """The value, or None where it is no JSON, has NaN or a key twice, or is null."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _without_repeats(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> JSON:
    raise ValueError(f"{name} is no JSON")


_KINDS: tuple[tuple[type, str], ...] = (
    (type(None), "null"),
    (bool, "a boolean"),
    (int, "a number"),
    (float, "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "an object"),
)


def kind_of(value: JSON) -> str:
    """What a JSON value is, in words."""
    return next(words for kind, words in _KINDS if isinstance(value, kind))
