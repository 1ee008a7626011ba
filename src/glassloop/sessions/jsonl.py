"""A session as JSON lines, and back: the first line says what it is and its version, then runs, entries, exchanges.

Nothing of an imported file is trusted: every value goes through the same codec as a stored one.
"""

from __future__ import annotations

import base64
import json
import math
import secrets as random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record
from glassloop.core.jsonlines import objects_in
from glassloop.sessions import branch, codec, masking, setups, shapes, wire_log
from glassloop.sessions.claiming import checked_id, now_ms
from glassloop.sessions.listing import info
from glassloop.sessions.loose_ends import LooseEnds
from glassloop.sessions.records import insert_entry, keep_blobs

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
_FURTHEST = 2**52
"""A run that takes more numbers than this is none."""

_BAD_LINE = (KeyError, TypeError, ValueError, OverflowError, RecursionError)
_RUN = (
    "SELECT agent, agent_hash, definition, status, stop_reason, text, error, started_ms, ended_ms, setup FROM run "
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
        *values, setup = connection.execute(_RUN, (run_id,)).fetchone()
        facts = dict(zip(_RUN_COLUMNS, values, strict=True))
        yield _line({"run": run_id, **facts, "setup": json.loads(setup) if setup else None}, secrets)
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
        before: wire_log.Exchange | None = None
        for exchange in wire_log.exchanges(connection, run_id):
            yield _line(_exchange(exchange, before, secrets), secrets)
            before = exchange


def _line(value: JSON, secrets: tuple[str, ...] = ()) -> str:
    return codec.cleaned(json.dumps(value, ensure_ascii=False, allow_nan=False), secrets)


def _exchange(
    one: wire_log.Exchange, before: wire_log.Exchange | None, secrets: tuple[str, ...]
) -> dict[str, JSON]:
    """An exchange; with how its endpoint and its agent were set up only where that is new."""
    response = masking.body(one.response, secrets)
    known = (before.endpoint, before.agent) if before else ("", "")
    return {
        "exchange": one.n,
        "run": one.run_id,
        "endpoint": json.loads(one.endpoint) if one.endpoint != known[0] else None,
        "agent": json.loads(one.agent) if one.agent != known[1] else None,
        "method": one.method,
        "url": one.url,
        "request_headers": dict(one.request_headers),
        "request": _body(one.request),
        "status": one.status,
        "response_headers": dict(one.response_headers),
        "response": _body(response),
        "chunks": wire_log.fitting(one.chunks, one.response, response),
        "error": one.error,
        "started_ms": one.started_ms,
        "ended_ms": one.ended_ms,
        "after": one.after,
        "epoch": one.epoch,
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

    Ids that are taken, or that will not do, are replaced by new ones.
    """
    objects = (found for _, found in objects_in(text, "export"))
    first = next(objects, None)
    if first is None or first.get("format") != FORMAT:
        raise SessionError(f"this is no exported session: its first line should say {FORMAT!r}")
    if first.get("version") != VERSION:
        raise SessionError(
            f"this export has version {first.get('version')!r}; this Glassloop reads version {VERSION}"
        )
    session_id = _free_id(connection, "session", first.get("session_id"))
    title = codec.cleaned(str(first.get("title") or "")[:200], secrets)
    connection.execute(
        "INSERT INTO session(session_id, title, created_ms, updated_ms) VALUES (?, ?, ?, ?)",
        (session_id, title, _whole(first.get("created_ms")), now_ms()),
    )
    runs: dict[str, str] = {}
    told = _Branch(connection, secrets)
    before: dict[str, tuple[int, bytes]] = {}
    for number, one in enumerate(objects, 2):
        try:
            if "entry" in one:
                told.add(one, runs[str(one.get("run"))])
            elif "exchange" in one:
                exchange = _exchange_of(one, runs[str(one.get("run"))], secrets)
                before[exchange.run_id] = wire_log.insert(connection, exchange, before.get(exchange.run_id))
            elif "run" in one:
                runs[str(one["run"])] = _add_run(connection, one, session_id, secrets)
        except (*_BAD_LINE, sqlite3.IntegrityError, SessionError) as error:
            raise SessionError(f"line {number} of the export cannot be read: {error}") from error
    told.close_run()
    connection.execute("UPDATE session SET head = ? WHERE session_id = ?", (told.head, session_id))
    return session_id


def _free_id(connection: sqlite3.Connection, what: str, wanted: Any) -> str:
    statement = {
        "session": "SELECT 1 FROM session WHERE session_id = ?",
        "run": "SELECT 1 FROM run WHERE run_id = ?",
    }
    try:
        checked = checked_id(what, wanted if isinstance(wanted, str) else "")
    except SessionError:
        return random.token_hex(6)
    taken = connection.execute(statement[what], (checked,)).fetchone()
    return random.token_hex(6) if taken else checked


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < 2**53 else now_ms()


def _place(value: Any) -> int:
    if not isinstance(value, int) or abs(value) > _FURTHEST:
        raise ValueError(f"a place in a run is a whole number, not {value!r:.40}")
    return value


def _finite(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value!r:.40} is no number")
    return float(value)


def _add_run(
    connection: sqlite3.Connection, one: Mapping[str, Any], session_id: str, secrets: tuple[str, ...]
) -> str:
    """A run that had not ended where it was exported has ended here: its process is elsewhere."""
    run_id = _free_id(connection, "run", one["run"])
    said = {name: codec.cleaned(str(one.get(name) or ""), secrets) for name in _RUN_COLUMNS}
    status = said["status"] if said["status"] in ("done", "failed", "cancelled") else "cancelled"
    connection.execute(
        "INSERT INTO run(run_id, session_id, agent, agent_hash, definition, status, stop_reason, text, error, "
        "started_ms, ended_ms, setup) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            setups.checked_agent_text(one["setup"], secrets) if one.get("setup") else None,
        ),
    )
    return run_id


def _exchange_of(one: Mapping[str, Any], run_id: str, secrets: tuple[str, ...]) -> wire_log.Exchange:
    response = _bytes_of(one["response"])
    chunks = tuple((int(at), int(size)) for at, size in one["chunks"])
    masked = masking.body(response, secrets)
    return wire_log.Exchange(
        run_id,
        0,
        str(one["method"]),
        masking.address(str(one["url"]), secrets),
        masking.headers(_texts(one["request_headers"]), secrets),
        masking.body(_bytes_of(one["request"]), secrets),
        None if one["status"] is None else int(one["status"]),
        masking.headers(_texts(one["response_headers"]), secrets),
        masked,
        wire_log.fitting(chunks, response, masked),
        None if one["error"] is None else codec.cleaned(str(one["error"]), secrets),
        _whole(one["started_ms"]),
        _whole(one["ended_ms"]),
        setups.checked_endpoint_text(one["endpoint"], secrets) if one.get("endpoint") else "",
        _place(one["after"]),
        _place(one["epoch"]),
        setups.checked_agent_text(one["agent"], secrets) if one.get("agent") else "",
    )


def _texts(value: Any) -> dict[str, str]:
    return {str(name): str(one) for name, one in dict(value).items()}


def _bytes_of(value: Any) -> bytes:
    """What `_body` wrote."""
    if isinstance(value, dict):
        return base64.b64decode(value["base64"], validate=True)
    if not isinstance(value, str):
        raise ValueError("a body is text, or base64")
    return value.encode("utf-8")


@dataclass(slots=True)
class _Branch:
    """The entries as they are added, one after the other, and those that an unfinished run still needs."""

    connection: sqlite3.Connection
    secrets: tuple[str, ...]
    head: int | None = None
    _run_id: str = ""
    _at_ms: int = 0
    _ends: LooseEnds = field(default_factory=LooseEnds)

    def add(self, one: Mapping[str, Any], run_id: str) -> None:
        if one["entry"] not in shapes.RECORDS:
            raise SessionError(f"unknown type {str(one['entry'])[:40]!r}")
        value = codec.decode(str(one["entry"]), json.dumps(one["value"]), _no_blob)
        cost = None if one.get("cost") is None else _finite(one["cost"])
        record = Record(_place(one["seq"]), value, _finite(one.get("seconds", 0.0)), cost)
        if run_id != self._run_id:
            self.close_run()
            self._run_id, self._ends = run_id, LooseEnds()
        self._at_ms = _whole(one.get("at_ms"))
        for each in (*self._ends.note(record), record):
            self._insert(each)

    def close_run(self) -> None:
        """Give calls without a result the one that is true of them: the run does not go on here."""
        for record in self._ends.results():
            self._insert(record)

    def _insert(self, record: Record) -> None:
        encoded = codec.encode(record.value, self.secrets)
        keep_blobs(self.connection, self._run_id, encoded.blobs)
        added = insert_entry(self.connection, self.head, self._run_id, (record, encoded), self._at_ms)
        if added is None:
            raise SessionError(f"run {self._run_id} has two of type {encoded.tag} at {record.seq}")
        self.head = added


def _no_blob(digest: str) -> bytes:
    raise SessionError("it refers to a blob, and an export holds none")
