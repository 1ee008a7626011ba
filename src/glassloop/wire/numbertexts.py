"""Numbers where a schema declares a string: the text in which they were written, so that 1.50 stays "1.50"."""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.wire import strictjson
from glassloop.wire.fits import types_of
from glassloop.wire.strictjson import Number


def with_number_texts(value: JSON, text: str, schema: Mapping[str, JSON]) -> JSON:
    """The value of a JSON text, with the text of each number in place of a declared string."""
    if not _number_for_string(value, schema):
        return value
    return _merged(value, strictjson.parse(text, number_texts=True), schema)


def _wants_text(value: JSON, schema: JSON) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    types = types_of(schema)
    return "string" in types and not types & {"number", "integer"}


def _number_for_string(value: JSON, schema: JSON) -> bool:
    if isinstance(value, (dict, list)):
        return any(_number_for_string(item, part) for _, item, part in _parts(value, schema))
    return _wants_text(value, schema)


def _merged(value: JSON, literal: JSON, schema: JSON) -> JSON:
    if isinstance(literal, Number):
        return literal.text if _wants_text(value, schema) else value
    if isinstance(value, (dict, list)):
        copy = value.copy()
        for key, item, part in _parts(value, schema):
            copy[key] = _merged(item, literal[key], part)
        return copy
    return value


def _parts(value: JSON, schema: JSON) -> list[tuple[JSON, JSON, JSON]]:
    """Key, item and schema of each part of an object or array that the schema describes."""
    if not isinstance(schema, dict):
        return []
    if isinstance(value, list):
        items = schema.get("items")
        return [(index, item, items) for index, item in enumerate(value)] if isinstance(items, dict) else []
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    return [(key, item, properties[key]) for key, item in value.items() if key in properties]
