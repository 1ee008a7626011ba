"""One JSON value read as one JSON Schema type. A value that can be read in two ways is no fit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from glassloop.core.entries import JSON
from glassloop.wire import relaxed, strictjson

Path = tuple[str | int, ...]

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WORDS_FOR_NULL = ("", "null", "none")
_MAX_DIGITS = 400


class NoFit(Exception):
    """A value cannot be read as the type wanted."""


def _integer(value: JSON) -> JSON:
    number = _number(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise NoFit
        return int(number)
    return number


def _number(value: JSON) -> JSON:
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > _MAX_DIGITS or not NUMBER.fullmatch(text):
        raise NoFit
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise NoFit
    return number


def _boolean(value: JSON) -> JSON:
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        raise NoFit
    return word == "true"


def _null(value: JSON) -> JSON:
    if isinstance(value, str) and value.strip().lower() in WORDS_FOR_NULL:
        return None
    raise NoFit


def is_written_null(value: JSON, options: list[Any]) -> bool:
    """Whether a value is JSON's null in quotes, where null is one of the options and no member is spelt so."""
    schemas = [option for option in options if isinstance(option, Mapping)]
    return (
        value == "null"
        and any(schema.get("type") == "null" for schema in schemas)
        and not any("null" in (*schema.get("enum", ()), schema.get("const")) for schema in schemas)
    )


def _object(value: JSON) -> JSON:
    """An object written as text, or alone in a list."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = read_json(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        raise NoFit
    return value


READERS: dict[str, Callable[[JSON], JSON]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "object": _object,
}
SCALARS = ("string", "integer", "number", "boolean")


def member(value: JSON, members: list[JSON]) -> JSON:
    """The member of an enum that was meant: itself, or the only one that is written the same but for case."""
    for member in members:
        if type(member) is type(value) and member == value:
            return member
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, (list, Mapping)):
        raise NoFit
    alike = [member for member in members if _written(member) == _written(value)]
    if len(alike) != 1:
        raise NoFit
    return alike[0]


def _written(value: JSON) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (value.strip() if isinstance(value, str) else json.dumps(value)).casefold()


def is_a(wanted: str, value: JSON) -> bool:
    """Whether a JSON value has a JSON Schema type. True and False are no numbers; 3.0 is an integer."""
    match wanted:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, Mapping)
        case "integer" if isinstance(value, float):
            return value.is_integer()
        case "integer" | "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
    return True


def read_json(text: str) -> JSON:
    """JSON, or short JSON5 (`['a', 'b',]`). Cut off, with NaN or with a key given twice it is a `ValueError`.

    By the rules for a call's own arguments, since it is a piece of them that was encoded once more.
    """
    try:
        return strictjson.parse(text)
    except strictjson.Forbidden:
        raise
    except ValueError:
        return relaxed.json5(text)


def number_literals(text: str) -> dict[Path, str]:
    """Where the numbers of a JSON text stand and how they were written. Empty if it is not JSON."""
    try:
        parsed = json.loads(text, parse_float=_Literal, parse_int=_Literal)
    except (ValueError, RecursionError):
        return {}
    return dict(_literals(parsed, ()))


class _Literal(str):
    """A number as it was written."""


def _literals(node: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(node, _Literal):
        yield path, str(node)
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from _literals(value, (*path, name))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _literals(value, (*path, index))


def without_surrogates(text: str) -> str:
    """Lone surrogates, which no encoding can carry, replaced."""
    return text if text.isascii() else re.sub(r"[\ud800-\udfff]", "\ufffd", text)
