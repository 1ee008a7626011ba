"""Opening the file, transactions, and turning what SQLite says into words that a person can act on."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from glassloop.core.errors import SessionError, SessionTrouble
from glassloop.sessions import place, schema

BUSY_SECONDS = 30.0
"""How long a write waits while another process writes."""

LONGEST_VALUE = 256 * 1024 * 1024
"""Bytes of one value: a longer one is refused, on writing as on reading."""

_OLDEST = (3, 37, 0)  # the first with STRICT tables
_PRAGMAS = ("synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF")
_MACOS = (
    "fullfsync = ON",
    "checkpoint_fullfsync = ON",
)  # there, a plain fsync leaves data in the disk's cache

_RESTORE = "Restore a copy, try `sqlite3 FILE .recover`, or move it away to begin a new one"
_WHAT_TO_DO = (
    ("SQLITE_FULL", "the disk is full", "Free some space, then continue the session"),
    ("SQLITE_READONLY", "it is read-only", "Make the file and its folder writable, or name another file"),
    ("SQLITE_CANTOPEN", "it cannot be opened", "Check the folder's permissions, or name another file"),
    ("SQLITE_PERM", "access is denied", "Check its permissions, or name another file"),
    (
        "SQLITE_NOTADB",
        "it is not a database, or its beginning is damaged",
        "Restore a copy, or move it away to begin a new one",
    ),
    ("SQLITE_CORRUPT", "it is damaged", _RESTORE),
    (
        "SQLITE_BUSY",
        "another process has been writing to it for too long",
        "End that process, then try again",
    ),
    ("SQLITE_LOCKED", "another process has locked it", "End that process, then try again"),
    ("SQLITE_TOOBIG", f"a value is larger than {LONGEST_VALUE >> 20} MB", "Make the tool give less at once"),
    ("SQLITE_NOMEM", "there is not enough memory", "End other programs, then continue the session"),
    ("SQLITE_IOERR", "the disk failed or is full", "Check the disk and its free space, then try again"),
)

_KINDS: Mapping[str, SessionTrouble] = {
    "SQLITE_NOTADB": "damaged",
    "SQLITE_CORRUPT": "damaged",
    "SQLITE_BUSY": "in_use",
    "SQLITE_LOCKED": "in_use",
}


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the file, made or migrated where needed. To be used by one thread at a time.

    Raises `SessionError`.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise SessionError(
            f"{path}: this Python's SQLite is {sqlite3.sqlite_version}, and sessions need 3.37 or later: "
            "use a newer Python, or keep sessions in memory"
        )
    place.prepare(path)
    with explained(path):
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            found = schema.version(connection)  # before anything is changed in a file that may not be ours
            _set_up(connection)
            if found != schema.VERSION:
                schema.bring_up_to_date(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _set_up(connection: sqlite3.Connection) -> None:
    for pragma in (*_PRAGMAS, *(_MACOS if sys.platform == "darwin" else ())):
        connection.execute(f"PRAGMA {pragma}")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise SessionError("this file system cannot keep SQLite's log: name a file on a local disk")


def wait_for_others(connection: sqlite3.Connection, seconds: float) -> None:
    """How long this connection waits from now on while another process writes; at first it is `BUSY_SECONDS`."""
    connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for as long as the block lasts; what goes wrong in it is a `SessionError`."""
    with closing(connect(path)) as connection, explained(path):
        yield connection


class transaction:  # noqa: N801 - it reads as a verb's object: `with transaction(connection):`
    """All or nothing, and on disk when it ends.

    `stands`: whether it was committed, also where a signal's handler raised something behind that. Where SQLite itself
    failed, it is of no meaning.
    """

    __slots__ = ("_connection", "stands")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.stands = False

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.stands = True
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self.stands = False
                self._connection.execute("ROLLBACK")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What goes wrong in the block, as `explain` tells it."""
    try:
        yield
    except (SessionError, sqlite3.Error, UnicodeDecodeError) as error:
        told = explain(path, error)
        if told is error:
            raise
        raise told from error


def explain(path: Path, error: Exception) -> SessionError:
    """What happened, to which file, and what to do, whoever it was that failed."""
    if isinstance(error, SessionError):
        named = str(path) in str(error) or not error.args
        return error if named else SessionError(f"{path}: {error}", error.kind)
    if isinstance(error, sqlite3.Error):
        return _sqlite_trouble(path, error)
    if isinstance(error, UnicodeDecodeError):  # `sqlite3` cannot even read SQLite's words on what is wrong
        return SessionError(f"{path}: it is damaged ({error}). {_RESTORE}", "damaged")
    return SessionError(f"{path}: {type(error).__name__}: {error}")


def _sqlite_trouble(path: Path, error: sqlite3.Error) -> SessionError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if isinstance(error, sqlite3.DataError):
        name = "SQLITE_TOOBIG"
    for prefix, what, remedy in _WHAT_TO_DO:
        if name.startswith(prefix):
            return SessionError(f"{path}: {what} ({error}). {remedy}", _KINDS.get(prefix, "other"))
    return SessionError(f"{path}: {error} ({name or type(error).__name__})")
