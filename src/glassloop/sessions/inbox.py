"""What is on its way to the thread that writes: which of it is waited for, and who may write it."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from glassloop.core.errors import SessionError
from glassloop.core.values import Value

LINGER_SECONDS = 0.1
"""How long a write that nobody waits for stays queued at least, so that it shares the transaction of the next one.
It is never more than twice that. Each look of the thread takes the interpreter away from the event loop: at 20 ms
they cost a tenth of a round."""

_LOOKS = 10
"""How often the thread looks in vain for such a write before it sleeps until it is woken."""


class Work(Protocol):
    """What is done by whoever writes. Only one that is the same takes its steps in one go."""

    def write(self, connection: sqlite3.Connection, steps: Sequence[Any]) -> None:
        """Take the steps that were queued one after the other, inside a transaction. Raises `SessionError`.

        It may be called twice for a step: a transaction that fails for one is tried anew for each alone.
        """

    def undone(self) -> None:
        """The transaction failed: nothing that was written in it stands."""

    def ended(self, error: SessionError | None) -> None:
        """A step is on disk, or it failed and never will be. Called before the next step is taken."""


class Job(Value, frozen=True, gc=True):
    """One step of some work, and who waits for it. `light`: it takes a moment and no more, so that the event loop
    that asks for it may do it itself. `last`: nothing more comes of this work.
    """

    work: Work
    step: Any = None
    waiter: asyncio.Future[None] | None = None
    light: bool = False
    last: bool = False


class Inbox:
    """Jobs on their way to the thread. To wake a thread costs more than a row, so what nobody waits for goes along
    with what is waited for, or when it has lingered: also where the event loop is stuck, or has ended.
    """

    def __init__(self) -> None:
        self.closed = False
        self._ready: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._patient: list[Job] = []
        self._heavy = False  # whether any of them is not light
        self._going_on: Work | None = None  # what was waited for the last time, and more comes of it
        self._lending = False
        self._in_hand = 0  # batches that were given to the thread, and are not done
        self._fetched = 0  # those of them that the thread has fetched
        self._seen = False  # whether the thread has seen the first of the patient ones already
        self._looks = 0
        self._asleep = False
        # The garbage collector may close it in the middle of anything that its holder does.
        self._lock = threading.RLock()

    def put(self, job: Job, *, urgent: bool) -> bool:
        """False if it is closed: nobody would do it."""
        with self._lock:
            if self.closed:
                return False
            self._patient.append(job)
            self._heavy = self._heavy or not job.light
            asleep, self._asleep = self._asleep, False  # before it is woken: it may look at once
            if urgent:
                self._going_on = None if job.last else job.work
                self._give(self._take_patient())
            elif asleep:
                self._ready.put([])  # from now on the thread looks again
        return True

    def lend(self, job: Job, write: Callable[[list[Job]], bool]) -> bool:
        """Have a job that is waited for, and all that is to be written before it, done by the caller.

        False, and the job is still the caller's, unless all of it is light, the thread has nothing to do, and what was
        waited for the last time was the same work, or has come to its end: where several take turns, the thread does
        theirs together. Also where `write` could not do it; what was to be written before it is then given to the
        thread.
        """
        with self._lock:
            if self.closed or self._in_hand or self._lending or self._heavy or not job.light:
                return False
            if self._going_on is not None and job.work is not self._going_on:
                return False
            self._going_on = None if job.last else job.work
            before: list[Job] = []
            undone = [job]
            try:
                self._lending = True  # what is put meanwhile, by whatever runs in between, waits for its turn
                before = self._take_patient()
                undone = [*before, job]  # nobody asks again where `write` raises
                written = write(undone)
                undone = [] if written else before
            finally:
                self._returned(undone)
        return written

    def _returned(self, undone: list[Job]) -> None:
        self._lending = False
        self._give(undone)
        if self.closed:  # by whatever ran in between
            self._end()

    def close(self) -> bool:
        """Whether the thread ends now. It does not yet where it is the caller who writes: by a signal, say."""
        with self._lock:
            self.closed = True
            if not self._lending:
                self._end()
            return not self._lending

    def next_batch(self) -> tuple[list[Job], bool]:
        """All that is waited for, or has lingered; maybe nothing. False at the end: there is no more."""
        batch: list[Job] = []
        going_on = fetching = True
        patience = None if self._asleep else LINGER_SECONDS
        while fetching:
            try:
                jobs = self._ready.get(block=not batch, timeout=patience)
            except queue.Empty:
                batch, fetching = batch or self._lingered(), False
            else:
                going_on = fetching = jobs is not None
                batch += self._fetch(jobs or [])
            patience = LINGER_SECONDS
        return batch, going_on

    def done(self) -> None:
        """The thread has nothing in its hands."""
        with self._lock:
            self._in_hand -= self._fetched
            self._fetched = 0

    def _fetch(self, jobs: list[Job]) -> list[Job]:
        """Jobs for the thread to do. Where others are lent at this moment, it waits until those are done."""
        if jobs:
            with self._lock:
                self._fetched += 1
        return jobs

    def _lingered(self) -> list[Job]:
        """What was there when the thread looked the last time. Where there is nothing again and again, it may sleep."""
        with self._lock:
            if self._seen:
                self._in_hand += 1
                return self._fetch(self._take_patient())
            self._seen = bool(self._patient)
            self._looks = 0 if self._seen else self._looks + 1
            self._asleep = self._looks > _LOOKS
        return []

    def _end(self) -> None:
        self._give(self._take_patient())
        self._ready.put(None)

    def _give(self, batch: list[Job]) -> None:
        if batch:
            self._in_hand += 1
            self._ready.put(batch)

    def _take_patient(self) -> list[Job]:
        fresh: list[Job] = []
        taken, self._patient = self._patient, fresh
        self._heavy = self._seen = False
        self._looks = 0
        return taken
