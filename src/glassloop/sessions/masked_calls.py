"""Calls of an interrupted run whose arguments held a secret. The secret was not kept, so what is left of such a
call is not what was asked: it must not run.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from glassloop.core.entries import ResultState, Text, ToolCall, ToolResult
from glassloop.core.journal import Record
from glassloop.sessions import codec, records
from glassloop.sessions.branch import blob_reader
from glassloop.sessions.claiming import WITHOUT_RESULT, Claimed

_NOT_STARTED = (
    "Not run: the run was interrupted before this call, and its arguments held a secret, which is not kept. "
    "Make the call again if it is still needed."
)
_STARTED = (
    "Started, then interrupted; whether it took effect is unknown. It is not repeated, for its arguments held a "
    "secret, which is not kept. Check before making the call again."
)

_OPEN = f"""
SELECT seq, body, attempt IS NOT NULL, seconds FROM entry AS call
WHERE run_id = ? AND type = 'verdict' AND masked AND {WITHOUT_RESULT} ORDER BY seq
"""  # noqa: S608 - WITHOUT_RESULT is ours


def close(connection: sqlite3.Connection, claimed: Claimed) -> None:
    """Give each of them the result that is true of it.

    A `once` call that was started is left to whoever resolves what is unknown: nobody repeats it by itself.
    """
    results = []
    for seq, body, started, seconds in connection.execute(_OPEN, (claimed.run_id,)).fetchall():
        verdict: Any = codec.decode("verdict", body, blob_reader(connection))
        if not started:
            results.append(Record(seq, _result(verdict.call, _NOT_STARTED, "refused"), seconds))
        elif verdict.effect != "once":
            results.append(Record(seq, _result(verdict.call, _STARTED, "unknown"), seconds))
    if results:
        records.append(connection, claimed, results)


def _result(call: ToolCall, words: str, state: ResultState) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(words),), state)
