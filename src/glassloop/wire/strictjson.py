"""Strict JSON for what a model wrote: everything that `json` takes silently and that must not run is a problem."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from glassloop.core.entries import JSON
from glassloop.core.values import Value

MAX_DEPTH = 100
"""Deeper nesting than this is no argument that a tool could want, and a way to exhaust the stack."""

STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A JSON string, or one that the text ends in. It always matches from a quote, so that scanning stays linear."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Forbidden(ValueError):
    """The text is well-formed, or nearly so, and still must not be run: no later rung may read it."""


class Number(Value, frozen=True):
    """A number with the text in which it was written, for a parameter that is a string."""

    text: str


def parse(text: str, *, control_characters: bool = False, number_texts: bool = False) -> JSON:
    """The value of a whole JSON text.

    `control_characters` allows raw newlines and the like inside strings. `number_texts` gives each
    number as a `Number`. Raises `Forbidden` for duplicate keys, NaN and Infinity, nesting beyond
    `MAX_DEPTH`, numbers too long to read and keys that are no valid Unicode; ValueError for other text.
    """
    refuse_deep(text)
    return _decoder(control_characters, number_texts).decode(text)


def flat_object(text: str) -> dict[str, JSON] | None:
    """The object that a whole text is, as `parse` gives it but for its depth; None for what is left to `parse`."""
    try:
        value, end = _scan_flat(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    return value if type(value) is dict and end == len(text) else None


def parse_at(text: str, start: int) -> tuple[JSON, int]:
    """The JSON value at `start` and the position after it. Raises as `parse` does; depth is the caller's check."""
    return _LENIENT.raw_decode(text, start)


def refuse_deep(text: str) -> None:
    """Raise `Forbidden` if brackets outside of strings nest deeper than `MAX_DEPTH`. Linear."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for match in re.finditer(r"[{}\[\]]", STRING.sub("", text)):
        depth += 1 if match[0] in "{[" else -1
        if depth > MAX_DEPTH:
            raise Forbidden(f"they nest deeper than {MAX_DEPTH} levels")


def refuse_deep_value(value: JSON, depth: int = 0) -> None:
    """The same for a value that was decoded already."""
    if depth > MAX_DEPTH:
        raise Forbidden(f"they nest deeper than {MAX_DEPTH} levels")
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            refuse_deep_value(item, depth + 1)


def is_cut_off(text: str) -> bool:
    """Whether the text ends inside a string, or with a bracket or brace still open."""
    outside = STRING.sub(lambda match: '"' if _is_open(match[0]) else "", text)
    opened = outside.count("{") + outside.count("[")
    return outside.endswith('"') or opened > outside.count("}") + outside.count("]")


def _is_open(string: str) -> bool:
    body = string[1:]
    if not body.endswith('"'):
        return True
    backslashes = len(body) - 1 - len(body[:-1].rstrip("\\"))
    return backslashes % 2 == 1


def has_surrogates(text: str) -> bool:
    """Whether half of a surrogate pair stands alone in the text: it cannot be encoded."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def without_surrogates(text: str) -> str:
    """The text with pairs of surrogates joined and single ones replaced by U+FFFD."""
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def scrubbed(value: JSON) -> JSON:
    """The value with every string in it, keys included, free of lone surrogates."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): scrubbed(item) for key, item in value.items()}
    return value


def unique_object(pairs: Sequence[tuple[str, JSON]]) -> dict[str, JSON]:
    """An object from its pairs. Raises `Forbidden` where a key comes twice or is no valid Unicode."""
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Forbidden(f"the key {twice!r} appears twice")
    for key in value:
        if not key.isascii() and has_surrogates(key):
            raise Forbidden("a key holds half of a surrogate pair")
    return value


def refuse_constant(name: str) -> JSON:
    """For `parse_constant`: NaN and Infinity are not JSON, and no tool expects them."""
    raise Forbidden(f"{name} is not a JSON number")


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Forbidden(f"a number of {len(text)} digits is too long") from None


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Forbidden(f"the number {text[:40]} is too large")
    return number


def _decoder(control_characters: bool, number_texts: bool) -> json.JSONDecoder:
    if number_texts:
        return _WITH_NUMBER_TEXTS
    return _LENIENT if control_characters else _STRICT


_STRICT = json.JSONDecoder(
    object_pairs_hook=unique_object, parse_constant=refuse_constant, parse_int=_integer, parse_float=_finite
)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=unique_object,
    parse_constant=refuse_constant,
    parse_int=_integer,
    parse_float=_finite,
    strict=False,
)
_WITH_NUMBER_TEXTS = json.JSONDecoder(
    object_pairs_hook=unique_object,
    parse_constant=refuse_constant,
    parse_int=Number,
    parse_float=Number,
    strict=False,
)
_scan_flat: Callable[[str, int], tuple[JSON, int]] = json.JSONDecoder(
    object_pairs_hook=unique_object, parse_constant=refuse_constant, parse_float=_finite
).scan_once  # type: ignore[attr-defined]
