"""`glassloop run`: one question, one answer."""

from __future__ import annotations

import os
import stat
import sys
import threading

import click

from glassloop.cli.asking import Asker
from glassloop.cli.failures import FAILED, exit_code_for, report
from glassloop.cli.looping import run_async
from glassloop.cli.options import Options, agent_of, agent_options
from glassloop.cli.printing import JsonPrinter, Printer, announce, say
from glassloop.cli.screen import Line
from glassloop.config import Config
from glassloop.core.events import Event

LONG_QUESTION = 200_000
"""Characters from which on a question is remarked upon: few models take that much."""


@click.command()
@click.argument("question", nargs=-1)
@agent_options
@click.option("--json", "as_json", is_flag=True, help="Write every event as one line of JSON.")
@click.option("--yes", is_flag=True, help="Let every tool call run without asking.")
@click.option("-v", "--verbose", is_flag=True, help="Say where each setting comes from.")
def command(question: tuple[str, ...], as_json: bool, yes: bool, verbose: bool, **chosen: object) -> int:
    """Ask one question and print the answer.

    Text that is piped in is put below the question. The answer goes to standard output, all else to standard error.

    \b
      glassloop run "What is 15% of 240?"
      git diff | glassloop run "Write a commit message for this."
      glassloop run -m ollama:qwen3 -T tools.py "Is the server up?"
    """
    options = Options(**chosen)  # type: ignore[arg-type]
    text = _whole_question(question)
    config = options.config()
    announce(config, verbose=verbose)
    if len(text) > LONG_QUESTION:
        say(Line(f"! the question is {len(text):,} characters long; few models take that much", "mend"))
    if config.model is None:
        from glassloop.cli.welcome import show_welcome

        return show_welcome(config)
    live = sys.stdout.isatty() and not options.no_stream
    printer = JsonPrinter() if as_json else Printer(live)
    return run_async(_ask(options, config, text, printer, yes=yes))


async def _ask(
    options: Options, config: Config, text: str, printer: JsonPrinter | Printer, *, yes: bool
) -> int:
    from glassloop.cli.playing import play

    asker = Asker(yes=yes)
    agent = agent_of(options, config, approve=asker)

    def show(event: Event) -> None:
        printer.show(event)
        asker.saw(event)

    try:
        result, error = await play(agent, text, show)
    except BrokenPipeError:  # whoever read our output has gone: there is nobody to go on for
        return FAILED
    finally:
        await agent.model.close()
    if error is not None:
        report(error)
        return FAILED
    return exit_code_for(result.stop_reason)


# ── The question ─────────────────────────────────────────────────────────────────────────────────────


def _whole_question(words: tuple[str, ...]) -> str:
    """What was typed, and below it what was piped in."""
    parts = [" ".join(words).strip(), _piped().strip()]
    text = "\n\n".join(part for part in parts if part)
    if not text:
        raise click.UsageError('The question is empty. Put it in quotes: glassloop run "What is 15% of 240?"')
    return text


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
