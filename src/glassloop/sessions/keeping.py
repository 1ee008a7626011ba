"""Naming, labelling, deleting and pruning sessions. Each function is one step inside a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from glassloop.core.errors import SessionError
from glassloop.sessions.claiming import HEAD, refuse_if_held
from glassloop.sessions.listing import SessionInfo, info, sessions

_LONGEST_NAME = 80

# What some other session still tells: forks share their beginning with what they were forked from.
_UNSHARED = f"""
WITH RECURSIVE kept(id) AS (
  SELECT {HEAD} FROM session WHERE session_id <> :session
  UNION SELECT parent_id FROM kept JOIN entry ON entry_id = id WHERE parent_id < id
)
SELECT entry_id FROM entry WHERE run_id IN (SELECT run_id FROM run WHERE session_id = :session)
AND entry_id NOT IN (SELECT id FROM kept)
"""  # noqa: S608 - HEAD is ours


def rename(connection: sqlite3.Connection, session_id: str, name: str) -> None:
    """Give a session a name of its own; an empty one takes it away."""
    info(connection, session_id)
    wanted = " ".join(name.split())
    if len(wanted) > _LONGEST_NAME or not wanted.isprintable():
        raise SessionError(f"a name has at most {_LONGEST_NAME} characters, all of them printable")
    try:
        connection.execute("UPDATE session SET name = ? WHERE session_id = ?", (wanted or None, session_id))
    except sqlite3.IntegrityError as error:
        raise SessionError(f"another session is named {wanted!r}: give it another name first") from error


def set_labels(connection: sqlite3.Connection, session_id: str, labels: Iterable[str]) -> None:
    """Make these the session's labels."""
    info(connection, session_id)
    wanted = sorted({" ".join(label.split()) for label in labels} - {""})
    if any(len(label) > _LONGEST_NAME or not label.isprintable() for label in wanted):
        raise SessionError(f"a label has at most {_LONGEST_NAME} characters, all of them printable")
    connection.execute("DELETE FROM label WHERE session_id = ?", (session_id,))
    connection.executemany("INSERT INTO label VALUES (?, ?)", [(session_id, label) for label in wanted])


def delete(connection: sqlite3.Connection, session_id: str) -> None:
    """Delete a session, save what forks of it still share. Raises `SessionError` if a process holds it."""
    forked_from = info(connection, session_id).forked_from
    (held_by,) = connection.execute(
        "SELECT owner FROM session WHERE session_id = ?", (session_id,)
    ).fetchone()
    if held_by is not None:
        refuse_if_held(session_id, held_by)
    gone = connection.execute(_UNSHARED, {"session": session_id}).fetchall()
    connection.executemany("DELETE FROM words WHERE rowid = ?", gone)
    connection.executemany("DELETE FROM entry WHERE entry_id = ?", gone)
    connection.execute(
        "DELETE FROM run WHERE session_id = ? AND run_id NOT IN (SELECT run_id FROM entry)", (session_id,)
    )
    _pass_on(connection, session_id, forked_from)
    connection.execute("DELETE FROM session WHERE session_id = ?", (session_id,))
    connection.execute("DELETE FROM blob WHERE sha256 NOT IN (SELECT sha256 FROM blob_use)")
    connection.execute(
        "UPDATE meta SET v = min(CAST(v AS INTEGER), (SELECT coalesce(max(entry_id), 0) FROM entry)) "
        "WHERE k = 'indexed_to'"
    )


def _pass_on(connection: sqlite3.Connection, session_id: str, forked_from: str) -> None:
    """What is left of a deleted session belongs to its eldest fork; its forks are now forks of its origin."""
    heir = connection.execute(
        "SELECT session_id FROM session WHERE forked_from = ? ORDER BY created_ms, rowid LIMIT 1",
        (session_id,),
    ).fetchone()
    if heir is None:
        return
    connection.execute("UPDATE run SET session_id = ? WHERE session_id = ?", (heir[0], session_id))
    origin = forked_from or heir[0]
    connection.execute(
        "UPDATE session SET forked_from = CASE WHEN session_id = :origin THEN NULL ELSE :origin END "
        "WHERE forked_from = :session",
        {"origin": origin, "session": session_id},
    )


def prune(
    connection: sqlite3.Connection, *, before_ms: int, keep: int = 0, dry_run: bool = False
) -> list[SessionInfo]:
    """Delete sessions last used before a moment, save the `keep` last used, and named, labelled or open ones."""
    candidates = sessions(connection)[keep:]
    old = [one for one in candidates if one.updated_ms < before_ms and _may_be_pruned(one)]
    for one in () if dry_run else old:
        delete(connection, one.session_id)
    return old


def _may_be_pruned(one: SessionInfo) -> bool:
    return not one.name and not one.labels and one.state == "idle"
