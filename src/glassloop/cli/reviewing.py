"""Asking a person what became of a tool call that was started before the program died."""

from __future__ import annotations

import asyncio
import sys

from glassloop.cli.asking import PROMPT, say_question, typed_line
from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line, shortened, visible
from glassloop.cli.screen import Line, call_text
from glassloop.core.resolving import Answer, Done, GiveUp, Retry, Unknown

BY = "the terminal"


class Reviewer:
    """Asks at the terminal; where there is none, nobody can say now, and the run waits for `glassloop approve`."""

    async def __call__(self, unknown: Unknown) -> Answer | None:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        await asyncio.sleep(0)  # what is on the screen is finished before the question is put
        say_what_is_unknown(unknown)
        say_choices(repeatable=unknown.repeatable)
        said = await _typed()
        while not is_later(said):
            answer = answer_from(said, BY, repeatable=unknown.repeatable)
            if answer is not None:
                return answer
            say_no_answer(said)
            said = await _typed()
        return None


def say_what_is_unknown(unknown: Unknown) -> None:
    """The call with all its arguments, and what kept its tool from finding out."""
    tries = f", for the {unknown.attempt}. time" if unknown.attempt > 1 else ""
    say_question(
        f"? This was started before the interruption{tries}, and nobody knows whether it took effect:",
        f"  {call_text(unknown.call.name, unknown.arguments)}",
        *([f"  {visible(unknown.why)}"] if unknown.why else []),
    )


def say_choices(*, repeatable: bool) -> None:
    """What may be answered, a line each."""
    for word, meaning in _CHOICES.items():
        if repeatable or word != "retry":
            say(Line(f"  {word:<11}  {meaning}"))


_CHOICES = {
    "done RESULT": "it took effect, and this is its result",
    "retry": "it did not: run it again",
    "give up": "nobody knows: the model is told so",
    "later": "leave the run as it is; so does Ctrl-C",
}


def is_later(said: str) -> bool:
    """Is it not to be decided now?"""
    return said.strip().lower() in ("", "l", "later")


def say_no_answer(said: str) -> None:
    """What was typed is none of the choices."""
    say(Line(f"  That is no answer: “{shortened(one_line(said.strip()), 40)}”"))


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


async def _typed() -> str:
    """One line; nothing at the end of input and on Ctrl-C: whoever leaves has decided nothing."""
    try:
        return await typed_line(PROMPT)
    except (EOFError, KeyboardInterrupt):
        return ""
