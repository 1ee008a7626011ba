"""The one writer of a file: what is queued at a moment goes to disk in one transaction, in its order."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from glassloop.core.errors import SessionError
from glassloop.sessions.database import BUSY_SECONDS, connect, explain, transaction, wait_for_others
from glassloop.sessions.inbox import Inbox, Job

T = TypeVar("T")

QUICK_SECONDS = 0.002
"""A commit that takes less is done by the event loop that waits for it, if nobody else writes: handing it over and
back takes a third of a millisecond."""

_REMEMBERED = 0.75
"""What is left of a slow commit's time after each later one: after one of 10 ms, nine go to the thread."""

_UNKNOWN = 2 * QUICK_SECONDS
"""What a commit is taken to take before there was one: the first three go to the thread."""

_STOP_SECONDS = BUSY_SECONDS + 10
"""How long the end of the thread is waited for: longer than a write waits for another process."""


class WriterClosed(Exception):
    """Nobody would do the work: get another writer."""


class Task(Generic[T]):
    """Work of one step, for any thread to wait for. Whoever stops waiting, it is done."""

    def __init__(self, act: Callable[[sqlite3.Connection], T]) -> None:
        self.future: Future[T] = Future()
        self.future.set_running_or_notify_cancel()
        self._act = act
        self._result: T

    def write(self, connection: sqlite3.Connection, steps: Sequence[Any]) -> None:
        self._result = self._act(connection)

    def undone(self) -> None:
        pass

    def ended(self, error: SessionError | None) -> None:
        if error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(error)


Outcome = tuple[list[Job], "SessionError | None"]
"""Jobs that shared a transaction, and why it failed."""


class _File:
    """The connection that writes. One thread at a time uses it; the inbox sees to that."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._patient = True
        self._seconds = _UNKNOWN  # what a commit takes
        self.interruption: BaseException | None = None  # to be raised when a write is quite over

    def write(self, batch: list[Job]) -> list[Outcome]:
        """Do the jobs in one transaction, or, where that fails, each in its own."""
        try:
            connection = self._connection = self._connection or connect(self.path)
        except Exception as error:  # for none of them would it be otherwise
            return _ended(batch, explain(self.path, error))
        try:
            self._commit(connection, batch, patient=True)
        except Exception as error:
            failure = explain(self.path, error)
            locked = isinstance(error, sqlite3.Error) and failure.kind == "in_use"
            if isinstance(error, sqlite3.OperationalError):
                self.close()  # after an I/O error nothing that it remembers can be trusted
            if len(batch) > 1 and not locked:  # a lock would be waited for with each of them again
                return [outcome for job in batch for outcome in self.write([job])]
            if failure is not error:
                failure.__cause__ = error
            return _ended(batch, failure)
        return _ended(batch, None)

    def write_at_once(self, batch: list[Job]) -> bool:
        """The same in the event loop of whoever waits. False if the last commits were slow, if this one
        failed, or if another process is writing.
        """
        if self._connection is None or self._seconds >= QUICK_SECONDS:
            return False
        try:
            self.interruption = self._commit(self._connection, batch, patient=False)
        except Exception:  # the thread will meet it again, and tell
            self._seconds = _UNKNOWN
            return False
        _ended(batch, None)
        return True

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection, self._patient = None, True

    def _commit(
        self, connection: sqlite3.Connection, batch: list[Job], *, patient: bool
    ) -> BaseException | None:
        """Do the jobs. Gives what a signal's handler raised when all was on disk, such as a `KeyboardInterrupt`."""
        if patient is not self._patient:
            wait_for_others(connection, BUSY_SECONDS if patient else 0)
            self._patient = patient
        began = time.perf_counter()
        block = transaction(connection)
        try:
            with block:
                for work, jobs in groupby(batch, attrgetter("work")):
                    work.write(connection, [job.step for job in jobs])
        except BaseException as error:
            if block.stands and not isinstance(error, sqlite3.Error):
                return error
            if connection.in_transaction:  # interrupted before the block had quite begun
                connection.execute("ROLLBACK")
            for job in batch:
                job.work.undone()
            raise
        self._seconds = max(time.perf_counter() - began, _REMEMBERED * self._seconds)
        return None


class Writer:
    """The writer of one file in this process. Get it from `writer_for`; its thread ends with the last user of it."""

    def __init__(self, path: Path, before: Writer | None = None) -> None:
        """`before`: one that was closed; what it was given is on disk before anything that this one is given."""
        self.path = path
        self._pid = os.getpid()
        self._inbox = Inbox()
        self._file = _File(path)
        self._thread: threading.Thread = threading.Thread(
            target=_work,
            args=(self._file, self._inbox, before._thread if before else None),
            name=f"glassloop {path.name}",
            daemon=True,
        )
        self._thread.start()
        self._stop = weakref.finalize(self, _stop, self._inbox, self._thread, self._pid)

    def do(self, job: Job) -> bool:
        """Do a job that is waited for here and now, after what is queued before it. False, and it is not done, where
        that is better left to the thread (`put` it then), or the writer is closed.
        """
        if self._pid != os.getpid() or not self._inbox.lend(job, self._file.write_at_once):
            return False
        if interruption := self._file.interruption:
            self._file.interruption = None
            raise interruption
        return True

    def put(self, job: Job, *, urgent: bool) -> None:
        """Queue a job for the thread. `urgent`: somebody waits for it. Raises `WriterClosed` where it is, or was
        copied by a fork.
        """
        if self._pid != os.getpid() or not self._inbox.put(job, urgent=urgent):
            raise WriterClosed

    @property
    def works(self) -> bool:
        """Its thread runs, and in this process."""
        return not self._inbox.closed and self._pid == os.getpid()

    def close(self) -> None:
        """Write what is queued, and end the thread."""
        self._stop()


_writers: weakref.WeakValueDictionary[Path, Writer] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def writer_for(path: Path) -> Writer:
    """The writer of a file. All in this process who write to it share one, and so its transactions."""
    key = Path(os.path.abspath(path))
    with _lock:
        writer = _writers.get(key)
        if writer is None or not writer.works:
            writer = _writers[key] = Writer(key, writer)
        return writer


def _stop(inbox: Inbox, thread: threading.Thread, pid: int) -> None:
    if pid != os.getpid():
        return  # copied by a fork, where no thread came along and a lock may be held for ever
    if inbox.close() and thread is not threading.current_thread():
        thread.join(_STOP_SECONDS)


def _work(file: _File, inbox: Inbox, before: threading.Thread | None) -> None:
    if before is not None:
        before.join()
    going_on = True
    while going_on:
        batch, going_on = inbox.next_batch()
        if batch:
            outcomes = file.write(batch)
            inbox.done()  # before anybody is woken, who may write the next himself
            _tell(outcomes)
    file.close()


def _ended(batch: list[Job], error: SessionError | None) -> list[Outcome]:
    for job in batch:
        job.work.ended(error)
    return [(batch, error)]


def _tell(outcomes: list[Outcome]) -> None:
    """Each event loop is woken once for a batch, however many wait in it: that is what costs most of a round."""
    for batch, error in outcomes:
        waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for job in batch:
            if job.waiter is not None:
                waiting.setdefault(job.waiter.get_loop(), []).append(job.waiter)
        for loop, waiters in waiting.items():
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(_wake, waiters, error)


def _wake(waiters: list[asyncio.Future[None]], error: SessionError | None) -> None:
    for waiter in waiters:
        if waiter.done():  # cancelled meanwhile
            continue
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
