"""What answers have used, for one and for all of a chat: counted from events and results, and shown as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from glassloop.cli.screen import Line, calls_of
from glassloop.core.entries import Usage
from glassloop.core.events import Event, ModelFinished, ModelStarted, ToolFinished
from glassloop.handles import Result


@dataclass(frozen=True, slots=True)
class Tally:
    """`rounds` are model calls, `cost` is None once one call's is unknown, `by_table`: some of it is a table's word."""

    rounds: int = 0
    calls: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    by_table: bool = False
    seconds: float = 0.0

    def saw(self, event: Event) -> Tally:
        """With what only events tell."""
        match event:
            case ModelStarted():
                return replace(self, rounds=self.rounds + 1)
            case ToolFinished():
                return replace(self, calls=self.calls + 1)
            case ModelFinished(reply=reply) if reply.price is not None:
                return replace(self, by_table=True)
        return self

    def ended(self, result: Result[str]) -> Tally:
        """With what the result tells."""
        calls = calls_of(result, self.rounds, self.calls)
        return Tally(result.rounds, calls, result.usage, result.cost, self.by_table, result.seconds)

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Tally(
            self.rounds + other.rounds,
            self.calls + other.calls,
            self.usage + other.usage,
            cost,
            self.by_table or other.by_table,
            self.seconds + other.seconds,
        )


def usage_lines(last: Tally, whole: Tally) -> list[Line]:
    """A table: what the last answer used, and the whole chat. What no endpoint reported is left out or unknown."""
    rows = [
        ("model calls", *(f"{one.rounds:,}" for one in (last, whole))),
        ("tool calls", *(f"{one.calls:,}" for one in (last, whole))),
        ("tokens in", *(_count(one.usage.prompt_tokens) for one in (last, whole))),
        *_if_any("  cached", [last.usage.cached_tokens, whole.usage.cached_tokens]),
        ("tokens out", *(_count(one.usage.completion_tokens) for one in (last, whole))),
        *_if_any("  reasoning", [last.usage.reasoning_tokens, whole.usage.reasoning_tokens]),
        ("cost", *(_cost(one) for one in (last, whole))),
        ("time", *(f"{one.seconds:,.1f} s" for one in (last, whole))),
    ]
    table = [("", "last answer", "this chat"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in table]
    notes = [Line("≈ by a price table; the endpoint does not say", "quiet")] if whole.by_table else []
    return [Line(lines[0], "quiet"), *map(Line, lines[1:]), *notes]


def _if_any(name: str, counts: Sequence[int | None]) -> list[tuple[str, str, str]]:
    if not any(counts):
        return []
    first, second = map(_count, counts)
    return [(name, first, second)]


def _count(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"


def _cost(tally: Tally) -> str:
    if tally.cost is None:
        return "unknown"
    return f"{'≈ ' if tally.by_table else ''}${tally.cost:.4f}"
