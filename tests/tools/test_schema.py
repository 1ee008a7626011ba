"""Signature and docstring → the JSON Schema that a model sees."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import inspect
import json
import typing
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import docstring_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from glassloop.core.errors import ToolDefinitionError
from glassloop.tools.docstrings import described
from glassloop.tools.tool import Tool, ToolContext, as_tool, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Stop:
    city: str
    minutes: int = 5


class Trip(typing.TypedDict):
    title: str
    stops: NotRequired[list[Stop]]


class Node(BaseModel):
    """A node of a tree."""

    value: int
    children: list[Node] = []


STOP = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "minutes": {"type": "integer", "default": 5}},
    "required": ["city"],
}

TYPES = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (Literal["C", "F"], {"enum": ["C", "F"], "type": "string"}),
    (Color, {"enum": ["red", "blue"], "type": "string"}),
    (typing.Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (typing.Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (Path, {"type": "string", "format": "path"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (Any, {}),
    (
        Annotated[int, Field(ge=1, le=5, description="How many.")],
        {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many."},
    ),
    (Annotated[str, "The city's name."], {"type": "string", "description": "The city's name."}),
    (Stop, STOP),
    (list[Stop], {"type": "array", "items": STOP}),
    (
        Trip,
        {
            "type": "object",
            "properties": {"title": {"type": "string"}, "stops": {"type": "array", "items": STOP}},
            "required": ["title"],
        },
    ),
    (
        list[Trip] | None,
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "title": {"type": "string"},
                            "stops": {"type": "array", "items": STOP},
                        },
                        "required": ["title"],
                    },
                },
                {"type": "null"},
            ]
        },
    ),
]


def with_parameter(hint: Any, **more: Any) -> Tool:
    def take(value):  # type: ignore[no-untyped-def]
        """Take a value."""

    take.__annotations__ = {"value": hint}
    if "default" in more:
        take.__defaults__ = (more["default"],)
    return as_tool(take)


@pytest.mark.parametrize(("hint", "schema"), TYPES, ids=lambda value: str(value)[:40])
def test_each_type_has_its_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert with_parameter(hint).parameters == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
    }


@pytest.mark.parametrize(
    ("hint", "default", "schema"),
    [
        (int, 3, {"type": "integer", "default": 3}),
        (int | None, None, {"type": "integer"}),
        (int, None, {"type": "integer"}),
        (int | None, 3, {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3}),
        (Color, Color.RED, {"enum": ["red", "blue"], "type": "string", "default": "red"}),
        (Stop, Stop("Oslo"), {**STOP, "default": {"city": "Oslo", "minutes": 5}}),
        (Path, Path("a/b"), {"type": "string", "format": "path", "default": "a/b"}),
        (
            int,
            Field(7, ge=1, description="How many."),
            {"type": "integer", "minimum": 1, "description": "How many.", "default": 7},
        ),
        (
            list[int] | dict[str, int] | None,
            None,
            {
                "anyOf": [
                    {"type": "array", "items": {"type": "integer"}},
                    {"type": "object", "additionalProperties": {"type": "integer"}},
                ]
            },
        ),
    ],
)
def test_a_parameter_with_a_default_is_optional_and_null_defaults_are_not_shown(
    hint: Any, default: Any, schema: dict[str, Any]
) -> None:
    assert with_parameter(hint, default=default).parameters == {
        "type": "object",
        "properties": {"value": schema},
    }


def test_a_schema_that_contains_itself_ends_in_a_plain_object() -> None:
    children = {"type": "array", "items": {"type": "object"}, "default": []}
    node = {
        "type": "object",
        "description": "A node of a tree.",
        "properties": {"value": {"type": "integer"}, "children": children},
        "required": ["value"],
    }
    assert with_parameter(Node).parameters["properties"]["value"] == node


def test_a_property_called_title_is_kept_and_pydantics_titles_are_not() -> None:
    shown = json.dumps(with_parameter(Trip).parameters)
    assert shown.count("title") == 2  # the property and its place among the required
    assert "$ref" not in shown
    assert "$defs" not in shown


GOOGLE = """Current weather.

    Use it for weather.

    Args:
        city (str): The city's name,
            such as "Oslo".
        unit: C or F.

    Returns:
        One line.
    """
NUMPY = """Current weather.

    Use it for weather.

    Parameters
    ----------
    city : str
        The city's name, such as "Oslo".
    unit : str
        C or F.

    Returns
    -------
    str
        One line.
    """
SPHINX = """Current weather.

    Use it for weather.

    :param city: The city's name, such as "Oslo".
    :type city: str
    :param str unit: C or F.
    :returns: One line.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_every_docstring_style_describes_the_tool_and_its_parameters(docstring: str) -> None:
    def get_weather(city: str, unit: str = "C") -> str:
        return city + unit

    get_weather.__doc__ = docstring
    made = as_tool(get_weather)
    assert made.description == "Current weather.\n\nUse it for weather."
    described = {name: schema["description"] for name, schema in made.parameters["properties"].items()}
    assert described == {"city": 'The city\'s name, such as "Oslo".', "unit": "C or F."}


def test_a_chinese_docstring_may_use_chinese_headings_and_colons() -> None:
    @tool
    def get_weather(city: str, unit: str = "C") -> str:
        """查询城市当前天气：用户问天气时使用。

        参数：
            city：城市名，例如"北京"。
            unit: 温度单位。

        返回：
            一行文字。
        """
        return city + unit

    assert get_weather.description == "查询城市当前天气：用户问天气时使用。"
    described = {name: schema["description"] for name, schema in get_weather.parameters["properties"].items()}
    assert described == {"city": '城市名，例如"北京"。', "unit": "温度单位。"}


def test_a_tool_without_parameters_still_has_properties() -> None:
    @tool
    def list_cities() -> list[str]:
        """List the cities."""
        return []

    assert list_cities.spec.parameters == {"type": "object", "properties": {}}


def test_the_context_parameter_is_hidden() -> None:
    @tool
    def note(text: str, context: ToolContext, other: ToolContext | None = None) -> None:
        """Note it.

        Args:
            text: What to note.
            context: The call.
        """

    assert list(note.parameters["properties"]) == ["text"]
    assert note.context_parameter == "context"


def test_a_context_annotation_that_is_local_is_found_when_the_tool_is_defined() -> None:
    from glassloop.tools.context import ToolContext as Context

    class Local(BaseModel):
        size: int

    @tool
    def measure(thing: Local, context: Context) -> int:
        """Measure it."""
        return thing.size

    assert (measure.context_parameter, dataclasses.replace(measure, origin="file").context_parameter) == (
        "context",
        "context",
    )


def test_an_object_that_can_be_called_is_a_tool_named_after_its_class() -> None:
    class Search:
        async def __call__(self, query: str) -> str:
            """Search notes."""
            return query

    made = as_tool(Search())
    assert (made.name, made.description, list(made.parameters["properties"])) == (
        "Search",
        "Search notes.",
        ["query"],
    )


@pytest.mark.parametrize(
    "thing",
    [str, Stop, len, print, functools.partial(int), {}.get],
    ids=["type", "enum", "len", "print", "partial", "method"],
)
def test_what_has_no_describable_signature_is_refused_and_not_a_crash(thing: Any) -> None:
    with pytest.raises(ToolDefinitionError):
        as_tool(thing)


@given(st.text(st.sampled_from("Args:Returns\n -param x,y()*[]:：参数")))
def test_no_docstring_is_too_odd_to_read(docstring: str) -> None:
    described(docstring)


@given(
    st.lists(
        st.sampled_from(["Add", ":param", "x:", "Args:", "@param", "Returns", "--", "x : int", " ", "\t"])
    )
)
def test_a_docstring_of_one_line_says_what_its_parser_would_find(words: list[str]) -> None:
    docstring = " ".join(words)
    parsed = docstring_parser.parse(inspect.cleandoc(docstring))
    said = described(docstring)
    assert said.text == (parsed.short_description or "")
    assert list(said.parameters) == [param.arg_name for param in parsed.params]


def test_methods_partials_and_wrapped_functions_are_tools() -> None:
    class Shop:
        def order(self, sku: str, count: int = 1) -> str:
            """Order something."""
            return f"{count} {sku}"

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    def search(folder: str, query: str, limit: int = 3) -> str:
        """Search notes.

        Args:
            folder: Where.
            query: What.
        """
        return f"{folder} {query} {limit}"

    assert list(as_tool(Shop().order).parameters["properties"]) == ["sku", "count"]
    assert list(as_tool(logged(search)).parameters["properties"]) == ["folder", "query", "limit"]
    fixed = as_tool(functools.partial(search, folder="/secret"))
    assert (fixed.name, list(fixed.parameters["properties"])) == ("search", ["query", "limit"])
    assert fixed(query="x") == "/secret x 3"


def test_a_type_local_to_a_function_is_found() -> None:
    class Local(BaseModel):
        size: int

    @tool
    def measure(thing: Local) -> int:
        """Measure it."""
        return thing.size

    assert measure.parameters["properties"]["thing"]["properties"] == {"size": {"type": "integer"}}


def test_any_parameter_name_that_python_takes_works() -> None:
    @tool
    def odd(_hidden: int, json: str, model_config: bool, schema: int = 1) -> None:
        """Take odd names."""

    assert list(odd.parameters["properties"]) == ["_hidden", "json", "model_config", "schema"]


def test_the_hash_is_of_the_definition_alone() -> None:
    def one(a: int) -> int:
        """Say."""
        return a

    def other(a: int) -> int:
        """Say."""
        return -a

    same = [tool(name="say")(one).hash, tool(name="say", timeout=1, approve=True)(other).hash]
    different = [
        tool(name="said")(one).hash,
        tool(name="say", effect="read")(one).hash,
        tool(name="say", description="x")(one).hash,
    ]
    assert same[0] == same[1]
    assert len({same[0], *different}) == 4


def test_a_raw_json_schema_makes_a_tool_with_its_references_inlined() -> None:
    schema = {
        "$defs": {"P": {"title": "P", "type": "object", "properties": {"x": {"type": "integer"}}}},
        "properties": {"p": {"$ref": "#/$defs/P"}},
    }
    made = Tool("move", "Move it.", schema, lambda **values: values)
    assert made.parameters == {
        "type": "object",
        "properties": {"p": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    }
    assert made(p=1) == {"p": 1}


def test_references_that_double_at_every_step_are_refused() -> None:
    both = {
        f"D{step}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/D{step + 1}"} for side in "ab"},
        }
        for step in range(40)
    }
    schema = {"$defs": {**both, "D40": {"type": "string"}}, "properties": {"p": {"$ref": "#/$defs/D0"}}}
    with pytest.raises(ToolDefinitionError, match="parts"):
        Tool("bomb", "Do it.", schema, fine)


# ── mistakes ───────────────────────────────────────────────────────────────────────────────────────


def no_docstring(a: int) -> int:
    return a


def blank_docstring(a: int) -> int:
    """ """
    return a


def unannotated(a) -> int:  # type: ignore[no-untyped-def]
    """Do it."""
    return a


def starred(*words: str) -> None:
    """Do it."""


def double_starred(**words: str) -> None:
    """Do it."""


def positional(a: int, /) -> None:
    """Do it."""


def invented(city: str) -> None:
    """Do it.

    Args:
        town: The town.
    """


def unsupported(city: str, handle: typing.IO[str]) -> None:
    """Do it."""


def aliased(city: Annotated[str, Field(alias="town")]) -> None:
    """Do it."""


def callback(done: typing.Callable[[], None]) -> None:
    """Do it."""


def unresolved(a: Missing) -> None:  # noqa: F821
    """Do it."""


def odd_default(a: Any = object()) -> None:  # noqa: B008
    """Do it."""


def generator(a: int) -> typing.Iterator[int]:
    """Do it."""
    yield a


async def async_generator(a: int) -> typing.AsyncIterator[int]:
    """Do it."""
    yield a


def method_like(self, a: int) -> None:  # type: ignore[no-untyped-def]
    """Do it."""


MISTAKES = [
    (no_docstring, "no docstring"),
    (blank_docstring, "no docstring"),
    (unannotated, "`a` has no type annotation"),
    (starred, r"takes \*words"),
    (double_starred, r"takes \*\*words"),
    (positional, "`a` is positional-only"),
    (invented, "describes a parameter `town`"),
    (unsupported, "`handle: "),
    (callback, "`done: "),
    (aliased, "`city` has an alias"),
    (unresolved, "cannot be read .*Missing"),
    (odd_default, "default of `a`"),
    (generator, "is a generator"),
    (async_generator, "is a generator"),
    (method_like, "bound method"),
]


@pytest.mark.parametrize(("function", "words"), MISTAKES, ids=[function.__name__ for function, _ in MISTAKES])
def test_a_definition_mistake_is_raised_at_once_with_name_place_and_fix(function: Any, words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words) as caught:
        tool(function)
    message = str(caught.value)
    assert f"`{function.__name__}`" in message
    assert f"{__file__}:{function.__code__.co_firstlineno}" in message


def fine(a: int) -> int:
    """Do it."""
    return a


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "my tool"}, "by this name"),
        ({"name": "a\nb"}, "by this name"),
        ({"name": "x" * 129}, "by this name"),
        ({"effect": "maybe"}, "effect is 'maybe'"),
        ({"timeout": 0}, "timeout is 0"),
        ({"max_output": 5}, "max_output is 5"),
        ({"description": "  "}, "no docstring"),
    ],
)
def test_an_option_that_cannot_work_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words):
        tool(**options)(fine)


def test_a_lambda_is_told_to_take_a_name() -> None:
    with pytest.raises(ToolDefinitionError, match=r"`<lambda>`.*name="):
        tool(description="Do it.")(lambda: 1)


@pytest.mark.parametrize(
    "parameters", [{"type": "array"}, {"type": "object", "properties": {"a": {"default": object()}}}]
)
def test_a_raw_schema_that_is_none_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="JSON Schema"):
        Tool("t", "Do it.", parameters, fine)


def test_what_is_no_function_is_no_tool() -> None:
    with pytest.raises(ToolDefinitionError, match="no tool"):
        as_tool(3)  # type: ignore[arg-type]
