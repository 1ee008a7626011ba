"""Advice on tools that work but that a model may misuse."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from glassloop.tools.check import advise
from glassloop.tools.tool import Tool, as_tool


def get_weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    """Current weather in a city. Use it whenever the user asks about weather.

    Args:
        city: The city's name, such as "Oslo".
        unit: Celsius or Fahrenheit.
    """
    return city + unit


def search_notes(query: str, limit: int = 5) -> str:
    """搜索用户的笔记，返回文件和行号。用户问到自己写过的内容时使用。

    Args:
        query: 要搜索的词，例如"预算"。
        limit: 最多返回几条。
    """
    return query * limit


def run(x: str, verbose: bool) -> str:
    """Do it."""
    return x


def handle_data_and_send(data: dict[str, Any]) -> None:
    """Convert the data and then send it to everyone who wants it.

    Args:
        data: It.
    """


def 查询(城市: str) -> str:
    """查天气"""
    return 城市


def disable_all(
    no_color: bool = False,
    skip_tests: bool = False,
    deep: bool = False,
    a: int = 1,
    b: int = 1,
    c: int = 1,
    d: int = 1,
    e: int = 1,
    f: int = 1,
) -> None:
    """Disable everything that there is. Use it when asked."""


def codes(function: Any) -> set[str]:
    return {advice.code for advice in advise([as_tool(function)])}


@pytest.mark.parametrize("function", [get_weather, search_notes])
def test_a_well_described_tool_in_either_language_gets_no_advice(function: Any) -> None:
    assert advise([as_tool(function)]) == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (run, {"name", "when", "length", "undescribed", "vague-parameter", "switches"}),
        (handle_data_and_send, {"name", "when", "vague-parameter", "too-much"}),
        (查询, {"when", "length", "undescribed"}),
        (disable_all, {"undescribed", "vague-parameter", "too-much", "switches"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_weakness_is_named(function: Any, expected: set[str]) -> None:
    assert codes(function) == expected


def test_advice_names_the_tool_and_says_what_to_do() -> None:
    for advice in advise([as_tool(run), as_tool(get_weather)]):
        assert advice.tool == "run"
        assert advice.message
        assert advice.hint.endswith(".")


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({}, True),
        ({"type": "object"}, True),
        ({"type": "array", "items": {}}, True),
        ({"type": "string"}, False),
        ({"type": "object", "additionalProperties": {"type": "string"}}, False),
    ],
)
def test_a_parameter_that_takes_anything_is_pointed_out(schema: dict[str, Any], found: bool) -> None:
    described = {**schema, "description": "What to look for, in words."}
    raw = Tool(
        "find_it",
        "Find it in the notes. Use it for notes.",
        {"type": "object", "properties": {"wanted": described}},
        dict,
    )
    assert bool(advise([raw])) == found


def test_a_very_long_description_costs_tokens_in_every_round() -> None:
    raw = Tool("find_it", "Use it for notes. " * 200, {"type": "object"}, dict)
    assert [advice.code for advice in advise([raw])] == ["length"]
