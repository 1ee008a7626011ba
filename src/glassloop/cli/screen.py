"""What a run looks like, drawn from its events alone. Pure: events in, lines out; printing is done elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from glassloop.cli.safe_text import one_line, shortened, visible, width_of, wrapped
from glassloop.cli.wording import in_terminal_words
from glassloop.core.entries import Mend, ToolCall, ToolResult, Usage, User
from glassloop.core.events import (
    Compacted,
    Event,
    Finished,
    Learned,
    Mended,
    ModelFinished,
    ModelGaveUp,
    ModelStarted,
    Noted,
    Received,
    Retrying,
    Switched,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Warned,
)

Style = Literal["plain", "quiet", "call", "good", "bad", "mend", "title"]

_ENDS: Mapping[str, str] = {
    "rounds": "the limit of rounds is reached",
    "calls": "the limit of tool calls is reached",
    "tokens": "the limit of tokens is reached",
    "cost": "the limit of cost is reached",
    "seconds": "the limit of time is reached",
    "repeated_calls": "the model kept repeating the same call",
    "cancelled": "interrupted",
    "waiting_approval": "a call waits for approval",
    "needs_review": "a call may or may not have taken effect; look before going on",
}
"""Ends that are neither an answer nor an error."""

_GOES_ON: Mapping[str, str] = {
    "turn": "asking again",
    "final": "asking for a last answer",
    "summary": "asking for a summary of the older turns, to send less",
}
"""What is done after a model gave no reply."""

LONGEST = 500
"""Columns of a message that wraps."""

_HANG = "  "
"""Before the further lines of a message that wraps."""

RESULT_LINES = 3
"""Lines of a tool's result that are shown; the model gets all of it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line for the terminal: safe to print, and how it is meant."""

    text: str
    style: Style = "plain"


@dataclass(slots=True)
class Screen:
    """Turns the events of runs into lines for a terminal of `width` columns. Keeps only what a later line needs.

    `wraps`: notices are broken into lines of that width; else each is one line, for a file or a pipe. `before`: the
    rounds that a conversation had already, where they are counted on.
    """

    width: int = 80
    wraps: bool = True
    before: int = 0
    _round: int = 0
    _purpose: str = "turn"
    _asked: int = 0
    _calls: int = 0
    _running: set[str] = field(default_factory=set)
    _gave_up: list[Line] = field(default_factory=list)

    def lines(self, event: Event) -> list[Line]:
        """The lines that say what just happened; none for what is shown in another way (the answer's text)."""
        return [line for drawn in self._drawn(event) for line in self._laid_out(drawn)]

    def _laid_out(self, line: Line) -> list[Line]:
        """Calls and results are cut to a line; what a person may have to act on may wrap."""
        if line.style in ("call", "good"):
            return [Line(shortened(line.text, self.width), line.style)]
        text = shortened(line.text, max(self.width, LONGEST))
        if not self.wraps or width_of(text) <= self.width:
            return [Line(text, line.style)]
        first, *others = wrapped(text, self.width - len(_HANG))
        return [Line(first, line.style), *(Line(_HANG + more, line.style) for more in others)]

    def _drawn(self, event: Event) -> Iterable[Line]:
        match event:
            case ModelStarted():
                gave_up, self._gave_up = self._gave_up, []
                if gave_up:
                    gave_up.append(Line(f"↻ {_GOES_ON[event.purpose]}", "mend"))
                self._round, self._purpose = event.round + self.before, event.purpose
                self._asked += 1
                return gave_up
            case ModelFinished():
                return [self._after_reply(event)]
            case ModelGaveUp():
                # If the run ends with this, its error says so; if the run goes on, the next round does.
                self._gave_up = [Line(f"✗ no reply: {_told(event.message)}", "bad")]
                return ()
            case ToolStarted():
                self._running.add(event.call.id)
                return [Line(f"→ {call_text(event.call.name, event.arguments)}", "call")]
            case ToolProgress():
                return [Line(f"  … {one_line(event.text)}", "quiet")]
            case ToolFinished():
                return self._after_tool(event)
            case Finished():
                total = self._total(event.result)
                self._asked, self._calls, self._running, self._gave_up = 0, 0, set(), []
                return total
        return event_lines(event)

    def _after_reply(self, event: ModelFinished) -> Line:
        what = {"turn": f"round {self._round}", "final": "last answer", "summary": "summary"}[self._purpose]
        facts = [f"{what}: {event.seconds:.1f} s", tokens_text(event.reply.usage)]
        return Line("· " + ", ".join(fact for fact in facts if fact), "quiet")

    def _after_tool(self, event: ToolFinished) -> list[Line]:
        self._calls += 1
        started = event.call.id in self._running
        self._running.discard(event.call.id)
        head = [] if started else [Line(f"→ {call_text(event.call.name, _arguments(event.call))}", "call")]
        return head + result_lines(event.result, self.width, ran=started)

    def _total(self, result: Any) -> list[Line]:
        """The run's sums, unless its only round has just said the same."""
        lines = (
            [Line(f"! stopped: {_ENDS[result.stop_reason]}", "mend")] if result.stop_reason in _ENDS else []
        )
        calls = calls_of(result, self._asked, self._calls)
        if result.rounds < 2 and not calls and not result.cost:
            return lines
        facts = [counted(result.rounds, "round"), counted(calls, "tool call"), tokens_text(result.usage)]
        facts += [f"${result.cost:.4f}"] if result.cost else []
        facts.append(f"{result.seconds:.1f} s")
        return [*lines, Line("· " + ", ".join(fact for fact in facts if fact), "quiet")]


def calls_of(result: Any, asked: int, seen: int) -> int:
    """The tool calls of a run: the `seen` ones, unless it had asked the model more often than it was seen to ask.

    Then it was taken up again, and those from before stand below its task.
    """
    if result.rounds <= asked:
        return seen
    done = 0
    for entry in result.entries:
        is_task = isinstance(entry, User) and entry.kind == "task"
        done = 0 if is_task else done + isinstance(entry, ToolResult)
    return done


def event_lines(event: Event) -> list[Line]:
    """The lines of an event that need nothing but the event."""
    match event:
        case Mended():
            return [mend_line(event.mend)]
        case Retrying():
            wait = f" in {event.wait_seconds:.1f} s" if event.wait_seconds else ""
            return [Line(f"↻ asking again{wait} (retry {event.attempt}): {_told(event.reason)}", "mend")]
        case Learned():
            words = f" (it said: {one_line(event.words)})" if event.words else ""
            return [Line(f"↻ learned: {one_line(event.change)}{words}", "mend")]
        case Switched():
            names = f"{one_line(event.from_model)} → {one_line(event.to_model)}"
            return [Line(f"↻ switched {names}: {_told(event.reason)}", "mend")]
        case Noted():
            return [Line(f"✎ told the model: {one_line(event.note.text)}", "quiet")]
        case Received():
            return [Line(f"✎ delivered: {one_line(event.message.text)}", "quiet")]
        case Compacted():
            what = {"summary": "summarised", "trim": "shortened"}[event.how]
            return [Line(f"· history {what}: {event.before:,} → {event.after:,} tokens", "mend")]
        case Warned():
            return [Line(f"! {one_line(event.text)}", "mend")]
    return []


def _told(text: str) -> str:
    """A message of several lines in one, each line a sentence."""
    lines = [line.strip() for line in in_terminal_words(text).splitlines() if line.strip()]
    ended = [line if line.endswith((".", "!", "?", ":", ")")) else f"{line}." for line in lines[:-1]]
    return one_line(" ".join([*ended, *lines[-1:]]))


def mend_line(mend: Mend) -> Line:
    """A mended deviation: its code and what was done."""
    return Line(f"~ mended {one_line(mend.code)}: {one_line(mend.detail)}", "mend")


def call_text(name: str, arguments: Mapping[str, Any] | str | None) -> str:
    """A tool call as one would write it in Python: `get_weather(city="Tokyo")`."""
    if not isinstance(arguments, Mapping):
        return f"{one_line(name)}({one_line(arguments or '')})"
    pairs = ", ".join(f"{one_line(key)}={_value(value)}" for key, value in arguments.items())
    return f"{one_line(name)}({pairs})"


def _value(value: Any) -> str:
    try:
        return visible(json.dumps(value, ensure_ascii=False, default=str))
    except (ValueError, RecursionError):
        return "…"


def _arguments(call: ToolCall) -> Mapping[str, Any] | str:
    return call.arguments if call.arguments is not None else call.text


def result_lines(result: ToolResult, width: int, *, ran: bool) -> list[Line]:
    """The first lines of a result, with how long it took if it `ran`, and how much was left out."""
    lines = _lines_of(result.text) or ["(no output)"]
    mark, style = _MARKS[result.state]
    tail = f"  {result.seconds:.2f} s" if ran else ""
    head = f"{mark} {one_line(result.name)}: {lines[0]}"
    room = width - width_of(tail) if style == "good" else LONGEST
    shown = [Line(shortened(head, room) + tail if room > 10 else head, style)]
    shown += [Line(f"  {line}", style) for line in lines[1:RESULT_LINES]]
    if len(lines) > RESULT_LINES:
        shown.append(Line(f"  … {counted(len(lines) - RESULT_LINES, 'more line')}", "quiet"))
    return shown


_MARKS: Mapping[str, tuple[str, Style]] = {
    "ok": ("←", "good"),
    "error": ("✗", "bad"),
    "refused": ("✗", "bad"),
    "unknown": ("?", "bad"),
}


def _lines_of(text: str) -> Sequence[str]:
    return [line.expandtabs(4).rstrip() for line in visible(text).split("\n") if line.strip()]


def tokens_text(usage: Usage) -> str:
    """Tokens in words, or nothing where the endpoint reported none; and how many it had in its cache."""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    parts = [(usage.prompt_tokens, f"in{cached}"), (usage.completion_tokens, "out")]
    said = [f"{count:,} {word}" for count, word in parts if count is not None]
    if said:
        return "tokens " + " + ".join(said)
    return "" if usage.total_tokens is None else counted(usage.total_tokens, "token")


def counted(count: int, noun: str) -> str:
    """`1 round`, `2 rounds`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
