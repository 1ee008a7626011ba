"""Where a run's events go when a question is asked once: the answer to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import click

from glassloop.cli.events_json import json_line
from glassloop.cli.failures import color_of
from glassloop.cli.safe_text import SafeStream, one_line, visible
from glassloop.cli.screen import Line, Screen, Style
from glassloop.cli.terminal import for_stderr, width_of_terminal
from glassloop.config import Config
from glassloop.core.entries import Reply
from glassloop.core.events import (
    Event,
    Finished,
    Learned,
    Mended,
    ModelFinished,
    ReasoningDelta,
    Retrying,
    Switched,
    TextDelta,
    Warned,
)

__all__ = ["JsonPrinter", "Printer", "announce", "painted", "say", "say_skipped", "width_of_terminal"]

_COLORS: dict[Style, dict[str, Any]] = {
    "plain": {},
    "quiet": {"dim": True},
    "call": {"fg": "cyan"},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "mend": {"fg": "yellow"},
    "title": {"bold": True},
}


def painted(text: str, style: Style) -> str:
    """Text in the colours of a style; `click.echo` takes them out again where no colour is wanted."""
    return click.style(text, **_COLORS[style])


def say(line: Line) -> None:
    """Write a line to stderr, wrapped if a terminal is too narrow for it."""
    for text in for_stderr(line.text):
        click.echo(painted(text, line.style), err=True, color=color_of(sys.stderr))


def announce(config: Config, *, verbose: bool = False) -> None:
    """Say what of the configuration was left out, and with `verbose` where each value comes from."""
    for warning in config.warnings:
        say(Line(f"! {visible(warning)}", "mend"))
    for name, source in config.sources.items() if verbose else ():
        say(Line(f"· {name}: {visible(source)}", "quiet"))


def say_skipped(skipped: Mapping[str, str]) -> None:
    """Say which public functions of a tool file are no tools, and why."""
    for name, reason in skipped.items():
        say(Line(f"· {one_line(name)} is no tool: {reason}", "quiet"))


class JsonPrinter:
    """Every event as one JSON line on stdout."""

    def show(self, event: Event) -> None:
        """Write the event and let it go at once, so that a reader sees it as it happens."""
        print(json_line(event), flush=True)

    def close(self) -> None:
        """Nothing is held back."""


@dataclass(slots=True)
class Printer:
    """The answer on stdout, the rest on stderr. `live`: show the answer's text as it comes.

    Not `live`, only the final text is written, once it is complete. `reasoning`: show that too, in any case.
    """

    live: bool
    reasoning: bool = False
    screen: Screen = field(
        default_factory=lambda: Screen(width_of_terminal(sys.stderr), wraps=sys.stderr.isatty())
    )
    _stream: SafeStream = field(default_factory=SafeStream)
    _open: IO[str] | None = None
    _shown: str = ""

    def show(self, event: Event) -> None:
        """Show one event."""
        match event:
            case TextDelta() if self.live:
                self._more(event.text, sys.stdout)
                return
            case ReasoningDelta() if self.live or self.reasoning:
                self._more(event.text, sys.stderr)
                return
            case TextDelta() | ReasoningDelta():
                return
        self._close()
        if isinstance(event, Retrying | Learned | Switched) and event.discard and self._shown:
            say(Line("↻ the text above is taken back: the reply broke off", "mend"))
        if isinstance(event, Finished):
            self._answer(event)
        for line in self.screen.lines(event):
            say(line)
        if not isinstance(event, Finished):
            self._shown = self._shown if _keeps_text(event) else ""

    def close(self) -> None:
        """End what is still being shown."""
        self._close()

    def _more(self, text: str, where: IO[str]) -> None:
        if self._open is not where:
            self._close()
            self._open = where
        self._write(self._stream.feed(text))

    def _write(self, text: str) -> None:
        if self._open is None or not text:
            return
        if self._open is sys.stdout:
            self._shown += text
        dim = self._open is sys.stderr
        click.echo(
            click.style(text, dim=True) if dim else text, nl=False, err=dim, color=color_of(self._open)
        )

    def _close(self) -> None:
        """End the text that is being shown, so that what follows begins on a line of its own."""
        if self._open is None:
            return
        self._write(self._stream.end())
        click.echo(err=self._open is sys.stderr)
        self._open = None

    def _answer(self, event: Finished) -> None:
        """The final text, unless it has just been shown word by word."""
        text = visible(event.result.text) if event.result is not None else ""
        if not text or text.strip() == self._shown.strip():
            return
        if event.error is not None:
            say(Line(_LAST_WORDS if _is_whole(event.result) else _BROKE_OFF, "mend"))
            click.echo(text, err=True)
            return
        click.echo(text)


_BROKE_OFF = "The reply broke off. What had arrived of it:"
_LAST_WORDS = "The last that the model had said:"


def _is_whole(result: Any) -> bool:
    """Is the text of a run that failed that of a whole reply? What broke off is no part of the conversation."""
    return any(isinstance(one, Reply) and one.text == result.text for one in result.entries)


def _keeps_text(event: Event) -> bool:
    """Whether the text shown so far may still be the final one after this event."""
    return isinstance(event, ModelFinished | Mended | Warned)
