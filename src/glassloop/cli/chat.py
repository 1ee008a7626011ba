"""A conversation in the terminal: what is kept from one question to the next, and the turns."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from glassloop.agent import Agent
from glassloop.cli.asking import Asker
from glassloop.cli.chat_commands import COMMANDS, Leave, run_command
from glassloop.cli.chat_prompt import Prompt, prompt_for
from glassloop.cli.failures import ANSWERED, FAILED, exit_code_for, report
from glassloop.cli.going_on import review_lines, say_whole
from glassloop.cli.keeping import Keeping, unfinished
from glassloop.cli.options import Options, agent_of
from glassloop.cli.playing import play
from glassloop.cli.printing import Printer, say
from glassloop.cli.safe_text import one_line
from glassloop.cli.screen import Line, counted
from glassloop.cli.wording import program
from glassloop.config import Config, data_folder
from glassloop.core.entries import Entry, Usage, User
from glassloop.core.errors import GlassloopError
from glassloop.core.events import Event
from glassloop.core.journal import Session
from glassloop.handles import Result

if TYPE_CHECKING:
    from rich.console import Console

    from glassloop.sessions.store import Store

UNFINISHED = Line("↻ the last run broke off; it goes on where it stood", "mend")


class Chat:
    """One conversation with its agent. `usage`, `cost` and `rounds` are of this program's time, `clear` or not."""

    def __init__(
        self, options: Options, config: Config, keeping: Keeping, session: Session | None, *, yes: bool
    ) -> None:
        self._options = options
        self._asker = Asker(yes=yes)
        self.keeping = keeping
        self.agent: Agent[str] = agent_of(options, config, approve=self._asker, keeping=keeping)
        self.session: Session | None = None
        self.entries: tuple[Entry, ...] = ()
        self.usage = Usage()
        self.cost: float | None = 0.0
        self.rounds = 0
        self._last: Result[str] | None = None
        if session is not None:
            self.go_on_with(session)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation in Chat Completions shape."""
        from glassloop.wire.history import messages_from_entries

        return messages_from_entries(self.entries)

    @property
    def store(self) -> Store:
        """What can be done with the conversation. Raises `SessionError` if it is in memory alone."""
        return self.keeping.store_of(self.session)

    @property
    def unfinished(self) -> bool:
        """Has the conversation a run that broke off, or that waits?"""
        return self.keeping.keeps(self.session) and unfinished(self.keeping.store, self.session)

    def go_on_with(self, session: Session) -> None:
        """From now on the conversation is this session, as it stands on disk."""
        self.entries = self.keeping.store_of(session).entries(session.id)
        self.session = session

    def use_model(self, name: str) -> None:
        """Go on with another model. Raises `ConfigError` if there is no such, and stays with the old one."""
        options = dataclasses.replace(self._options, model=name, base_url=None)
        self.agent = agent_of(options, options.config(), approve=self._asker, keeping=self.keeping)
        self._options = options

    def clear(self) -> None:
        """Forget what was said."""
        self.session = self._last = None
        self.entries = ()

    async def answer(self, text: str | None, show: Callable[[Event], None]) -> BaseException | None:
        """One question; None takes up a run that broke off. Gives what it failed with, if it did.

        The conversation goes on either way.
        """

        def shown(event: Event) -> None:
            show(event)
            self._asker.saw(event)

        result, error = await play(self.agent, text, shown, session=self.session)
        self._last, self.session, self.entries = result, result.session, result.entries
        self.usage += result.usage
        self.rounds += result.rounds
        self.cost = None if self.cost is None or result.cost is None else self.cost + result.cost
        return error

    def review(self) -> list[Line]:
        """What must be looked at before the conversation goes on."""
        lines = review_lines(self._last, self.agent.tools.specs) if self._last else []
        return [*lines, Line("  Look, then say what you found.", "mend")] if lines else []

    def farewell(self) -> list[Line]:
        """How to come back to this conversation, if it is kept."""
        if self.session is None or not self.entries or not self.keeping.keeps(self.session):
            return []
        return [Line(f"· to go on: {program()} chat -r {self.session.id}{self._options.spelled()}", "quiet")]

    @property
    def exit_code(self) -> int:
        """How the last answer ended."""
        return exit_code_for(self._last.stop_reason) if self._last else ANSWERED


async def talk(
    options: Options, config: Config, keeping: Keeping, session: Session | None, *, yes: bool
) -> int:
    """Questions and answers until the person leaves. Piped in, the last answer decides the exit code."""
    chat = Chat(options, config, keeping, session, yes=yes)
    words = [f"/{name}" for name, (_, what) in COMMANDS.items() if what]
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    prompt = prompt_for(_history_file() if on_terminal else None, words)
    try:
        if on_terminal:
            await _on_terminal(chat, prompt)
            return ANSWERED
        return await _piped(chat, prompt)
    finally:
        say_whole(chat.farewell())
        await chat.agent.model.close()


def _history_file() -> Any:
    """Where typed lines are kept; without a folder to write to, they are not."""
    with suppress(OSError):
        return data_folder() / "chat_history"
    return None


async def _on_terminal(chat: Chat, prompt: Prompt) -> None:
    from rich.console import Console
    from rich.theme import Theme

    from glassloop.cli.chat_screen import print_lines

    console = Console(highlight=False, theme=Theme({"markdown.code": "cyan"}))
    print_lines(console, _greeting(chat))
    await _take_up_on(console, chat)
    interrupts = 0
    while True:
        try:
            console.print()
            text = await prompt.ask()
            interrupts = 0
            before = chat.session
            lines = run_command(chat, text) if text.strip() else []
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts > 1:
                return
            print_lines(console, [Line("Ctrl-C again leaves.", "quiet")])
            continue
        except (EOFError, Leave):
            return
        print_lines(console, lines or [])
        if lines is None:
            await _answer_on(console, chat, text)
        elif chat.session is not before:
            await _take_up_on(console, chat)


async def _take_up_on(console: Console, chat: Chat) -> None:
    from glassloop.cli.chat_screen import print_lines

    if chat.unfinished:
        print_lines(console, [UNFINISHED])
        await _answer_on(console, chat, None)


async def _answer_on(console: Console, chat: Chat, text: str | None) -> None:
    from glassloop.cli.chat_screen import ChatScreen, print_lines

    screen = ChatScreen(console)
    try:
        error = await chat.answer(text, screen.show)
    except GlassloopError as raised:
        error = raised
    finally:
        screen.close()
    if error is not None:
        report(error)
    print_lines(console, chat.review())


async def _piped(chat: Chat, prompt: Prompt) -> int:
    code = ANSWERED
    before = None
    with suppress(EOFError, Leave):
        while True:
            if chat.session is not before and chat.unfinished:
                say(UNFINISHED)
                code = await _answer_piped(chat, None)
            text = await prompt.ask()
            before = chat.session
            lines = run_command(chat, text) if text.strip() else []
            for line in lines or ():
                say(line)
            if lines is None:
                code = await _answer_piped(chat, text)
                before = chat.session
    return code


async def _answer_piped(chat: Chat, text: str | None) -> int:
    error = await chat.answer(text, Printer(live=sys.stdout.isatty()).show)
    if error is not None:
        report(error)
    for line in chat.review():
        say(line)
    sys.stdout.flush()
    return FAILED if error else chat.exit_code


def _greeting(chat: Chat) -> list[Line]:
    said = counted(sum(isinstance(one, User) for one in chat.entries), "question")
    tools = ", ".join(one_line(spec.name) for spec in chat.agent.tools.specs) or "none"
    return [
        Line(f"{one_line(chat.agent.model.name)}", "title"),
        Line(f"tools: {tools}", "quiet"),
        *([Line(f"session {chat.session.id}, {said} so far", "quiet")] if chat.session else []),
        Line("/help for commands, Ctrl-D to leave", "quiet"),
    ]
