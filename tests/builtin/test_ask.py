"""Asking the user, by whatever way the program has."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from glassloop.core.entries import ToolCall, ToolResult
from glassloop.tools import builtin
from glassloop.tools.builtin.ask import Ask, ask_tool
from glassloop.tools.context import ToolContext
from glassloop.tools.toolbox import Toolbox


def ask(way: Ask | None, **arguments: object) -> ToolResult:
    box = Toolbox([ask_tool(way)])
    verdict = box.prepare(ToolCall("1", "ask_user", arguments, json.dumps(arguments)))
    return asyncio.run(box.execute(verdict, ToolContext()))


def test_the_question_and_its_choices_reach_the_person_and_the_answer_the_model() -> None:
    asked: list[object] = []

    def way(question: str, choices: tuple[str, ...]) -> str:
        asked.append((question, choices, threading.current_thread() is threading.main_thread()))
        return " 上海 "

    result = ask(way, question=" Which city? ", choices=["北京", "上海", "北京"])
    assert asked == [("Which city?", ("北京", "上海"), False)]
    assert result.text == "The user answered: 上海"


def test_the_way_to_ask_may_be_async() -> None:
    async def way(question: str, choices: tuple[str, ...]) -> str:
        await asyncio.sleep(0)
        return question.upper()

    assert ask(way, question="so?").text == "The user answered: SO?"


def test_no_answer_is_said() -> None:
    assert ask(lambda *_: "  ", question="so?").text == "The user gave no answer."


def test_a_way_that_fails_is_an_error_of_that_call() -> None:
    def way(question: str, choices: tuple[str, ...]) -> str:
        raise EOFError("the terminal is gone")

    result = ask(way, question="so?")
    assert (result.state, result.text) == ("error", "EOFError: the terminal is gone")


def test_where_nobody_can_be_asked_an_error_says_so() -> None:
    result = ask(None, question="so?")
    assert result.state == "error"
    assert "nobody can be asked here" in result.text


def test_it_never_times_out_and_needs_no_leave() -> None:
    (tool,) = builtin.load("ask_user")
    assert (tool.timeout, tool.effect, tool.sequential, tool.origin) == (None, "read", True, "builtin")
    verdict = Toolbox([tool]).prepare(ToolCall("1", "ask_user", {"question": "so?"}, '{"question": "so?"}'))
    assert verdict.outcome == "ready"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"question": "  "}, "1 to 2000"),
        ({"question": "x" * 2_001}, "has 2001 characters"),
        ({"question": "so?", "choices": [str(number) for number in range(11)]}, "11 choices, at most 10"),
        ({"question": "so?", "choices": ["a", " "]}, "each choice"),
        ({}, "question"),
    ],
)
def test_a_question_that_is_none_is_not_asked(arguments: dict[str, object], said: str) -> None:
    result = ask(lambda *_: pytest.fail("it was asked"), **arguments)
    assert result.state == "error"
    assert said in result.text
