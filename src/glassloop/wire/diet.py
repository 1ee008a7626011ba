"""Tool schemas as an endpoint can take them: refs inlined always, and up to four levels of what to leave out.

Endpoints support different parts of JSON Schema. What a level drops is only what constrains or decorates; the
arguments are still validated in full when a call comes back.
"""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.wire.profile import DEEPEST_DIET

_DECORATION = frozenset(
    "$schema $id $comment $anchor $vocabulary default format additionalProperties title examples example deprecated"
    " readOnly writeOnly contentEncoding contentMediaType unevaluatedProperties".split()
)
_CONSTRAINTS = frozenset(
    "pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems"
    " uniqueItems minProperties maxProperties patternProperties propertyNames contains minContains maxContains"
    " dependentRequired dependentSchemas dependencies prefixItems additionalItems unevaluatedItems if then else"
    " not nullable anyOf oneOf allOf const".split()
)
_ONLY_ABOVE_THE_LAST = frozenset(("description", "enum"))
_REFERENCES = frozenset(("$ref", "$defs", "definitions"))
_LAST = frozenset(("type", "properties", "required", "items", "enum", "description"))

_SCHEMAS_BY_NAME = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_DEPTH = 60
_MOST_SCHEMAS = 20_000
"""Refs that fan out can multiply without end; from here on a bare object stands for what they mean."""


def level_that_drops(keyword: str) -> int:
    """The lowest level at which `keyword` is no longer sent."""
    if keyword in _REFERENCES:
        return 0
    if keyword in _DECORATION:
        return 1
    if keyword in _CONSTRAINTS:
        return 2
    return DEEPEST_DIET if keyword in _ONLY_ABOVE_THE_LAST else 3


KEYWORDS = _DECORATION | _CONSTRAINTS | _REFERENCES
"""Every keyword that some level drops by name."""


def parameters(schema: Mapping[str, JSON], level: int) -> dict[str, JSON]:
    """A tool's `parameters`, always an object schema with `properties`.

    0: refs inlined (a cycle becomes a bare object). 1: no decoration (`$schema`, default, format,
    additionalProperties, …). 2: no constraints, `anyOf` and its kin become their first branch that is not
    null, one type instead of several, `const` an enum, enumerations of texts only. 3: nothing but type,
    properties, required, items, enum and description. 4: neither descriptions of parameters nor enumerations.
    """
    slim = _Diet(schema, level).schema(schema, ())
    properties = slim.get("properties")
    slim["type"] = "object"
    slim["properties"] = properties if isinstance(properties, dict) else {}
    _sort_out_required(slim)
    return {"type": slim.pop("type"), "properties": slim.pop("properties"), **slim}


def without_empty_objects(parameters: Mapping[str, JSON]) -> dict[str, JSON]:
    """Parameters without any object that has no properties; empty if they are one themselves.

    Inside, such an object becomes a text that holds JSON; a model's text is read as JSON where an object is due.
    """
    slim = _without_empty(parameters)
    return slim if slim.get("type") == "object" else {}


def _without_empty(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    if schema.get("type") == "object" and not schema.get("properties"):
        words = schema.get("description")
        return {"type": "string", "description": f"{words} (a JSON object)" if words else "A JSON object"}
    return {key: _each_without_empty(key, value) for key, value in schema.items()}


def _each_without_empty(key: str, value: JSON) -> JSON:
    if key == "properties" and isinstance(value, Mapping):
        return {name: _without_empty(each) for name, each in value.items() if isinstance(each, Mapping)}
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return _without_empty(value)
    if key in _BRANCHES and isinstance(value, list):
        return [_without_empty(each) for each in value if isinstance(each, Mapping)]
    return value


class _Diet:
    """One schema's way to one level. Holds the root, where refs point."""

    def __init__(self, root: Mapping[str, JSON], level: int) -> None:
        self._root = root
        self._level = level
        self._written = 0

    def schema(self, schema: JSON, seen: tuple[str, ...]) -> dict[str, JSON]:
        if not isinstance(schema, Mapping):
            schema = {}
        self._written += 1
        if len(seen) > _DEPTH or self._written > _MOST_SCHEMAS:
            return {"type": "object"}
        if isinstance(reference := schema.get("$ref"), str):
            return self._inlined(schema, reference, seen)
        if self._level >= 2:
            schema = _const_as_enum(_one_branch(schema))
            if "$ref" in schema:
                return self.schema(schema, (*seen, ""))
        kept = {key: self._value(key, value, seen) for key, value in schema.items() if self._keeps(key)}
        return _plain_types(kept) if self._level >= 2 else kept

    def _inlined(self, schema: Mapping[str, JSON], reference: str, seen: tuple[str, ...]) -> dict[str, JSON]:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        target = _look_up(self._root, reference)
        if reference in seen or target is None:
            return self.schema({"type": "object", **beside}, (*seen, ""))
        return self.schema({**target, **beside}, (*seen, reference))

    def _keeps(self, key: str) -> bool:
        if key in _REFERENCES:
            return False
        if key in _ONLY_ABOVE_THE_LAST:
            return self._level < DEEPEST_DIET
        if self._level >= 3:
            return key in _LAST
        if self._level >= 2 and key in _CONSTRAINTS:
            return False
        return self._level == 0 or key not in _DECORATION

    def _value(self, key: str, value: JSON, seen: tuple[str, ...]) -> JSON:
        deeper = (*seen, "")
        if key in _SCHEMAS_BY_NAME:
            named = value if isinstance(value, Mapping) else {}
            return {str(name): self.schema(each, deeper) for name, each in named.items()}
        if isinstance(value, Mapping) and key not in ("default", "example", "const"):
            return self.schema(value, deeper)
        if isinstance(value, list) and key in ("anyOf", "oneOf", "allOf", "prefixItems", "items"):
            return [self.schema(each, deeper) if isinstance(each, Mapping) else each for each in value]
        return value


def _look_up(root: Mapping[str, JSON], reference: str) -> Mapping[str, JSON] | None:
    """What a local reference (`#/$defs/Stop`) points at."""
    if not reference.startswith("#"):
        return None
    here: JSON = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        here = here.get(name) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else None


def _one_branch(schema: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """`allOf` laid together; of `anyOf` and `oneOf` the first branch that is not null."""
    branches: list[Mapping[str, JSON]] = []
    for key in ("anyOf", "oneOf"):
        options = [
            each for each in _list(schema.get(key)) if isinstance(each, Mapping) and not _is_null(each)
        ]
        branches += options[:1]
    branches += [each for each in _list(schema.get("allOf")) if isinstance(each, Mapping)]
    if not branches:
        return schema
    merged: dict[str, JSON] = {}
    for branch in (*branches, {key: value for key, value in schema.items() if key not in _BRANCHES}):
        merged = _laid_over(merged, branch)
    return _one_branch(merged) if any(key in merged for key in _BRANCHES) else merged


_BRANCHES = ("anyOf", "oneOf", "allOf")


def _laid_over(below: dict[str, JSON], above: Mapping[str, JSON]) -> dict[str, JSON]:
    merged = {**below, **above}
    if isinstance(below.get("properties"), Mapping) and isinstance(above.get("properties"), Mapping):
        merged["properties"] = {**below["properties"], **above["properties"]}
    if "required" in below and "required" in above:
        merged["required"] = [*_list(below["required"]), *_list(above["required"])]
    return merged


def _const_as_enum(schema: Mapping[str, JSON]) -> Mapping[str, JSON]:
    if "const" not in schema or "enum" in schema:
        return schema
    return {**schema, "enum": [schema["const"]]}


def _is_null(schema: Mapping[str, JSON]) -> bool:
    return schema.get("type") == "null" or ("const" in schema and schema["const"] is None)


def _plain_types(kept: dict[str, JSON]) -> dict[str, JSON]:
    """One type a schema, and enumerations without null, in the few words that remain."""
    if isinstance(kept.get("type"), list):
        named = [each for each in kept["type"] if each != "null"]
        kept["type"] = named[0] if named else "string"
    if isinstance(kept.get("enum"), list):
        values = [each for each in kept["enum"] if each is not None]
        kept.setdefault("type", _guessed_type({"enum": values}))
        kept["enum"] = values if all(isinstance(each, str) for each in values) else []
        if not kept["enum"]:
            del kept["enum"]
    if isinstance(kept.get("items"), list):
        kept["items"] = next((each for each in kept["items"] if isinstance(each, dict)), {"type": "string"})
    if kept.get("type") == "array":
        kept.setdefault("items", {"type": "string"})
    if not isinstance(kept.get("type"), str):
        kept["type"] = _guessed_type(kept)
    _sort_out_required(kept)
    return kept


def _guessed_type(kept: Mapping[str, JSON]) -> str:
    if "properties" in kept:
        return "object"
    if "items" in kept:
        return "array"
    kinds = {type(each) for each in _list(kept.get("enum"))}
    return {frozenset((int,)): "integer", frozenset((float,)): "number", frozenset((bool,)): "boolean"}.get(
        frozenset(kinds), "string"
    )


def _sort_out_required(schema: dict[str, JSON]) -> None:
    """`required` names only properties that exist, each once; an empty one is left out."""
    if "required" not in schema:
        return
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    names = [name for name in _list(schema["required"]) if isinstance(name, str) and name in known]
    schema["required"] = list(dict.fromkeys(names))
    if not schema["required"]:
        del schema["required"]


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []
