"""The plan that a model keeps."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from glassloop.core.entries import ToolCall, ToolResult
from glassloop.tools import builtin
from glassloop.tools.builtin.todo import PlanItem, Plans, checked, plan_tool, rendered
from glassloop.tools.context import ToolContext
from glassloop.tools.toolbox import Toolbox


def call(box: Toolbox, items: object, run_id: str = "run") -> ToolResult:
    arguments = {"items": items}
    verdict = box.prepare(ToolCall("1", "update_plan", arguments, json.dumps(arguments)))
    return asyncio.run(box.execute(verdict, ToolContext(run_id=run_id)))


def test_a_plan_is_told_back_and_kept_for_its_run() -> None:
    plans = Plans()
    box = Toolbox([plan_tool(plans)])
    items = [
        {"text": "read the code", "state": "completed"},
        {"text": "写测试", "state": "in_progress"},
        {"text": "ship"},
        {"text": "party", "state": "cancelled"},
    ]
    result = call(box, items)
    assert result.text == "Plan: 1 of 3 done\n[x] read the code\n[>] 写测试\n[ ] ship\n[-] party"
    assert plans.of("run")[1] == PlanItem("写测试", "in_progress")
    assert plans.of("another run") == ()
    call(box, [])
    assert plans.of("run") == ()


def test_it_needs_no_leave_and_repeating_it_changes_nothing() -> None:
    (tool,) = builtin.load("todo")
    box = Toolbox([tool])
    assert (tool.effect, tool.origin) == ("idempotent", "builtin")
    assert box.prepare(ToolCall("1", "update_plan", {"items": []}, '{"items": []}')).outcome == "ready"
    items = [{"text": "a", "state": "in_progress"}]
    assert call(box, items).text == call(box, items).text


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (
            [{"text": "a", "state": "in_progress"}, {"text": "b", "state": "in_progress"}],
            'only one item can be "in_progress".*a; b',
        ),
        ([{"text": "  "}], "item 1 has 0 characters"),
        ([{"text": "x" * 501}], "item 1 has 501 characters"),
        ([{"text": "a"}] * 51, "has 51 items, at most 50"),
        ([{"text": "a", "state": "later"}], "state"),
        ("do things", "items"),
    ],
)
def test_what_is_no_plan_is_refused_and_the_old_one_stays(items: object, said: str) -> None:
    plans = Plans()
    plans.keep("run", (PlanItem("old"),))
    result = call(Toolbox([plan_tool(plans)]), items)
    assert result.state == "error"
    assert re.search(said, result.text)
    assert plans.of("run") == (PlanItem("old"),)


def test_a_step_is_one_line() -> None:
    assert rendered(checked([PlanItem("a\n[x] forged\r\n b")])) == "Plan: 0 of 1 done\n[ ] a [x] forged b"
    assert rendered(()) == "The plan is empty."


def test_the_plans_of_old_runs_are_forgotten() -> None:
    plans = Plans()
    for number in range(200):
        plans.keep(str(number), (PlanItem("a"),))
    assert plans.of("0") == ()
    assert plans.of("199") == (PlanItem("a"),)
