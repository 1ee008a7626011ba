"""Where two requests differ, for people: the path in their JSON, and what stood and stands there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from glassloop.core.entries import JSON

_MOST = 6
"""Differences that are shown; more are counted."""

_BEFORE, _AFTER = 30, 70
"""Characters shown of a long value before its first difference, and from there on."""

_NOTHING: Any = object()


def differences(recorded: bytes, now: bytes) -> list[str]:
    """The differences of two bodies as lines; at least one, if they are not the same bytes."""
    before, after = _json(recorded), _json(now)
    found = list(_found(before, after, "")) if before is not _NOTHING and after is not _NOTHING else []
    if not found:  # no JSON, or the same JSON written otherwise
        found = [("the bytes", _text(recorded), _text(now))]
    lines = [line for path, old, new in found[:_MOST] for line in _lines(path, old, new)]
    more = len(found) - _MOST
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _found(before: JSON, after: JSON, path: str) -> Iterator[tuple[str, JSON, JSON]]:
    match before, after:
        case dict(), dict():
            for name in dict.fromkeys((*before, *after)):
                where = f"{path}.{name}" if path else str(name)
                yield from _found(before.get(name, _NOTHING), after.get(name, _NOTHING), where)
        case list(), list():
            for index in range(max(len(before), len(after))):
                old, new = (values[index] if index < len(values) else _NOTHING for values in (before, after))
                yield from _found(old, new, f"{path}[{index}]")
        case _ if type(before) is not type(after) or before != after:
            yield path or "the whole", before, after


def _lines(path: str, before: JSON, after: JSON) -> list[str]:
    old, new = _shown(before), _shown(after)
    at = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(old), len(new)) if at is None else at
    return [f"  {path}", f"    recorded: {_around(old, at)}", f"    now:      {_around(new, at)}"]


def _shown(value: JSON) -> str:
    if value is _NOTHING:
        return "(nothing)"
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8")


def _around(text: str, at: int) -> str:
    start, end = max(0, at - _BEFORE), at + _AFTER
    start = 0 if start < len("…") * 2 else start
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _json(data: bytes) -> JSON:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return _NOTHING
    return dict(found) if isinstance(found, Mapping) else found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
