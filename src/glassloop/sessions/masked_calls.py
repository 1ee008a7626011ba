"""Calls of an interrupted run whose arguments held a secret. The secret was not kept, so what is left of such a
call is not what was asked: it must not run.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from glassloop.core.entries import Text, ToolResult
from glassloop.core.journal import Record
from glassloop.sessions import codec, records
from glassloop.sessions.branch import blob_reader
from glassloop.sessions.claiming import Claimed

_NOT_STARTED = (
    "Not run: the run was interrupted before this call, and its arguments held a secret, which is not kept. "
    "Make the call again if it is still needed."
)
_STARTED = (
    "Started, then interrupted; whether it took effect is unknown. It is not repeated, for its arguments held a "
    "secret, which is not kept. Check before making the call again."
)

# A `once` call that was started is left to whoever resolves what is unknown: nobody repeats it by itself.
_OPEN = """
SELECT verdict.seq, verdict.body, op.effect IS NOT NULL, verdict.seconds FROM entry AS verdict
LEFT JOIN operation AS op ON op.run_id = verdict.run_id AND op.seq = verdict.seq
WHERE verdict.run_id = ? AND verdict.type = 'verdict' AND verdict.masked AND op.effect IS NOT 'once'
AND NOT EXISTS (SELECT 1 FROM entry AS result
  WHERE result.run_id = verdict.run_id AND result.seq = verdict.seq AND result.type = 'tool_result')
ORDER BY verdict.seq
"""


def close(connection: sqlite3.Connection, claimed: Claimed) -> None:
    """Give each of them the result that is true of it."""
    rows = connection.execute(_OPEN, (claimed.run_id,)).fetchall()
    results = [_result(connection, *row) for row in rows]
    if results:
        records.append(connection, claimed, results)


def _result(connection: sqlite3.Connection, seq: int, body: str, started: bool, seconds: float) -> Record:
    verdict: Any = codec.decode("verdict", body, blob_reader(connection))
    call = verdict.call
    if not started:
        return Record(seq, ToolResult(call.id, call.name, (Text(_NOT_STARTED),), "refused"), seconds)
    return Record(seq, ToolResult(call.id, call.name, (Text(_STARTED),), "unknown"), seconds)
