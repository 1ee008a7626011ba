"""The quick way to JSON text: most values are made of what JSON has, and need nothing done to them.

What needs a closer look (bytes, a mapping of somebody's own, a field of a wrong type, a number without end) is left
to `shapes.py`, which writes everything, and says what cannot be written.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from pydantic_core import to_json

from glassloop.core.entries import JSON
from glassloop.sessions.shapes import TAGS, stored_fields

Quick = Callable[[Any], JSON]

_SCALARS = frozenset({str, float, bool, type(None)})
_TEXT, _BOOL = frozenset({str}), frozenset({bool})
_NOTHING: frozenset[type] = frozenset()
_LARGE = 2**64
"""A longer number may be too long to be read back."""


class NotPlain(Exception):
    """The value has to be written the thorough way."""


def text_of(value: Any) -> bytes:
    """The text, in UTF-8, that `shapes.py` and `json` would make of a value, or the same in another spelling of its
    floats.

    Raises `NotPlain`.
    """
    kind: Any = type(value)
    try:
        return to_json(_plain_of(kind)(value), inf_nan_mode="strings")
    except ValueError as error:  # half of a surrogate pair, or deep nesting
        raise NotPlain from error


@cache
def _plain_of(kind: Any) -> Quick:
    """What makes a value of this dataclass into what a serializer takes, as `shapes.py` would."""
    stored = [(name, default, *_rule(hint)) for name, hint, default in stored_fields(kind)]
    needed = [(name, taken, write) for name, default, taken, write in stored if default is MISSING]
    others = [one for one in stored if one[1] is not MISSING]

    def plain(value: Any) -> JSON:
        if type(value) is not kind:
            raise NotPlain
        found: dict[str, JSON] = {}
        for name, taken, write in needed:
            one = getattr(value, name)
            found[name] = one if type(one) in taken else write(one)
        for name, default, taken, write in others:
            one = getattr(value, name)
            if one is not default and one != default:
                found[name] = one if type(one) in taken else write(one)
        return found

    return plain


def _rule(hint: Any) -> tuple[frozenset[type], Quick]:
    """The types that are taken as they are where this stands, and what is done with any other."""
    if hint is str:
        return _TEXT, _refuse
    if hint is bool:
        return _BOOL, _refuse
    if hint is int or hint is float:
        return _NOTHING, _number
    if is_dataclass(hint) and isinstance(hint, type):
        return _NOTHING, _plain_of(hint)
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return _NOTHING, _choice(arguments)
        case origin if origin is tuple:
            return _NOTHING, _sequence(*_rule(arguments[0]))
        case origin if origin in (Mapping, dict):
            return _NOTHING, _object
        case origin if origin in (Union, types.UnionType):
            return _union(arguments)
    return _NOTHING, _refuse


def _refuse(value: Any) -> JSON:
    raise NotPlain


def _number(value: Any) -> JSON:
    if type(value) is int and -_LARGE < value < _LARGE:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    raise NotPlain


def _choice(options: tuple[Any, ...]) -> Quick:
    def write(value: Any) -> JSON:
        if type(value) is not str or value not in options:
            raise NotPlain
        return value

    return write


def _sequence(taken: frozenset[type], write_one: Quick) -> Quick:
    def write(value: Any) -> JSON:
        if type(value) is not tuple:
            raise NotPlain
        return [one if type(one) in taken else write_one(one) for one in value]

    return write


def _union(hints: tuple[Any, ...]) -> tuple[frozenset[type], Quick]:
    others = [hint for hint in hints if hint is not type(None)]
    taken, write = _rule(others[0]) if len(others) == 1 else (_NOTHING, _tagged(others))
    return (taken if len(others) == len(hints) else taken | {type(None)}), write


def _tagged(kinds: list[Any]) -> Quick:
    writers = {kind: (TAGS[kind], _plain_of(kind)) for kind in kinds}

    def write(value: Any) -> JSON:
        if type(value) not in writers:
            raise NotPlain
        tag, plain = writers[type(value)]
        return {"type": tag, **plain(value)}

    return write


def _object(value: Any) -> JSON:
    if type(value) is not dict:
        raise NotPlain
    return _free(value)


def _free(value: Any) -> JSON:
    """JSON of any depth, and nothing that a serializer would only take for it."""
    kind = type(value)
    if kind is dict:
        for name in value:
            if type(name) is not str:
                raise NotPlain
    elif kind is not list and kind is not tuple:
        raise NotPlain
    for one in value.values() if kind is dict else value:
        if type(one) is int:
            if not -_LARGE < one < _LARGE:
                raise NotPlain
        elif type(one) not in _SCALARS:
            _free(one)
    return value
