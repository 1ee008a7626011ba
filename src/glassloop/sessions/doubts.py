"""Calls in doubt, as they stand in the file, and what people say of them while no process runs their session.

A resolution is entered into the run at once, as if the run itself had asked: it is heeded when it goes on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from glassloop.core.entries import JSON
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record
from glassloop.core.resolving import Answer, Resolution, Retry, resolution_of
from glassloop.sessions import codec, listing, records
from glassloop.sessions.branch import blob_reader
from glassloop.sessions.claiming import WITHOUT_RESULT, Claimed, refuse_if_held
from glassloop.sessions.owner import new_claim, release


@dataclass(frozen=True, slots=True)
class Doubt:
    """A call of which nobody knows whether it took effect. `attempt` goes back with the answer.

    `repeatable` is False where its arguments held a secret that was not kept.
    """

    run_id: str
    seq: int
    attempt: int
    session_id: str
    title: str
    call_id: str
    name: str
    arguments: Mapping[str, JSON]
    started_ms: int
    repeatable: bool


_WAITING = f"""
SELECT run_id, seq, attempt, session_id, coalesce(name, title), body, coalesce(started_ms, 0), masked
FROM session JOIN entry AS call ON run_id = open_run
WHERE type = 'verdict' AND attempt IS NOT NULL AND {WITHOUT_RESULT} ORDER BY run_id, seq
"""  # noqa: S608 - WITHOUT_RESULT is ours
_DOUBTED = f"""
SELECT {WITHOUT_RESULT}, attempt, session_id, open_run, owner, session.epoch FROM entry AS call
JOIN run USING(run_id) LEFT JOIN session USING(session_id)
WHERE run_id = ? AND seq = ? AND type = 'verdict' AND attempt IS NOT NULL
"""  # noqa: S608 - WITHOUT_RESULT is ours
_RESOLVED = (
    "SELECT body FROM entry WHERE run_id = ? AND seq = ? AND type = 'resolution' ORDER BY entry_id DESC"
)


def waiting(connection: sqlite3.Connection) -> list[Doubt]:
    """All of sessions that nobody holds, and about which nobody has said anything yet."""
    blob = blob_reader(connection)
    found = []
    for run_id, seq, attempt, session_id, title, body, started_ms, masked in connection.execute(_WAITING):
        verdict = codec.decode("verdict", body, blob)
        if (
            verdict.effect != "once"
            or _resolution(connection, run_id, seq, attempt)
            or listing.info(connection, session_id).state == "running"
        ):
            continue
        call = verdict.call
        found.append(
            Doubt(
                run_id,
                seq,
                attempt,
                session_id,
                title or "",
                call.id,
                call.name,
                verdict.arguments,
                started_ms,
                not masked,
            )
        )
    return found


def resolve(
    connection: sqlite3.Connection, doubt: Doubt, answer: Answer, secrets: tuple[str, ...] = ()
) -> None:
    """Enter an answer. The same one twice is one; another one, or one that comes too late, raises `SessionError`."""
    row = connection.execute(_DOUBTED, (doubt.run_id, doubt.seq)).fetchone()
    if row is None:
        raise SessionError(f"run {doubt.run_id} has no call at {doubt.seq}", "gone")
    going_on, attempt, session_id, open_run, held_by, epoch = row
    if not going_on or open_run != doubt.run_id:
        raise SessionError(f"{doubt.name} has a result already: nothing about it is in doubt")
    if attempt != doubt.attempt:
        raise SessionError(f"{doubt.name} has been started again since: look at it once more", "changed")
    if held_by is not None:
        refuse_if_held(session_id, held_by)  # whoever runs it asks by itself
    if isinstance(answer, Retry) and not doubt.repeatable:
        raise SessionError("its arguments held a secret, which was not kept: it cannot be run again")
    resolution = resolution_of(doubt.call_id, attempt, answer)
    before = _resolution(connection, doubt.run_id, doubt.seq, attempt)
    if before is not None:
        if before == resolution:
            return
        raise SessionError(
            f"{doubt.name} was resolved already: {before.outcome} (by {before.by or 'nobody named'})"
        )
    record = Record(doubt.seq, resolution, records.latest_seconds(connection, doubt.run_id))
    owner = new_claim()
    try:
        claimed = Claimed(session_id, doubt.run_id, epoch, owner)
        records.append(connection, claimed, [record], secrets)
    finally:
        release(owner)


def _resolution(connection: sqlite3.Connection, run_id: str, seq: int, attempt: int) -> Resolution | None:
    for (body,) in connection.execute(_RESOLVED, (run_id, seq)):
        found = codec.decode("resolution", body, blob_reader(connection))
        if isinstance(found, Resolution) and found.attempt == attempt:
            return found
    return None
