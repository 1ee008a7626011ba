"""The `Journal` protocol and `MemoryJournal`: where a run writes down what happened, before it acts on it.

The driver calls it in one order: `open`; `commit` (the task, each reply, the verdicts); `decide`
(a person's answers, and what became of calls in doubt); `intend` (all calls about to run, together); `commit`
(their results); `finish`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgspec.structs import replace

from glassloop.core.entries import JSON, Entry, Note, Reply, Summary, System, ToolCall, ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.core.resolving import Resolution
from glassloop.core.tools import Decision, Effect, Verdict
from glassloop.core.values import Value

StopReason = Literal[
    "answered",
    "rounds",
    "calls",
    "tokens",
    "cost",
    "seconds",
    "repeated_calls",
    "cancelled",
    "waiting_approval",
    "needs_review",
    "failed",
]
"""Why a run ended."""


class ModelFailed(Value, frozen=True):
    """No reply could be had. `kind` is the exception's class name, `partial` what had arrived before it broke.

    `window` is the context window in tokens, where an overflow named it.
    """

    kind: str
    message: str
    partial: Reply | None = None
    window: int | None = None


class Cancelled(Value, frozen=True):
    """The run was told to stop. Every open call has been given a result before this is fed."""

    reason: str = "interrupted by the user"


Journaled = (
    System
    | User
    | Reply
    | ToolResult
    | Note
    | Summary
    | Verdict
    | Decision
    | Resolution
    | ModelFailed
    | Cancelled
)


class Record(Value, frozen=True):
    """One thing that happened, as it is written down and fed to the loop.

    `seq` is the operation's number in its run; a call's verdict, decision and result share it.
    `seconds` is the time since the run began, `cost` the US dollars of a model call (None: unknown).
    """

    seq: int
    value: Journaled
    seconds: float = 0.0
    cost: float | None = None

    def unbound(self) -> Record:
        """As a journal gets it: without what a verdict is bound to, which lives no longer than its process."""
        value = self.value
        return replace(self, value=replace(value, bound=None)) if isinstance(value, Verdict) else self


class Intent(Value, frozen=True):
    """A call is about to run. On disk before it starts, so that a crash cannot make it happen twice.

    `attempt` counts its starts, from 1. `masked`, of one that is read back: its arguments held a secret that
    was not kept, so it cannot be run again.
    """

    seq: int
    call: ToolCall
    arguments: Mapping[str, JSON]
    effect: Effect
    key: str
    attempt: int = 1
    masked: bool = False


class RunStart(Value, frozen=True):
    """Who begins: the run, the session that it belongs to, and the agent by name, definition and its hash.

    `definition` has one fact a line (instructions, model, each tool), so that a change can be shown.
    """

    run_id: str
    session_id: str
    agent: str
    agent_hash: str
    definition: str = ""


class Opened(Value, frozen=True):
    """What a journal knows of the session that a run was opened on.

    `history`: everything said in it by runs that are over. `records`: what happened in a run that is not
    over (it crashed, or waits for a person); this opening continues it, under `run_id`. `intents`: its
    calls that were about to run and have no result.
    """

    run_id: str
    history: tuple[Entry, ...] = ()
    records: tuple[Record, ...] = ()
    intents: tuple[Intent, ...] = ()


SUSPENDED = ("waiting_approval", "needs_review")
"""Stop reasons after which a run is not over: opening its session again continues it."""


class RunEnd(Value, frozen=True):
    """How it ended."""

    run_id: str
    stop_reason: StopReason
    text: str
    error: str | None = None


class Journal(Protocol):
    """One of the four replaceable parts. `session_id` names the conversation that a run adds to.

    `intend`, `decide` and `finish` return when they and all before them are durable, and so does a
    `commit` that holds a `User` or a `ToolResult`; any other may return once its place in the order is fixed.
    """

    async def open(self, start: RunStart) -> Opened:
        """Claim the session for this run and tell what is known of it. Raises `SessionError` if it is taken."""

    async def intend(self, run_id: str, intents: Sequence[Intent]) -> None:
        """All calls that are about to run, in one transaction."""

    async def commit(self, run_id: str, records: Sequence[Record]) -> None:
        """What happened, in one transaction."""

    async def decide(self, run_id: str, records: Sequence[Record]) -> None:
        """What was decided about calls that asked (`Decision`) or whose outcome is unknown (`Resolution`)."""

    async def finish(self, end: RunEnd) -> None:
        """Release the session."""


class Session(Value, frozen=True, gc=True):
    """A conversation that can be continued: its journal and its id there."""

    id: str
    journal: Journal


def entries_of(records: Iterable[Record]) -> tuple[Entry, ...]:
    """The conversation that records tell: by `seq`, whatever order parallel results finished in."""
    kinds = (System, User, Reply, ToolResult, Note, Summary)
    said = [record for record in records if isinstance(record.value, kinds)]
    said.sort(key=lambda record: record.seq)
    return tuple(record.value for record in said if isinstance(record.value, kinds))


@dataclass(slots=True)
class MemoryJournal:
    """A journal that lives as long as the process. `records` and `intents` may be looked at."""

    records: dict[str, list[Record]] = field(default_factory=dict)
    intents: dict[str, list[Intent]] = field(default_factory=dict)
    _runs: dict[str, list[str]] = field(default_factory=dict)
    _open: dict[str, str] = field(default_factory=dict)
    _suspended: dict[str, str] = field(default_factory=dict)

    async def open(self, start: RunStart) -> Opened:
        taken_by = self._open.get(start.session_id)
        if taken_by is not None:
            raise SessionError(
                f"session {start.session_id} is in use by run {taken_by}: wait for it, or start another session"
            )
        runs = self._runs.setdefault(start.session_id, [])
        run_id = self._suspended.pop(start.session_id, start.run_id)
        if run_id not in runs:
            runs.append(run_id)
        self._open[start.session_id] = run_id
        records = self.records.setdefault(run_id, [])
        answered = {record.seq for record in records if isinstance(record.value, ToolResult)}
        last = {one.seq: one for one in self.intents.setdefault(run_id, [])}
        pending = tuple(one for seq, one in last.items() if seq not in answered)
        history = tuple(entry for run in runs if run != run_id for entry in entries_of(self.records[run]))
        return Opened(run_id, history, tuple(records), pending)

    async def intend(self, run_id: str, intents: Sequence[Intent]) -> None:
        self.intents[run_id].extend(intents)

    async def commit(self, run_id: str, records: Sequence[Record]) -> None:
        self.records[run_id].extend(records)

    async def decide(self, run_id: str, records: Sequence[Record]) -> None:
        self.records[run_id].extend(records)

    async def finish(self, end: RunEnd) -> None:
        for session_id, run_id in list(self._open.items()):
            if run_id == end.run_id:
                del self._open[session_id]
                if end.stop_reason in SUSPENDED:
                    self._suspended[session_id] = run_id
