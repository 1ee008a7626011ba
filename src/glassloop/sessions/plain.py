"""The quick way to write a value: most are made of what JSON has, and need nothing done to them.

What needs a closer look (bytes, a mapping of somebody's own, a field of a wrong type) is left to `shapes.py`,
which writes everything, and says what cannot be written.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from glassloop.core.entries import JSON
from glassloop.sessions.shapes import TAGS, stored_fields

Quick = Callable[[Any], JSON]

_SCALARS = frozenset({str, int, float, bool, type(None)})
_AS_THEY_ARE: Mapping[Any, frozenset[type]] = {
    str: frozenset({str}),
    int: frozenset({int, float}),
    float: frozenset({int, float}),
    bool: frozenset({bool}),
}


class NotPlain(Exception):
    """The value has to be written the thorough way."""


@cache
def plain_of(kind: type[Any]) -> Quick:
    """Gives what `shapes.py` would give of a value of this dataclass, or raises `NotPlain`."""
    fields = [(name, default, *_rule(hint)) for name, hint, default in stored_fields(kind)]

    def plain(value: Any) -> JSON:
        if type(value) is not kind:
            raise NotPlain
        found: dict[str, JSON] = {}
        for name, default, as_they_are, write in fields:
            one = getattr(value, name)
            if one is default or one == default:
                continue
            found[name] = one if type(one) in as_they_are else write(one)
        return found

    return plain


def _rule(hint: Any) -> tuple[frozenset[type], Quick]:
    """The types that are taken as they are where this stands, and what is done with any other."""
    if hint in _AS_THEY_ARE:
        return _AS_THEY_ARE[hint], _refuse
    if is_dataclass(hint) and isinstance(hint, type):
        return frozenset(), plain_of(hint)
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return frozenset(), _choice(arguments)
        case origin if origin is tuple:
            return frozenset(), _sequence(*_rule(arguments[0]))
        case origin if origin in (Mapping, dict):
            return frozenset(), _object
        case origin if origin in (Union, types.UnionType):
            return _union(arguments)
    return frozenset(), _refuse


def _refuse(value: Any) -> JSON:
    raise NotPlain


def _choice(options: tuple[Any, ...]) -> Quick:
    def write(value: Any) -> JSON:
        if type(value) is not str or value not in options:
            raise NotPlain
        return value

    return write


def _sequence(as_they_are: frozenset[type], write_one: Quick) -> Quick:
    def write(value: Any) -> JSON:
        if type(value) is not tuple:
            raise NotPlain
        return [one if type(one) in as_they_are else write_one(one) for one in value]

    return write


def _union(hints: tuple[Any, ...]) -> tuple[frozenset[type], Quick]:
    others = [hint for hint in hints if hint is not type(None)]
    as_they_are, write = _rule(others[0]) if len(others) == 1 else (frozenset[type](), _tagged(others))
    return (as_they_are if len(others) == len(hints) else as_they_are | {type(None)}), write


def _tagged(kinds: list[Any]) -> Quick:
    writers = {kind: (TAGS[kind], plain_of(kind)) for kind in kinds}

    def write(value: Any) -> JSON:
        if type(value) not in writers:
            raise NotPlain
        tag, plain = writers[type(value)]
        return {"type": tag, **plain(value)}

    return write


def _object(value: Any) -> JSON:
    if type(value) is not dict:
        raise NotPlain
    _check(value)
    return value


def _check(value: Any) -> None:
    """JSON of any depth. `json` itself would take a number as a name for a text."""
    if type(value) is dict:
        for name, one in value.items():
            if type(name) is not str:
                raise NotPlain
            if type(one) not in _SCALARS:
                _check(one)
    elif type(value) is list or type(value) is tuple:
        for one in value:
            if type(one) not in _SCALARS:
                _check(one)
    else:
        raise NotPlain
