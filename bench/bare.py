"""The bare sqlite3 loop: the rows of a journal, as durably, without anything that makes them safe to come back to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_INSERT = "INSERT INTO entry(run, seq, type, body) VALUES (?, ?, ?, ?)"


class Bare:
    """Two commits a round: a reply with the intents of its calls, then their results."""

    def __init__(self, path: Path | str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS entry(id INTEGER PRIMARY KEY, run TEXT, seq INTEGER, type TEXT, body TEXT)"
        )
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS op(run TEXT, seq INTEGER, body TEXT, state TEXT, PRIMARY KEY(run, seq))"
        )

    def replied(self, run: str, seq: int, reply: dict[str, Any], calls: Sequence[dict[str, Any]]) -> None:
        """The reply, and what is about to be done: nothing where it has no calls."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        db.execute(_INSERT, (run, seq, "reply", json.dumps(reply)))
        for number, call in enumerate(calls, seq + 1):
            arguments = call["arguments"] if "arguments" in call else call["function"]["arguments"]
            verdict = {"call": call, "arguments": arguments}
            db.execute(_INSERT, (run, number, "verdict", json.dumps(verdict)))
            db.execute("INSERT INTO op VALUES (?, ?, ?, 'intent')", (run, number, json.dumps(call)))
        db.execute("COMMIT")

    def finished(self, run: str, seq: int, call_id: str, text: str) -> None:
        """A call's result."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        db.execute(_INSERT, (run, seq, "result", json.dumps({"call_id": call_id, "text": text})))
        db.execute("UPDATE op SET state = 'ok' WHERE run = ? AND seq = ?", (run, seq))
        db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()
