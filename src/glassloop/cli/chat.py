"""A conversation in the terminal: what is kept from one question to the next, and the turns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from glassloop.agent import Agent
from glassloop.cli.asking import Asker
from glassloop.cli.chat_commands import COMMANDS, Leave, Say, SumUp, run_command
from glassloop.cli.chat_prompt import Prompt, prompt_for
from glassloop.cli.failures import ANSWERED, FAILED, exit_code_for, report
from glassloop.cli.going_on import review_lines, say_whole
from glassloop.cli.keeping import Keeping, unfinished
from glassloop.cli.options import Options, agent_of
from glassloop.cli.playing import play_run
from glassloop.cli.printing import Printer, say
from glassloop.cli.reviewing import Reviewer
from glassloop.cli.safe_text import one_line
from glassloop.cli.screen import Line, counted
from glassloop.cli.tally import Tally
from glassloop.cli.wording import program
from glassloop.config import Config, data_folder
from glassloop.core.entries import Entry, Summary, User
from glassloop.core.errors import GlassloopError
from glassloop.core.events import Event, Finished
from glassloop.core.journal import Session
from glassloop.handles import Result, Run

if TYPE_CHECKING:
    from rich.console import Console

    from glassloop.cli.surroundings import Surroundings
    from glassloop.sessions.store import Store

What = Say | SumUp | None
"""What is asked of the model; None takes up a run that broke off."""

UNFINISHED = Line("↻ the last run broke off; it goes on where it stood", "mend")


class Chat:
    """One conversation with its agent. `tally` is of this program's time, `clear` or not; `last_tally` of an answer.

    `saved`: the files that it has been written to.
    """

    def __init__(
        self,
        options: Options,
        config: Config,
        keeping: Keeping,
        session: Session | None,
        around: Surroundings,
        *,
        yes: bool,
    ) -> None:
        self._options = options
        self._config = config
        self._around = around
        self._asker = Asker(yes=yes)
        self.keeping = keeping
        self.agent = self._made()
        self.session: Session | None = None
        self.entries: tuple[Entry, ...] = ()
        self.tally = self.last_tally = Tally()
        self.shows_reasoning = False
        self.saved: set[Path] = set()
        self._had_nothing = False
        self._last: Result[str] | None = None
        if session is not None:
            self.go_on_with(session)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation in Chat Completions shape."""
        from glassloop.wire.history import messages_from_entries

        return messages_from_entries([one for one in self.entries if not isinstance(one, Summary)])

    @property
    def store(self) -> Store:
        """What can be done with the conversation. Raises `SessionError` if it is in memory alone."""
        return self.keeping.store_of(self.session)

    @property
    def unfinished(self) -> bool:
        """Has the conversation a run that broke off, or that waits?"""
        if self.session is None or not self.keeping.keeps(self.session):
            return False
        return unfinished(self.store, self.session.id)

    def go_on_with(self, session: Session) -> None:
        """From now on the conversation is this session, as it stands on disk."""
        self.entries = self.keeping.store_of(session).entries(session.id)
        self.session = session

    def use_model(self, name: str) -> None:
        """Go on with another model. Raises `ConfigError` if there is no such, and stays with the old one."""
        before = self._options, self._config
        self._options = replace(self._options, model=name, base_url=None, said_by="/model")
        try:
            self._config = self._options.config()
            self.agent = self._made()
        except GlassloopError:
            self._options, self._config = before
            raise
        self.keeping.note(self._options, self._config)

    def _made(self) -> Agent[str]:
        """The agent, with the tools that there are now."""
        asker, keeping, around = self._asker, self.keeping, self._around
        return agent_of(
            self._options, self._config, approve=asker, review=Reviewer(), keeping=keeping, around=around
        )

    def clear(self) -> None:
        """Forget what was said."""
        self.session = self._last = None
        self.entries = ()

    async def answer(self, what: What, show: Callable[[Event], None]) -> BaseException | None:
        """Ask that, and give what it failed with, if it did. The conversation goes on either way."""
        tally = Tally()

        def shown(event: Event) -> None:
            nonlocal tally
            tally = tally.saw(event)
            show(_without_text(event) if isinstance(what, SumUp) else event)
            self._asker.saw(event)

        if self._around.has_changed():
            self.agent = self._made()
        self._asker.show = show
        result, error = await play_run(self._run(what), shown)
        self._last, self.session, self.entries = result, result.session, result.entries
        self._had_nothing = isinstance(what, SumUp) and error is None and not result.text
        if not self._had_nothing:
            self.last_tally = tally.ended(result)
            self.tally = self.tally.plus(self.last_tally)
        return error

    def _run(self, what: What) -> Run[str]:
        if isinstance(what, SumUp):
            return self.agent.compact(what.session, what.hint)
        return self.agent.stream(what.message if what else None, session=self.session)

    def review(self) -> list[Line]:
        """What must be looked at before the conversation goes on."""
        if self._had_nothing:
            return [Line("There is nothing to summarise yet.", "quiet")]
        lines = review_lines(self._last, self.agent.tools.specs) if self._last else []
        if not lines or self.session is None:
            return []
        how = f"{program()} approve {self.session.id}"
        return [*lines, Line(f"  Look, then say what you found, here or with: {how}", "mend")]

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
    options: Options,
    config: Config,
    keeping: Keeping,
    session: Session | None,
    around: Surroundings,
    *,
    yes: bool,
) -> int:
    """Questions and answers until the person leaves. Piped in, the last answer decides the exit code."""
    chat = Chat(options, config, keeping, session, around, yes=yes)
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
    from glassloop.cli.chat_screen import console as standard_output
    from glassloop.cli.chat_screen import print_lines

    console = standard_output()
    print_lines(console, _greeting(chat))
    await _take_up_on(console, chat)
    interrupts = 0
    while True:
        try:
            console.print()
            text = await prompt.ask()
            interrupts = 0
            before = chat.session
            done = run_command(chat, text) if text.strip() else []
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts > 1:
                return
            print_lines(console, [Line("Ctrl-C again leaves.", "quiet")])
            continue
        except (EOFError, Leave):
            return
        if not isinstance(done, list):
            await _answer_on(console, chat, done)
            continue
        print_lines(console, done)
        if chat.session is not before:
            await _take_up_on(console, chat)


async def _take_up_on(console: Console, chat: Chat) -> None:
    from glassloop.cli.chat_screen import print_lines

    if chat.unfinished:
        print_lines(console, [UNFINISHED])
        await _answer_on(console, chat, None)


async def _answer_on(console: Console, chat: Chat, what: What) -> None:
    from glassloop.cli.chat_screen import ChatScreen, print_lines

    screen = ChatScreen(console, reasoning=chat.shows_reasoning)
    try:
        error = await chat.answer(what, screen.show)
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
            done = run_command(chat, text) if text.strip() else []
            if not isinstance(done, list):
                code = await _answer_piped(chat, done)
                before = chat.session
                continue
            for line in done:
                say(line)
    return code


async def _answer_piped(chat: Chat, what: What) -> int:
    error = await chat.answer(what, Printer(sys.stdout.isatty(), reasoning=chat.shows_reasoning).show)
    if error is not None:
        report(error)
    for line in chat.review():
        say(line)
    sys.stdout.flush()
    return FAILED if error else chat.exit_code


def _without_text(event: Event) -> Event:
    """The end of a run whose text is a summary: that is kept, and shown where one asks for the history."""
    return (
        structs.replace(event, result=structs.replace(event.result, text=""))
        if isinstance(event, Finished)
        else event
    )


def _greeting(chat: Chat) -> list[Line]:
    said = counted(sum(isinstance(one, User) for one in chat.entries), "question")
    tools = ", ".join(one_line(spec.name) for spec in chat.agent.tools.specs) or "none"
    return [
        Line(f"{one_line(chat.agent.model.name)}", "title"),
        Line(f"tools: {tools}", "quiet"),
        *([Line(f"session {chat.session.id}, {said} so far", "quiet")] if chat.session else []),
        Line("/help for commands, Ctrl-D to leave", "quiet"),
    ]
