"""Claiming a session for a run, and giving it back. Each function is one step inside a transaction."""

from __future__ import annotations

import difflib
import os
import re
import sqlite3
import time
from collections.abc import Container, Sequence

from glassloop.core.errors import SessionError
from glassloop.core.journal import SUSPENDED, RunEnd, RunStart, StopReason
from glassloop.core.values import Value
from glassloop.sessions import owner as owners
from glassloop.sessions.owner import Owner

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")

_STATUS: dict[StopReason, str] = {
    "waiting_approval": "waiting",
    "needs_review": "needs_review",
    "failed": "failed",
    "cancelled": "cancelled",
}
"""What becomes of a run, by why it stopped. Any other reason: it is done."""


HEAD = """
CASE WHEN session.open_run IS NULL THEN session.head
ELSE coalesce((SELECT max(entry_id) FROM entry WHERE run_id = session.open_run), session.head) END
"""
"""The last entry of a session's branch. Its column is not written in each commit: while a run is open, all that it
wrote stands after it, in order.
"""


WITHOUT_RESULT = """
NOT EXISTS (SELECT 1 FROM entry AS result
  WHERE result.run_id = call.run_id AND result.seq = call.seq AND result.type = 'tool_result')
"""
"""Of a row named `call`, a verdict or a question about one: the call has not ended."""


class Claimed(Value, frozen=True):
    """A session that is held. `run_id` is the run that goes on: the new one, or the one that had not ended.

    `blank`: nothing was ever written in it, so there is nothing to read.
    """

    session_id: str
    run_id: str
    epoch: int
    owner: Owner
    blank: bool = False


class Terms(Value, frozen=True):
    """On what terms a session is opened; see `SqliteJournal`."""

    folder: str = ""
    command: str = ""
    take_over: bool = False
    accept_changes: bool = False


def checked_id(what: str, value: str) -> str:
    """An id that can be a file's name as well. Raises `SessionError`."""
    if not _ID.fullmatch(value):
        raise SessionError(
            f"{what} id {value[:40]!r} will not do: give 1 to 64 letters, digits, '_', '-' and '.', "
            "the first one a letter, a digit or '_'"
        )
    return value


def now_ms() -> int:
    """The wall clock, for people to read. Nothing is decided by it."""
    return time.time_ns() // 1_000_000


def claim(connection: sqlite3.Connection, start: RunStart, owner: Owner, terms: Terms) -> Claimed:
    """Take the session, and begin a run in it or continue the one that had not ended. Raises `SessionError`."""
    now = now_ms()
    connection.execute(
        "INSERT INTO session(session_id, folder, created_ms, updated_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (start.session_id, terms.folder, now, now),
    )
    held_by, open_run, head = connection.execute(
        "SELECT owner, open_run, head FROM session WHERE session_id = ?", (start.session_id,)
    ).fetchone()
    if held_by is not None and not terms.take_over:
        refuse_if_held(start.session_id, held_by)
    check_home(connection, unfinished=open_run is not None, take_over=terms.take_over)
    if open_run is None:
        _begin(connection, start, now)
    else:
        _check_unchanged(connection, open_run, start, terms)
        connection.execute("UPDATE run SET status = 'running' WHERE run_id = ?", (open_run,))
    run_id = open_run or start.run_id
    if terms.command:
        connection.execute("UPDATE run SET command = ? WHERE run_id = ?", (terms.command, run_id))
    (epoch,) = connection.execute(
        "UPDATE session SET owner = ?, open_run = ?, epoch = epoch + 1, updated_ms = ? WHERE session_id = ? "
        "RETURNING epoch",
        (owner.to_text(), run_id, now, start.session_id),
    ).fetchone()
    return Claimed(start.session_id, run_id, epoch, owner, blank=open_run is None and head is None)


def refuse_if_held(session_id: str, held_by: str) -> None:
    """Raise `SessionError`, naming the process, unless the owner is provably gone."""
    owner = owners.from_text(held_by)
    if owner is None:
        raise SessionError(
            f"session {session_id} is held by something unreadable: open it with take_over=True", "in_use"
        )
    match owners.standing(owner):
        case "alive":
            raise SessionError(
                f"session {session_id} is in use by {owner.name}: wait for it or end it, start another session, or "
                "lock that process out of this one (take_over=True)",
                "in_use",
            )
        case "unknown":
            raise SessionError(
                f"session {session_id} was left open by {owner.name}, and from here nobody can tell whether that "
                "still runs: make sure that it does not, then take the session over (take_over=True)",
                "in_use",
            )


def check_home(connection: sqlite3.Connection, *, unfinished: bool, take_over: bool) -> None:
    """Refuse to continue an unfinished run in a copy of its file: it may be going on in the original as well.

    A file is known again by its number in the file system, which renaming keeps and copying does not. A copy
    becomes a file of its own when it is taken over, or when something begins in it and nothing is unfinished.
    A copied machine cannot be told from its original.
    """
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    here = str(os.stat(path).st_ino)
    row = connection.execute("SELECT v FROM meta WHERE k = 'home'").fetchone()
    if row is not None and row[0] == here:
        return
    if row is not None and unfinished and not take_over:
        raise SessionError(
            "this file is a copy, and the unfinished run in it may be going on in the original too: make sure that "
            "it does not, then take the session over (take_over=True)",
            "copied",
        )
    if row is None or take_over or not _anything_unfinished(connection):
        connection.execute(
            "INSERT INTO meta VALUES ('home', ?) ON CONFLICT DO UPDATE SET v = excluded.v", (here,)
        )


def _anything_unfinished(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM session WHERE open_run IS NOT NULL").fetchone() is not None


def _begin(connection: sqlite3.Connection, start: RunStart, now: int) -> None:
    try:
        connection.execute(
            "INSERT INTO run(run_id, session_id, agent, agent_hash, definition, status, started_ms) "
            "VALUES (?, ?, ?, ?, ?, 'running', ?)",
            (start.run_id, start.session_id, start.agent, start.agent_hash, start.definition, now),
        )
    except sqlite3.IntegrityError as error:
        raise SessionError(f"run {start.run_id} exists already: give each run an id of its own") from error


def _check_unchanged(connection: sqlite3.Connection, run_id: str, start: RunStart, terms: Terms) -> None:
    agent, agent_hash, definition = connection.execute(
        "SELECT agent, agent_hash, definition FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    if agent_hash == start.agent_hash:
        return
    if not terms.accept_changes:
        raise SessionError(
            f"session {start.session_id} has an unfinished run of an agent that was defined otherwise:\n"
            f"{_difference(agent, agent_hash, definition, start)}\n"
            "Undo the change to continue it, accept it (accept_changes=True), or rewind the session",
            "changed",
        )
    connection.execute(
        "UPDATE run SET agent = ?, agent_hash = ?, definition = ? WHERE run_id = ?",
        (start.agent, start.agent_hash, start.definition, run_id),
    )


def _difference(agent: str, agent_hash: str, definition: str, start: RunStart) -> str:
    before = [f"agent {agent}", *definition.splitlines()]
    after = [f"agent {start.agent}", *start.definition.splitlines()]
    names = [_tools_in(facts) for facts in (before, after)]
    lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
    changed = [_shown(line, names[0] ^ names[1]) for line in lines if not line.startswith("@@")]
    return "\n".join(changed[:40]) or f"-definition {agent_hash[:12]}\n+definition {start.agent_hash[:12]}"


_TOOL = re.compile(r"tool (\S+): ")


def _tools_in(facts: Sequence[str]) -> set[str]:
    return {found[1] for fact in facts if (found := _TOOL.match(fact))}


def _shown(line: str, on_one_side: Container[str]) -> str:
    """A line of a difference. Of a tool that the other side lacks its name says all."""
    found = _TOOL.match(line, 1)
    if found and found[1] in on_one_side:
        return f"{line[0]}tool {found[1]}"
    return line if len(line) <= 200 else line[:199] + "…"


def head_of(connection: sqlite3.Connection, session_id: str) -> int | None:
    """The branch's last entry."""
    query = f"SELECT {HEAD} FROM session WHERE session_id = ?"  # noqa: S608 - HEAD is ours
    (head,) = connection.execute(query, (session_id,)).fetchone()
    return None if head is None else int(head)


def check_held(connection: sqlite3.Connection, claimed: Claimed) -> None:
    """What every write begins with. Raises `SessionError` if another process holds the session by now."""
    held = connection.execute(
        "SELECT 1 FROM session WHERE session_id = ? AND epoch = ?", (claimed.session_id, claimed.epoch)
    ).fetchone()
    if held is None:
        raise _fenced(connection, claimed)


def _fenced(connection: sqlite3.Connection, claimed: Claimed) -> SessionError:
    row = connection.execute(
        "SELECT owner FROM session WHERE session_id = ?", (claimed.session_id,)
    ).fetchone()
    if row is None:
        return SessionError(
            f"session {claimed.session_id} was deleted while it was in use: nothing more is written", "gone"
        )
    taker = owners.from_text(row[0]) if row[0] else None
    by = f"by {taker.name}" if taker else "by another process"
    return SessionError(
        f"session {claimed.session_id} was taken over {by}: this one stops, and nothing more is written",
        "taken_over",
    )


def finish(
    connection: sqlite3.Connection, claimed: Claimed, head: int | None, now: int, *, end: RunEnd
) -> int | None:
    """End or suspend the run, and give the session back: the last step on its branch."""
    connection.execute(
        "UPDATE run SET status = ?, stop_reason = ?, text = ?, error = ?, ended_ms = ? WHERE run_id = ?",
        (_STATUS.get(end.stop_reason, "done"), end.stop_reason, end.text, end.error, now, claimed.run_id),
    )
    connection.execute(
        "UPDATE session SET owner = NULL, updated_ms = ?, open_run = ?, head = ? WHERE session_id = ?",
        (now, claimed.run_id if end.stop_reason in SUSPENDED else None, head, claimed.session_id),
    )
    return head


def give_back(connection: sqlite3.Connection, claimed: Claimed) -> None:
    """Let go of a session whose run has not ended, as if the process had gone."""
    check_held(connection, claimed)
    connection.execute("UPDATE session SET owner = NULL WHERE session_id = ?", (claimed.session_id,))
