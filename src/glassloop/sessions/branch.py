"""Reading a branch: the entries from a session's beginning to its head, back as values."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from glassloop.core.entries import Entry
from glassloop.core.errors import SessionError
from glassloop.core.journal import Intent, Record, entries_of
from glassloop.sessions.claiming import WITHOUT_RESULT
from glassloop.sessions.codec import decode

_RUN_OF = "SELECT run_id FROM entry WHERE entry_id = ?"
_RUN_UP_TO = (
    "SELECT entry_id, parent_id, run_id, seq, type, body, masked, seconds, cost, at_ms FROM entry "
    "WHERE run_id = ? AND entry_id <= ?"
)
_OPEN_INTENTS = f"""
SELECT seq, body, key, attempt, masked FROM entry AS call
WHERE run_id = ? AND type = 'verdict' AND attempt IS NOT NULL AND {WITHOUT_RESULT} ORDER BY seq
"""  # noqa: S608 - WITHOUT_RESULT is ours

_COMMAND = """
SELECT coalesce(command, '') FROM run WHERE run_id = (SELECT run_id FROM entry WHERE entry_id = ?)
"""

UNSAID = frozenset({"verdict", "decision", "resolution", "model_failed", "cancelled"})
"""The types of record that are no part of the conversation, so that a history need not read them."""


class Row(NamedTuple):
    """One entry as it is stored."""

    entry_id: int
    parent_id: int | None
    run_id: str
    seq: int
    type: str
    body: str
    masked: int
    seconds: float
    cost: float | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Stored:
    """One entry read back. `masked`: a secret in it was replaced, so it is not quite what was said."""

    entry_id: int
    parent_id: int | None
    run_id: str
    record: Record
    masked: bool
    at_ms: int


def path(connection: sqlite3.Connection, head: int | None) -> list[Row]:
    """The rows from the root to `head`.

    A run never branches within itself: a rewind ends it, and what follows is another run. So the way goes
    from run to run, each up to the entry from which the next one went on.
    """
    segments: list[list[Row]] = []
    seen: set[str] = set()
    at = head
    while at is not None:
        found = connection.execute(_RUN_OF, (at,)).fetchone()
        if found is None or found[0] in seen:
            break  # never in a file of ours; in one that somebody changed, the way must end all the same
        seen.add(found[0])
        segment = sorted(map(Row._make, connection.execute(_RUN_UP_TO, (found[0], at))), key=itemgetter(0))
        segments.append(segment)
        at = segment[0].parent_id
    return [row for segment in reversed(segments) for row in segment]


def read(connection: sqlite3.Connection, rows: Iterable[Row]) -> list[Stored]:
    """The rows as values. Raises `SessionError` for one that is damaged, naming it."""
    blob = blob_reader(connection)
    return [_stored(row, blob) for row in rows]


def blob_reader(connection: sqlite3.Connection) -> Callable[[str], bytes]:
    """Fetches what was put aside."""

    def fetch(digest: str) -> bytes:
        row = connection.execute("SELECT data FROM blob WHERE sha256 = ?", (digest,)).fetchone()
        if row is None:
            raise SessionError(f"blob {digest[:12]} is missing: the file is damaged", "damaged")
        return bytes(row[0])

    return fetch


def _stored(row: Row, blob: Callable[[str], bytes]) -> Stored:
    record = Record(row.seq, _value(row, blob), row.seconds, row.cost)
    return Stored(row.entry_id, row.parent_id, row.run_id, record, bool(row.masked), row.at_ms)


def _value(row: Row, blob: Callable[[str], bytes]) -> Any:
    try:
        return decode(row.type, row.body, blob)
    except SessionError as error:
        raise SessionError(f"entry {row.entry_id} of run {row.run_id}: {error}", error.kind) from error


def conversation(stored: Sequence[Stored]) -> tuple[Entry, ...]:
    """What was said on a branch: run after run, each by `seq`, whatever order parallel results finished in."""
    runs = groupby(stored, key=attrgetter("run_id"))
    return tuple(entry for _, run in runs for entry in entries_of(one.record for one in run))


def said(connection: sqlite3.Connection, rows: Iterable[Row]) -> tuple[Entry, ...]:
    """The same of rows, without reading what was not said: a long history has to open quickly."""
    blob = blob_reader(connection)
    spoken = [row for row in rows if row.type not in UNSAID]
    runs = groupby(spoken, key=attrgetter("run_id"))
    return tuple(_value(row, blob) for _, run in runs for row in sorted(run, key=attrgetter("seq")))


def open_intents(connection: sqlite3.Connection, run_id: str) -> tuple[Intent, ...]:
    """The run's calls that were about to run and have no result."""
    blob = blob_reader(connection)
    rows: list[tuple[Any, ...]] = connection.execute(_OPEN_INTENTS, (run_id,)).fetchall()
    found: list[Intent] = []
    for seq, body, key, attempt, masked in rows:
        verdict: Any = decode("verdict", body, blob)
        if key is None:
            raise SessionError(f"the call at {seq} of run {run_id} was started without a key", "damaged")
        found.append(Intent(seq, verdict.call, verdict.arguments, verdict.effect, key, attempt, bool(masked)))
    return tuple(found)


def command(connection: sqlite3.Connection, head: int | None) -> str:
    """What was noted with the branch's last run; "" if nothing was."""
    found = connection.execute(_COMMAND, (head,)).fetchone()
    return str(found[0]) if found else ""
