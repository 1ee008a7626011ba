"""What a person is told at the end of a run: how to go on with it, and what must be looked at first."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from glassloop.cli.failures import LIMIT, color_of, exit_code_for
from glassloop.cli.keeping import Keeping
from glassloop.cli.printing import painted, say
from glassloop.cli.screen import Line, call_text
from glassloop.cli.wording import program
from glassloop.core.entries import Entry, Reply, ToolCall, ToolResult
from glassloop.core.tools import ToolSpec

if TYPE_CHECKING:
    from glassloop.agent import Agent
    from glassloop.handles import Result

_UNDONE = frozenset({"cancelled", "failed", "waiting_approval", "needs_review"})


def say_after(result: Result[Any], agent: Agent[Any], keeping: Keeping, command: str) -> None:
    """What stands below a run. `command` is what goes on with the same agent, `{}` where the session's id belongs.

    After an ordinary answer it is for a terminal only: nobody else needs it.
    """
    unsure = review_lines(result, agent.tools.specs)
    for line in unsure:
        say(line)
    if keeping.keeps(result.session):
        say_whole(_how_to_go_on(result, command.format(result.session.id), unsure=bool(unsure)))


def _how_to_go_on(result: Result[Any], how: str, *, unsure: bool) -> list[Line]:
    if unsure:
        return [
            Line(f"  Look, then say what became of it: {program()} approve {result.session.id}", "mend"),
            Line(f"  and go on: {how}", "mend"),
        ]
    if result.stop_reason in _UNDONE or exit_code_for(result.stop_reason) == LIMIT or sys.stderr.isatty():
        return [Line(f'· to go on: {how} "…"', "quiet")]
    return []


def review_lines(result: Result[Any], specs: Iterable[ToolSpec]) -> list[Line]:
    """The calls that were started before the process died, and of which nobody knows whether they took effect."""
    if result.stop_reason != "needs_review":
        return []
    effects = {spec.name: spec.effect for spec in specs}
    unknown = [one for one in open_calls(result.entries) if effects.get(one.name, "once") == "once"]
    return [
        Line("? started before the interruption, and nobody knows whether it took effect:", "bad"),
        *(Line(f"  {call_text(one.name, one.arguments or one.text)}", "bad") for one in unknown),
    ]


def open_calls(entries: Sequence[Entry]) -> list[ToolCall]:
    """The calls that have no result yet."""
    waiting: dict[str, ToolCall] = {}
    for entry in entries:
        match entry:
            case Reply():
                waiting |= {call.id: call for call in entry.tool_calls}
            case ToolResult():
                waiting.pop(entry.call_id, None)
    return list(waiting.values())


def say_whole(lines: Iterable[Line]) -> None:
    """Write lines to stderr without breaking them: a command that a terminal wraps can still be copied."""
    for line in lines:
        click.echo(painted(line.text, line.style), err=True, color=color_of(sys.stderr))
