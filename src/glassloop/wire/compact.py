"""JSON as it is sent: compact, in UTF-8, and never refused for what a model once said."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from pydantic_core import to_json

from glassloop.core.entries import JSON


def dumps(value: JSON) -> str:
    """Compact JSON text of what JSON has. NaN and infinities become null."""
    return encoded_quickly(value).decode()


def encoded_quickly(value: JSON) -> bytes:
    """`encoded` for messages, in a third of its time: for lists and objects of texts and numbers, and nothing else.

    It may write a float otherwise than `json` does, and takes a set for a list.
    """
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError:  # half of a surrogate pair, or deep nesting
        return encoded(value)


def encoded(value: JSON) -> bytes:
    """Compact JSON in UTF-8. NaN and infinities become null. Two surrogates that make a pair are joined; a lone one,
    without UTF-8, is replaced. Raises TypeError for what is no JSON.
    """
    try:
        return _utf8(_dumps(value))
    except ValueError:
        return _utf8(_dumps(_finite(value)))


def encoded_exactly(value: JSON) -> bytes:
    """`encoded`, but raising ValueError, TypeError or RecursionError for what JSON does not have."""
    return _utf8(_dumps(value))


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def _plain(value: object) -> JSON:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain).encode


def _finite(value: JSON) -> JSON:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value
