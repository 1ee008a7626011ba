"""Asking a person what became of a tool call that was started before the program died."""

from __future__ import annotations

import asyncio
import sys

import click

from glassloop.cli.asking import forget_typed
from glassloop.cli.failures import color_of
from glassloop.cli.safe_text import visible
from glassloop.cli.screen import call_text
from glassloop.core.resolving import Answer, Done, GiveUp, Retry, Unknown

BY = "the terminal"


class Reviewer:
    """Asks at the terminal; where there is none, nobody can say now, and the run waits for `glassloop approve`."""

    async def __call__(self, unknown: Unknown) -> Answer | None:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        await asyncio.sleep(0)  # what is on the screen is finished before the question is put
        say_what_is_unknown(unknown)
        while True:
            said = await _said(unknown.repeatable)
            if said.strip().lower() in ("", "l", "later"):
                return None
            answer = answer_from(said, BY, repeatable=unknown.repeatable)
            if answer is not None:
                return answer
            click.echo(f"  That is no answer: {said.strip()!r:.40}", err=True)


def say_what_is_unknown(unknown: Unknown) -> None:
    """The call with all its arguments, and what kept its tool from finding out."""
    tries = f", for the {unknown.attempt}. time" if unknown.attempt > 1 else ""
    lines = [
        f"? This was started before the interruption{tries}, and nobody knows whether it took effect:",
        f"  {call_text(unknown.call.name, unknown.arguments)}",
        *([f"  {unknown.why}"] if unknown.why else []),
    ]
    head, *rest = map(visible, lines)
    styled = click.style(head, fg="yellow", bold=True)
    click.echo("\n".join([styled, *rest]), err=True, color=color_of(sys.stderr))


def choices(*, repeatable: bool) -> str:
    """What may be answered, as a prompt."""
    retry = "retry (run it again), " if repeatable else ""
    return f"  done RESULT (it happened), {retry}give up, later: "


def answer_from(said: str, by: str, *, repeatable: bool) -> Answer | None:
    """What an answer means; None if it is none. A letter will do for a word."""
    word, _, rest = said.strip().partition(" ")
    match word.lower():
        case "d" | "done":
            return Done(rest.strip() or "Done.", by)
        case "r" | "retry" if repeatable and not rest:
            return Retry(by)
        case "g" | "give" if rest.strip().lower() in ("", "up"):
            return GiveUp(by)
    return None


async def _said(repeatable: bool) -> str:
    """One line; the end of input means later, Ctrl-C stops the run."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
    forget_typed(session.input)
    try:
        return await session.prompt_async(choices(repeatable=repeatable), handle_sigint=False)
    except EOFError:
        return ""
    except KeyboardInterrupt:
        raise asyncio.CancelledError from None
