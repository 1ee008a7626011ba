"""Tools as people really define them: many, with long descriptions, and with each feature of JSON Schema by itself.

Nothing is to be called here: it is only seen whether the request is taken. What is refused is learned.
"""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.core.tools import ToolSpec
from glassloop.doctor.findings import Answer
from glassloop.doctor.kit import SPECS, said
from glassloop.doctor.patient import Patient
from glassloop.doctor.probe import Probe, Work, taken_or_changed, taken_or_not

_GREET = "Say hello. There is nothing to look up."
_MANY = 10
_LONG = "Use it for questions about stock and prices of goods in this shop, and for nothing else. " * 40

FEATURES: Mapping[str, Mapping[str, JSON]] = {
    "anyOf": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "nullable": {"type": ["string", "null"]},
    "enum": {"type": "string", "enum": ["a", "b"]},
    "default": {"type": "string", "default": "a"},
    "pattern": {"type": "string", "pattern": "^[a-z]+$"},
    "bounds": {"type": "integer", "minimum": 1, "maximum": 9},
    "lengths": {"type": "string", "minLength": 1, "maxLength": 4000},
    "nested": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    "free object": {"type": "object", "properties": {}},
}
"""Features that tools really send, each as the schema of one parameter."""


def _tool(name: str, parameters: Mapping[str, JSON], description: str = "Look something up.") -> ToolSpec:
    return ToolSpec(name, description, parameters, "read")


def _with(schema: Mapping[str, JSON]) -> ToolSpec:
    return _tool("look_up", {"type": "object", "properties": {"word": schema}, "required": ["word"]})


def _feature(name: str) -> Work:
    async def work(patient: Patient) -> Answer:
        asked = await patient.ask([said(_GREET)], [_with(FEATURES[name])])
        return taken_or_changed(asked, name)

    return work


async def _closed(patient: Patient) -> Answer:
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "additionalProperties": False}
    return taken_or_changed(
        await patient.ask([said(_GREET)], [_tool("look_up", parameters)]), "additionalProperties"
    )


async def _empty(patient: Patient) -> Answer:
    tools = [_tool("look_up", {"type": "object", "properties": {}})]
    return taken_or_changed(await patient.ask([said(_GREET)], tools), "empty parameters")


_REFERRING: Mapping[str, JSON] = {
    "type": "object",
    "properties": {"word": {"$ref": "#/$defs/Word"}},
    "$defs": {"Word": {"type": "string"}},
}
_PLAIN: Mapping[str, JSON] = {"type": "object", "properties": {"word": {"type": "string"}}}


async def _reference(patient: Patient) -> Answer:
    """Glassloop writes references out, so a refusal here costs nobody anything."""
    return await _by_hand(patient, "$ref", "ref", {"parameters": _REFERRING}, "writes references out")


async def _strict(patient: Patient) -> Answer:
    closed = {**_PLAIN, "required": ["word"], "additionalProperties": False}
    return await _by_hand(
        patient, "strict", "strict", {"strict": True, "parameters": closed}, "never sends it"
    )


async def _by_hand(patient: Patient, what: str, name: str, fields: Mapping[str, JSON], does: str) -> Answer:
    function = {"name": "look_up", "description": "Look something up.", **fields}
    tools = [{"type": "function", "function": function}]
    return taken_or_not(await patient.try_once([said(_GREET)], edit={"tools": tools}), what, name, does)


async def _named(patient: Patient) -> Answer:
    """Names as MCP servers give them: a digit first, dashes inside."""
    return taken_or_changed(await patient.ask([said(_GREET)], [_tool("2nd-opinion", _PLAIN)]), "2nd-opinion")


async def _many(patient: Patient) -> Answer:
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    tools = [*SPECS, *(_tool(f"look_up_{number}", parameters) for number in range(_MANY - len(SPECS)))]
    return taken_or_changed(await patient.ask([said(_GREET)], tools), f"{len(tools)} tools")


async def _described(patient: Patient) -> Answer:
    tools = [_tool("look_up", {"type": "object", "properties": {"word": {"type": "string"}}}, _LONG)]
    asked = await patient.ask([said(_GREET)], tools)
    return taken_or_changed(asked, f"a description of {len(_LONG)} characters")


PROBES = (
    Probe("ten_tools", "schemas", "ten tools at once", _many, 1, 900),
    Probe("long_description", "schemas", "a tool with a long description", _described, 1, 1000),
    *(
        Probe(
            f"schema_{name.replace(' ', '_')}",
            "schemas",
            f"{name} in a tool's schema",
            _feature(name),
            1,
            150,
        )
        for name in FEATURES
    ),
    Probe("schema_closed", "schemas", "additionalProperties in a tool's schema", _closed, 1, 150),
    Probe("schema_empty", "schemas", "a tool without parameters", _empty, 1, 150),
    Probe("tool_name", "schemas", "a tool's name with digit and dash", _named, 1, 150),
    Probe("schema_ref", "schemas", "$ref in a tool's schema", _reference, 1, 150),
    Probe("strict", "schemas", "a strict tool", _strict, 1, 150),
)
