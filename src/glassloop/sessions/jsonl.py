"""A session as JSON lines, and back: the first line says what it is and its version, then runs, entries, exchanges.

Nothing of an imported file is trusted: every value goes through the same codec as a stored one.
"""

from __future__ import annotations

import base64
import json
import secrets as random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record
from glassloop.sessions import branch, codec, shapes, wire_log
from glassloop.sessions.claiming import checked_id, now_ms
from glassloop.sessions.listing import info
from glassloop.sessions.records import keep_blobs

VERSION = 1
FORMAT = "glassloop-session"

_RUN_COLUMNS = (
    "agent",
    "agent_hash",
    "definition",
    "status",
    "stop_reason",
    "text",
    "error",
    "started_ms",
    "ended_ms",
)
_BAD_LINE = (KeyError, TypeError, ValueError, OverflowError, RecursionError)
_RUN = (
    "SELECT agent, agent_hash, definition, status, stop_reason, text, error, started_ms, ended_ms FROM run "
    "WHERE run_id = ?"
)
_SESSION_COLUMNS = ("name", "title", "created_ms", "updated_ms")


def lines(
    connection: sqlite3.Connection, session_id: str, secrets: tuple[str, ...] = (), *, wire: bool = False
) -> Iterator[str]:
    """The session's branch, one JSON object a line. Large texts and files stand in the entries themselves."""
    found = info(connection, session_id)
    head = {"format": FORMAT, "version": VERSION, "session_id": session_id}
    yield _line({**head, **{name: getattr(found, name) for name in _SESSION_COLUMNS}}, secrets)
    rows = branch.path(connection, found.head)
    run_ids = list(dict.fromkeys(row.run_id for row in rows))
    for run_id in run_ids:
        values = connection.execute(_RUN, (run_id,)).fetchone()
        yield _line({"run": run_id, **dict(zip(_RUN_COLUMNS, values, strict=True))}, secrets)
    for row, one in zip(rows, branch.read(connection, rows), strict=True):
        encoded = codec.encode(one.record.value, secrets, aside=False)
        facts = {
            "entry": row.type,
            "run": row.run_id,
            "seq": row.seq,
            "at_ms": row.at_ms,
            "seconds": row.seconds,
        }
        yield _line({**facts, "cost": row.cost, "value": json.loads(encoded.body)})
    for run_id in run_ids if wire else ():
        for exchange in wire_log.exchanges(connection, run_id):
            yield _line(_exchange(exchange), secrets)


def _line(value: JSON, secrets: tuple[str, ...] = ()) -> str:
    return codec.cleaned(json.dumps(value, ensure_ascii=False, allow_nan=False), secrets)


def _exchange(one: wire_log.Exchange) -> dict[str, JSON]:
    return {
        "exchange": one.n,
        "run": one.run_id,
        "method": one.method,
        "url": one.url,
        "request_headers": dict(one.request_headers),
        "request": _body(one.request),
        "status": one.status,
        "response_headers": dict(one.response_headers),
        "response": _body(one.response),
        "chunks": [list(chunk) for chunk in one.chunks],
        "error": one.error,
        "started_ms": one.started_ms,
        "ended_ms": one.ended_ms,
    }


def _body(data: bytes) -> JSON:
    """Text where it is text, so that people can read it."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


# ── back ─────────────────────────────────────────────────────────────────────────────────────────────


def read_back(connection: sqlite3.Connection, text: Iterable[str], secrets: tuple[str, ...] = ()) -> str:
    """Make a new session of exported lines, inside a transaction. Gives its id. Raises `SessionError`.

    Ids that are taken, or that will not do, are replaced by new ones. Exchanges are not taken over.
    """
    objects = _objects(text)
    first = next(objects, None)
    if first is None or first.get("format") != FORMAT:
        raise SessionError(f"this is no exported session: its first line should say {FORMAT!r}")
    if first.get("version") != VERSION:
        raise SessionError(
            f"this export has version {first.get('version')!r}; this Glassloop reads version {VERSION}"
        )
    session_id = _free_id(connection, "session", first.get("session_id"))
    title = codec.cleaned(str(first.get("title", ""))[:200], secrets)
    connection.execute(
        "INSERT INTO session(session_id, title, created_ms, updated_ms) VALUES (?, ?, ?, ?)",
        (session_id, title, _whole(first.get("created_ms")), now_ms()),
    )
    runs: dict[str, str] = {}
    head: int | None = None
    for number, one in enumerate(objects, 2):
        try:
            if "entry" in one:
                head = _add_entry(connection, one, runs[str(one.get("run"))], head, secrets)
            elif "run" in one and "exchange" not in one:
                runs[str(one["run"])] = _add_run(connection, one, session_id, secrets)
        except (*_BAD_LINE, sqlite3.IntegrityError, SessionError) as error:
            raise SessionError(f"line {number} of the export cannot be read: {error}") from error
    connection.execute("UPDATE session SET head = ? WHERE session_id = ?", (head, session_id))
    return session_id


def _objects(text: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SessionError(f"line {number} of the export is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise SessionError(f"line {number} of the export is no object")
        yield found


def _free_id(connection: sqlite3.Connection, what: str, wanted: Any) -> str:
    statement = {
        "session": "SELECT 1 FROM session WHERE session_id = ?",
        "run": "SELECT 1 FROM run WHERE run_id = ?",
    }
    try:
        checked = checked_id(what, str(wanted))
    except SessionError:
        return random.token_hex(6)
    taken = connection.execute(statement[what], (checked,)).fetchone()
    return random.token_hex(6) if taken else checked


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < 2**53 else now_ms()


def _add_run(
    connection: sqlite3.Connection, one: Mapping[str, Any], session_id: str, secrets: tuple[str, ...]
) -> str:
    """A run that had not ended where it was exported has ended here: its process is elsewhere."""
    run_id = _free_id(connection, "run", one["run"])
    said = {name: codec.cleaned(str(one.get(name) or ""), secrets) for name in _RUN_COLUMNS}
    status = said["status"] if said["status"] in ("done", "failed", "cancelled") else "cancelled"
    connection.execute(
        "INSERT INTO run(run_id, session_id, agent, agent_hash, definition, status, stop_reason, text, error, "
        "started_ms, ended_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run_id,
            session_id,
            said["agent"],
            said["agent_hash"],
            said["definition"],
            status,
            said["stop_reason"] or None,
            said["text"],
            said["error"] or None,
            _whole(one.get("started_ms")),
            _whole(one.get("ended_ms")),
        ),
    )
    return run_id


def _add_entry(
    connection: sqlite3.Connection,
    one: Mapping[str, Any],
    run_id: str,
    head: int | None,
    secrets: tuple[str, ...],
) -> int | None:
    def no_blob(digest: str) -> bytes:
        raise SessionError("it refers to a blob, and an export holds none")

    if one["entry"] not in shapes.RECORDS:
        raise SessionError(f"unknown type {str(one['entry'])[:40]!r}")
    value = codec.decode(str(one["entry"]), json.dumps(one["value"]), no_blob)
    cost = None if one.get("cost") is None else float(one["cost"])
    record = Record(int(one["seq"]), value, float(one.get("seconds", 0.0)), cost)
    encoded = codec.encode(value, secrets)
    keep_blobs(connection, run_id, encoded.blobs)
    return connection.execute(
        "INSERT INTO entry(parent_id, run_id, seq, type, body, masked, seconds, cost, at_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            head,
            run_id,
            record.seq,
            encoded.tag,
            encoded.body,
            encoded.masked,
            record.seconds,
            record.cost,
            _whole(one.get("at_ms")),
        ),
    ).lastrowid
