"""A conversation in the terminal: what is kept from one question to the next, and the turns."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from glassloop.agent import Agent
from glassloop.cli.asking import Asker
from glassloop.cli.chat_commands import COMMANDS, Leave, run_command
from glassloop.cli.chat_prompt import Prompt, prompt_for
from glassloop.cli.failures import ANSWERED, FAILED, exit_code_for, report
from glassloop.cli.options import Options, agent_of
from glassloop.cli.playing import play
from glassloop.cli.printing import Printer, say
from glassloop.cli.safe_text import one_line
from glassloop.cli.screen import Line
from glassloop.config import Config, data_folder
from glassloop.core.entries import Entry, Usage
from glassloop.core.errors import GlassloopError
from glassloop.core.events import Event
from glassloop.core.journal import Session
from glassloop.handles import Result


class Chat:
    """One conversation with its agent. `usage`, `cost` and `rounds` are of the whole chat, `clear` or not."""

    def __init__(self, options: Options, config: Config, *, yes: bool) -> None:
        self._options = options
        self._asker = Asker(yes=yes)
        self.agent: Agent[str] = agent_of(options, config, approve=self._asker)
        self.session: Session | None = None
        self.usage = Usage()
        self.cost: float | None = 0.0
        self.rounds = 0
        self._last: Result[str] | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The conversation so far."""
        return self._last.entries if self._last else ()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation in Chat Completions shape."""
        return self._last.messages if self._last else []

    def use_model(self, name: str) -> None:
        """Go on with another model. Raises `ConfigError` if there is no such, and stays with the old one."""
        options = dataclasses.replace(self._options, model=name, base_url=None)
        self.agent = agent_of(options, options.config(), approve=self._asker)
        self._options = options

    def clear(self) -> None:
        """Forget what was said."""
        self.session = self._last = None

    async def answer(self, text: str, show: Callable[[Event], None]) -> BaseException | None:
        """One question. Gives what it failed with, if it did; the conversation goes on either way."""

        def shown(event: Event) -> None:
            show(event)
            self._asker.saw(event)

        result, error = await play(self.agent, text, shown, session=self.session)
        self._last, self.session = result, result.session
        self.usage += result.usage
        self.rounds += result.rounds
        self.cost = None if self.cost is None or result.cost is None else self.cost + result.cost
        return error

    @property
    def exit_code(self) -> int:
        """How the last answer ended."""
        return exit_code_for(self._last.stop_reason) if self._last else ANSWERED


async def talk(options: Options, config: Config, *, yes: bool) -> int:
    """Questions and answers until the person leaves. Piped in, the last answer decides the exit code."""
    chat = Chat(options, config, yes=yes)
    words = [f"/{name}" for name, (_, what) in COMMANDS.items() if what]
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    prompt = prompt_for(_history_file() if on_terminal else None, words)
    try:
        if on_terminal:
            await _on_terminal(chat, prompt)
            return ANSWERED
        return await _piped(chat, prompt)
    finally:
        await chat.agent.model.close()


def _history_file() -> Any:
    """Where typed lines are kept; without a folder to write to, they are not."""
    with suppress(OSError):
        return data_folder() / "chat_history"
    return None


async def _on_terminal(chat: Chat, prompt: Prompt) -> None:
    from rich.console import Console
    from rich.theme import Theme

    from glassloop.cli.chat_screen import ChatScreen, print_lines

    console = Console(highlight=False, theme=Theme({"markdown.code": "cyan"}))
    print_lines(console, _greeting(chat))
    interrupts = 0
    while True:
        try:
            console.print()
            text = await prompt.ask()
            interrupts = 0
            lines = run_command(chat, text) if text.strip() else []
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts > 1:
                return
            print_lines(console, [Line("Ctrl-C again leaves.", "quiet")])
            continue
        except (EOFError, Leave):
            return
        if lines is not None:
            print_lines(console, lines)
            continue
        screen = ChatScreen(console)
        try:
            error = await chat.answer(text, screen.show)
        except GlassloopError as raised:
            error = raised
        finally:
            screen.close()
        if error is not None:
            report(error)


async def _piped(chat: Chat, prompt: Prompt) -> int:
    code = ANSWERED
    with suppress(EOFError, Leave):
        while True:
            text = await prompt.ask()
            lines = run_command(chat, text) if text.strip() else []
            if lines is not None:
                for line in lines:
                    say(line)
                continue
            error = await chat.answer(text, Printer(live=sys.stdout.isatty()).show)
            code = FAILED if error else chat.exit_code
            if error is not None:
                report(error)
            sys.stdout.flush()
    return code


def _greeting(chat: Chat) -> list[Line]:
    tools = ", ".join(one_line(spec.name) for spec in chat.agent.tools.specs) or "none"
    return [
        Line(f"{one_line(chat.agent.model.name)}", "title"),
        Line(f"tools: {tools}", "quiet"),
        Line("/help for commands, Ctrl-D to leave", "quiet"),
    ]
