"""A chat on a terminal: the answer as Markdown while it streams, and the lines of everything else between."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from glassloop.cli.markdown import Block, blocks_of
from glassloop.cli.safe_text import SafeStream, one_line, shortened, width_of
from glassloop.cli.screen import Line, Screen, Style
from glassloop.core.events import (
    ApprovalAsked,
    Event,
    Finished,
    Learned,
    ModelStarted,
    ReasoningDelta,
    Retrying,
    Switched,
    TextDelta,
    ToolStarted,
)

STYLES: dict[Style, str] = {
    "plain": "",
    "quiet": "dim",
    "call": "cyan",
    "good": "green",
    "bad": "red",
    "mend": "yellow",
    "title": "bold",
}
_THOUGHT = 400
"""Characters of the newest reasoning that are kept to show its end."""


class ChatScreen:
    """Shows the events of one answer. `close()` it when the answer is over, whatever it ended with."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._screen = Screen(console.width)
        self._safe = SafeStream()
        self._text = ""
        self._thought = ""
        self._printed = False
        self._live: Live | None = None
        self._status = ""

    def show(self, event: Event) -> None:
        """Show one event."""
        match event:
            case TextDelta():
                self._thought = ""
                self._text += self._safe.feed(event.text)
                self._print_finished()
                self._draw()
                return
            case ReasoningDelta():
                self._thought = (self._thought + event.text)[-_THOUGHT:]
                self._draw()
                return
            case Retrying() | Learned() | Switched() if event.discard:
                self._take_back()
            case Finished() if event.result is not None and not self._printed and not self._text:
                self._text = self._safe.feed(event.result.text) if event.error is None else ""
        self._settle()
        for line in self._screen.lines(event):
            self._console.print(Text(line.text, STYLES[line.style]), soft_wrap=True)
        self._wait_for(event)

    def close(self) -> None:
        """Print what is still being drawn and leave the terminal as it was."""
        self._settle()
        self._stop()

    # ── Text ─────────────────────────────────────────────────────────────

    def _print_finished(self) -> None:
        blocks, rest = blocks_of(self._text)
        if blocks:
            self._print(blocks)
            self._text = rest

    def _print(self, blocks: Sequence[str]) -> None:
        self._stop()
        for block in blocks:
            if block.strip():
                self._console.print()
                self._console.print(Block(block))
                self._printed = True

    def _settle(self) -> None:
        """What is being drawn is complete: print it for good."""
        blocks, rest = blocks_of(self._text + self._safe.end() + "\n")
        self._print([*blocks, rest])
        self._text = self._thought = ""

    def _take_back(self) -> None:
        self._safe.end()
        if self._printed:
            self._console.print(Text("↻ the text above is taken back: the reply broke off", "yellow"))
        self._text, self._printed = "", False

    def _wait_for(self, event: Event) -> None:
        """What goes on until the next event."""
        match event:
            case ModelStarted():
                self._printed = False
                self._status = "thinking"
            case ToolStarted():
                self._status = f"{one_line(event.call.name)} is running"
            case ApprovalAsked() | Finished():
                return
        self._draw()

    # ── The part that is redrawn ─────────────────────────────────────────

    def _draw(self) -> None:
        if self._live is None:
            self._live = Live(
                console=self._console, transient=True, refresh_per_second=10, get_renderable=self._growing
            )
            self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _growing(self) -> RenderableType:
        """Called by the redrawing thread: only reads."""
        text, thought = self._text, self._thought
        if text.strip():
            return Group(Text(), Block(text, most=max(1, self._console.height - 3)))
        room = max(4, self._console.width - 4)
        words = _end_of(one_line(thought), room) if thought.strip() else f"{self._status}…"
        return Spinner("dots", Text(shortened(words, room), "dim"))


def _end_of(text: str, columns: int) -> str:
    """The end of a line, as much as fits."""
    while width_of(text) > columns:
        text = text[max(1, (width_of(text) - columns) // 2) :]
    return text


def print_lines(console: Console, lines: list[Line]) -> None:
    """Lines outside of an answer."""
    for line in lines:
        console.print(Text(line.text, STYLES[line.style]))
