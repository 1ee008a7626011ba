"""`glassloop approve`: answer what a run that nobody watched is waiting for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from glassloop.cli.failures import ANSWERED
from glassloop.cli.keeping import found, open_store
from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line
from glassloop.cli.tables import print_table
from glassloop.cli.wording import program

if TYPE_CHECKING:
    from glassloop.sessions.approvals import Question


@click.command()
@click.argument("session", required=False)
@click.option("--yes", "answer", flag_value="yes", help="Allow every call that waits.")
@click.option("--no", "answer", flag_value="no", help="Allow none.")
@click.option("--reason", metavar="TEXT", default="", help="What the model is told of a no.")
def command(session: str | None, answer: str | None, reason: str) -> int:
    """Decide about the tool calls that wait in SESSION; without one, list all that wait.

    The run goes on when its session is continued, with what was decided here.
    """
    store = open_store()
    waiting = store.questions()
    if session is None:
        return _list(waiting)
    session_id = found(store, session)
    for question in (one for one in waiting if one.session_id == session_id):
        say(Line(f"? {visible(question.shown)}", "mend"))
        allowed = answer == "yes" if answer else _asked()
        store.answer(question, allowed=allowed, by="glassloop approve", reason=reason)
        say(Line("  allowed" if allowed else "  not allowed", "quiet"))
    say(Line(f"· to go on: {program()} run -r {session_id}", "quiet"))
    return ANSWERED


def _list(waiting: list[Question]) -> int:
    if not waiting:
        say(Line("Nothing waits.", "quiet"))
    print_table(["session", "call"], [(one.session_id, one_line(one.shown)) for one in waiting])
    return ANSWERED


def _asked() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here: say --yes or --no.")
    return click.confirm("  May this run?", default=False, err=True)
