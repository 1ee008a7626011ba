"""Where a person types: an editable prompt with history and completion on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PROMPT = "❯ "


class Prompt(Protocol):
    """Gives the next message. Raises `EOFError` when there is no more, `KeyboardInterrupt` on Ctrl-C."""

    async def ask(self) -> str:
        """The next message."""


class Lines:
    """Messages from a pipe, a line each; a line that ends in a backslash goes on in the next."""

    async def ask(self) -> str:
        text = ""
        while line := sys.stdin.buffer.readline().decode("utf-8", "replace"):
            text += line.rstrip("\r\n")
            if not text.endswith("\\"):
                return text.removeprefix("\ufeff")
            text = text[:-1] + "\n"
        if not text:
            raise EOFError
        return text


class Terminal:
    """A line editor. Enter sends; Alt-Enter, or a backslash at the end, begins a new line."""

    def __init__(self, history_file: Path | None, words: Sequence[str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history_file)) if history_file else InMemoryHistory(),
            completer=WordCompleter(list(words), sentence=True),
            complete_while_typing=True,
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation="  ",
            reserve_space_for_menu=4,
            enable_open_in_editor=True,
        )

    async def ask(self) -> str:
        return await self._session.prompt_async([("ansicyan bold", PROMPT)], handle_sigint=False)


def _keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor(1)
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def prompt_for(history_file: Path | None, words: Sequence[str]) -> Prompt:
    """The prompt that suits standard input and output."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return Terminal(history_file, words)
    return Lines()
