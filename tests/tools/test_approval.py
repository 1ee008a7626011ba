"""Who is asked before a call runs, and what they are shown."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from glassloop.core.entries import ToolCall
from glassloop.core.errors import ToolDefinitionError
from glassloop.core.tools import Verdict
from glassloop.tools import builtin
from glassloop.tools.approval import Ruling
from glassloop.tools.context import ToolContext
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
    assert "\\xa0" in text
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


# ── what is approved is what runs ────────────────────────────────────────────────────────────────────


def writing(folder: Path) -> tuple[Toolbox, Verdict]:
    (folder / "a.md").write_text("one\n")
    box = Toolbox(builtin.load("files", {"files_root": str(folder)}))
    call = ToolCall("c1", "write_file", {"path": "a.md", "content": "two\n"})
    return box, box.prepare(call)


def stored(verdict: Verdict) -> Verdict:
    """As it comes back from a journal, days later."""
    return structs.replace(verdict, bound=None)


def text_of(box: Toolbox, verdict: Verdict) -> str:
    return asyncio.run(box.execute(verdict, ToolContext())).text


def test_the_question_shows_the_diff_with_nothing_invisible_in_it(tmp_path: Path) -> None:
    box, verdict = writing(tmp_path)
    assert "  -one\n  +two" in verdict.text
    edit = ToolCall("c2", "edit_file", {"path": "a.md", "old_text": "one", "new_text": "\x1b[2J\u202e"})
    assert "  +\\x1b[2J\\u202e" in box.prepare(edit).text
    wrong = box.prepare(ToolCall("c3", "edit_file", {"path": "a.md", "old_text": "nine", "new_text": "x"}))
    assert "It would fail: old_text is not in a.md" in wrong.text


@pytest.mark.parametrize("kept", [stored, lambda verdict: verdict], ids=["stored", "live"])
def test_a_file_that_changed_since_it_was_shown_is_not_overwritten(tmp_path: Path, kept: Any) -> None:
    box, verdict = writing(tmp_path)
    (tmp_path / "a.md").write_text("somebody else's work\n")
    assert "has changed since a person approved it" in text_of(box, kept(verdict))
    assert (tmp_path / "a.md").read_text() == "somebody else's work\n"
    assert box.prepare(verdict.call).tool_hash != verdict.tool_hash, (
        "an answer given elsewhere does not fit either"
    )


def test_an_unchanged_file_is_written_and_doing_it_again_after_a_crash_is_no_error(tmp_path: Path) -> None:
    box, verdict = writing(tmp_path)
    assert text_of(box, stored(verdict)).startswith("Replaced a.md.")
    assert text_of(box, stored(verdict)) == "a.md has this content already."


def test_a_file_that_came_into_being_since_is_not_overwritten(tmp_path: Path) -> None:
    box, _ = writing(tmp_path)
    verdict = box.prepare(ToolCall("c1", "write_file", {"path": "new.md", "content": "two\n"}))
    (tmp_path / "new.md").write_text("mine")
    assert "has changed" in text_of(box, stored(verdict))
    assert (tmp_path / "new.md").read_text() == "mine"


def test_a_preview_that_fails_is_told_with_the_arguments_and_the_call_is_still_asked_about() -> None:
    def broken(arguments: Mapping[str, Any]) -> str:
        raise OSError("no disk")

    outcome, text = outcome_of({"path": "a"}, approve=True, preview=broken)
    assert outcome == "ask"
    assert "It would fail: OSError: no disk" in text
    assert '{"path": "a"}' in text


WRONG_OPTIONS: dict[str, Any] = {
    "approve": ["allow", 1, []],
    "timeout": ["3", 0, -1, True, float("nan")],
    "effect": ["write", ["once"], None],
    "sequential": ["yes", 1],
    "max_output": ["9", 99, 1e6, True],
    "untrusted": ["no", None],
    "needs": ["network", ["money"], 3],
    "preview": ["diff"],
    "targets": [()],
    "basis": [""],
    "name": ["a b", 3],
    "description": [3],
    "retries": [3],
}


@pytest.mark.parametrize(
    ("option", "value"), [(name, each) for name, values in WRONG_OPTIONS.items() for each in values]
)
def test_an_option_of_the_wrong_type_is_refused_where_the_tool_is_defined(option: str, value: Any) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ToolDefinitionError) as refused:

        @tool(**options)
        def look() -> None:
            """Look. Use it to look."""

    assert "test_approval.py:" in str(refused.value)
    assert option in str(refused.value) or option == "name"


def test_a_tool_is_short_in_print() -> None:
    @tool
    def look(where: str, far: int = 1) -> None:
        """Look. Use it to look."""

    assert repr(look) == "Tool(look(where, far), once, from code)"
