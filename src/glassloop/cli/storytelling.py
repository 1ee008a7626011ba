"""A run told as a story: each request, each reply and each tool as it happens, in labelled paragraphs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import click

from glassloop.cli.failures import color_of
from glassloop.cli.safe_text import one_line, visible, width_of, wrapped
from glassloop.cli.screen import call_text, counted
from glassloop.cli.terminal import width_of_terminal
from glassloop.cli.wording import program
from glassloop.core.entries import Entry, Note, Reply, Summary, System, ToolResult, User
from glassloop.core.events import Event, ModelFinished, ModelStarted, ToolFinished, ToolStarted
from glassloop.core.tools import ToolSpec
from glassloop.models.model import ModelRequest

_LABEL = 11
"""Columns of the label before a paragraph."""

_NARROW = 46
"""Below this many columns a label stands on a line of its own."""

_WIDEST = 100
_COLORS = {
    "user": "blue",
    "assistant": "magenta",
    "call": "cyan",
    "tool": "green",
    "error": "red",
    "tools": "yellow",
}


class Pace(Enum):
    """How fast a story is told: seconds before a heading, and between words."""

    NONE = (0.0, 0.0)
    READING = (0.7, 0.04)


@dataclass(slots=True)
class Story:
    """Tells the events of a run whose model plays a script; `requests` fills with what that model is asked."""

    requests: Sequence[ModelRequest]
    specs: Sequence[ToolSpec]
    pace: Pace
    _width: int = field(default_factory=lambda: min(_WIDEST, width_of_terminal(sys.stdout)))
    _number: int = 0
    _calls: int = 0
    _running: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """The title."""
        self._paragraph("agent = model + tools + loop", bold=True)
        words = "This model plays a script, so no key is needed. The loop and the tools are real."
        self._paragraph(words, dim=True)

    async def show(self, event: Event) -> None:
        """Tell one event."""
        match event:
            case ModelStarted():
                self._number = event.round
            case ModelFinished():
                await self._request()
                await self._reply(event.reply)
            case ToolStarted():
                await self._start(event)
            case ToolFinished():
                self._finish(event)

    def end(self, result: Any) -> None:
        """What it was, and what comes next."""
        self._line()
        facts = (
            f"{counted(result.rounds, 'request')}, {result.seconds:.1f} s. You saw every message there is."
        )
        self._paragraph(facts, dim=True)
        self._line()
        commands = {
            'run "…"': "ask a real model once",
            "chat": "talk with one",
            "tools": "what it can be given",
        }
        columns = len(program()) + 10
        for command, what in commands.items():
            self._labelled(f"{program()} {command}", what, "cyan", columns=columns)

    async def _request(self) -> None:
        """The request that the model was sent: what is new in it in full, the rest counted."""
        await self._heading(f"request {self._number}", "to the model")
        requests = self.requests[: self._number]  # the run may be further on than the story
        before = len(requests[-2].entries) if len(requests) > 1 else 0
        if before:
            self._paragraph(f"({counted(before, 'message')} as before)", dim=True, indent=2)
        for entry in requests[-1].entries[before:]:
            self._entry(entry)
        if not before:
            self._labelled("tools", " · ".join(_signature(spec) for spec in self.specs))

    def _entry(self, entry: Entry) -> None:
        match entry:
            case Reply():
                calls = ", ".join(one_line(call.name) for call in entry.tool_calls)
                self._labelled("assistant", one_line(entry.text) + (f" [calls {calls}]" if calls else ""))
            case ToolResult():
                self._labelled("tool", entry.text, "red" if entry.state != "ok" else None)
            case User():
                self._labelled("user", entry.text)
            case System() | Note() | Summary():
                self._labelled("system", entry.text)

    async def _reply(self, reply: Reply) -> None:
        await self._heading(f"reply {self._number}", "from the model")
        self._calls = len(reply.tool_calls)
        if reply.text:
            await self._spoken("assistant", visible(reply.text))
        for call in reply.tool_calls:
            self._labelled("call", call_text(call.name, call.arguments))

    async def _start(self, event: ToolStarted) -> None:
        if not self._running:
            await self._heading("tools", "run here, at once" if self._calls > 1 else "run here")
        self._running.add(event.call.id)
        self._labelled("start", call_text(event.call.name, event.arguments), "cyan")

    def _finish(self, event: ToolFinished) -> None:
        self._running.discard(event.call.id)
        result = event.result
        label, color = ("result", "green") if result.state == "ok" else ("error", "red")
        self._labelled(label, f"{one_line(result.text)}  ({event.call.name}, {result.seconds:.2f} s)", color)

    # ── Writing ──────────────────────────────────────────────────────────

    async def _heading(self, title: str, what: str) -> None:
        await asyncio.sleep(self.pace.value[0])
        self._line()
        head, tail = f"━━ {title} ", f" {what}" if self._width >= _NARROW else ""
        rule = "━" * max(0, self._width - width_of(head) - width_of(tail))
        self._line(click.style(head, bold=True) + click.style(rule + tail, dim=True))

    async def _spoken(self, label: str, text: str) -> None:
        """A paragraph that comes word by word."""
        lines = self._laid_out(label, text, _LABEL)
        color = _COLORS.get(label)
        for head, body in lines:
            self._write(click.style(head, fg=color))
            for at, word in enumerate(body.split(" ")):
                self._write(f" {word}" if at else word)
                await asyncio.sleep(self.pace.value[1])
            self._line()

    def _labelled(self, label: str, text: str, color: str | None = None, *, columns: int = _LABEL) -> None:
        for head, body in self._laid_out(label, visible(text), columns):
            self._line(click.style(head, fg=color or _COLORS.get(label)) + body)

    def _laid_out(self, label: str, text: str, columns: int) -> Iterable[tuple[str, str]]:
        """The lines of a labelled paragraph, each as its margin and its text."""
        if self._width < _NARROW:
            heads = [(f"  {line}", "") for line in wrapped(label, self._width - 2)]
            return heads + [("  ", line) for line in wrapped(text, self._width - 2)]
        lines = wrapped(text, self._width - columns - 2)
        return [
            (f"  {label:<{columns}}" if at == 0 else " " * (columns + 2), line)
            for at, line in enumerate(lines)
        ]

    def _paragraph(self, text: str, *, indent: int = 0, **style: bool) -> None:
        for line in wrapped(text, self._width - indent):
            self._line(" " * indent + click.style(line, **style))

    def _line(self, text: str = "") -> None:
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        click.echo(text, nl=False, color=color_of(sys.stdout))
        sys.stdout.flush()


def _signature(spec: ToolSpec) -> str:
    return f"{one_line(spec.name)}({', '.join(one_line(name) for name in spec.parameters.get('properties', {}))})"
