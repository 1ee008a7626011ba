"""Asking a person: whether a tool call may run, and what the model wants to know (`ask_user`)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from glassloop.cli.answers import Answer, Standing, answer_from, choices, decision_from
from glassloop.cli.failures import color_of
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.terminal import for_stderr
from glassloop.core.events import ApprovalAsked, ApprovalDecided, Event, ToolFinished, ToolStarted
from glassloop.core.tools import Decision, Verdict

if TYPE_CHECKING:
    from prompt_toolkit.input import Input

PROMPT = "  ? "
"""Where an answer is typed."""

ASK_USER = "ask_user"
"""The tool during which the terminal is the question's."""

_FEWEST_LINES = 10
_ROOM = 12
"""Lines of a terminal that are left for the choices and what was said before."""


def can_ask() -> bool:
    """Is there a person at a terminal?"""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Asker:
    """Decides on calls that need a person's word: with --yes all run; without a terminal none does; else it asks.

    What was on the screen must be finished before a question is put: `saw` is told of each event once it has been
    shown. `standing` is what was allowed beyond one call; `show`, where there is a screen, shows an event of a call
    that the run itself does not know of (a call of code in code mode).
    """

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes
        self._shown: dict[str, asyncio.Event] = {}
        self._one_at_a_time = asyncio.Lock()
        self.standing = Standing()
        self.show: Callable[[Event], None] | None = None

    def saw(self, event: Event) -> None:
        """This event is on the screen now."""
        if isinstance(event, ApprovalAsked):
            self._event(event.verdict.call.id).set()
        elif isinstance(event, ToolStarted) and event.call.name == ASK_USER:
            self._event(ASK_USER).set()
        elif isinstance(event, ToolFinished):
            self.standing.heard(event.result)

    async def __call__(self, verdict: Verdict) -> Decision:
        early = self._without_asking(verdict)
        if early is not None:
            return early
        await self._event(verdict.call.id).wait()
        return await self._asked(verdict)

    async def within(self, verdict: Verdict) -> Decision:
        """The same for a call of code: its question is shown here, since the run has no event for it."""
        early = self._without_asking(verdict)
        if early is not None:
            return early
        async with self._one_at_a_time:
            await asyncio.sleep(0)  # what the code has said so far comes before the question
            self._tell(ApprovalAsked(0, verdict))
            decision = await self._asked(verdict)
            self._tell(ApprovalDecided(0, decision))
        return decision

    async def ask_user(self, question: str, offered: tuple[str, ...]) -> str:
        """The model's question and the person's answer; a number stands for a choice. Raises `NobodyToAsk`."""
        if not can_ask():
            from glassloop.tools.builtin.ask import NobodyToAsk

            raise NobodyToAsk("nobody can be asked here. Decide by what you know, and say what you assumed")
        shown = self._event(ASK_USER)
        await shown.wait()
        shown.clear()
        say_question(*(f"? {line}" for line in visible(question).split("\n")))
        _say([f"  {number}  {one_line(choice)}" for number, choice in enumerate(offered, 1)])
        said = (await _typed("> ")).strip()
        chosen = int(said) if said.isascii() and said.isdigit() else 0
        return offered[chosen - 1] if 0 < chosen <= len(offered) else said

    def _without_asking(self, verdict: Verdict) -> Decision | None:
        if self._yes:
            return Decision(verdict.call.id, True, by="--yes")
        if self.standing.covers(verdict):
            return Decision(verdict.call.id, True, by="the terminal, for this session")
        if can_ask():
            return None
        reason = (
            f"{verdict.call.name} needs a person's approval, and nobody can be asked here (--yes allows it)"
        )
        return Decision(verdict.call.id, False, reason)

    async def _asked(self, verdict: Verdict) -> Decision:
        """Show exactly what would run, and ask until the answer is one. The end of input is a no."""
        offers = self.standing.offers(verdict)
        lines = visible(verdict.text).split("\n")
        say_question("? May this run?", *_cut(lines))
        _say(choices(offers))
        while True:
            answer = answer_from(await _typed(PROMPT), offers)
            if answer is Answer.VIEW:
                _say(lines)
            elif answer is not None:
                return self._heeded(verdict, answer)
            else:
                _say(choices(offers))

    def _heeded(self, verdict: Verdict, answer: Answer | str) -> Decision:
        if isinstance(answer, Answer):
            trouble = self.standing.remember(verdict, answer)
            if trouble:
                _say([f"  ! {visible(trouble)} It holds for this session."])
        return decision_from(answer, verdict)

    def _tell(self, event: Event) -> None:
        if self.show is not None:
            self.show(event)

    def _event(self, call_id: str) -> asyncio.Event:
        return self._shown.setdefault(call_id, asyncio.Event())


def say_question(question: str, *more: str) -> None:
    """A question on standard error, in its colour, and what belongs to it."""
    for text in for_stderr(question):
        click.echo(click.style(text, fg="yellow", bold=True), err=True, color=color_of(sys.stderr))
    _say(more)


def _say(lines: Iterable[str]) -> None:
    """Lines on standard error, laid out for its width."""
    for line in lines:
        for text in for_stderr(line):
            click.echo(text, err=True)


def _cut(lines: list[str]) -> list[str]:
    """As many lines as fit, the last one always: it says why this is asked."""
    laid_out = [text for line in lines for text in for_stderr(line)]
    try:
        height = os.get_terminal_size(sys.stderr.fileno()).lines
    except (OSError, ValueError):
        height = 0
    most = max(_FEWEST_LINES, (height or 40) - _ROOM)
    left_out = len(laid_out) - most
    if left_out <= 1:
        return laid_out
    return [*laid_out[: most - 1], f"  … {left_out} more lines (v shows all)", laid_out[-1]]


async def _typed(prompt: str) -> str:
    """One line. The end of input is a no; Ctrl-C stops the run."""
    try:
        return await typed_line(prompt)
    except EOFError:
        return "no"
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGINT)  # the terminal gave it to the prompt; it is meant for the run
        await asyncio.Event().wait()
        raise


async def typed_line(prompt: str) -> str:
    """One line from the keyboard. Raises `EOFError` at the end of input, and `KeyboardInterrupt` on Ctrl-C."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
    _forget_typed(session.input)
    return await session.prompt_async(prompt, handle_sigint=False)


def _forget_typed(keyboard: Input) -> None:
    """What was typed before the question was on the screen is no answer to it."""
    from prompt_toolkit.input.typeahead import clear_typeahead

    clear_typeahead(keyboard)
    with suppress(ImportError, OSError):  # no termios on Windows
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
