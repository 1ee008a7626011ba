"""Asking a person whether a tool call may run."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from glassloop.cli.failures import color_of
from glassloop.cli.safe_text import visible
from glassloop.core.events import ApprovalAsked, Event
from glassloop.core.tools import Decision, Verdict

if TYPE_CHECKING:
    from prompt_toolkit.input import Input


class Asker:
    """Decides on calls that need a person's word: with --yes all run; without a terminal none does; else it asks.

    What was on the screen must be finished before the question is put: `saw` is told of each event once
    it has been shown.
    """

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes
        self._shown: dict[str, asyncio.Event] = {}

    def saw(self, event: Event) -> None:
        """This event is on the screen now."""
        if isinstance(event, ApprovalAsked):
            self._event(event.verdict.call.id).set()

    async def __call__(self, verdict: Verdict) -> Decision:
        if self._yes:
            return Decision(verdict.call.id, True, by="--yes")
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            reason = f"{verdict.call.name} needs a person's approval, and nobody can be asked here (--yes allows it)"
            return Decision(verdict.call.id, False, reason, by="no terminal")
        await self._event(verdict.call.id).wait()
        return decision_from(await _answer_to(verdict), verdict)

    def _event(self, call_id: str) -> asyncio.Event:
        return self._shown.setdefault(call_id, asyncio.Event())


async def _answer_to(verdict: Verdict) -> str:
    """Show exactly what would run, and ask. The end of input is a no; Ctrl-C stops the run."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    head = click.style("? May this run?\n", fg="yellow", bold=True)
    click.echo(head + visible(verdict.text), err=True, color=color_of(sys.stderr))
    session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
    _forget_typed(session.input)
    try:
        return await session.prompt_async("  y = yes, n = no, or say why not: ", handle_sigint=False)
    except EOFError:
        return ""
    except KeyboardInterrupt:
        raise asyncio.CancelledError from None


def _forget_typed(keyboard: Input) -> None:
    """What was typed before the question was on the screen is no answer to it."""
    from prompt_toolkit.input.typeahead import clear_typeahead

    clear_typeahead(keyboard)
    with suppress(ImportError, OSError):  # no termios on Windows
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def decision_from(answer: str, verdict: Verdict) -> Decision:
    """What an answer means: only a clear yes allows."""
    word = answer.strip()
    if word.lower() in ("y", "yes"):
        return Decision(verdict.call.id, True, by="the terminal")
    reason = "the user said no" if word.lower() in ("", "n", "no") else f"the user said: {word}"
    return Decision(verdict.call.id, False, reason, by="the terminal")
