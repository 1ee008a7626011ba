"""`glassloop run`: one question, one answer."""

from __future__ import annotations

import os
import stat
import sys
import threading
from typing import TYPE_CHECKING

import click

from glassloop.cli.asking import Asker
from glassloop.cli.failures import FAILED, LIMIT, exit_code_for, report
from glassloop.cli.going_on import say_after
from glassloop.cli.keeping import keeping_of, unfinished
from glassloop.cli.looping import run_async
from glassloop.cli.options import Options, agent_of, agent_options, session_options, surroundings
from glassloop.cli.printing import JsonPrinter, Printer, announce, say
from glassloop.cli.reviewing import Reviewer
from glassloop.cli.screen import Line
from glassloop.cli.taking_up import continued
from glassloop.cli.wording import program

if TYPE_CHECKING:
    from glassloop.cli.chat_screen import ChatScreen
    from glassloop.sessions.timeline import Timeline

EMPTY = 'The question is empty. Put it in quotes: glassloop run "What is 15% of 240?"'

LONG_QUESTION = 200_000
"""Characters from which on a question is remarked upon: few models take that much."""


@click.command()
@click.argument("question", nargs=-1)
@agent_options
@session_options
@click.option("--json", "as_json", is_flag=True, help="Write every event as one line of JSON.")
@click.option("--yes", is_flag=True, help="Let every tool call run without asking.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Say where each setting comes from, and show the model's reasoning."
)
def command(question: tuple[str, ...], as_json: bool, yes: bool, verbose: bool, **chosen: object) -> int:
    """Ask one question and print the answer.

    Text that is piped in is put below the question. The answer goes to standard output, all else to standard error.
    With -c or -r and no question, a run that was broken off goes on where it stood.

    \b
      glassloop run "What is 15% of 240?"
      git diff | glassloop run "Write a commit message for this."
      glassloop run -m ollama:qwen3 -T tools.py "Is the server up?"
      glassloop run -c "And tomorrow?"
    """
    options = Options(**chosen)  # type: ignore[arg-type]
    text = _whole_question(question)
    if not text and not options.continues:
        raise click.UsageError(EMPTY)
    if options.continues:
        options = continued(options, text)
    config = options.config()
    announce(config, verbose=verbose)
    if len(text) > LONG_QUESTION:
        say(Line(f"! the question is {len(text):,} characters long; few models take that much", "mend"))
    if config.model is None:
        from glassloop.cli.welcome import show_welcome

        return show_welcome(config)
    from glassloop.cli.playing import ask_once

    printer = _printer(options, as_json=as_json, verbose=verbose)
    # A new message leaves an unfinished run behind: none of its calls runs again, so it may be another agent's.
    keeping, session = keeping_of(options, config, accept_changes=bool(text))
    if not text and keeping.store and session and not unfinished(keeping.store, session.id):
        raise click.UsageError(_nothing_to_do(keeping.store.timeline(session.id)))
    asker = Asker(yes=yes)
    try:
        around = surroundings(options, config)
        agent = agent_of(options, config, approve=asker, review=Reviewer(), keeping=keeping, around=around)
        result, error = run_async(ask_once(agent, text or None, printer.show, asker, session))
    except BrokenPipeError:  # whoever read our output has gone: there is nobody to go on for
        return FAILED
    finally:
        printer.close()
        keeping.close()
    if error is not None:
        report(error)
    if not as_json:
        say_after(result, agent, keeping, f"{program()} run -r {{}}{options.spelled(result.stop_reason)}")
    return FAILED if error is not None else exit_code_for(result.stop_reason)


def _nothing_to_do(timeline: Timeline) -> str:
    if timeline.runs and exit_code_for(timeline.runs[-1].stop_reason) == LIMIT:
        how = f'{program()} run -r {timeline.session.session_id} "Go on."'
        return f"The last run here ended at its limit, with an answer. Say what comes next, as in: {how}"
    return "This session has no run that broke off with something to do. Say what comes next."


def _printer(options: Options, *, as_json: bool, verbose: bool) -> JsonPrinter | Printer | ChatScreen:
    """On a terminal the answer is shown as in a chat; a file or a pipe gets what the model wrote."""
    if as_json:
        return JsonPrinter()
    if sys.stdout.isatty() and sys.stderr.isatty():
        from glassloop.cli.chat_screen import ChatScreen, console

        return ChatScreen(console(), reasoning=verbose)
    return Printer(sys.stdout.isatty() and not options.no_stream, reasoning=verbose)


# ── The question ─────────────────────────────────────────────────────────────────────────────────────


def _whole_question(words: tuple[str, ...]) -> str:
    """What was typed, and below it what was piped in."""
    parts = [" ".join(words).strip(), _piped().strip()]
    return "\n\n".join(part for part in parts if part)


def _piped() -> str:
    """Standard input if it is a pipe or a file; says so if nothing comes for a while."""
    if sys.stdin.isatty():
        return ""
    hint = threading.Timer(
        3.0, say, [Line("· waiting for the piped input to end (if there is none: < /dev/null)", "quiet")]
    )
    hint.daemon = True
    if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        hint.start()
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig", "replace")
    finally:
        hint.cancel()
