"""Reading a branch: the entries from a session's beginning to its head, back as values."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from glassloop.core.entries import Entry
from glassloop.core.errors import SessionError
from glassloop.core.journal import Intent, Record, entries_of
from glassloop.sessions.codec import decode

# A parent is always older than its child: that also ends the walk in a file that somebody tampered with.
_PATH = """
WITH RECURSIVE path(id) AS (
  SELECT entry_id FROM entry WHERE entry_id = ?
  UNION SELECT parent_id FROM path JOIN entry ON entry_id = id WHERE parent_id < id
)
SELECT entry_id, parent_id, run_id, seq, type, body, masked, seconds, cost, at_ms
FROM entry JOIN path ON entry_id = id ORDER BY entry_id
"""


@dataclass(frozen=True, slots=True)
class Row:
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
    """The rows from the root to `head`."""
    return [Row(*row) for row in connection.execute(_PATH, (head,))]


def read(connection: sqlite3.Connection, rows: Iterable[Row]) -> list[Stored]:
    """The rows as values. Raises `SessionError` for one that is damaged, naming it."""
    blob = blob_reader(connection)
    return [_stored(row, blob) for row in rows]


def blob_reader(connection: sqlite3.Connection) -> Callable[[str], bytes]:
    """Fetches what was put aside."""

    def fetch(digest: str) -> bytes:
        row = connection.execute("SELECT data FROM blob WHERE sha256 = ?", (digest,)).fetchone()
        if row is None:
            raise SessionError(f"blob {digest[:12]} is missing: the file is damaged")
        return bytes(row[0])

    return fetch


def _stored(row: Row, blob: Callable[[str], bytes]) -> Stored:
    try:
        value = decode(row.type, row.body, blob)
    except SessionError as error:
        raise SessionError(f"entry {row.entry_id} of run {row.run_id}: {error}") from error
    record = Record(row.seq, value, row.seconds, row.cost)
    return Stored(row.entry_id, row.parent_id, row.run_id, record, bool(row.masked), row.at_ms)


def conversation(stored: Sequence[Stored]) -> tuple[Entry, ...]:
    """What was said on a branch: run after run, each by `seq`, whatever order parallel results finished in."""
    runs = groupby(stored, key=lambda one: one.run_id)
    return tuple(entry for _, run in runs for entry in entries_of(one.record for one in run))


def open_intents(connection: sqlite3.Connection, run_id: str) -> tuple[Intent, ...]:
    """The run's calls that were about to run and have no result."""
    blob = blob_reader(connection)
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT body FROM op WHERE run_id = ? AND state = 'intent' ORDER BY seq", (run_id,)
    ).fetchall()
    return tuple(decode("intent", body, blob) for (body,) in rows)
