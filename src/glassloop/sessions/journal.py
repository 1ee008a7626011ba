"""`SqliteJournal`: the `Journal` that survives. What its file holds for people, `store.py` shows."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from glassloop.core.entries import ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.core.journal import Intent, Opened, Record, RunEnd, RunStart
from glassloop.sessions import (
    approvals,
    branch,
    claiming,
    codec,
    database,
    masked_calls,
    place,
    records,
)
from glassloop.sessions import owner as owners
from glassloop.sessions.claiming import Claimed, Terms
from glassloop.sessions.codec import Encoded
from glassloop.sessions.inbox import Job
from glassloop.sessions.owner import Owner
from glassloop.sessions.records import Step
from glassloop.sessions.shapes import BLOB_BYTES
from glassloop.sessions.wire_log import WireLog
from glassloop.sessions.writer import Task, Writer, WriterClosed, writer_for

T = TypeVar("T")

_AT_ONCE = frozenset({User, ToolResult})
"""What must be on disk before anything is done about it: a question that was asked, an effect that was had.
A reply and its verdicts wait for the intents that follow: losing them costs a model call and nothing else."""


_TRIES = 100
"""Writers that are asked for, one after the other, where others close the file all the time."""


@dataclass(slots=True, eq=False)
class _Claim:
    """A session that this journal holds, and the last entry of its branch: on disk, and in the transaction that goes
    on. After the first failed write nothing more is written: no gaps.
    """

    claimed: Claimed
    head: int | None
    failure: SessionError | None = None
    _next: int | None = field(init=False)

    def __post_init__(self) -> None:
        self._next = self.head

    def write(self, connection: sqlite3.Connection, steps: Sequence[Step]) -> None:
        if self.failure is not None:
            raise self.failure
        self._next = records.write(connection, self.claimed, self._next, steps)

    def undone(self) -> None:
        self._next = self.head

    def ended(self, error: SessionError | None) -> None:
        self.head = self._next
        self.failure = self.failure or error


class SqliteJournal:
    """A journal in one SQLite file; many sessions, runs and processes may share it.

    `path`: the file, made when it is first needed, readable by its owner only (default: `sessions.db` in
    the user's data folder). `take_over`: claim a session although its owner cannot be proved gone; that
    owner is locked out from then on. `accept_changes`: continue an unfinished run although its agent is
    defined otherwise now. `secrets`: gives the values that must never be written; they are replaced by
    `***`, as are all known shapes of keys, and a call that held one does not run again after a crash.
    `folder`: what is noted as the place where new sessions began. `command`, which may be set anew at any time: what
    is noted with runs from then on, for `Store.command` to give back.

    Every method raises `SessionError`, which names the file, the reason and what to do. What was
    acknowledged before is safe; a run whose write failed writes nothing more.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        take_over: bool = False,
        accept_changes: bool = False,
        secrets: Callable[[], Iterable[str]] = tuple,
        folder: str = "",
    ) -> None:
        self.path = Path(path) if path is not None else place.default_path()
        self.command = ""
        self._terms = Terms(folder, take_over=take_over, accept_changes=accept_changes)
        self._secrets = secrets
        self._claims: dict[str, _Claim] = {}
        self._writer: Writer | None = None

    # ── the protocol ─────────────────────────────────────────────────────

    async def open(self, start: RunStart) -> Opened:
        """Claim the session, and tell what is known of it. Raises `SessionError` if another process holds it."""
        claiming.checked_id("session", start.session_id)
        claiming.checked_id("run", start.run_id)
        owner = owners.new_claim()
        terms = replace(self._terms, command=codec.cleaned(self.command, tuple(self._secrets())))
        task = Task(partial(_claim, start=start, owner=owner, terms=terms))
        job = Job(task, light=True, last=True)
        try:
            if not self._does(job):
                self._put(job, urgent=True)
            claim = task.future.result() if task.future.done() else await asyncio.wrap_future(task.future)
            claimed = claim.claimed
            opened = Opened(claimed.run_id) if claimed.blank else await asyncio.to_thread(self._read, claim)
        except BaseException:
            owners.release(owner)
            task.future.add_done_callback(self._give_back)
            raise
        self._claims[claimed.run_id] = claim
        return opened

    async def intend(self, run_id: str, intents: Sequence[Intent]) -> None:
        """On disk when it returns: all of them, or none."""
        step = partial(records.intend, intents=intents)
        await self._on_disk(self._claim(run_id), step, light=True)

    async def commit(self, run_id: str, records: Sequence[Record]) -> None:
        """On disk when it returns if a person's words or a tool's result are among them; otherwise queued."""
        claim = self._claim(run_id)
        step, light = self._addition(claim, records)
        if not _AT_ONCE.isdisjoint([type(one.value) for one in records]):
            await self._on_disk(claim, step, light=light)
        else:
            self._put(Job(claim, step, light=light), urgent=False)

    async def decide(self, run_id: str, records: Sequence[Record]) -> None:
        """On disk when it returns."""
        claim = self._claim(run_id)
        step, light = self._addition(claim, records)
        await self._on_disk(claim, step, light=light)

    async def finish(self, end: RunEnd) -> None:
        """On disk when it returns; the session is free."""
        try:
            end = self._without_secrets(end)
            ending = partial(claiming.finish, end=end)
            light = len(end.text) < BLOB_BYTES
            await self._on_disk(self._claim(end.run_id), ending, light=light, last=True)
        finally:
            if claim := self._claims.pop(end.run_id, None):
                owners.release(claim.claimed.owner)

    def wire_log(self, run_id: str) -> WireLog:
        """A recorder that keeps a run's exchanges beside it. The run must be open here."""
        epoch = self._claim(run_id).claimed.epoch
        return WireLog(partial(self._submit, urgent=False), run_id, self._secrets, epoch)

    def close(self) -> None:
        """Wait until all is written, and end the thread that writes; the next write begins another one.

        Where another process holds the file, that takes as long as a write waits for it, and is then given up.
        Happens by itself when the program ends. To be called before `os.fork`.
        """
        if self._writer is not None:
            self._writer.close()

    # ── how ──────────────────────────────────────────────────────────────

    def _submit(self, act: Callable[[sqlite3.Connection], T], *, urgent: bool = True) -> Future[T]:
        task = Task(act)
        self._put(Job(task), urgent=urgent)
        return task.future

    def _put(self, job: Job, *, urgent: bool) -> None:
        for _ in range(_TRIES):  # again where another user of the file closes its writer at this very moment
            writer = self._writer or writer_for(self.path)
            try:
                writer.put(job, urgent=urgent)
            except WriterClosed:
                self._writer = None
            else:
                self._writer = writer
                return
        raise SessionError(f"{self.path} was closed again and again while it was written to")

    async def _on_disk(self, claim: _Claim, step: Step, *, light: bool, last: bool = False) -> None:
        """Have the step written. If the waiting is cancelled, it still happens."""
        if light and self._does(Job(claim, step, light=True, last=last)):
            return
        waiter = asyncio.get_running_loop().create_future()
        self._put(Job(claim, step, waiter, last=last), urgent=True)
        await waiter

    def _does(self, job: Job) -> bool:
        """Whether the job is done here and now: by the event loop itself."""
        return self._writer is not None and self._writer.do(job)

    def _without_secrets(self, end: RunEnd) -> RunEnd:
        secrets = tuple(self._secrets())
        error = None if end.error is None else codec.cleaned(end.error, secrets)
        return replace(end, text=codec.cleaned(end.text, secrets), error=error)

    def _claim(self, run_id: str) -> _Claim:
        claim = self._claims.get(run_id)
        if claim is None:
            raise SessionError(f"{self.path}: run {run_id} is not open here: call open() first")
        if claim.failure is not None:
            raise claim.failure
        return claim

    def _addition(self, claim: _Claim, happened: Sequence[Record]) -> tuple[Step, bool]:
        """What adds the records, and whether that is light.

        What cannot be written leaves a gap, and so it ends the writing like a full disk.
        """
        secrets = tuple(self._secrets())
        try:
            encoded = [codec.encode(one.value, secrets) for one in happened]
        except SessionError as error:
            claim.failure = error
            raise
        return partial(records.add, written=list(zip(happened, encoded, strict=True))), _light(encoded)

    def _read(self, claim: _Claim) -> Opened:
        run_id = claim.claimed.run_id
        with database.opened(self.path) as connection:
            rows = branch.path(connection, claim.head)
            before = branch.said(connection, [row for row in rows if row.run_id != run_id])
            own = branch.read(connection, [row for row in rows if row.run_id == run_id])
            intents = branch.open_intents(connection, run_id)
        return Opened(run_id, before, tuple(one.record for one in own), intents)

    def _give_back(self, claiming_it: Future[_Claim]) -> None:
        """The opening failed, or nobody waits for it any more: a claim that succeeded is not wanted."""
        if claiming_it.exception() is None:
            work = partial(claiming.give_back, claimed=claiming_it.result().claimed)
            self._submit(work)


def _light(encoded: Iterable[Encoded]) -> bool:
    """Whether writing it takes no longer than making it did."""
    size = 0
    for one in encoded:
        size += len(one.body)
        if one.blobs or size > BLOB_BYTES:
            return False
    return True


def _claim(connection: sqlite3.Connection, start: RunStart, owner: Owner, terms: Terms) -> _Claim:
    claimed = claiming.claim(connection, start, owner, terms)
    if not claimed.blank:
        approvals.take_answers(connection, claimed)
        masked_calls.close(connection, claimed)
    return _Claim(claimed, claiming.head_of(connection, claimed.session_id))
