"""What a model sent → what the schema asks for: every coercion, and everything that must not be one."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from glassloop.core.entries import ToolCall
from glassloop.core.errors import ToolDefinitionError
from glassloop.tools.calls import Fitted, fit_arguments
from glassloop.tools.coerce import Fitting
from glassloop.tools.tool import Tool, tool
from glassloop.tools.toolbox import Toolbox

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
NULL = {"type": "null"}
UNIT = {"type": "string", "enum": ["C", "F", "Kelvin"]}
LEVEL = {"enum": [1, 2, 3]}
POINT = {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}, "required": ["x"]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def any_of(*options: Any) -> dict[str, Any]:
    return {"anyOf": list(options)}


COERCED = [
    ("3", INTEGER, 3),
    (" -3 ", INTEGER, -3),
    ("+3", INTEGER, 3),
    (3.0, INTEGER, 3),
    ("3.0", INTEGER, 3),
    ("1e3", INTEGER, 1000),
    ("1.5", NUMBER, 1.5),
    ("-1e-3", NUMBER, -0.001),
    ("7", NUMBER, 7),
    ("true", BOOLEAN, True),
    ("False", BOOLEAN, False),
    (1.5, STRING, "1.5"),
    (42, STRING, "42"),
    (True, STRING, "true"),
    ("[1,2]", array(INTEGER), [1, 2]),
    ('["1", 2.0]', array(INTEGER), [1, 2]),
    ("['a', 'b',]", array(STRING), ["a", "b"]),
    ("{x: 1}", POINT, {"x": 1}),
    ("Oslo", array(STRING), ["Oslo"]),
    ("[draft] note", array(STRING), None),
    (5, array(INTEGER), [5]),
    ("5", array(INTEGER), [5]),
    ({"x": 1}, array(POINT), [{"x": 1}]),
    ('{"x": "1"}', POINT, {"x": 1}),
    ([{"x": 1}], POINT, {"x": 1}),
    (["Oslo"], STRING, "Oslo"),
    ([3], INTEGER, 3),
    ("c", UNIT, "C"),
    (" KELVIN ", UNIT, "Kelvin"),
    ("2", LEVEL, 2),
    (2.0, LEVEL, 2),
    ("null", any_of(INTEGER, NULL), None),
    ("null", any_of(STRING, NULL), None),
    ("null", {"type": ["string", "null"]}, None),
    ("", any_of(INTEGER, NULL), None),
    ("None", {"type": ["integer", "null"]}, None),
    ("4", {"type": ["integer", "null"]}, 4),
    ("4", any_of(BOOLEAN, INTEGER), 4),
    ("[1]", any_of(array(INTEGER), NULL), [1]),
    ({"a": "1", "b": 2}, {"type": "object", "additionalProperties": INTEGER}, {"a": 1, "b": 2}),
    (["1", 2], {"type": "array", "prefixItems": [INTEGER, STRING]}, [1, "2"]),
    ({"X": 1}, POINT, {"x": 1}),
    ("a\ud800b", STRING, "a\ufffdb"),
]
COERCED = [case for case in COERCED if case[2] is not None or case[0] in ("null", "", "None")]

KEPT = [
    ("3", STRING),
    ("true", STRING),
    ("None", any_of(STRING, NULL)),
    ("null", {"type": ["string", "null"], "enum": ["null", "x", None]}),
    ("3", any_of(INTEGER, STRING)),
    (3, any_of(STRING, INTEGER)),
    (None, any_of(STRING, NULL)),
    ("", STRING),
    ("null", STRING),
    (3, NUMBER),
    ("[1,2]", STRING),
    ([[1], [2]], array(array(INTEGER))),
    ({"anything": [1, None]}, {}),
    ({"deep": {"er": 1}}, {"type": "object"}),
]

REFUSED = [
    ("three", INTEGER),
    ("3.5", INTEGER),
    (3.5, INTEGER),
    ("1,000", INTEGER),
    ("1_000", INTEGER),
    ("0x10", INTEGER),
    ("", INTEGER),
    (True, INTEGER),
    ("nan", NUMBER),
    ("Infinity", NUMBER),
    ("1e999", NUMBER),
    ("9" * 5000, INTEGER),
    ("1e99999", INTEGER),
    ("yes", BOOLEAN),
    ("1", BOOLEAN),
    (1, BOOLEAN),
    (None, STRING),
    (None, INTEGER),
    ({"a": 1}, STRING),
    (["a", "b"], STRING),
    ("[1, 2", array(INTEGER)),
    ("[1, NaN]", array(NUMBER)),
    ("['a', 'b", array(STRING)),
    ("{'x': 1, 'x': 2}", POINT),
    ("", array(STRING)),
    (None, array(STRING)),
    ("null", array(STRING)),
    ("x", array(INTEGER)),
    ('{"x": 1', POINT),
    ('{"x": 1, "x": 2}', POINT),
    ("[" * 100_000, array(INTEGER)),
    ("kelvins", UNIT),
    ("K", UNIT),
    ("4", LEVEL),
    (None, UNIT),
    ({"y": 1}, POINT),
    (20240115, {"type": "string", "format": "date-time"}),
    ("20240115", {"type": "string", "format": "date-time"}),
    (0, {"type": "integer", "minimum": 1}),
    ("0", {"type": "integer", "minimum": 1}),
    ("abcd", {"type": "string", "maxLength": 3}),
    ([], {"type": "array", "minItems": 1}),
    (1, {"type": "integer", "exclusiveMinimum": 1}),
    (1, False),
    ("x", {"allOf": [INTEGER]}),
]


@pytest.mark.parametrize(("value", "schema", "wanted"), COERCED, ids=repr)
def test_what_can_only_have_been_meant_is_coerced_and_told(value: Any, schema: Any, wanted: Any) -> None:
    fitting = Fitting()
    fitted = fitting.fit(value, schema, ("p",))
    assert (fitted, type(fitted), fitting.problems) == (wanted, type(wanted), [])
    assert fitting.changes or "\ud800" in str(value)


@pytest.mark.parametrize(("value", "schema"), KEPT, ids=repr)
def test_what_fits_as_it_is_stays_as_it_is(value: Any, schema: Any) -> None:
    fitting = Fitting()
    assert fitting.fit(value, schema, ("p",)) == value
    assert (fitting.problems, fitting.changes) == ([], [])


@pytest.mark.parametrize(("value", "schema"), REFUSED, ids=lambda value: repr(value)[:40])
def test_what_is_cut_off_ambiguous_or_merely_similar_is_a_problem(value: Any, schema: Any) -> None:
    fitting = Fitting()
    fitting.fit(value, schema, ("p",))
    assert len(fitting.problems) == 1
    assert len(fitting.problems[0]) < 400


# ── whole calls ────────────────────────────────────────────────────────────────────────────────────

EXPRESSION = {
    "type": "object",
    "properties": {"expression": STRING, "digits": INTEGER},
    "required": ["expression"],
}
ROUTE = {
    "type": "object",
    "properties": {"stops": array(STRING), "fast": BOOLEAN, "unit": UNIT, "note": STRING},
    "required": ["stops"],
}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


def fitted(arguments: Any, schema: Any, name: str = "plan", text: str | None = None) -> Fitted:
    return fit_arguments(
        ToolCall("c1", name, arguments, json.dumps(arguments) if text is None else text), name, schema
    )


@pytest.mark.parametrize(
    ("arguments", "schema", "wanted"),
    [
        ({"stops": ["Oslo"], "fast": None, "unit": ""}, ROUTE, {"stops": ["Oslo"]}),
        ({"stops": ["Oslo"], "fast": "", "note": ""}, ROUTE, {"stops": ["Oslo"], "note": ""}),
        ({"stops": ["Oslo"], "fast": "null"}, ROUTE, {"stops": ["Oslo"]}),
        ({"stops": ["Oslo"], "mode": None}, ROUTE, {"stops": ["Oslo"]}),
        ({"Stops": "Oslo"}, ROUTE, {"stops": ["Oslo"]}),
        ({"arguments": {"stops": "Oslo"}}, ROUTE, {"stops": ["Oslo"]}),
        ({"parameters": '{"stops": ["Oslo"]}'}, ROUTE, {"stops": ["Oslo"]}),
        ({"input": [{"stops": ["Oslo"]}]}, ROUTE, {"stops": ["Oslo"]}),
        ({"kwargs": {"args": {"stops": ["Oslo"]}}}, ROUTE, {"stops": ["Oslo"]}),
        ({"name": "plan", "arguments": {"stops": ["Oslo"]}}, ROUTE, {"stops": ["Oslo"]}),
        ({"tool": "plan", "parameters": {"stops": ["Oslo"]}}, ROUTE, {"stops": ["Oslo"]}),
        (
            {"type": "function", "function": {"name": "plan", "arguments": '{"stops": ["Oslo"]}'}},
            ROUTE,
            {"stops": ["Oslo"]},
        ),
        ({"type": "object", "properties": {"stops": ["Oslo"]}}, ROUTE, {"stops": ["Oslo"]}),
        ({"arguments": {}}, EMPTY, {}),
        ({"": ""}, EMPTY, {}),
        (None, EMPTY, {}),
        ([], EMPTY, {}),
        ([{"stops": ["Oslo"]}], ROUTE, {"stops": ["Oslo"]}),
    ],
    ids=repr,
)
def test_absent_values_and_wrappers_are_seen_through(arguments: Any, schema: Any, wanted: Any) -> None:
    result = fitted(arguments, schema)
    assert (result.problems, result.arguments) == ((), wanted)


@pytest.mark.parametrize(
    ("arguments", "schema", "problem"),
    [
        ({"expr": "1+1"}, EXPRESSION, "missing parameter `expression` (string); you sent `expr`"),
        (
            {"calculation": "1+1"},
            EXPRESSION,
            "missing parameter `expression` (string); you sent `calculation`",
        ),
        ({}, EXPRESSION, "missing parameter `expression` (string)"),
        ({"expression": "1", "digit": 2}, EXPRESSION, "unknown parameter `digit`; did you mean `digits`?"),
        ({"expression": "1", "colour": "red"}, EXPRESSION, "unknown parameter `colour`"),
        ({"expression": "1", "digits": "two"}, EXPRESSION, '`digits`: expected integer, you sent "two"'),
        ({"x": 1}, EMPTY, "unknown parameter `x`"),
        ([1, 2], EMPTY, "expected an object, you sent [1, 2]"),
        (
            {"name": "other", "arguments": {"stops": ["Oslo"]}},
            ROUTE,
            "missing parameter `stops` (array of string)",
        ),
        (
            {"arguments": {"stop": "Oslo"}},
            ROUTE,
            "missing parameter `stops` (array of string); you sent `stop`",
        ),
        ({"stops": [{"city": "Oslo"}]}, ROUTE, '`stops[0]`: expected string, you sent {"city": "Oslo"}'),
        ({"stops": ["Oslo"], "unit": "X"}, ROUTE, '`unit`: expected one of "C", "F", "Kelvin", you sent "X"'),
    ],
    ids=repr,
)
def test_a_problem_names_the_parameter_what_was_expected_and_the_nearest_spelling(
    arguments: Any, schema: Any, problem: str
) -> None:
    assert problem in fitted(arguments, schema).problems


def test_a_declared_parameter_is_never_taken_for_a_wrapper() -> None:
    schema = {"type": "object", "properties": {"input": POINT, "x": INTEGER}}
    assert fitted({"input": {"x": 1}}, schema).arguments == {"input": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "schema", "wanted"),
    [
        ('{"p": 1.10}', STRING, "1.10"),
        ('{"p": 1e5}', STRING, "1e5"),
        ('{"p": [3.120, 3.9]}', array(STRING), ["3.120", "3.9"]),
        ('{"p": 1.10}', array(STRING), ["1.10"]),
        ('{"p": 123456789012345678901234567890}', STRING, "123456789012345678901234567890"),
        ('not JSON {"p": 1.10}', STRING, "1.1"),
        ('{"p": 2.50}', STRING, "1.1"),
    ],
)
def test_a_number_for_a_string_keeps_the_digits_that_the_model_wrote(
    text: str, schema: Any, wanted: Any
) -> None:
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = {"p": 1.1}
    if wanted == "1.1":
        arguments = {"p": 1.1}
    assert fitted(arguments, {"type": "object", "properties": {"p": schema}}, text=text).arguments == {
        "p": wanted
    }


# ── properties ─────────────────────────────────────────────────────────────────────────────────────

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
schemas = st.recursive(
    st.sampled_from(
        [STRING, INTEGER, NUMBER, BOOLEAN, NULL, UNIT, LEVEL, {}, True, False, {"type": ["integer", "null"]}]
    ),
    lambda inner: st.one_of(
        inner.map(array),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: any_of(*options)),
        st.dictionaries(st.text(max_size=6), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "required": list(properties)[:1]}
        ),
    ),
    max_leaves=6,
)


@given(json_values, schemas)
def test_fitting_never_raises_and_what_was_fitted_fits_as_it_is(value: Any, schema: Any) -> None:
    first = Fitting()
    once = first.fit(value, schema)
    if first.problems:
        return
    second = Fitting()
    assert second.fit(once, schema) == once
    assert second.problems == []


@given(st.dictionaries(st.text(max_size=10), json_values, max_size=4), schemas, st.text(max_size=40))
def test_a_call_is_ready_or_a_problem_whatever_was_sent(arguments: Any, schema: Any, text: str) -> None:
    parameters = {"type": "object", "properties": {"p": schema}}
    box = Toolbox([Tool("take", "Take it.", parameters, lambda **values: values)])
    verdict = box.prepare(ToolCall("c1", "take", arguments, text))
    assert verdict.outcome in ("ready", "problem")
    assert verdict.outcome == "ready" or verdict.text


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


TYPED = [
    (INTEGER, st.integers(-(10**300), 10**300)),
    (NUMBER, st.floats(allow_nan=False, allow_infinity=False)),
    (BOOLEAN, st.booleans()),
    (array(INTEGER), st.lists(st.integers())),
    (array(STRING), st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])))),
    (POINT, st.fixed_dictionaries({"x": st.integers()}, optional={"y": st.integers()})),
    (UNIT, st.sampled_from(["C", "F", "Kelvin"])),
    (LEVEL, st.sampled_from([1, 2, 3])),
    (any_of(INTEGER, NULL), st.none() | st.integers()),
]


@given(st.data())
def test_a_valid_value_written_as_text_comes_back_equal(data: st.DataObject) -> None:
    schema, values = data.draw(st.sampled_from(TYPED))
    value = data.draw(values)
    for written in (value, as_text(value), f" {as_text(value)}\n"):
        fitting = Fitting()
        assert fitting.fit(written, schema) == value
        assert fitting.problems == []


@given(st.sampled_from(TYPED[:4]), st.data())
def test_one_value_where_a_list_is_wanted_becomes_a_list_of_it(typed: Any, data: st.DataObject) -> None:
    schema, values = typed
    value = data.draw(
        values.filter(lambda drawn: not isinstance(drawn, list))
        if schema is not TYPED[3][0]
        else st.just([1])
    )
    fitting = Fitting()
    assert fitting.fit(value, array(schema)) == (
        [value] if not isinstance(value, list) else [[each] for each in value]
    )


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
def test_a_number_in_a_string_slot_is_its_own_digits(number: float) -> None:
    text = f'{{"p": {number!r}}}'
    result = fitted(json.loads(text), {"type": "object", "properties": {"p": STRING}}, text=text)
    assert result.arguments == {"p": repr(number)}


KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "minimum",
    "maxLength",
    "format",
    "$ref",
]
words = st.sampled_from(["object", "array", "string", "integer", "a", "#", "#/properties/p"])
nonsense = st.recursive(
    st.none() | st.integers() | words | st.lists(words, max_size=2),
    lambda inner: st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4) | st.lists(inner, max_size=2),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), nonsense, max_size=4), json_values)
def test_a_schema_that_is_nonsense_is_refused_or_runs_but_never_a_crash(schema: Any, value: Any) -> None:
    try:
        box = Toolbox([Tool("take", "Take it.", {"type": "object", "properties": {"p": schema}}, dict)])
    except ToolDefinitionError:
        return
    assert box.prepare(ToolCall("c1", "take", {"p": value})).outcome in ("ready", "problem")


def test_a_misspelt_field_of_a_nested_object_is_told_and_not_dropped() -> None:
    @tool
    def visit(stop: Stop) -> None:
        """Visit it."""

    text = (
        Toolbox([visit])
        .prepare(ToolCall("c1", "visit", {"stop": {"city": "Oslo", "att": "2024-05-31"}}))
        .text
    )
    assert "unknown parameter `stop.att`; did you mean `at`?" in text


def test_lists_of_lists_of_lists_take_no_longer_at_each_level() -> None:
    schema: Any = INTEGER
    for _ in range(60):
        schema = array(schema)
    fitting = Fitting()
    nested = fitting.fit("5", schema)
    for _ in range(60):
        (nested,) = nested
    assert (nested, fitting.problems) == (5, [])


def test_thousands_of_wrong_items_are_told_in_a_few_lines() -> None:
    box = Toolbox([Tool("take", "Take it.", {"type": "object", "properties": {"p": array(INTEGER)}}, dict)])
    wrong = box.prepare(ToolCall("c1", "take", {"p": ["x"] * 5000})).text
    assert "and 4990 more" in wrong
    assert "and 4990 more" in box.prepare(ToolCall("c1", "take", {"p": ["1"] * 5000})).text
    assert len(wrong) < 1000


# ── Python values ──────────────────────────────────────────────────────────────────────────────────


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Stop:
    city: str
    at: datetime.date | None = None


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (Color, "RED", Color.RED),
        (Stop, {"city": "Oslo", "at": "2024-05-31"}, Stop("Oslo", datetime.date(2024, 5, 31))),
        (list[Stop], {"city": "Oslo", "at": ""}, [Stop("Oslo")]),
        (
            datetime.datetime,
            "2024-05-31T18:00:00+02:00",
            datetime.datetime(2024, 5, 31, 18, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        ),
        (Path, "a/b", Path("a/b")),
        (tuple[int, str], '["1", "a"]', (1, "a")),
        (set[int], [1, 1, "2"], {1, 2}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Literal["C", "F"], "c", "C"),
        (bytes, "abc", b"abc"),
        (int | str, "3", "3"),
    ],
    ids=repr,
)
def test_a_function_gets_values_of_the_types_that_it_asked_for(hint: Any, sent: Any, value: Any) -> None:
    def take(it):  # type: ignore[no-untyped-def]
        """Take it."""
        return it

    take.__annotations__ = {"it": hint}
    verdict = Toolbox([take]).prepare(ToolCall("c1", "take", {"it": sent}))
    assert verdict.outcome == "ready", verdict.text
    assert verdict.bound.values == {"it": value}
    json.dumps(dict(verdict.arguments))


def test_a_constraint_of_the_users_own_is_told_with_its_path() -> None:
    @tool
    def draw(sizes: list[Annotated[int, Field(multiple_of=5)]]) -> int:
        """Draw."""
        return sum(sizes)

    verdict = Toolbox([draw]).prepare(ToolCall("c1", "draw", {"sizes": [5, 6]}))
    assert verdict.outcome == "problem"
    assert "`sizes.1`: Input should be a multiple of 5; you sent 6" in verdict.text


def test_what_was_not_sent_keeps_the_functions_default() -> None:
    shared = ["x"]

    @tool
    def take(a: int = 1, b: list[str] = shared, c: int = Field(7, ge=1)) -> Any:
        """Take."""
        return a, b is shared, c

    verdict = Toolbox([take]).prepare(ToolCall("c1", "take", {"a": None}))
    assert take.function(**verdict.bound.values) == (1, True, 7)


def test_numbers_beyond_a_float_are_a_problem_or_exact() -> None:
    big = 10**400
    assert math.isinf(float("1e400"))
    for schema in (NUMBER, STRING, INTEGER, LEVEL, array(NUMBER)):
        fitting = Fitting()
        result = fitting.fit(big, schema)
        assert fitting.problems or result in (big, str(big), [big])


# ── the quirks that are about types ────────────────────────────────────────────────────────────────

QUIRKS = (
    Path(os.environ.get("GLASSLOOP_QUIRKS", Path(__file__).parents[3] / "shared" / "quirks")) / "quirks.jsonl"
)
QUIRK_TOOLS = {
    "get_weather": {
        "type": "object",
        "properties": {"city": STRING, "unit": {"type": "string", "enum": ["C", "F"]}},
        "required": ["city"],
    },
    "add": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]},
    "list_cities": {"type": "object", "properties": {}},
    "plan_route": {
        "type": "object",
        "properties": {"stops": array(STRING), "fast": BOOLEAN, "note": {"type": ["string", "null"]}},
        "required": ["stops"],
    },
    "write_note": {
        "type": "object",
        "properties": {"path": STRING, "text": STRING},
        "required": ["path", "text"],
    },
}


def test_every_quirk_whose_arguments_are_plain_json_fits_as_expected() -> None:
    if not QUIRKS.exists():
        pytest.skip(f"no quirks at {QUIRKS}")
    box = Toolbox([Tool(name, "As in the quirks.", schema, dict) for name, schema in QUIRK_TOOLS.items()])
    seen = 0
    for quirk in map(json.loads, QUIRKS.read_text(encoding="utf-8").splitlines()):
        for call, expected in _plain_calls(quirk):
            verdict = box.prepare(call)
            assert (verdict.outcome, verdict.arguments) == ("ready", expected), quirk["id"]
            seen += 1
    assert seen > 5


def _plain_calls(quirk: dict[str, Any]) -> list[tuple[ToolCall, Any]]:
    """Calls whose name is known and whose arguments are an object already: what is left for `tools/` to do."""
    if quirk["family"] != "B" or quirk["wire"]["mode"] != "json" or quirk["expect"]["action"] != "execute":
        return []
    pairs = []
    for index, wire in enumerate(quirk["wire"]["body"]["choices"][0]["message"].get("tool_calls") or []):
        function = wire.get("function") or {}
        text = function.get("arguments")
        try:
            arguments = json.loads(text) if isinstance(text, str) else text
        except ValueError:
            continue
        if (
            function.get("name") in QUIRK_TOOLS
            and isinstance(arguments, dict)
            and index < len(quirk["expect"]["calls"])
        ):
            call = ToolCall("c1", function["name"], arguments, text if isinstance(text, str) else "")
            pairs.append((call, quirk["expect"]["calls"][index]["arguments"]))
    return pairs
