"""A journal on disk that turns into one in memory where the disk fails, and says so: the answer matters more."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from glassloop.core.entries import Entry
from glassloop.core.errors import SessionError
from glassloop.core.journal import (
    Intent,
    MemoryJournal,
    Opened,
    Record,
    RunEnd,
    RunStart,
    Session,
    entries_of,
)
from glassloop.core.recording import NoRecorder, Recorder
from glassloop.sessions.journal import SqliteJournal

_AT_ONCE = "This conversation is kept in memory only, and ends with this program."
_MIDWAY = "What follows is kept in memory only. The session on disk ends before it."
_NO_INTENT = (
    "A tool that may not run twice is not started, for nothing could say afterwards that it was. "
    "Solve this, then continue the session."
)


_Write = Callable[[str, Sequence[Record]], Awaitable[None]]


@dataclass(slots=True)
class _Known:
    """All that is known of a session while it is used: enough to go on with it in memory."""

    start: RunStart
    history: tuple[Entry, ...]
    records: list[Record] = field(default_factory=list)
    failure: SessionError | None = None


class MemoryInstead:
    """A `Journal` that writes to `disk` for as long as that can be written.

    A session that cannot be begun there, or no longer be written, goes on in memory; `warn` is told once.
    A run that has lost its place on disk starts no tool whose start must be on disk first. What is no
    failure of the disk (the session is in use, or was taken over) is raised as ever.
    """

    def __init__(self, disk: SqliteJournal, warn: Callable[[str], None]) -> None:
        self._disk = disk
        self._warn = warn
        self._continued: set[str] = set()
        self._memory = MemoryJournal()
        self._in_memory: set[str] = set()
        self._sessions: dict[str, _Known] = {}
        self._runs: dict[str, _Known] = {}

    def holds(self, session_id: str) -> bool:
        """Is this session, as it stands, in memory alone?"""
        return session_id in self._in_memory

    def continued(self, session_id: str) -> Session:
        """A session of the disk, to go on with. It is not begun anew in memory if the disk does not give it."""
        self._continued.add(session_id)
        return Session(session_id, self)

    def wire_log(self, run_id: str) -> Recorder:
        """As `SqliteJournal.wire_log`; a run in memory has none."""
        known = self._runs.get(run_id)
        return self._disk.wire_log(run_id) if known and self._writes(known) else NoRecorder()

    def note(self, command: str) -> None:
        """See `SqliteJournal.command`."""
        self._disk.command = command

    def close(self) -> None:
        """Wait until all is written."""
        self._disk.close()

    # ── the protocol ─────────────────────────────────────────────────────

    async def open(self, start: RunStart) -> Opened:
        if not self.holds(start.session_id):
            try:
                opened = await self._disk.open(start)
            except SessionError as error:
                if not _is_of_the_disk(error) or self._cannot_go_on(start.session_id):
                    raise
                self._warn(f"{error}\n{_AT_ONCE}")
                await self._move_to_memory(start.session_id, going_on=False)
            else:
                return self._learnt(start, opened)
        return self._learnt(start, await self._memory.open(start))

    async def intend(self, run_id: str, intents: Sequence[Intent]) -> None:
        known = self._runs[run_id]
        if known.failure is not None:
            raise SessionError(f"{known.failure}\n{_NO_INTENT}") from known.failure
        if not self._writes(known):
            return await self._memory.intend(run_id, intents)
        try:
            await self._disk.intend(run_id, intents)
        except SessionError as error:
            raise SessionError(f"{error}\n{_NO_INTENT}") from error

    async def commit(self, run_id: str, records: Sequence[Record]) -> None:
        await self._add(run_id, records, self._disk.commit)

    async def decide(self, run_id: str, records: Sequence[Record]) -> None:
        await self._add(run_id, records, self._disk.decide)

    async def finish(self, end: RunEnd) -> None:
        known = self._runs.pop(end.run_id)
        if self._writes(known):
            try:
                await self._disk.finish(end)
            except SessionError as error:
                await self._fallen(known, error)
        elif known.failure is not None:
            with suppress(SessionError):  # it says once more what failed, and lets the session go
                await self._disk.finish(end)
        if not self._writes(known):
            await self._memory.finish(end)

    # ── how ──────────────────────────────────────────────────────────────

    def _writes(self, known: _Known) -> bool:
        return not self.holds(known.start.session_id)

    def _cannot_go_on(self, session_id: str) -> bool:
        return session_id in self._continued and session_id not in self._sessions

    def _learnt(self, start: RunStart, opened: Opened) -> Opened:
        known = _Known(replace(start, run_id=opened.run_id), opened.history, list(opened.records))
        self._runs[opened.run_id] = self._sessions[start.session_id] = known
        return opened

    async def _add(self, run_id: str, records: Sequence[Record], write: _Write) -> None:
        known = self._runs[run_id]
        known.records.extend(records)
        if not self._writes(known):
            return await self._memory.commit(run_id, records)
        try:
            await write(run_id, records)
        except SessionError as error:
            await self._fallen(known, error)

    async def _fallen(self, known: _Known, error: SessionError) -> None:
        """The run's last write failed: say so, and go on in memory with all that is known of the session."""
        if not _is_of_the_disk(error):
            raise error
        known.failure = error
        self._warn(f"{error}\n{_MIDWAY}")
        await self._move_to_memory(known.start.session_id, going_on=True)

    async def _move_to_memory(self, session_id: str, *, going_on: bool) -> None:
        """`going_on`: its last run is open, and stays so."""
        self._in_memory.add(session_id)
        known = self._sessions.get(session_id)
        if known is None:
            return
        said = known.history if going_on else (*known.history, *entries_of(known.records))
        before = replace(known.start, run_id=f"before-{known.start.run_id}")
        await self._memory.open(before)
        await self._memory.commit(before.run_id, [Record(seq, entry) for seq, entry in enumerate(said)])
        await self._memory.finish(RunEnd(before.run_id, "answered", ""))
        if going_on:
            await self._memory.open(known.start)
            await self._memory.commit(known.start.run_id, known.records)


def _is_of_the_disk(error: SessionError) -> bool:
    """Whether the file or the disk failed, and not what was asked of it."""
    return isinstance(error.__cause__, (sqlite3.Error, OSError))
