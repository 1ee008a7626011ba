"""`glassloop approve`: answer what a run that nobody watched is waiting for."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import click

from glassloop.cli.asking import PROMPT
from glassloop.cli.begun import begun_of
from glassloop.cli.failures import ANSWERED
from glassloop.cli.going_on import say_whole
from glassloop.cli.keeping import found, open_store
from glassloop.cli.printing import say
from glassloop.cli.reviewing import answer_from, is_later, say_choices, say_no_answer
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line, call_text
from glassloop.cli.tables import print_table
from glassloop.cli.terminal import is_confirmed, typed
from glassloop.cli.wording import program
from glassloop.core.resolving import Answer, Done, GiveUp, Retry

if TYPE_CHECKING:
    from glassloop.sessions.approvals import Question
    from glassloop.sessions.doubts import Doubt
    from glassloop.sessions.store import Store

    Waiting = TypeVar("Waiting", Question, Doubt)


@click.command()
@click.argument("session", required=False)
@click.option("--yes", "answer", flag_value="yes", help="Allow every call that waits.")
@click.option("--no", "answer", flag_value="no", help="Allow none.")
@click.option("--reason", metavar="TEXT", default="", help="What the model is told of a no.")
@click.option("--done", metavar="RESULT", help="A call in doubt took effect, and this is its result.")
@click.option(
    "--retry", "outcome", flag_value="retry", help="A call in doubt did not take effect: run it again."
)
@click.option("--give-up", "outcome", flag_value="give-up", help="Nobody knows: the model is told so.")
@click.option("--call", "call_id", metavar="ID", help="Only this one of the calls that wait.")
def command(
    session: str | None,
    *,
    answer: str | None,
    reason: str,
    done: str | None,
    outcome: str | None,
    call_id: str | None,
) -> int:
    """Decide about the tool calls that wait in SESSION; without one, list all that wait.

    A call waits because it needs a person's word, or because the program died while it ran and nobody knows
    whether it took effect. The run goes on when its session is continued, with what was decided here.

    \b
      glassloop approve
      glassloop approve 3f2a --yes
      glassloop approve 3f2a --done "sent, receipt 4711"
    """
    if done is not None and outcome is not None:
        raise click.UsageError("Give one of --done, --retry and --give-up.")
    store = open_store()
    if session is None:
        _list(store)
        if done is not None or answer or outcome or reason or call_id is not None:
            raise click.UsageError(_no_name())
        return ANSWERED
    session_id = found(store, session)
    questions = _chosen(store.questions(), session_id, call_id)
    doubts = _chosen(store.doubts(), session_id, call_id)
    if done is not None and len(doubts) > 1:
        ids = ", ".join(one.call_id for one in doubts)
        raise click.UsageError(f"Several calls are in doubt: say which with --call, one of {ids}.")
    said = Done(done, _who()) if done is not None else _OUTCOMES[outcome](_who()) if outcome else None
    by_option = said is not None or answer is not None
    asked = questions if answer or not by_option else []
    unsure = doubts if said or not by_option else []
    if not asked and not unsure and (by_option or call_id is not None):
        raise click.UsageError(_nothing(session_id, call_id, len(questions), len(doubts)))
    for question in asked:
        _decide(store, question, answer, reason)
    for doubt in unsure:
        _resolve(store, doubt, said)
    _say_what_is_next(store, session_id)
    return ANSWERED


def _no_name() -> str:
    how = f"{program()} approve SESSION --yes"
    return f"Nothing is decided without a name: say which session is meant, as in: {how}"


def _nothing(session_id: str, call_id: str | None, questions: int, doubts: int) -> str:
    """Why nothing was decided: nothing waits, or not for such an answer."""
    which = "No call" if call_id is None else f"No call {call_id!r}"
    if not questions and not doubts:
        return f"{which} waits in session {session_id}."
    wanted = "--yes or --no" if questions else "--done RESULT, --retry or --give-up"
    return f"{which} in session {session_id} waits for that, but for {wanted}."


def _say_what_is_next(store: Store, session_id: str) -> None:
    left = [one.call_id for one in _chosen(store.questions(), session_id, None)]
    left += [one.call_id for one in _chosen(store.doubts(), session_id, None)]
    if left:
        say(Line(f"· still waiting in {session_id}: {', '.join(left)}", "quiet"))
    elif store.info(session_id).state == "idle":
        say(Line(f"Nothing waits in {session_id}.", "quiet"))
    else:
        say_whole([Line(f"· to go on: {visible(_command(store, session_id))}", "quiet")])


def _command(store: Store, session_id: str) -> str:
    begun = None
    with suppress(click.UsageError):  # a folder that it names is gone: that is said where it is needed
        begun = begun_of(store.command(session_id))
    return begun.command(session_id) if begun else f"{program()} run -r {session_id}"


_OUTCOMES: dict[str, Callable[[str], Answer]] = {"retry": Retry, "give-up": GiveUp}


def _chosen(waiting: Sequence[Waiting], session_id: str, call_id: str | None) -> list[Waiting]:
    return [one for one in waiting if one.session_id == session_id and call_id in (None, one.call_id)]


def _who() -> str:
    """Whoever sits here, for the record."""
    with suppress(KeyError, OSError):  # no such user, as in some containers
        return f"{getpass.getuser()}, glassloop approve"
    return f"user {os.getuid()}, glassloop approve"


def _decide(store: Store, question: Question, answer: str | None, reason: str) -> None:
    say(Line(f"? {visible(question.shown)}", "mend"))
    allowed = answer == "yes" if answer else _allowed()
    store.answer(question, allowed=allowed, by=_who(), reason=reason)
    say(Line("  allowed" if allowed else "  not allowed", "quiet"))


def _resolve(store: Store, doubt: Doubt, said: Answer | None) -> None:
    say(Line("? started before the interruption, and nobody knows whether it took effect:", "mend"))
    say(Line(f"  {call_text(doubt.name, doubt.arguments)}", "mend"))
    answer = said or _asked_about(doubt)
    if answer is None:
        say(Line("  left as it is", "quiet"))
        return
    store.resolve_doubt(doubt, answer)
    say(Line(f"  {_RESOLVED[type(answer)]}", "quiet"))


_RESOLVED = {Done: "done", Retry: "to be run again", GiveUp: "given up: the model will be told"}


def _list(store: Store) -> None:
    rows = [(one.session_id, one.call_id, one_line(one.shown)) for one in store.questions()]
    rows += [
        (one.session_id, one.call_id, f"in doubt: {one_line(call_text(one.name, one.arguments))}")
        for one in store.doubts()
    ]
    if not rows:
        say(Line("Nothing waits.", "quiet"))
    print_table(["session", "call", "what waits"], rows)


def _allowed() -> bool:
    _refuse_without_terminal("--yes or --no")
    return is_confirmed("  May this run?")


def _asked_about(doubt: Doubt) -> Answer | None:
    _refuse_without_terminal("--done RESULT, --retry or --give-up")
    say_choices(repeatable=doubt.repeatable)
    while not is_later(said := typed(PROMPT)):
        answer = answer_from(said, _who(), repeatable=doubt.repeatable)
        if answer is not None:
            return answer
        say_no_answer(said)
    return None


def _refuse_without_terminal(options: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError(f"Nobody can be asked here: say {options}.")
