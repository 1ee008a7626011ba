"""A chat on a terminal: the answer as Markdown while it streams, and the lines of everything else between."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from rich.theme import Theme

from glassloop.cli.asking import ASK_USER
from glassloop.cli.markdown import Block, blocks_of
from glassloop.cli.safe_text import SafeStream, laid_out, one_line, shortened, visible, width_of
from glassloop.cli.screen import Line, Screen, Style
from glassloop.core.events import (
    ApprovalAsked,
    Event,
    Finished,
    Learned,
    ModelStarted,
    ReasoningDelta,
    Retrying,
    ReviewAsked,
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
    """Shows the events of one answer. `close()` it when the answer is over, whatever it ended with.

    `reasoning`: the model's reasoning is printed, dimmed; else only its newest words are seen while it thinks.
    """

    def __init__(self, console: Console, *, reasoning: bool = False) -> None:
        self._console = console
        self._reasoning = reasoning
        self._thinking = ""
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
                self._end_thinking()
                self._text += self._safe.feed(event.text)
                self._print_finished()
                self._draw()
                return
            case ReasoningDelta():
                self._thought = (self._thought + event.text)[-_THOUGHT:]
                self._think(event.text)
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

    def _think(self, text: str) -> None:
        """Print the lines of the reasoning that are complete."""
        if self._reasoning:
            *lines, self._thinking = (self._thinking + text).split("\n")
            self._print_thought(lines)

    def _end_thinking(self) -> None:
        self._print_thought([self._thinking])
        self._thought = self._thinking = ""

    def _print_thought(self, lines: Sequence[str]) -> None:
        shown = [visible(line) for line in lines if line.strip()]
        if shown:
            self._stop()
        for line in shown:
            self._console.print(Text(line, "dim italic"))

    def _settle(self) -> None:
        """What is being drawn is complete: print it for good."""
        self._end_thinking()
        blocks, rest = blocks_of(self._text + self._safe.end() + "\n")
        self._print([*blocks, rest])
        self._text = ""

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
            case ToolStarted() if event.call.name == ASK_USER:
                return  # the terminal is the question's now
            case ToolStarted():
                self._status = f"{one_line(event.call.name)} is running"
            case ApprovalAsked() | ReviewAsked() | Finished():
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


def console() -> Console:
    """Standard output, as answers are shown on it."""
    return Console(highlight=False, theme=Theme({"markdown.code": "cyan"}))


def _end_of(text: str, columns: int) -> str:
    """The end of a line, as much as fits."""
    while width_of(text) > columns:
        text = text[max(1, (width_of(text) - columns) // 2) :]
    return text


def print_lines(console: Console, lines: list[Line]) -> None:
    """Lines outside of an answer."""
    for line in lines:
        for text in laid_out(line.text, console.width):
            console.print(Text(text, STYLES[line.style]), soft_wrap=True)
