"""Whether an object looks like a tool's arguments, and what a value written as text means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.wire.fits import fits, typed, types_of

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "tags": {"type": "array"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["city"],
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"city": "Oslo"}, True),
        ({"city": "Oslo", "days": 3, "tags": [], "note": None}, True),
        ({"city": "Oslo", "days": "3"}, True),
        ({"city": "Oslo", "days": 3.0}, True),
        ({"city": 5}, True),
        ({"city": "Oslo", "tags": "[1]"}, True),
        ({}, False),
        ({"days": 3}, False),
        ({"city": "Oslo", "days": "three"}, False),
        ({"city": "Oslo", "days": 3.5}, False),
        ({"city": "Oslo", "days": [3]}, False),
        ({"city": ["Oslo"]}, False),
        ({"city": {"name": "Oslo"}}, False),
        ({"city": "Oslo", "country": "Norway"}, False),
    ],
)
def test_an_object_fits_if_it_could_be_coerced_to_the_schema(arguments, expected):
    assert fits(arguments, SCHEMA) is expected


def test_undeclared_keys_are_welcome_only_where_the_schema_says_so():
    assert fits({"city": "Oslo", "x": 1}, SCHEMA | {"additionalProperties": True})
    assert fits({"city": "Oslo", "x": 1}, SCHEMA | {"additionalProperties": {"type": "integer"}})
    assert not fits({"x": 1}, {"type": "object", "properties": {}})
    assert fits({"x": 1}, {})


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (" 5 ", {"type": "string"}, " 5 "),
        ("true", {"type": "string"}, "true"),
        ('"quoted"', {"type": "string"}, '"quoted"'),
        (" 5 ", {"type": "integer"}, 5),
        ("5.0", {"type": "integer"}, 5),
        ("5.5", {"type": "number"}, 5.5),
        ("True", {"type": "boolean"}, True),
        ("false\n", {"type": "boolean"}, False),
        ("None", {"type": ["string", "null"]}, None),
        ("nothing", {"type": ["string", "null"]}, "nothing"),
        ("5", {"type": ["string", "integer"]}, 5),
        ("5", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "5"),
        ("null", {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ("['a', 'b']", {"type": "array"}, ["a", "b"]),
        ("{'a': True}", {"type": "object"}, {"a": True}),
        ("not a list", {"type": "array"}, "not a list"),
        ("C", {"enum": ["C", "F"]}, "C"),
        ("5", {"enum": [1, 5]}, 5),
        ("5", {}, 5),
        ("Oslo", {}, "Oslo"),
        ("", {"type": "integer"}, ""),
        ("NaN", {"type": "number"}, "NaN"),
        ("1e400", {"type": "string"}, "1e400"),
        ("[" * 5000, {"type": "array"}, "[" * 5000),
        ("'\\d'", {"type": "object"}, "'\\d'"),
        ("['\\d']", {"type": "array"}, ["\\d"]),
    ],
)  # fmt: skip
def test_a_value_written_as_text_is_read_by_the_schema(text, schema, value):
    read = typed(text, schema)
    assert read == value
    assert type(read) is type(value)


@given(st.text())
def test_text_for_a_string_is_never_changed(text):
    assert typed(text, {"type": "string"}) == text


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({}, set()),
        (True, set()),
        ({"type": "string"}, {"string"}),
        ({"const": 1}, {"integer"}),
        ({"anyOf": [{"type": "string"}, {}]}, set()),
    ],
)
def test_a_schema_says_which_types_it_allows(schema, types):
    assert types_of(schema) == types
