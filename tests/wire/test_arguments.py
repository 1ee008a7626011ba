import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.reading import TOOLS

from glassloop.wire.arguments import read_arguments

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer"},
        "text": {"type": "string"},
        "options": {"type": "object", "properties": {"label": {"type": "string"}}},
        "id": {"type": ["string", "integer"]},
    },
}
OSLO = {"city": "Oslo"}


@pytest.mark.parametrize(
    ("raw", "value", "mends"),
    [
        (OSLO, OSLO, []),
        ('{"city": "Oslo"}', OSLO, []),
        ("\ufeff {\"city\": \"Oslo\"}\n", OSLO, []),
        (None, {}, []),
        ("", {}, []),
        (" \n", {}, []),
        ("null", {}, []),
        ([], {}, ["empty_list_arguments"]),
        ("[]", {}, ["empty_list_arguments"]),
        ([OSLO], OSLO, ["list_arguments"]),
        ('[{"city": "Oslo"}]', OSLO, ["list_arguments"]),
        (json.dumps(json.dumps(OSLO)), OSLO, ["encoded_twice"]),
        (json.dumps(json.dumps(json.dumps(OSLO))), OSLO, ["encoded_twice", "encoded_twice"]),
        ('""', {}, ["encoded_twice"]),
        ('```json\n{"city": "Oslo"}\n```', OSLO, ["fenced_arguments"]),
        ('```\n{"city": "Oslo"}```', OSLO, ["fenced_arguments"]),
        ('{"city": "Oslo"} That is all.', OSLO, ["text_around_arguments"]),
        ('{"city": "Oslo"}}', OSLO, ["text_around_arguments"]),
        ('{"city": "Oslo"}</tool_call>', OSLO, ["text_around_arguments"]),
        ('{"city": "Oslo"}<|im_end|>', OSLO, ["text_around_arguments"]),
        ('Here you are: {"city": "Oslo"}', OSLO, ["text_around_arguments"]),
        ('[ARGS]{"city": "Oslo"}', OSLO, ["text_around_arguments"]),
        ('<|constrain|>json{"city": "Oslo"}', OSLO, ["text_around_arguments"]),
        ('{}{"city": "Oslo"}', OSLO, ["repeated_arguments"]),
        ('{"city": "Oslo"}\n{"city": "Oslo"}', OSLO, ["repeated_arguments"]),
        ('{"city": "Oslo",}', OSLO, ["trailing_comma"]),
        ('{"stops": ["a, ]", "b",],}', {"stops": ["a, ]", "b"]}, ["trailing_comma"]),
        ('{"text": "one\ntwo\tthree"}', {"text": "one\ntwo\tthree"}, ["control_characters"]),
        (r'{"text": "it\'s \d+ in C:\Users"}', {"text": r"it's \d+ in C:\Users"}, ["wrong_escape"]),
        (r'{\"city\": \"Oslo\"}', OSLO, ["escaped_quotes"]),
        ('{"city": <|"|>Oslo<|"|>}', OSLO, ["template_quotes"]),
        ('{city: <|"|>Oslo<|"|>}', OSLO, ["template_quotes"]),
        ("{\u201ccity\u201d: \u201cOslo\u201d}", OSLO, ["typographic_quotes"]),
        ("{&quot;city&quot;: &quot;Oslo&quot;}", OSLO, ["html_entities"]),
        ("{'city': 'Oslo', 'id': None}", {"city": "Oslo", "id": None}, ["python_literal"]),
        ("{'city': 'Oslo', 'id': true}", {"city": "Oslo", "id": True}, ["python_literal"]),
        ("{city: 'Oslo'}", OSLO, ["json5"]),
        ('{"city": "Oslo" /* capital */}', OSLO, ["json5"]),
        ('<parameter name="city">Oslo</parameter>', OSLO, ["xml_arguments"]),
        ("<parameter=city>\nOslo\n</parameter>\n<parameter=count>\n3\n</parameter>", {**OSLO, "count": 3}, ["xml_arguments"]),
        ("<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>", OSLO, ["xml_arguments"]),
        ("<city>Oslo</city>", OSLO, ["xml_arguments"]),
        ({"arguments": OSLO}, OSLO, ["wrapped_arguments"]),
        ('{"kwargs": "{\\"city\\": \\"Oslo\\"}"}', OSLO, ["wrapped_arguments"]),
        ({"name": "visit", "arguments": OSLO}, OSLO, ["wrapped_arguments"]),
        ({"visit": OSLO}, OSLO, ["wrapped_arguments"]),
        ({"name": "visit", "parameters": {"arguments": OSLO}}, OSLO, ["wrapped_arguments", "wrapped_arguments"]),
        ('{"text": "half \\ud83d"}', {"text": "half \ufffd"}, ["lone_surrogate"]),
        ('{"text": "\\ud83d\\ude00"}', {"text": "\U0001f600"}, []),
    ],
)  # fmt: skip
def test_arguments_in_other_syntax_are_read_and_the_mend_is_named(
    raw: Any, value: Any, mends: list[str]
) -> None:
    read = read_arguments(raw, SCHEMA, name="visit")
    assert (read.value, read.problem) == (value, None)
    assert [mend.code for mend in read.mends] == mends


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"city": 1.50}', {"city": "1.50"}),
        ('{"city": 1e3, "count": 2}', {"city": "1e3", "count": 2}),
        ('{"city": -0}', {"city": "-0"}),
        ('{"stops": [1, 2.0, "x"]}', {"stops": ["1", "2.0", "x"]}),
        (
            '{"options": {"label": 12345678901234567890.10}}',
            {"options": {"label": "12345678901234567890.10"}},
        ),
    ],
)
def test_a_number_where_a_string_is_declared_keeps_its_own_text(text: str, value: Any) -> None:
    read = read_arguments(text, SCHEMA)
    assert read.value == value
    assert [mend.code for mend in read.mends] == ["number_as_text"]


def test_a_number_that_the_schema_allows_stays_a_number() -> None:
    assert read_arguments('{"id": 7, "count": 1.5, "other": 2}', SCHEMA).value == {
        "id": 7,
        "count": 1.5,
        "other": 2,
    }


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ('{"city": "Os', "cut off"),
        ('{"stops": ["a", "b"', "cut off"),
        ('{"city": "Oslo"', "cut off"),
        ('```json\n{"city": "Os', "cut off"),
        ('"{\\"city\\": \\"Oslo\\"}', "cut off"),
        ("{'city': 'Os", "cut off"),
        ("<parameter=city>Os", "not valid JSON"),
        ('{"city": "Oslo"}{"city": "Rome"}', "several different objects"),
        ('{"options": {}}, "city": "Oslo"}', "not valid JSON"),
        ('{"city": "a", "city": "b"}', "twice"),
        ("{'city': 'a', 'city': 'b'}", "twice"),
        ('{"count": NaN}', "NaN"),
        ('{"count": -Infinity}', "Infinity"),
        ("{count: Infinity}", "not valid JSON"),
        ('{"count": 1e999}', "too large"),
        ('{"count": ' + "9" * 5000 + "}", "too long"),
        ('{"a":' * 200 + "1" + "}" * 200, "nest"),
        ("[" * 100_000, "nest"),
        ('{"\\ud83d": 1}', "surrogate"),
        ('"Oslo"', "not a string"),
        ('["Oslo"]', "not an array"),
        ("3", "not a number"),
        ("true", "not a boolean"),
        (False, "not a boolean"),
        ("Oslo", "not valid JSON"),
        ("```json\n```", "not valid JSON"),
        ("{1: 2}", "not valid JSON"),
        ('{"a" "b"}', "not valid JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_for_certain_is_a_problem_that_says_why(raw: Any, says: str) -> None:
    read = read_arguments(raw, SCHEMA, name="visit")
    assert read.value is None
    assert read.problem is not None
    assert says in read.problem


def test_a_wrapper_that_the_schema_declares_is_an_argument() -> None:
    schema = {"type": "object", "properties": {"input": {"type": "object"}, "name": {"type": "string"}}}
    assert read_arguments({"input": {"a": 1}}, schema, name="x").value == {"input": {"a": 1}}
    assert read_arguments({"name": "x", "arguments": {}}, schema, name="x").value == {
        "name": "x",
        "arguments": {},
    }
    assert read_arguments({"arguments": {"elsewhere": 1}}, SCHEMA).value == {"arguments": {"elsewhere": 1}}


def test_another_tool_in_a_wrapper_is_not_unwrapped() -> None:
    raw = {"name": "erase", "arguments": OSLO}
    assert read_arguments(raw, SCHEMA, name="visit").value == raw


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.text(), _JSON, max_size=4)
_FORMS = st.sampled_from(
    [
        json.dumps,
        lambda value: json.dumps(value, indent=2),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        lambda value: json.dumps(json.dumps(value)),
        lambda value: json.dumps(json.dumps(json.dumps(value, ensure_ascii=False))),
    ]
)


@given(_OBJECTS, _FORMS, st.data())
def test_every_object_is_read_back_and_no_part_of_its_text_ever_runs(
    value: Any, form: Any, data: Any
) -> None:
    text = form(value)
    assert read_arguments(text).value == value
    for end in {1, len(text) // 2, len(text) - 1, data.draw(st.integers(1, len(text) - 1))}:
        assert read_arguments(text[:end]).value is None, text[:end]


@given(st.text() | st.text(alphabet="{}[]\"'\\:, <>|/=&;`\nabctrue1.-"), st.sampled_from([SCHEMA, None, {}]))
def test_no_text_makes_reading_raise_and_the_outcome_is_an_object_or_a_problem(
    text: str, schema: Any
) -> None:
    read = read_arguments(text, schema, name="visit")
    assert (read.value is None) != (read.problem is None)
    json.dumps(read.value, allow_nan=False).encode()


def test_four_megabytes_of_arguments_are_read_and_their_beginning_is_not() -> None:
    text = json.dumps({"path": "a", "text": "line\n" * 800_000})
    read = read_arguments(text, TOOLS["write_note"].parameters)
    assert read.value is not None
    assert len(read.value["text"]) == 4_000_000
    assert "cut off" in str(read_arguments(text[:-2]).problem)
