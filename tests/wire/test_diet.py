"""Schema diets: each level drops what it says, keeps what the model needs, and always ends."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.wire.diet import KEYWORDS, level_that_drops, parameters

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Trip",
    "properties": {
        "stop": {"$ref": "#/$defs/Stop"},
        "when": {"type": "string", "format": "date", "default": "today", "description": "The day."},
        "note": {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 9}]},
        "kind": {"const": "trip"},
        "many": {"type": ["array", "null"], "items": {"type": "integer", "minimum": 0}, "maxItems": 3},
        "format": {"type": "string"},
    },
    "required": ["stop", "gone"],
    "additionalProperties": False,
    "$defs": {
        "Stop": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/Stop"}, "name": {"type": "string"}},
        }
    },
}


def keywords_in(schema):
    """Every keyword of a schema, not the names of properties."""
    if isinstance(schema, list):
        return set().union(*map(keywords_in, schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for key, value in schema.items():
        found |= set().union(*map(keywords_in, value.values())) if key == "properties" else keywords_in(value)
    return found


def test_refs_are_inlined_at_every_level_and_a_cycle_becomes_a_bare_object():
    for level in range(5):
        slim = parameters(SCHEMA, level)
        assert not {"$ref", "$defs"} & keywords_in(slim)
        assert slim["properties"]["stop"]["properties"]["next"]["type"] == "object"


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
def test_a_keyword_is_gone_at_the_level_that_drops_it(keyword):
    value = {"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}], "allOf": [{"type": "string"}]}
    schema = {"type": "object", "properties": {"x": {"type": "string", keyword: value.get(keyword, {})}}}
    assert keyword not in keywords_in(parameters(schema, level_that_drops(keyword)))


def test_the_first_branch_that_is_not_null_stands_for_a_union():
    slim = parameters(SCHEMA, 2)["properties"]
    assert slim["note"] == {"type": "string"}
    assert slim["kind"] == {"type": "string", "enum": ["trip"]}
    assert slim["many"] == {"type": "array", "items": {"type": "integer"}}


def test_a_property_may_be_named_like_a_keyword():
    assert "format" in parameters(SCHEMA, 4)["properties"]


def test_descriptions_stay_until_the_last_level():
    assert parameters(SCHEMA, 3)["properties"]["when"]["description"] == "The day."
    assert "description" not in keywords_in(parameters(SCHEMA, 4))


def test_only_the_plainest_words_are_left_at_level_three():
    plain = {"type", "properties", "required", "items", "enum", "description"}
    assert keywords_in(parameters(SCHEMA, 3)) <= plain


def test_required_names_only_properties_that_exist():
    assert parameters(SCHEMA, 0)["required"] == ["stop"]


@pytest.mark.parametrize(
    "empty", [{}, {"type": "object"}, {"properties": []}, {"properties": None}, {"type": "string"}]
)
def test_a_tool_without_parameters_still_has_an_object_schema(empty):
    for level in range(5):
        assert parameters(empty, level) == {"type": "object", "properties": {}}


def test_refs_that_multiply_stay_bounded():
    names = [f"n{i}" for i in range(40)]
    definitions = {
        name: {"type": "object", "properties": {side: {"$ref": f"#/$defs/{after}"} for side in "ab"}}
        for name, after in zip(names, [*names[1:], "end"], strict=True)
    }
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/n0"}}, "$defs": definitions}
    assert len(json.dumps(parameters(schema, 0))) < 4_000_000


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*sorted(KEYWORDS), "type", "properties", "items", "enum", "required"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text(max_size=4) | st.sampled_from(sorted(KEYWORDS)), JSONS, max_size=6),
    st.integers(0, 4),
)
def test_whatever_a_schema_holds_an_object_schema_comes_out(schema, level):
    slim = parameters(schema, level)
    assert slim["type"] == "object"
    assert isinstance(slim["properties"], dict)
    assert set(slim.get("required", [])) <= set(slim["properties"])
    assert parameters(slim, level) == slim
