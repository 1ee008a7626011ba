"""The steps that a loop asks for, and the `Controller` protocol. The driver does them; nothing here does anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from glassloop.core.entries import Entry, Mend, Note, ToolCall, ToolResult
from glassloop.core.events import Compacted, Purpose
from glassloop.core.journal import ModelFailed, Record, StopReason
from glassloop.core.limits import Spent
from glassloop.core.tools import Decision, Verdict
from glassloop.core.values import Value


class CallModel(Value, frozen=True):
    """Ask the model. `entries` is what is sent; `notes` are new since the last call and not journaled yet.

    For a summary, feed the `Summary` of the first `replaces` entries of the conversation, of about `most` tokens
    at the most, or a `ModelFailed` of the kind "SummaryFailed" (`core/summary.py` reads the reply). These entries come
    to about `worth` tokens, where that is known: a summary that is no shorter is a failure.
    `compacted` says what was done to the history since a model last answered; `mends` why it is asked again.
    """

    seq: int
    purpose: Purpose
    entries: tuple[Entry, ...]
    notes: tuple[tuple[int, Note], ...] = ()
    replaces: int = 0
    most: int = 0
    worth: int = 0
    compacted: Compacted | None = None
    mends: tuple[Mend, ...] = ()


class PrepareCalls(Value, frozen=True):
    """Look at each call, without any effect, and feed a `Verdict` for it."""

    seq: int
    calls: tuple[tuple[int, ToolCall], ...]


class AskApproval(Value, frozen=True):
    """Ask a person about these and feed a `Decision` for each."""

    seq: int
    asks: tuple[tuple[int, Verdict], ...]


class Operation(Value, frozen=True):
    """One call of a turn: either it is to run as `verdict` says, or `result` has been decided without running it."""

    seq: int
    call: ToolCall
    verdict: Verdict | None = None
    result: ToolResult | None = None


class CallTools(Value, frozen=True):
    """Run these, and feed one `ToolResult` for each, the decided ones included."""

    seq: int
    operations: tuple[Operation, ...]


class Finish(Value, frozen=True):
    """The run is over. `seq` is free: feeding a `User` message there makes the run go on."""

    seq: int
    stop_reason: StopReason
    text: str = ""
    mends: tuple[Mend, ...] = ()
    failure: ModelFailed | None = None
    compacted: Compacted | None = None


Step = CallModel | PrepareCalls | AskApproval | CallTools | Finish


class Controller(Protocol):
    """One of the four replaceable parts: what happens next."""

    def next(self) -> Step:
        """The step that is due."""

    def feed(self, record: Record) -> None:
        """Take in what happened."""

    @property
    def spent(self) -> Spent:
        """What the run has used so far."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The whole conversation so far."""


@dataclass(slots=True)
class OpenCall:
    """A call of the turn at hand: what became of it so far. `decided` is a result that nobody has to compute."""

    seq: int
    call: ToolCall
    verdict: Verdict | None = None
    decision: Decision | None = None
    decided: ToolResult | None = None
    result: ToolResult | None = None

    @property
    def asks(self) -> bool:
        return self.verdict is not None and self.verdict.outcome == "ask"
