"""Questions that wait for a person, and answers given while no process runs: they are used when the run goes on.

An answer covers exactly one call: run, seq, arguments and tool definition as they were shown.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from glassloop.core.errors import SessionError
from glassloop.core.journal import Record
from glassloop.core.tools import Decision
from glassloop.sessions import records
from glassloop.sessions.claiming import WITHOUT_RESULT, Claimed, now_ms, refuse_if_held


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits. `args_hash` and `tool_hash` go back with the answer: they say what was answered."""

    run_id: str
    seq: int
    session_id: str
    name: str
    call_id: str
    shown: str
    args_hash: str
    tool_hash: str


_WAITING = f"""
SELECT run_id, seq, session_id, coalesce(name, title), call_id, shown, args_hash, tool_hash
FROM approval AS call JOIN session ON open_run = run_id
WHERE decision IS NULL AND {WITHOUT_RESULT} ORDER BY run_id, seq
"""  # noqa: S608 - WITHOUT_RESULT is ours


def waiting(connection: sqlite3.Connection) -> list[Question]:
    """All calls, of runs that have not ended, about which nobody has decided."""
    return [Question(*row) for row in connection.execute(_WAITING)]


def answer(
    connection: sqlite3.Connection, question: Question, *, allowed: bool, by: str, reason: str = ""
) -> None:
    """Decide. The same answer twice is one; another one, or one to a run that is over, raises `SessionError`."""
    decision = "allow" if allowed else "deny"
    row = connection.execute(
        "SELECT decision, args_hash, tool_hash, session.open_run, session.owner, session_id "
        "FROM approval JOIN run USING(run_id) LEFT JOIN session USING(session_id) WHERE run_id = ? AND seq = ?",
        (question.run_id, question.seq),
    ).fetchone()
    if row is None:
        raise SessionError(f"run {question.run_id} asked nothing at {question.seq}")
    decided, args_hash, tool_hash, open_run, held_by, session_id = row
    if (args_hash, tool_hash) != (question.args_hash, question.tool_hash):
        raise SessionError("that answer is about other arguments or another tool: look at the question again")
    if decided == decision:
        return
    if decided is not None:
        raise SessionError(f"this call was decided already: {decided}")
    if open_run != question.run_id:
        raise SessionError(f"run {question.run_id} is over: it takes no more answers")
    if held_by is not None:
        refuse_if_held(session_id, held_by)  # whoever runs it asks by itself
    connection.execute(
        "UPDATE approval SET decision = ?, reason = ?, by = ?, at_ms = ? WHERE run_id = ? AND seq = ?",
        (decision, reason, by, now_ms(), question.run_id, question.seq),
    )


def take_answers(connection: sqlite3.Connection, claimed: Claimed) -> None:
    """Enter answers that came while nobody ran as the run's decisions, in their order."""
    rows = connection.execute(
        "SELECT seq, call_id, decision, reason, by FROM approval "
        "WHERE run_id = :run AND decision IS NOT NULL AND NOT EXISTS (SELECT 1 FROM entry "
        "WHERE entry.run_id = approval.run_id AND entry.seq = approval.seq AND type = 'decision') ORDER BY seq",
        {"run": claimed.run_id},
    ).fetchall()
    seconds = records.latest_seconds(connection, claimed.run_id)
    decisions = [
        Record(seq, Decision(call_id, decision == "allow", reason or "", by or ""), seconds)
        for seq, call_id, decision, reason, by in rows
    ]
    if decisions:
        records.append(connection, claimed, decisions)
