"""A session as people read it: rounds, calls, results, mends, tokens and time, one step after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from glassloop.core.entries import Reply, ToolResult, Usage, User
from glassloop.core.journal import Record
from glassloop.sessions import branch
from glassloop.sessions.branch import Stored
from glassloop.sessions.listing import SessionInfo, info


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened. `round` counts the branch's replies over all its runs, from 1; 0 before the first.

    `took` is the time since the step before it, in seconds. `masked`: a secret in it was replaced.
    """

    entry_id: int
    run_id: str
    round: int
    kind: str
    record: Record
    at_ms: int
    took: float
    masked: bool


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run on the branch. `status` and `stop_reason` as they stand, `seconds` until its last step."""

    run_id: str
    agent: str
    model: str
    status: str
    stop_reason: str
    error: str
    started_ms: int
    rounds: int
    calls: int
    usage: Usage
    cost: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A whole branch: what the session is, its runs, and their steps in order."""

    session: SessionInfo
    runs: tuple[RunInfo, ...]
    steps: tuple[Step, ...]

    def round(self, number: int) -> tuple[Step, ...]:
        """The steps of one round: the reply, its calls and their results."""
        return tuple(step for step in self.steps if step.round == number and step.kind != "user")


def timeline(connection: sqlite3.Connection, session_id: str) -> Timeline:
    """The session's branch. Raises `SessionError`."""
    found = info(connection, session_id)
    rows = branch.path(connection, found.head)
    stored = branch.read(connection, rows)
    kinds = [row.type for row in rows]
    run_ids = list(dict.fromkeys(one.run_id for one in stored))
    runs = tuple(
        _run(connection, run_id, [one for one in stored if one.run_id == run_id]) for run_id in run_ids
    )
    return Timeline(found, runs, tuple(_steps(stored, kinds)))


def _steps(stored: Sequence[Stored], kinds: Sequence[str]) -> list[Step]:
    steps: list[Step] = []
    run_id, rounds, before = "", 0, 0.0
    for one, kind in zip(stored, kinds, strict=True):
        if one.run_id != run_id:
            run_id, before = one.run_id, 0.0
        rounds += kind == "reply"
        took = max(0.0, one.record.seconds - before)
        before = one.record.seconds
        steps.append(Step(one.entry_id, run_id, rounds, kind, one.record, one.at_ms, took, one.masked))
    return steps


def _run(connection: sqlite3.Connection, run_id: str, stored: Sequence[Stored]) -> RunInfo:
    agent, status, stop_reason, error, started = connection.execute(
        "SELECT agent, status, coalesce(stop_reason, ''), coalesce(error, ''), started_ms FROM run WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    replies = [one.record for one in stored if isinstance(one.record.value, Reply)]
    usage, cost, model = Usage(), 0.0 if replies else None, ""
    for record in replies:
        if isinstance(record.value, Reply):
            usage += record.value.usage
            model = record.value.model or model
        cost = None if cost is None or record.cost is None else cost + record.cost
    calls = sum(isinstance(one.record.value, ToolResult) for one in stored)
    seconds = max((one.record.seconds for one in stored), default=0.0)
    return RunInfo(
        run_id, agent, model, status, stop_reason, error, started, len(replies), calls, usage, cost, seconds
    )


def tasks(steps: Sequence[Step]) -> list[tuple[int, str]]:
    """The tasks of a branch, as (entry id, text): the places that a person goes back to."""
    return [
        (step.entry_id, step.record.value.text)
        for step in steps
        if isinstance(step.record.value, User) and step.record.value.kind == "task"
    ]
