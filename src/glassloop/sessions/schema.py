"""The tables, by version, and how an older file becomes a newer one. From SQLite 3.37 on, and nothing newer."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache

from glassloop.core.errors import SessionError

APPLICATION_ID = 0x476C6F70  # "Glop", in the file's header: so that no other program's file is taken for ours

_FIRST: Sequence[str] = (
    # schema_version: which of the steps below have been done. indexed_to: the last entry that search knows.
    # home: which file this is, so that a copy is noticed.
    "CREATE TABLE meta(k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT",
    # `open_run` is the run that has not ended, `head` the last entry of the branch when none is open (`claiming.HEAD`).
    # `owner` holds the session, and `epoch` rises with each claim: a write with an older one is refused.
    """
    CREATE TABLE session(
      session_id TEXT PRIMARY KEY CHECK(length(session_id) BETWEEN 1 AND 64),
      name TEXT UNIQUE, title TEXT NOT NULL DEFAULT '', folder TEXT NOT NULL DEFAULT '', forked_from TEXT,
      head INTEGER, open_run TEXT, owner TEXT, epoch INTEGER NOT NULL DEFAULT 0,
      created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL) STRICT
    """,
    """
    CREATE TABLE label(
      session_id TEXT NOT NULL REFERENCES session ON DELETE CASCADE, label TEXT NOT NULL,
      PRIMARY KEY(session_id, label)) STRICT, WITHOUT ROWID
    """,
    # A run outlives its session where a fork still shares what was said in it.
    """
    CREATE TABLE run(
      run_id TEXT PRIMARY KEY CHECK(length(run_id) BETWEEN 1 AND 64),
      session_id TEXT REFERENCES session ON DELETE SET NULL,
      agent TEXT NOT NULL, agent_hash TEXT NOT NULL, definition TEXT NOT NULL DEFAULT '',
      status TEXT NOT NULL CHECK(status IN('running', 'waiting', 'needs_review', 'done', 'failed', 'cancelled')),
      stop_reason TEXT, text TEXT NOT NULL DEFAULT '', error TEXT,
      started_ms INTEGER NOT NULL, ended_ms INTEGER) STRICT
    """,
    "CREATE INDEX run_session ON run(session_id)",
    # Everything that is fed to the loop, in the order of entry_id. The parent is what came before on the branch.
    """
    CREATE TABLE entry(
      entry_id INTEGER PRIMARY KEY, parent_id INTEGER, run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE,
      seq INTEGER NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL, masked INTEGER NOT NULL,
      seconds REAL NOT NULL, cost REAL, at_ms INTEGER NOT NULL) STRICT
    """,
    "CREATE UNIQUE INDEX entry_place ON entry(run_id, seq, type)",
    # Calls that were about to run. A read has none: it may simply run again.
    """
    CREATE TABLE op(
      run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE, seq INTEGER NOT NULL,
      name TEXT NOT NULL, body TEXT NOT NULL, key TEXT NOT NULL,
      effect TEXT NOT NULL CHECK(effect IN('read', 'idempotent', 'once')),
      state TEXT NOT NULL CHECK(state IN('intent', 'ok', 'error', 'refused', 'unknown')),
      attempt INTEGER NOT NULL DEFAULT 1, epoch INTEGER NOT NULL,
      started_ms INTEGER NOT NULL, ended_ms INTEGER, PRIMARY KEY(run_id, seq)) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE approval(
      run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE, seq INTEGER NOT NULL, call_id TEXT NOT NULL,
      args_hash TEXT NOT NULL, tool_hash TEXT NOT NULL, shown TEXT NOT NULL,
      decision TEXT CHECK(decision IN('allow', 'deny')), reason TEXT, by TEXT, at_ms INTEGER,
      PRIMARY KEY(run_id, seq)) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE blob(sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL) STRICT",
    """
    CREATE TABLE blob_use(
      run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE, sha256 TEXT NOT NULL REFERENCES blob,
      PRIMARY KEY(run_id, sha256)) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX blob_use_sha256 ON blob_use(sha256)",
    # A request repeats the one before it (`base`) and adds to it: only what follows `shared` bytes of it is kept.
    """
    CREATE TABLE exchange(
      run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE, n INTEGER NOT NULL,
      method TEXT NOT NULL, url TEXT NOT NULL, request_headers TEXT NOT NULL,
      base INTEGER, shared INTEGER NOT NULL, request BLOB NOT NULL,
      status INTEGER, response_headers TEXT NOT NULL, response BLOB NOT NULL, chunks TEXT NOT NULL,
      error TEXT, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, PRIMARY KEY(run_id, n)) STRICT
    """,
    "CREATE VIRTUAL TABLE words USING fts5(body, tokenize = 'unicode61 remove_diacritics 2')",
)

_SECOND: Sequence[str] = (
    # A call in doubt is resolved after each of its attempts; all else stands once at its place.
    "DROP INDEX entry_place",
    "CREATE UNIQUE INDEX entry_place ON entry(run_id, seq, type, iif(type = 'resolution', entry_id, 0))",
    # What a replay needs to know: the agent of a run, and of an exchange the endpoint, where that is new.
    "ALTER TABLE run ADD COLUMN setup TEXT",
    "ALTER TABLE exchange ADD COLUMN endpoint TEXT",
)

_THIRD: Sequence[str] = (
    # Which model call an exchange belongs to (`core/heard.py`). Of older ones the clock tells; and each process that
    # took a run up began its log anew.
    "ALTER TABLE exchange ADD COLUMN after_seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE exchange ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0",
    """
    UPDATE exchange SET
      after_seq = coalesce((SELECT max(seq) FROM entry
        WHERE entry.run_id = exchange.run_id AND entry.at_ms < exchange.started_ms), 0),
      epoch = (SELECT count(*) FROM exchange AS earlier
        WHERE earlier.run_id = exchange.run_id AND earlier.n <= exchange.n AND earlier.base IS NULL)
    """,
)

_FOURTH: Sequence[str] = (
    # The agent that took a run up, where it is not the one that began it.
    "ALTER TABLE exchange ADD COLUMN agent TEXT",
)

_FIFTH: Sequence[str] = (
    # Whether a call has ended is told by its result alone: one row less to write for each.
    """
    CREATE TABLE operation(
      run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE, seq INTEGER NOT NULL,
      name TEXT NOT NULL, body TEXT NOT NULL, key TEXT NOT NULL,
      effect TEXT NOT NULL CHECK(effect IN('read', 'idempotent', 'once')),
      attempt INTEGER NOT NULL DEFAULT 1, epoch INTEGER NOT NULL, started_ms INTEGER NOT NULL,
      PRIMARY KEY(run_id, seq)) STRICT, WITHOUT ROWID
    """,
    "INSERT INTO operation SELECT run_id, seq, name, body, key, effect, attempt, epoch, started_ms FROM op",
    "DROP TABLE op",
)

_SIXTH: Sequence[str] = (
    # What a person said when the run began, as whoever writes this down spells it: how to go on with the same agent.
    "ALTER TABLE run ADD COLUMN command TEXT",
)

_SEVENTH: Sequence[str] = (
    # That a call was about to run stands beside the verdict that it carries out, whose page each commit writes anyway:
    # how often it was started (null: never), its key, and of the last start the epoch and the time. A read has none of
    # it, for it may simply run again. No CHECK with IN here: SQLite makes a table of the list for every row.
    "ALTER TABLE entry ADD COLUMN attempt INTEGER",
    "ALTER TABLE entry ADD COLUMN key TEXT",
    "ALTER TABLE entry ADD COLUMN epoch INTEGER",
    "ALTER TABLE entry ADD COLUMN started_ms INTEGER",
    """
    UPDATE entry SET (attempt, key, epoch, started_ms) =
      (SELECT attempt, key, epoch, started_ms FROM operation
        WHERE operation.run_id = entry.run_id AND operation.seq = entry.seq)
    WHERE type = 'verdict'
    """,
    "DROP TABLE operation",
)

MIGRATIONS: Sequence[Sequence[str]] = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH)
"""Step n leads from version n to n + 1. Released steps never change; what is new is a further step.

A step may add tables and columns, and drop tables. It renames nothing: how SQLite rewrites a renamed table's statement
depends on SQLite's version, and files are compared with what these statements make.
"""

VERSION = len(MIGRATIONS)


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Make the tables, or migrate older ones, in one transaction. Raises `SessionError` for a newer file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = version(connection)  # again: another process may have been faster
        if found > VERSION:
            raise SessionError(
                f"it was written by a newer Glassloop (schema {found}, this one knows {VERSION}): "
                "upgrade Glassloop, or name another file",
                "newer",
            )
        for step in MIGRATIONS[found:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(
            "INSERT INTO meta VALUES ('schema_version', ?) ON CONFLICT DO UPDATE SET v = excluded.v",
            (str(VERSION),),
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_OBJECTS = "SELECT name, type, sql FROM sqlite_master"


def version(connection: sqlite3.Connection) -> int:
    """The file's version; 0 for an empty one. Raises `SessionError` for one that is not ours or was tampered with."""
    objects = {name: (kind, sql) for name, kind, sql in connection.execute(_OBJECTS)}
    if not objects:
        return 0
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID or "meta" not in objects:
        raise SessionError("it is another program's database: name another file")
    row = connection.execute("SELECT v FROM meta WHERE k = 'schema_version'").fetchone()
    if row is None or not re.fullmatch("[1-9][0-9]{0,8}", str(row[0])):
        raise SessionError("its schema version is missing: it is damaged", "damaged")
    found = int(row[0])
    _check_unchanged(objects, _tables_of(found) if found <= VERSION else {})
    return found


def _check_unchanged(objects: Mapping[str, tuple[str, str]], tables: Mapping[str, str]) -> None:
    """Our tables must be ours to the letter, and nothing may act by itself. What else people add is theirs."""
    strange = [name for name, (kind, _) in objects.items() if kind in ("trigger", "view")]
    strange += [name for name, sql in tables.items() if objects.get(name) != ("table", sql)]
    if strange:
        raise SessionError(
            f"its {min(strange)!r} is not as Glassloop makes it: somebody changed the file", "damaged"
        )


@cache
def _tables_of(version: int) -> Mapping[str, str]:
    """The statement of each table at a version. The index keeps tables of its own, which are SQLite's business."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for step in MIGRATIONS[:version]:
            for statement in step:
                connection.execute(statement)
        return {
            name: sql
            for name, kind, sql in connection.execute(_OBJECTS)
            if kind == "table" and not name.startswith(("words_", "sqlite_"))
        }
