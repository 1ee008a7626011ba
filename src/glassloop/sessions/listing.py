"""What sessions there are, and which one is meant."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Literal

from glassloop.core.errors import SessionError
from glassloop.core.values import Value
from glassloop.sessions import owner as owners
from glassloop.sessions.claiming import HEAD

SessionState = Literal["idle", "running", "interrupted", "waiting", "needs_review"]
"""`running`: a process holds it. `interrupted`: the process that held it is gone. The rest as its run says."""

_COLUMNS = f"""
SELECT session.session_id, coalesce(name, ''), title, folder, coalesce(forked_from, ''), {HEAD}, open_run, owner,
       created_ms, updated_ms,
       CASE WHEN open_run IS NOT NULL THEN (SELECT status FROM run WHERE run_id = open_run) END,
       (SELECT count(*) FROM run WHERE run.session_id = session.session_id)
FROM session
"""  # noqa: S608 - HEAD is ours
_LATEST = " ORDER BY updated_ms DESC, session.rowid DESC LIMIT ?"
_MOST = 1_000_000


class SessionInfo(Value, frozen=True):
    """One session, as it stands. `title` is the beginning of its first task, `head` its last entry."""

    session_id: str
    name: str
    title: str
    folder: str
    forked_from: str
    head: int | None
    runs: int
    created_ms: int
    updated_ms: int
    state: SessionState
    labels: tuple[str, ...]
    holder: str = ""


def sessions(
    connection: sqlite3.Connection,
    *,
    folder: str | None = None,
    label: str | None = None,
    limit: int | None = None,
) -> list[SessionInfo]:
    """Sessions, the last used first. `folder`: only those that began there."""
    conditions, values = [], []
    if folder is not None:
        conditions.append("folder = ?")
        values.append(folder)
    if label is not None:
        conditions.append("session.session_id IN (SELECT session_id FROM label WHERE label = ?)")
        values.append(label)
    where = " WHERE " + " AND ".join(conditions) if conditions else ""
    rows = connection.execute(_COLUMNS + where + _LATEST, (*values, limit or _MOST)).fetchall()
    return _infos(connection, rows)


def info(connection: sqlite3.Connection, session_id: str) -> SessionInfo:
    """One session. Raises `SessionError` if there is none."""
    rows = connection.execute(_COLUMNS + " WHERE session.session_id = ?", (session_id,)).fetchall()
    if not rows:
        raise SessionError(f"there is no session {session_id}: list them to see which there are", "gone")
    return _infos(connection, rows)[0]


def resolve(connection: sqlite3.Connection, reference: str) -> str:
    """The session that a person means: an id, a name, or the beginning of an id. Raises `SessionError`."""
    exact = connection.execute(
        "SELECT session_id FROM session WHERE session_id = ? OR name = ?", (reference, reference)
    ).fetchall()
    if exact:
        return str(exact[0][0])
    begin = connection.execute(
        "SELECT session_id FROM session WHERE substr(session_id, 1, ?) = ? ORDER BY updated_ms DESC LIMIT 6",
        (len(reference), reference),
    ).fetchall()
    if len(begin) == 1:
        return str(begin[0][0])
    if begin and reference:
        some = ", ".join(one for (one,) in begin)
        raise SessionError(f"{reference!r} is the beginning of several sessions: {some}")
    raise SessionError(
        f"there is no session {reference!r}: give an id, the beginning of one, or a name", "gone"
    )


def _infos(connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> list[SessionInfo]:
    labels: dict[str, list[str]] = {}
    for session_id, label in connection.execute("SELECT session_id, label FROM label ORDER BY label"):
        labels.setdefault(session_id, []).append(label)
    return [_info(row, tuple(labels.get(row[0], ()))) for row in rows]


def _info(row: tuple[Any, ...], labels: tuple[str, ...]) -> SessionInfo:
    session_id, name, title, folder, forked_from, head, open_run, held_by, created, updated, status, runs = (
        row
    )
    owner = owners.from_text(held_by) if held_by else None
    state: SessionState = "idle"
    if held_by:
        state = "interrupted" if owner and owners.standing(owner) == "gone" else "running"
    elif open_run:
        state = status if status in ("waiting", "needs_review") else "interrupted"
    holder = owner.name if owner and state == "running" else ""
    return SessionInfo(
        session_id, name, title, folder, forked_from, head, runs, created, updated, state, labels, holder
    )
