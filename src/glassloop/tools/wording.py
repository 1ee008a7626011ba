"""What a JSON Schema wants, and the words for it: for error texts and for choosing how to fit a value."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from glassloop.core.entries import JSON
from glassloop.tools.values import Path

MOMENTS = {"date": "2024-05-31", "date-time": "2024-05-31T18:00:00Z", "time": "18:00:00"}
"""Formats that must not be read from a bare number, each with an example."""

NEVER_EMPTY = frozenset({*MOMENTS, "duration", "uuid", "email", "uri", "hostname", "ipv4", "ipv6"})
"""Formats that an empty text cannot have."""


def options_of(schema: Mapping[str, Any]) -> list[Any]:
    """The alternatives that a schema names: anyOf, oneOf, or several types."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        rest = {
            key: value
            for key, value in schema.items()
            if key not in ("anyOf", "oneOf", "allOf", "description")
        }
        return [{**rest, **option} if isinstance(option, Mapping) else option for option in options]
    types = schema.get("type")
    return [{**schema, "type": each} for each in types] if isinstance(types, list) else []


def item_schema(schema: Mapping[str, Any], index: int) -> Any:
    first: list[Any] = schema.get("prefixItems", [])
    return first[index] if index < len(first) else schema.get("items", True)


_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", lambda value, bound: value >= bound, "must be at least {}"),
    ("maximum", lambda value, bound: value <= bound, "must be at most {}"),
    ("exclusiveMinimum", lambda value, bound: value > bound, "must be more than {}"),
    ("exclusiveMaximum", lambda value, bound: value < bound, "must be less than {}"),
    ("minLength", lambda value, bound: len(value) >= bound, "must have at least {} characters"),
    ("maxLength", lambda value, bound: len(value) <= bound, "must have at most {} characters"),
    ("minItems", lambda value, bound: len(value) >= bound, "must have at least {} items"),
    ("maxItems", lambda value, bound: len(value) <= bound, "must have at most {} items"),
)
"""Patterns are left to whoever wrote them: a regular expression from outside is never run here."""


def broken_bound(value: JSON, schema: Mapping[str, Any]) -> str:
    """Which limit of the schema the value breaks, or nothing."""
    for keyword, holds, words in _BOUNDS:
        bound = schema.get(keyword)
        if not isinstance(bound, (int, float)) or not _bounded(keyword, value) or holds(value, bound):
            continue
        return words.format(bound)
    return ""


def _bounded(keyword: str, value: JSON) -> bool:
    if keyword.endswith("Length"):
        return isinstance(value, str)
    if keyword.endswith("Items"):
        return isinstance(value, list)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def expected(schema: Any) -> str:
    """What a schema wants, in a few words."""
    if not isinstance(schema, Mapping):
        return "any value"
    if "enum" in schema or "const" in schema:
        members = schema.get("enum", [schema.get("const")])
        return "one of " + ", ".join(json.dumps(member, ensure_ascii=False) for member in members)
    if options := options_of(schema):
        return " or ".join(dict.fromkeys(expected(option) for option in options))
    wanted = schema.get("type", "any value")
    if wanted == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {expected(schema['items'])}"
    if schema.get("format") in MOMENTS:
        return f'{schema["format"]} such as "{MOMENTS[schema["format"]]}"'
    return str(wanted)


def nearest(name: str, among: list[str]) -> list[str]:
    """Names that someone who wrote `name` may have meant, best first. For words only; never to route by."""
    by_folded = {folded(each): each for each in among}
    close = difflib.get_close_matches(folded(name), list(by_folded), n=3, cutoff=0.6)
    within = [
        key for key in by_folded if key and (folded(name).startswith(key) or key.startswith(folded(name)))
    ]
    return [by_folded[key] for key in dict.fromkeys([*close, *within])]


def folded(name: str) -> str:
    """A name without case and separators."""
    return re.sub(r"[\s_\-.]+", "", name).casefold()


def dotted(path: Path) -> str:
    """A path as people write it: `order.items[0].sku`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "arguments"


def shorten(value: JSON, limit: int = 100, *, quoted: bool = True) -> str:
    """A value as JSON, cut for a message; a name as it is where it is not `quoted`."""
    try:
        text = json.dumps(value, ensure_ascii=False) if quoted or not isinstance(value, str) else value
    except (TypeError, ValueError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
