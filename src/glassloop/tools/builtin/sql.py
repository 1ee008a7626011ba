"""The SQLite tools: a query, the schema, and one change at a time. How far a statement can go is in `sql_guard`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.tools import Effect
from glassloop.core.visible import exact
from glassloop.tools.builtin.files import aimed_at, root_from
from glassloop.tools.builtin.files_read import asks_to_read
from glassloop.tools.builtin.rooted_names import Root
from glassloop.tools.builtin.sql_guard import MAX_SECONDS, Access, opened
from glassloop.tools.tool import Tool, tool

MAX_ROWS = 1_000
MAX_CELL = 300
MAX_TABLE = 16_000
"""Characters. Below what a tool may show, so that no row is cut in its middle."""


def query_sqlite(root: Root, database: str, sql: str, limit: int = 100) -> str:
    """Read from an SQLite database with one SELECT. Use it to answer questions from data; describe_sqlite shows
    the tables first. Nothing can be changed with it.

    Args:
        database: The database file, from the root folder down, such as "data/shop.db".
        sql: One statement that only reads.
        limit: How many rows to show, 1 to 1000.
    """
    if not 1 <= limit <= MAX_ROWS:
        raise ValueError(f"limit is {limit}; it must be 1 to {MAX_ROWS}")
    with _explained("read"), opened(root, database, "read") as connection:
        return _table(connection.execute(sql), limit)


def describe_sqlite(root: Root, database: str) -> str:
    """Show the tables, views and indexes of an SQLite database as SQL. Use it before you query a database.

    Args:
        database: The database file, from the root folder down, such as "data/shop.db".
    """
    with _explained("read"), opened(root, database, "read") as connection:
        rows = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
            "ORDER BY type = 'index', type = 'trigger', tbl_name, name"
        )
        statements = [f"{sql};" for (sql,) in islice(rows, MAX_ROWS)]
    return "\n\n".join(statements) or "The database has no tables."


def change_sqlite(root: Root, database: str, sql: str) -> str:
    """Change an SQLite database with one statement: INSERT, UPDATE, DELETE, or CREATE, ALTER and DROP of its parts.
    Use it only for changes that the user wants. It takes effect as a whole or not at all.

    Args:
        database: The database file, which must exist, from the root folder down.
        sql: One statement.
    """
    with _explained("write"), opened(root, database, "write") as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            cursor = connection.execute(sql)
            returned = _table(cursor, MAX_ROWS) if cursor.description else ""
            cursor.close()
            if not connection.in_transaction:
                raise ValueError("the statement ends its transaction; give only the change itself")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        changed = f"Done. {cursor.rowcount} row{'s' if cursor.rowcount != 1 else ''} changed."
        return "\n".join(part for part in (changed if cursor.rowcount >= 0 else "Done.", returned) if part)


@contextmanager
def _explained(access: Access) -> Iterator[None]:
    """SQLite's own words, with what to do where they do not say it."""
    try:
        yield
    except (sqlite3.Warning, sqlite3.ProgrammingError) as error:
        raise ValueError(f"{error} Give one statement, without `?`.") from error
    except sqlite3.DatabaseError as error:
        text = str(error)
        if text == "interrupted":
            raise TimeoutError(
                f"stopped after {MAX_SECONDS:g} seconds; ask for less, or use an index"
            ) from error
        if "not authorized" in text or "prohibited" in text or "readonly" in text:
            only = "reads" if access == "read" else "changes rows, tables, indexes, views or triggers"
            raise ValueError(f"{text}: this tool only {only}") from error
        raise ValueError(f"SQLite: {text}") from error


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────


def _table(cursor: sqlite3.Cursor, limit: int) -> str:
    """Rows as a Markdown table, without padding: it is read by a model."""
    if cursor.description is None:
        return "The statement has no rows."
    names = [exact(column[0]) for column in cursor.description]
    lines = [_row(names), _row(["---"] * len(names))]
    room = MAX_TABLE
    count = 0
    for row in islice(cursor, limit):
        line = _row([_cell(value) for value in row])
        room -= len(line) + 1
        if room < 0 and count:
            break
        lines.append(line)
        count += 1
    more = room < 0 or cursor.fetchone() is not None
    lines.append(f"({count} row{'s' if count != 1 else ''}{' shown; there are more' if more else ''})")
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    text = str(value)
    if len(text) > MAX_CELL:
        text = f"{text[:MAX_CELL]}… ({len(text):,} characters)"
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n").replace("|", "\\|")


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────


def _maker(function: Callable[..., str], effect: Effect) -> Callable[[Mapping[str, str]], Tool]:
    def make(options: Mapping[str, str]) -> Tool:
        root = root_from(options)
        reads = effect == "read"
        return tool(
            effect=effect,
            approve=partial(asks_to_read, root, "database") if reads else None,
            sequential=not reads,
            preview=None if reads else _preview,
            targets=partial(aimed_at, root, ("database",)),
        )(partial(function, root))

    return make


def _preview(arguments: Mapping[str, JSON]) -> str:
    return f"In {arguments.get('database')}:\n{arguments.get('sql')}"


query = _maker(query_sqlite, "read")
describe = _maker(describe_sqlite, "read")
change = _maker(change_sqlite, "once")
