"""Writing what happened: records as entries of the tree, intents beside their verdicts, questions as approvals."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from glassloop.core.entries import JSON, User
from glassloop.core.errors import SessionError
from glassloop.core.journal import Intent, Record
from glassloop.core.tools import Decision, Verdict
from glassloop.sessions.claiming import WITHOUT_RESULT, Claimed, check_held, head_of, now_ms
from glassloop.sessions.codec import Encoded, encode

_TITLE = 200

_INSERT = (
    "INSERT INTO entry(parent_id, run_id, seq, type, body, masked, seconds, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
_INSERT_WITH_COST = (
    "INSERT INTO entry(parent_id, run_id, seq, type, body, masked, seconds, at_ms, cost) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)

Written = tuple[Record, Encoded]
"""A record beside its stored form. Encoding is done before the transaction, so that it is short."""

Step = Callable[[sqlite3.Connection, Claimed, "int | None", int], "int | None"]
"""Writes something, given the last entry of the branch and the time; gives what is the last entry now."""


def write(
    connection: sqlite3.Connection, claimed: Claimed, head: int | None, steps: Iterable[Step]
) -> int | None:
    """Take steps on the branch of a session that is held, in their order, after its last entry. Gives what is the
    last entry now. Raises `SessionError` if the session is not held.
    """
    check_held(connection, claimed)
    now = now_ms()
    for step in steps:
        head = step(connection, claimed, head, now)
    return head


def append(
    connection: sqlite3.Connection, claimed: Claimed, happened: Iterable[Record], secrets: Iterable[str] = ()
) -> None:
    """Add records and nothing else."""
    known = tuple(secrets)
    written = [(one, encode(one.value, known)) for one in happened]
    head = head_of(connection, claimed.session_id)
    write(connection, claimed, head, [partial(add, written=written)])


def add(
    connection: sqlite3.Connection,
    claimed: Claimed,
    head: int | None,
    now: int,
    *,
    written: Iterable[Written],
) -> int | None:
    """Append records to the branch, in their order. The first result of a call stands; a second is not taken."""
    for record, encoded in written:
        if encoded.blobs:
            keep_blobs(connection, claimed.run_id, encoded.blobs)
        added = insert_entry(connection, head, claimed.run_id, (record, encoded), now)
        if added is not None:
            head = added
        elif encoded.tag != "tool_result":
            raise SessionError(
                f"run {claimed.run_id} has a {encoded.tag} at {record.seq} already: two cannot stand there"
            )
        match record.value:
            case Verdict(outcome="ask") as verdict:
                _ask(connection, claimed.run_id, record.seq, verdict, encoded)
            case Decision() as decision:
                _answer(connection, claimed.run_id, record.seq, decision, now)
            case User(kind="task") as task if task.text.strip():
                _set_title(connection, claimed.session_id, encoded)
    return head


def insert_entry(
    connection: sqlite3.Connection, parent: int | None, run_id: str, written: Written, at_ms: int
) -> int | None:
    """Add a record as an entry. Gives its id, or None where another of its type stands in its place already."""
    # For whatever is not exactly an int, float or str, None too, `sqlite3` looks for an adapter, which costs more than
    # the row. Few records have a cost, and the first of a session has no parent.
    record, encoded = written
    tag, body, masked = encoded.tag, encoded.body, int(encoded.masked)
    row = (parent, run_id, record.seq, tag, body, masked, record.seconds, at_ms)
    if record.cost is None:
        added = connection.execute(_INSERT, row)
    else:
        added = connection.execute(_INSERT_WITH_COST, (*row, record.cost))
    return added.lastrowid if added.rowcount else None


def latest_seconds(connection: sqlite3.Connection, run_id: str) -> float:
    """How long the run had taken when it was last written to: for what is entered while it stands still."""
    row = connection.execute(
        "SELECT coalesce(max(seconds), 0.0) FROM entry WHERE run_id = ?", (run_id,)
    ).fetchone()
    return float(row[0])


def keep_blobs(connection: sqlite3.Connection, run_id: str, blobs: Mapping[str, bytes]) -> None:
    """Store what was put aside, once, and note who uses it."""
    for digest, data in blobs.items():
        connection.execute(
            "INSERT INTO blob VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (digest, len(data), data)
        )
        connection.execute("INSERT INTO blob_use VALUES (?, ?) ON CONFLICT DO NOTHING", (run_id, digest))


_BEGIN = f"""
UPDATE entry AS call SET attempt = coalesce(attempt, 0) + 1, key = coalesce(key, ?), epoch = ?, started_ms = ?
WHERE run_id = ? AND seq = ? AND type = 'verdict' AND {WITHOUT_RESULT}
"""  # noqa: S608 - WITHOUT_RESULT is ours


def intend(
    connection: sqlite3.Connection, claimed: Claimed, head: int | None, now: int, *, intents: Iterable[Intent]
) -> int | None:
    """Write down calls that are about to run; again, and it is a further attempt. One that ended cannot begin."""
    for one in intents:
        place = (claimed.run_id, one.seq)
        begun = connection.execute(_BEGIN, (one.key, claimed.epoch, now, *place))
        if not begun.rowcount:
            raise SessionError(
                f"{one.call.name} at {one.seq} of run {claimed.run_id} {_why_not(connection, *place)}"
            )
    return head


def _why_not(connection: sqlite3.Connection, run_id: str, seq: int) -> str:
    types = connection.execute("SELECT type FROM entry WHERE run_id = ? AND seq = ?", (run_id, seq))
    if ("tool_result",) in types:
        return "has a result already: it must not run again"
    return "was not prepared: commit its verdict first"


def arguments_hash(arguments: Mapping[str, JSON]) -> str:
    """A fingerprint of arguments, the same for any order of their names."""
    text = json.dumps(arguments, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _ask(connection: sqlite3.Connection, run_id: str, seq: int, verdict: Verdict, encoded: Encoded) -> None:
    shown = json.loads(encoded.body).get("text", "")
    connection.execute(
        "INSERT INTO approval(run_id, seq, call_id, args_hash, tool_hash, shown) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (
            run_id,
            seq,
            verdict.call.id,
            arguments_hash(verdict.arguments),
            verdict.tool_hash,
            shown if isinstance(shown, str) else "",
        ),
    )


def _answer(connection: sqlite3.Connection, run_id: str, seq: int, decision: Decision, now: int) -> None:
    connection.execute(
        "UPDATE approval SET decision = ?, reason = ?, by = ?, at_ms = ? WHERE run_id = ? AND seq = ?",
        ("allow" if decision.allowed else "deny", decision.reason, decision.by, now, run_id, seq),
    )


def _set_title(connection: sqlite3.Connection, session_id: str, encoded: Encoded) -> None:
    """The first task, as it is stored: without its secrets."""
    texts = [part.get("text", "") for part in json.loads(encoded.body).get("parts", ())]
    whole = [encoded.blobs[one["blob"]].decode("utf-8") if isinstance(one, dict) else one for one in texts]
    title = " ".join(" ".join(whole)[: 4 * _TITLE].split())[:_TITLE]
    connection.execute(
        "UPDATE session SET title = ? WHERE session_id = ? AND title = ''", (title, session_id)
    )
