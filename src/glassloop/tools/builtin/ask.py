"""The `ask_user` tool: a question of the model to the person it works for. How it is asked is the caller's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from glassloop.tools.tool import Tool, tool

MAX_QUESTION = 2_000
MAX_CHOICES = 10
MAX_CHOICE = 200

Ask = Callable[[str, tuple[str, ...]], str | Awaitable[str]]
"""Asks the question and returns the answer, in the person's words. The choices are offers, not a limit; there
may be none. A plain function is called in a thread of its own and may wait as long as it takes."""


class NobodyToAsk(Exception):
    """No person can answer here."""


def ask_tool(ask: Ask | None) -> Tool:
    """The `ask_user` tool, which asks by `ask`; without one (None) it says that nobody can be asked.

    It never times out, and is not itself asked about.
    """

    @tool(effect="read", approve=False, timeout=None, sequential=True)
    def ask_user(question: str, choices: list[str] | None = None) -> Any:
        """Ask the user something and wait for the answer. Use it when you need a decision or a fact that only the
        user has; find out yourself what you can.

        Args:
            question: One clear question, with what the user needs to know to answer it.
            choices: A few likely answers to choose from, if there are any. The user may also say something else.
        """
        offered = _checked(question, choices or [])
        if ask is None:
            raise NobodyToAsk("nobody can be asked here. Decide by what you know, and say what you assumed")
        answer = ask(question.strip(), offered)
        return _told(answer) if isinstance(answer, str) else _told_later(answer)

    return ask_user


def from_options(options: Mapping[str, str]) -> Tool:
    """The tool where no screen has put itself behind it: nobody can be asked. It has no options."""
    return ask_tool(None)


def _told(answer: str) -> str:
    return f"The user answered: {answer.strip()}" if answer.strip() else "The user gave no answer."


async def _told_later(answer: Awaitable[str]) -> str:
    return _told(await answer)


def _checked(question: str, choices: list[str]) -> tuple[str, ...]:
    if not question.strip() or len(question) > MAX_QUESTION:
        raise ValueError(f"the question has {len(question)} characters; give 1 to {MAX_QUESTION}")
    offered = tuple(dict.fromkeys(" ".join(choice.split()) for choice in choices))
    if len(offered) > MAX_CHOICES:
        raise ValueError(f"there are {len(offered)} choices, at most {MAX_CHOICES}; offer the likeliest")
    if any(not choice or len(choice) > MAX_CHOICE for choice in offered):
        raise ValueError(f"each choice must have 1 to {MAX_CHOICE} characters")
    return offered
