"""JSON Schemas made plain: references inlined, noise dropped. Nothing here knows Python types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from glassloop.core.entries import JSON

_MOST_NODES = 20_000
_CYCLE: dict[str, JSON] = {"type": "object"}
_NOISE = frozenset({"title", "$defs", "definitions", "discriminator"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_VERBATIM = frozenset({"default", "const", "enum", "examples", "required"})
_SHAPES: dict[str, type | tuple[type, ...]] = {
    "type": (str, list),
    "properties": Mapping,
    "required": list,
    "additionalProperties": (Mapping, bool),
    "items": (Mapping, bool, list),
    "prefixItems": list,
    "enum": list,
    "anyOf": list,
    "oneOf": list,
    "allOf": list,
    "format": str,
    "description": str,
}
"""What must stand under the keywords that are read here; a schema from elsewhere may be anything."""


def plain(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema with its local references inlined; where one contains itself, `{"type": "object"}`.

    Always of type object with `properties`, which every endpoint accepts. Raises `ValueError` for what
    is no JSON Schema.
    """
    inlined = _Inliner(schema).keywords(schema, ())
    return {"type": "object", "properties": {}, **inlined}


@dataclass(slots=True)
class _Inliner:
    """One pass over a schema. `left` bounds its size: references to references can double at every step."""

    root: Mapping[str, JSON]
    left: int = _MOST_NODES

    def inlined(self, node: Any, inside: tuple[str, ...]) -> Any:
        """The node without references; `inside` are those that are being inlined just now."""
        if isinstance(node, list):
            return [self.inlined(item, inside) for item in node]
        if not isinstance(node, Mapping):
            return node
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return self.keywords(node, inside)
        beside = self.keywords({key: node[key] for key in node if key != "$ref"}, inside)
        if reference in inside:
            return {**_CYCLE, **beside}
        return {**self.inlined(_target(reference, self.root), (*inside, reference)), **beside}

    def keywords(self, node: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, JSON]:
        """One schema object, its keywords checked and those that hold schemas inlined."""
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"with its references inlined it has more than {_MOST_NODES} parts")
        made: dict[str, JSON] = {}
        for key, value in node.items():
            if key in _NOISE:
                continue
            if key in _SHAPES and not isinstance(value, _SHAPES[key]):
                raise ValueError(f"`{key}` cannot be {value!r:.60}")
            if key in _VERBATIM:
                made[key] = value
            elif key in _NAMED and isinstance(value, Mapping):
                made[key] = {name: self.inlined(each, inside) for name, each in value.items()}
            else:
                made[key] = self.inlined(value, inside)
        return _without_null_default(made)


def _without_null_default(node: dict[str, JSON]) -> dict[str, JSON]:
    """`X | None = None` is shown as an optional X: some endpoints refuse `null` types."""
    if "default" not in node or node["default"] is not None:
        return node
    node = {key: value for key, value in node.items() if key != "default"}
    options = node.get("anyOf")
    if not isinstance(options, list):
        return node
    rest = [option for option in options if option != {"type": "null"}]
    if len(rest) == 1:
        return {**{key: value for key, value in node.items() if key != "anyOf"}, **_under(rest[0], node)}
    return {**node, "anyOf": rest}


def _under(option: dict[str, JSON], node: Mapping[str, JSON]) -> dict[str, JSON]:
    """The only option's keywords; a description of the parameter itself wins over one of its type."""
    return {key: value for key, value in option.items() if key not in node}


def _target(reference: str, root: Mapping[str, JSON]) -> Mapping[str, Any]:
    """What a local reference such as `#/$defs/Order` points at; what is not there allows anything."""
    node: Any = root if reference.startswith("#") else {}
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        node = node.get(step) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}
