"""The quick way to JSON text and back, for values that are exactly what their annotations say.

Whatever needs a closer look (a number without end, a mapping of somebody's own, a field of a wrong type, a text that
was put aside) is left to `shapes.py`, which writes and reads everything, and says what cannot be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder

from glassloop.core.tools import Verdict

_FAILURES = (MsgspecError, TypeError, ValueError, OverflowError, RecursionError)

_encode = Encoder().encode


class NotPlain(Exception):
    """The value or the text has to be looked at the thorough way."""


def text_of(value: Any) -> bytes:
    """The value as JSON in UTF-8, from which the same value can be read. Raises `NotPlain`."""
    kind: Any = type(value)
    try:
        text = _encode(_storable(value))
        # Nothing is checked when a value is made or written; read back, it must fit its fields and be the same.
        if _decoder(kind)(text) == value:
            return text
    except _FAILURES as error:
        raise NotPlain from error
    raise NotPlain


def value_of(kind: Any, text: str) -> Any:
    """The value that was written as this text. Raises `NotPlain`."""
    try:
        return _storable(_decoder(kind)(text))
    except _FAILURES as error:
        raise NotPlain from error


def _storable(value: Any) -> Any:
    """The value, if nothing is in it that lives no longer than its process."""
    if type(value) is Verdict and value.bound is not None:
        raise NotPlain
    return value


@cache
def _decoder(kind: Any) -> Callable[[bytes | str], Any]:
    return Decoder(kind).decode
