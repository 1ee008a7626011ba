"""Who is asked before a call runs, and what they are shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from glassloop.core.entries import ToolCall
from glassloop.tools.approval import Ruling
from glassloop.tools.tool import Approve, Tool, tool
from glassloop.tools.toolbox import Toolbox

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "count": {"type": "integer"}}}


def outcome_of(arguments: Mapping[str, Any] | None = None, **options: Any) -> tuple[str, str]:
    box = Toolbox([Tool("write", "Write it.", SCHEMA, dict, **options)])
    verdict = box.prepare(ToolCall("c1", "write", arguments or {}))
    return verdict.outcome, verdict.text


@pytest.mark.parametrize(
    ("origin", "effect", "outcome"),
    [
        ("code", "once", "ready"),
        ("code", "read", "ready"),
        ("builtin", "once", "ask"),
        ("builtin", "idempotent", "ask"),
        ("builtin", "read", "ready"),
        ("file", "once", "ask"),
        ("file", "read", "ready"),
        ("mcp", "once", "ask"),
        ("mcp", "read", "ask"),
    ],
)
def test_by_default_a_programmers_function_runs_and_what_came_by_name_is_asked_about(
    origin: Any, effect: Any, outcome: str
) -> None:
    assert outcome_of(origin=origin, effect=effect)[0] == outcome


def broken(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["missing"])


@pytest.mark.parametrize(
    ("approve", "origin", "outcome", "words"),
    [
        (True, "code", "ask", "write (once) would run"),
        (False, "mcp", "ready", ""),
        (lambda arguments: arguments["count"] > 2, "code", "ask", "count: 3"),
        (lambda arguments: arguments["count"] > 3, "code", "ready", ""),
        (lambda arguments: "it touches /etc", "code", "ask", "Asked because it touches /etc"),
        (lambda arguments: "", "mcp", "ready", ""),
        (broken, "code", "ask", "its approval rule failed with KeyError"),
    ],
)
def test_a_tools_own_rule_decides_on_the_coerced_arguments_and_fails_closed(
    approve: Approve, origin: Any, outcome: str, words: str
) -> None:
    found, text = outcome_of({"count": "3"}, approve=approve, origin=origin)
    assert found == outcome
    assert words in text


def test_bad_arguments_are_a_problem_and_nobody_is_asked() -> None:
    assert outcome_of({"count": "three"}, approve=True)[0] == "problem"


def test_a_policy_may_deny_with_a_reason_that_the_model_reads() -> None:
    box = Toolbox(
        [Tool("write", "Write it.", SCHEMA, dict)],
        policy=lambda tool, arguments: Ruling("deny", f"{tool.name} is for admins"),
    )
    verdict = box.prepare(ToolCall("c1", "write", {}))
    assert (verdict.outcome, verdict.bound) == ("problem", None)
    assert verdict.text == "`write` is not allowed here: write is for admins"


def test_a_policy_that_fails_lets_nothing_through() -> None:
    def failing(tool: Tool, arguments: Mapping[str, Any]) -> Ruling:
        raise RuntimeError("no rules")

    verdict = Toolbox([Tool("write", "Write it.", SCHEMA, dict)], policy=failing).prepare(
        ToolCall("c1", "write", {})
    )
    assert (verdict.outcome, "RuntimeError: no rules" in verdict.text) == ("ask", True)


def test_the_question_shows_every_argument_in_full_and_nothing_invisible() -> None:
    hidden = "ok\u202egnp.exe\u200b\x1b[2J\U000e0041\u00a0\n" + "x" * 5000
    _, text = outcome_of({"path": hidden, "count": 3}, approve=True)
    assert "\\u202e" in text
    assert "\\u200b" in text
    assert "\\u001b[2J" in text
    assert "\\U000e0041" in text
    assert "\\u00a0" in text
    assert "x" * 5000 in text
    assert text.splitlines()[-1] == "  count: 3"
    assert all(char == "\n" or char.isprintable() for char in text)


def test_readable_text_of_any_script_is_shown_as_it_is() -> None:
    assert 'path: "笔记/été.md"' in outcome_of({"path": "笔记/été.md"}, approve=True)[1]


def test_the_verdict_carries_what_an_approval_is_bound_to() -> None:
    @tool(approve=True, effect="idempotent")
    def send(to: str) -> None:
        """Send it."""

    verdict = Toolbox([send]).prepare(ToolCall("c1", "send", {"to": "Ada"}))
    assert (verdict.outcome, verdict.effect, verdict.arguments, verdict.tool_hash) == (
        "ask",
        "idempotent",
        {"to": "Ada"},
        send.hash,
    )
    assert dataclasses.replace(send, description="Delete it.").hash != send.hash
