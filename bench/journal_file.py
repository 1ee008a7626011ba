"""What the journal's file costs against bare sqlite3 on the same disk: a round; opening, listing and searching.

The bare loop writes the same bodies with `json.dumps`, as durably, in two transactions a round. What is to be
written is made before the clock runs, on both sides: making it is the loop's work.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
from bare import Bare
from table import Target

from glassloop.core.entries import Reply, Text, ToolCall, ToolResult, Usage, User
from glassloop.core.journal import Intent, Record, RunEnd, RunStart
from glassloop.core.tools import Verdict
from glassloop.sessions import words
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store

_ARGUMENTS = {"city": "Oslo", "unit": "celsius"}
_ANSWER = "It is 18 °C in Oslo, with light wind from the west and a few clouds. " * 3
_SESSIONS, _ENTRIES = 100, 1000
_IN_TURN = 20
"""Rounds of one side before the other has its turn."""


class Ours:
    """One run in a `SqliteJournal`."""

    def __init__(self, path: Path, run: str = "run1", session: str = "session1") -> None:
        self.journal = SqliteJournal(path)
        self._start = RunStart(run, session, "bench", "hash")
        self._seq = 2

    async def begin(self, text: str = "What is the weather?") -> None:
        self._run = (await self.journal.open(self._start)).run_id
        await self.journal.commit(self._run, [Record(1, User((Text(text),)))])

    def next_round(self) -> tuple[Record, Record, Intent, Record]:
        seq = self._seq
        self._seq += 2
        call = ToolCall(f"call{seq:08}", "get_weather", _ARGUMENTS, json.dumps(_ARGUMENTS))
        reply = Reply(_ANSWER, tool_calls=(call,), finish_reason="tool_calls", usage=Usage(900, 40, 940))
        result = ToolResult(call.id, call.name, (Text(_ANSWER),), "ok", 0.1)
        return (
            Record(seq, reply, 1.0, 0.001),
            Record(seq + 1, Verdict(call, "ready", _ARGUMENTS)),
            Intent(seq + 1, call, _ARGUMENTS, "once", f"key{seq}"),
            Record(seq + 1, result, 1.1),
        )

    async def round(self, reply: Record, verdict: Record, intent: Intent, result: Record) -> None:
        await self.journal.commit(self._run, [reply])
        await self.journal.commit(self._run, [verdict])
        await self.journal.intend(self._run, [intent])
        await self.journal.commit(self._run, [result])

    async def bulk(self, entries: int) -> None:
        """Many entries in one transaction: what a long session holds already."""
        records = []
        while len(records) < entries:
            seq = self._seq
            call = ToolCall(f"call{seq:08}", "get_weather", _ARGUMENTS, json.dumps(_ARGUMENTS))
            text = f"{_ANSWER} number{seq % 997}"
            records.append(Record(seq, Reply(text, tool_calls=(call,), finish_reason="tool_calls")))
            records.append(Record(seq + 1, ToolResult(call.id, call.name, (Text(text),))))
            self._seq += 2
        await self.journal.commit(self._run, records)

    async def end(self) -> None:
        await self.journal.finish(RunEnd(self._run, "answered", _ANSWER))
        self.journal.close()


class BareRounds:
    """The same rows, written by the bare loop."""

    def __init__(self, path: Path) -> None:
        self._bare = Bare(path)
        self._seq = 2

    def next_round(self) -> tuple[int, dict[str, Any], dict[str, Any]]:
        seq = self._seq
        self._seq += 2
        call = {"id": f"call{seq:08}", "name": "get_weather", "arguments": _ARGUMENTS}
        usage = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
        reply = {"text": _ANSWER, "tool_calls": [call], "finish_reason": "tool_calls", "usage": usage}
        return seq, call, reply

    def round(self, seq: int, call: dict[str, Any], reply: dict[str, Any]) -> None:
        self._bare.replied("run1", seq, reply, [call])
        self._bare.finished("run1", seq + 1, call["id"], _ANSWER)

    def close(self) -> None:
        self._bare.close()


Costs = dict[str, list[float]]
_OPENED, _GOING_ON = "just opened", "log written over"
"""When a round is timed: in a process that has just opened the file, as most do, so that SQLite's write-ahead log
grows; and in one that goes on for so long that the log is written over, which costs the disk less.
"""


async def _round_costs(folder: Path, before: int, rounds: int, repeats: int) -> dict[str, Costs]:
    """Seconds of a round, in turns, on a session that has so many entries already."""
    found: dict[str, Costs] = {when: {} for when in (_OPENED, "", _GOING_ON)}
    for repeat in range(repeats):
        ours, bare = (
            Ours(folder / f"ours{before}-{repeat}.db"),
            BareRounds(folder / f"bare{before}-{repeat}.db"),
        )
        await ours.begin()
        await ours.bulk(before)
        ours.journal.close()  # and opened anew by the next write
        await ours.round(*ours.next_round())
        bare.round(*bare.next_round())
        for when in (_OPENED, "", "", _GOING_ON):
            await _timed_rounds(ours, bare, rounds, found[when])
        await ours.end()
        bare.close()
    del found[""]
    return found


async def _timed_rounds(ours: Ours, bare: BareRounds, rounds: int, found: Costs) -> None:
    """Some of each side in turn, so that a busy moment hits both."""
    spent = dict.fromkeys(("bare", "bare_cpu", "ours", "ours_cpu"), 0.0)
    for _ in range(rounds // _IN_TURN):
        theirs, mine = ([side.next_round() for _ in range(_IN_TURN)] for side in (bare, ours))
        wall, cpu = time.perf_counter(), time.process_time()
        for one in theirs:
            bare.round(*one)
        spent["bare"] += time.perf_counter() - wall
        spent["bare_cpu"] += time.process_time() - cpu
        wall, cpu = time.perf_counter(), time.process_time()
        for made in mine:
            await ours.round(*made)
        spent["ours"] += time.perf_counter() - wall
        spent["ours_cpu"] += time.process_time() - cpu
    for key, seconds in spent.items():
        found.setdefault(key, []).append(seconds / rounds)


async def _large(path: Path) -> None:
    for number in range(_SESSIONS):
        one = Ours(path, f"run{number}", f"session{number}")
        await one.begin(f"Task {number}")
        await one.bulk(_ENTRIES)
        await one.end()


_LOOKS = 8
"""A look takes milliseconds, in which this machine is all fast or all slow: so many more of them are timed."""


def _timed(ours: Callable[[], Any], bare: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """The shortest of some times of each, taken in turn: what it costs when nobody disturbs."""
    found: dict[Callable[[], Any], list[float]] = {ours: [], bare: []}
    for _ in range(_LOOKS * repeats):
        for act, times in found.items():
            began = time.perf_counter()
            act()
            times.append(time.perf_counter() - began)
    return min(found[ours]), min(found[bare])


def _looking(path: Path, repeats: int) -> dict[str, tuple[float, float]]:
    """Ours and bare, in seconds, for each thing that people do with 100,000 entries."""
    store = Store(path)
    store.search("number13")  # what is not yet indexed is indexed before the first search

    def bare(query: str, *values: object, read: Callable[[Any], Any] = list) -> Callable[[], Any]:
        def ask() -> Any:
            connection = sqlite3.connect(path)
            try:
                return read(connection.execute(query, values))
            finally:
                connection.close()

        return ask

    def load(rows: Any) -> list[Any]:
        return [(row, json.loads(row[5])) for row in rows]

    phrases = " AND ".join(words._phrases("number13 Oslo"))

    of_run = bare("SELECT * FROM entry WHERE run_id = ? ORDER BY entry_id", "run50", read=load)
    return {
        "open": _timed(lambda: store.entries("session50"), of_run, repeats),
        "list": _timed(store.sessions, bare(_LIST), repeats),
        "search": _timed(lambda: store.search("number13 Oslo"), bare(_SEARCH, phrases), repeats),
    }


_LIST = """
SELECT session_id, name, title, folder, updated_ms, (SELECT count(*) FROM run WHERE run.session_id = session.session_id)
FROM session ORDER BY updated_ms DESC
"""
_SEARCH = """
SELECT entry.*, rank FROM words JOIN entry ON entry_id = words.rowid WHERE words MATCH ? ORDER BY rank LIMIT 20
"""


def measured(rounds: int = 100, repeats: int = 5) -> tuple[dict[str, Any], list[str], list[Target]]:
    """Figures, lines and targets."""
    folder = Path(tempfile.mkdtemp(prefix="glassloop-bench-"))
    try:
        costs = {
            (before, when): found
            for before in (10, 10_000)
            for when, found in asyncio.run(_round_costs(folder, before, rounds, repeats)).items()
        }
        asyncio.run(_large(folder / "large.db"))
        looks = _looking(folder / "large.db", repeats)
    finally:
        shutil.rmtree(folder)
    lines, targets = [], []
    middle = {
        place: {key: statistics.median(times) for key, times in each.items()} for place, each in costs.items()
    }
    for (before, when), each in middle.items():
        ours, bare, ours_cpu, bare_cpu = (each[key] * 1e3 for key in ("ours", "bare", "ours_cpu", "bare_cpu"))
        lines.append(
            f"  a round after {before:,} entries, {when}: ours {ours:.2f} ms, {ours_cpu:.2f} ms of them CPU; "
            f"bare {bare:.2f} ms, {bare_cpu:.2f} ms of them CPU: {ours / bare:.2f}×"
        )
        if when == _OPENED:
            found = costs[before, when]
            paired = measure.paired(found["ours"], found["bare"])
            targets.append(Target(f"a round's journal after {before:,} entries, against bare", paired, 1.5))
    growth = middle[10_000, _OPENED]["ours"] / middle[10, _OPENED]["ours"]
    targets.append(Target("a round after 10,000 entries, against one after 10", growth, 1.25))
    for what, (ours, bare) in looks.items():
        lines.append(f"  {what} among 100,000 entries: ours {ours * 1e3:.2f} ms, bare {bare * 1e3:.2f} ms")
        targets.append(Target(f"{what} among 100,000 entries, against the bare query", ours / bare, 2.0))
    rounds_found = {f"after {before}, {when}": each for (before, when), each in middle.items()}
    return {"rounds": rounds_found, "looks": looks}, lines, targets


if __name__ == "__main__":
    _, said, aims = measured()
    print("\n".join([*said, *map(str, aims)]))
