"""Branches: a fork goes on elsewhere from an entry, a rewind goes on here from an earlier one. Nothing is deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from glassloop.core.entries import Reply, ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.sessions import branch
from glassloop.sessions.branch import Stored
from glassloop.sessions.claiming import checked_id, now_ms, refuse_if_held
from glassloop.sessions.listing import info


@dataclass(frozen=True, slots=True)
class Branch:
    """A tip of a session's tree. `head` says whether it is the one that goes on."""

    entry_id: int
    entries: int
    last_task: str
    at_ms: int
    head: bool


def fork(connection: sqlite3.Connection, session_id: str, new_id: str, at: int | None = None) -> int | None:
    """A new session that shares what was said up to entry `at` (default: all). Gives its last entry.

    It never ends between a call and its result: then it ends before the reply that made the call.
    """
    checked_id("session", new_id)
    found = info(connection, session_id)
    head = sendable(_up_to(connection, session_id, found.head, at))
    now = now_ms()
    try:
        connection.execute(
            "INSERT INTO session(session_id, title, folder, forked_from, head, created_ms, updated_ms) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (new_id, found.title, found.folder, session_id, head, now, now),
        )
    except sqlite3.IntegrityError as error:
        raise SessionError(f"there is a session {new_id} already: fork to another id") from error
    return head


def rewind(connection: sqlite3.Connection, session_id: str, to: int) -> int | None:
    """Go on from entry `to` of this session's tree. What came after it stays, as a branch."""
    head = sendable(_up_to(connection, session_id, info(connection, session_id).head, to))
    _move(connection, session_id, head)
    return head


def undo(connection: sqlite3.Connection, session_id: str, turns: int = 1) -> str:
    """Go back to before the last task (or the last `turns` of them). Gives the text of that task."""
    stored = branch.read(connection, branch.path(connection, info(connection, session_id).head))
    tasks = [one for one in stored if isinstance(one.record.value, User) and one.record.value.kind == "task"]
    if turns < 1 or turns > len(tasks):
        raise SessionError(f"session {session_id} has {len(tasks)} tasks: cannot go back by {turns}")
    task = tasks[-turns]
    before = [one for one in stored if one.entry_id < task.entry_id]
    _move(connection, session_id, sendable(before))
    return task.record.value.text if isinstance(task.record.value, User) else ""


def sendable(stored: Sequence[Stored]) -> int | None:
    """The last of these entries after which every call has its result: before a turn that is still open."""
    open_calls: dict[tuple[str, str], int | None] = {}
    for one in stored:
        match one.record.value:
            case Reply() as reply:
                open_calls.update({(one.run_id, call.id): one.parent_id for call in reply.tool_calls})
            case ToolResult() as result:
                open_calls.pop((one.run_id, result.call_id), None)
    if open_calls:
        return next(iter(open_calls.values()))
    return stored[-1].entry_id if stored else None


def branches(connection: sqlite3.Connection, session_id: str) -> list[Branch]:
    """The tips of the session's tree, the oldest first."""
    head = info(connection, session_id).head
    tips = connection.execute(
        "SELECT entry_id FROM entry WHERE run_id IN (SELECT run_id FROM run WHERE session_id = ?) "
        "AND entry_id NOT IN (SELECT parent_id FROM entry WHERE parent_id IS NOT NULL)",
        (session_id,),
    ).fetchall()
    ids = sorted({tip for (tip,) in tips} | ({head} if head is not None else set()))
    return [_branch(branch.read(connection, branch.path(connection, tip)), tip == head) for tip in ids]


def _branch(stored: Sequence[Stored], head: bool) -> Branch:
    tasks = [one.record.value.text for one in stored if isinstance(one.record.value, User)]
    last = stored[-1]
    return Branch(last.entry_id, len(stored), tasks[-1] if tasks else "", last.at_ms, head)


def _up_to(connection: sqlite3.Connection, session_id: str, head: int | None, at: int | None) -> list[Stored]:
    """The branch that ends with an entry of this session: one on its branch, or of its own runs."""
    if at is None:
        return branch.read(connection, branch.path(connection, head))
    rows = branch.path(connection, at)
    own = (
        bool(rows)
        and connection.execute(
            "SELECT 1 FROM run WHERE run_id = ? AND session_id = ?", (rows[-1].run_id, session_id)
        ).fetchone()
    )
    if not own and at not in {row.entry_id for row in branch.path(connection, head)}:
        raise SessionError(f"session {session_id} has no entry {at}: show it to see its entries")
    return branch.read(connection, rows)


def _move(connection: sqlite3.Connection, session_id: str, head: int | None) -> None:
    """Set the branch's end; a run that had not ended is over with that. The session must be free."""
    held_by, open_run = connection.execute(
        "SELECT owner, open_run FROM session WHERE session_id = ?", (session_id,)
    ).fetchone()
    if held_by is not None:
        refuse_if_held(session_id, held_by)
    if open_run is not None:
        connection.execute(
            "UPDATE run SET status = 'cancelled', stop_reason = 'cancelled', ended_ms = ? WHERE run_id = ?",
            (now_ms(), open_run),
        )
    connection.execute(
        "UPDATE session SET head = ?, open_run = NULL, owner = NULL, epoch = epoch + 1, updated_ms = ? "
        "WHERE session_id = ?",
        (head, now_ms(), session_id),
    )
