"""The `update_plan` tool: a list of steps that the model keeps, and that a screen can show while it works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from glassloop.tools.context import ToolContext
from glassloop.tools.tool import Tool, tool

MAX_ITEMS = 50
MAX_TEXT = 500
_MAX_RUNS = 100

_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


@dataclass(frozen=True, slots=True)
class PlanItem:
    """A step of the plan: what is to be done, and how far it is."""

    text: str
    state: Literal["pending", "in_progress", "completed", "cancelled"] = "pending"


class Plans:
    """The latest plan of each run, as far as one tool has seen them."""

    def __init__(self) -> None:
        self._by_run: dict[str, tuple[PlanItem, ...]] = {}

    def of(self, run_id: str) -> tuple[PlanItem, ...]:
        """The run's plan; empty if it has none."""
        return self._by_run.get(run_id, ())

    def keep(self, run_id: str, items: tuple[PlanItem, ...]) -> None:
        """Replace the run's plan. The plans of the runs longest silent are forgotten."""
        self._by_run.pop(run_id, None)
        self._by_run[run_id] = items
        while len(self._by_run) > _MAX_RUNS:
            del self._by_run[next(iter(self._by_run))]


def plan_tool(plans: Plans) -> Tool:
    """The `update_plan` tool, which keeps what it is given in `plans`."""

    @tool(effect="idempotent", approve=False, timeout=10)
    def update_plan(items: list[PlanItem], context: ToolContext) -> str:
        """Keep a plan of your work that the user sees. Use it for tasks of three or more steps: first to lay
        out the steps, then each time one begins or ends.

        Args:
            items: The whole plan, in order; it replaces the one before. At most one item is "in_progress".
        """
        plan = checked(items)
        plans.keep(context.run_id, plan)
        return rendered(plan)

    return update_plan


def from_options(options: Mapping[str, str]) -> Tool:
    """The tool with plans of its own. It has no options."""
    return plan_tool(Plans())


def checked(items: list[PlanItem]) -> tuple[PlanItem, ...]:
    """The items as a plan. Raises `ValueError` for what is no plan that one can follow."""
    if len(items) > MAX_ITEMS:
        raise ValueError(f"the plan has {len(items)} items, at most {MAX_ITEMS}; put small steps together")
    plan = tuple(PlanItem(" ".join(item.text.split()), item.state) for item in items)
    for number, item in enumerate(plan, 1):
        if not item.text or len(item.text) > MAX_TEXT:
            raise ValueError(
                f"item {number} has {len(item.text)} characters; say the step in 1 to {MAX_TEXT}"
            )
    current = [item.text for item in plan if item.state == "in_progress"]
    if len(current) > 1:
        raise ValueError(f'only one item can be "in_progress", and these are: {"; ".join(current)}')
    return plan


def rendered(plan: tuple[PlanItem, ...]) -> str:
    """The plan as text, a line a step."""
    if not plan:
        return "The plan is empty."
    counts = Counter(item.state for item in plan)
    head = f"Plan: {counts['completed']} of {len(plan) - counts['cancelled']} done"
    return "\n".join([head, *(f"{_SIGNS[item.state]} {item.text}" for item in plan)])
