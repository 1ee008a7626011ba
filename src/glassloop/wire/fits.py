"""Whether an object looks like the arguments of a tool, and what a value written as text means under a schema.

This decides whether text is a call at all. The full check, and every coercion, is done once, in `tools/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.wire.strictjson import refuse_constant

_NULL_WORDS = frozenset({"null", "none"})


def fits(arguments: Mapping[str, JSON], schema: Mapping[str, JSON]) -> bool:
    """Whether `arguments` fit `schema` closely enough to believe that they were meant for this tool.

    Required properties are there, nothing undeclared is (unless additional properties are allowed or
    nothing is declared), and each top-level value has its declared type or could be coerced to it.
    """
    properties = schema.get("properties") or {}
    if any(key not in arguments for key in schema.get("required") or ()):
        return False
    extra = schema.get("additionalProperties", not (properties or schema.get("type")))
    for key, value in arguments.items():
        if key not in properties:
            if extra is False:
                return False
        elif not _may_be(value, properties[key]):
            return False
    return True


def types_of(schema: JSON) -> frozenset[str]:
    """The JSON types a schema allows; empty where it does not say."""
    if not isinstance(schema, Mapping):
        return frozenset()
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset((declared,))
    if isinstance(declared, list):
        return frozenset(declared)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        each = [types_of(branch) for branch in branches]
        return frozenset().union(*each) if all(each) else frozenset()
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    return frozenset(_type_name(value) for value in values)


def typed(text: str, schema: JSON) -> JSON:
    """A value written as text, read by the schema's type.

    Where a string is allowed and nothing else, the text stays exactly as it is. Other types are read
    as JSON, else as a Python literal; what is neither stays text. Without a type, JSON is tried.
    """
    types = types_of(schema)
    if types == {"string"}:
        return text
    word = text.strip()
    if "string" in types:
        return _beside_string(text, word, types)
    value = _literal(word, text)
    if types and "integer" in types and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _beside_string(text: str, word: str, types: frozenset[str]) -> JSON:
    """The text itself, unless it reads as one of the other types that the schema allows."""
    value = _literal(word, text)
    name = _type_name(value)
    if name in types and name != "string":
        return value
    return value if name == "integer" and "number" in types else text


def _literal(word: str, text: str) -> JSON:
    try:
        return json.loads(word, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        pass
    if word.lower() in {"true", "false"}:
        return word.lower() == "true"
    if word.lower() in _NULL_WORDS:
        return None
    if not word or word[0] not in "[{(":
        return text
    from glassloop.wire.relaxed import python_literal

    try:
        return python_literal(word)
    except ValueError:
        return text


def _type_name(value: JSON) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


_COERCIBLE = {
    "string": frozenset({"integer", "number", "boolean"}),
    "number": frozenset({"integer", "string"}),
    "integer": frozenset({"number", "string"}),
    "boolean": frozenset({"string", "integer"}),
    "array": frozenset({"string"}),
    "object": frozenset({"string"}),
    "null": frozenset({"string"}),
}


def _may_be(value: JSON, schema: JSON) -> bool:
    types = types_of(schema)
    name = _type_name(value)
    if not types or name in types or name == "null":
        return True
    return any(name in _COERCIBLE.get(wanted, ()) and _reads_as(value, wanted) for wanted in types)


def _reads_as(value: JSON, wanted: str) -> bool:
    """Whether a value of a coercible type has a spelling of the wanted one: "5" is an integer, "five" is none."""
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    if not isinstance(value, str) or wanted == "string":
        return True
    name = _type_name(_literal(value.strip(), value))
    return name == wanted or (wanted in {"number", "integer"} and name in {"integer", "number"})
