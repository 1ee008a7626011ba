"""An SQLite file of the root, opened so that a statement can do only what it was opened for, for a limited time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Literal
from urllib.parse import quote

from glassloop.tools.builtin.rooted import check_file, existing, status
from glassloop.tools.builtin.rooted_changes import check_writable
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root, parts_of, protected, shown

MAX_SECONDS = 10.0
_STEPS = 10_000
"""Instructions of SQLite's machine between two looks at the clock."""

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 50_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_BESIDE = ("", "-wal", "-shm", "-journal")
"""The database and the files that SQLite keeps beside it."""

Access = Literal["read", "write"]

_READS = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)
_WRITES = _READS | {
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_TRANSACTION,
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_CREATE_TRIGGER,
    sqlite3.SQLITE_DROP_TABLE,
    sqlite3.SQLITE_DROP_INDEX,
    sqlite3.SQLITE_DROP_VIEW,
    sqlite3.SQLITE_DROP_TRIGGER,
    sqlite3.SQLITE_ALTER_TABLE,
    sqlite3.SQLITE_REINDEX,
    sqlite3.SQLITE_ANALYZE,
}
_ALLOWED = {"read": _READS, "write": _WRITES}
_MODES = {"read": "ro", "write": "rw"}

_PRAGMAS = frozenset(
    "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list".split()
)
"""Pragmas that only tell, whatever their argument."""

_BAD_FUNCTIONS = frozenset(("load_extension", "fts3_tokenizer"))


@contextmanager
def opened(root: Root, path: str, access: Access) -> Iterator[sqlite3.Connection]:
    """The database, closed again at the end; nothing is committed by itself.

    A database with a write-ahead log may get SQLite's two files for it, as by any reader.

    SQLite opens files by path. So each name of the path is checked before and after, and a program that swaps
    the file for a link twice in between could show it another database. Raises `Refused`, `OSError`,
    `sqlite3.Error`.
    """
    parts = parts_of(root, path)
    before = _checked(root, parts, access)
    connection = sqlite3.connect(_uri(root, parts, access), uri=True, isolation_level=None, timeout=5.0)
    try:
        if _checked(root, parts, access) != before:
            raise Refused(f"{shown(parts)} was replaced while it was opened. Try again")
        _restrict(connection, access)
        yield connection
    finally:
        connection.close()


def _checked(root: Root, parts: Parts, access: Access) -> tuple[int, int]:
    """Which file it is: device and inode. Looks without opening: to close a file would drop SQLite's locks on it."""
    if access == "write" and (why := protected(root, parts)):
        raise Refused(f"{shown(parts)} is protected, since it is {why}. Let the user change it by hand")
    for ending in _BESIDE:
        here = (*parts[:-1], parts[-1] + ending) if parts else parts
        found = status(root, here)
        if found is None:
            continue
        check_file(here, found)
        if access == "write":
            check_writable(here, found)
    main = existing(root, parts)
    return main.st_dev, main.st_ino


def _uri(root: Root, parts: Parts, access: Access) -> str:
    return f"file:{quote(os.fsencode(Path(root.folder, *parts)))}?mode={_MODES[access]}"


def _restrict(connection: sqlite3.Connection, access: Access) -> None:
    connection.execute("PRAGMA trusted_schema = OFF").close()
    connection.text_factory = _text
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    connection.set_progress_handler(_out_of_time(monotonic() + MAX_SECONDS), _STEPS)
    connection.set_authorizer(_authorizer(access))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _out_of_time(deadline: float) -> Callable[[], bool]:
    return lambda: monotonic() > deadline


_Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


def _authorizer(access: Access) -> _Authorizer:
    allowed = _ALLOWED[access]

    def decide(action: int, first: str | None, second: str | None, _: str | None, __: str | None) -> int:
        if action == sqlite3.SQLITE_PRAGMA:
            return _verdict((first or "").lower() in _PRAGMAS)
        if action == sqlite3.SQLITE_FUNCTION:
            return _verdict((second or "").lower() not in _BAD_FUNCTIONS)
        return _verdict(action in allowed)

    return decide


def _verdict(allowed: bool) -> int:
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
