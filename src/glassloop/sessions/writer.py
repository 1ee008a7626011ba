"""The one thread that writes to a file: what is queued at a moment goes to disk in one transaction, in its order."""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from glassloop.core.errors import SessionError
from glassloop.sessions.database import BUSY_SECONDS, connect, explain, transaction

T = TypeVar("T")

LINGER_SECONDS = 0.02
"""How long a write that nobody waits for stays queued at least, so that it shares the transaction of the next one.
It is never more than twice that."""

_LOOKS = 10
"""How often the thread looks in vain for such a write before it sleeps until it is woken."""

_STOP_SECONDS = BUSY_SECONDS + 10
"""How long the end of the thread is waited for: longer than a write waits for another process."""


class WriterClosed(Exception):
    """Nobody would do the work: get another writer."""


class Work(Protocol):
    """What is done in the thread. Only one that is the same takes its steps in one go."""

    def write(self, connection: sqlite3.Connection, steps: Sequence[Any]) -> None:
        """Take the steps that were queued one after the other, inside a transaction. Raises `SessionError`.

        It may be called twice for a step: a transaction that fails for one is tried anew for each alone.
        """

    def ended(self, error: SessionError | None) -> None:
        """A step is on disk, or it failed and never will be. Called before the next step is taken."""


class Job(NamedTuple):
    """One step of some work, and who waits for it."""

    work: Work
    step: Any = None
    waiter: asyncio.Future[None] | None = None


class Task(Generic[T]):
    """Work of one step, for any thread to wait for. Whoever stops waiting, it is done."""

    def __init__(self, act: Callable[[sqlite3.Connection], T]) -> None:
        self.future: Future[T] = Future()
        self.future.set_running_or_notify_cancel()
        self._act = act
        self._result: T

    def write(self, connection: sqlite3.Connection, steps: Sequence[Any]) -> None:
        self._result = self._act(connection)

    def ended(self, error: SessionError | None) -> None:
        if error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(error)


class _Inbox:
    """Jobs on their way to the thread. To wake a thread costs more than a row, so what nobody waits for goes along
    with what is waited for, or when it has lingered: also where the event loop is stuck, or has ended.
    """

    def __init__(self) -> None:
        self.closed = False
        self._ready: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._patient: list[Job] = []
        self._seen = False  # whether the thread has seen the first of them already
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
            asleep, self._asleep = self._asleep, False  # before it is woken: it may look at once
            if urgent:
                self._ready.put(self._take_patient())
            elif asleep:
                self._ready.put([])  # from now on the thread looks again
        return True

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._ready.put(self._take_patient())
            self._ready.put(None)

    def next_batch(self) -> tuple[list[Job], bool]:
        """All that is waited for, or has lingered; maybe nothing. False at the end: there is no more."""
        batch: list[Job] = []
        try:
            patience = None if self._asleep else LINGER_SECONDS
            while (jobs := self._ready.get(block=not batch, timeout=patience)) is not None:
                batch += jobs
                patience = LINGER_SECONDS
        except queue.Empty:
            return batch or self._lingered(), True
        return batch, False

    def _lingered(self) -> list[Job]:
        """What was there when the thread looked the last time. Where there is nothing again and again, it may sleep."""
        with self._lock:
            if self._seen:
                return self._take_patient()
            self._seen = bool(self._patient)
            self._looks = 0 if self._seen else self._looks + 1
            self._asleep = self._looks > _LOOKS
        return []

    def _take_patient(self) -> list[Job]:
        with self._lock:
            fresh: list[Job] = []
            taken, self._patient = self._patient, fresh
            self._seen, self._looks = False, 0
        return taken


class Writer:
    """The writer of one file in this process. Get it from `writer_for`; its thread ends with the last user of it."""

    def __init__(self, path: Path, before: Writer | None = None) -> None:
        """`before`: one that was closed; what it was given is on disk before anything that this one is given."""
        self.path = path
        self._pid = os.getpid()
        self._inbox = _Inbox()
        self._thread: threading.Thread = threading.Thread(
            target=_work,
            args=(path, self._inbox, before._thread if before else None),
            name=f"glassloop {path.name}",
            daemon=True,
        )
        self._thread.start()
        self._stop = weakref.finalize(self, _stop, self._inbox, self._thread, self._pid)

    def put(self, job: Job, *, urgent: bool) -> None:
        """Queue a job. `urgent`: somebody waits for it. Raises `WriterClosed` where it is, or was copied by a fork."""
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


def _stop(inbox: _Inbox, thread: threading.Thread, pid: int) -> None:
    if pid != os.getpid():
        return  # copied by a fork, where no thread came along and a lock may be held for ever
    inbox.close()
    if thread is not threading.current_thread():
        thread.join(_STOP_SECONDS)


def _work(path: Path, inbox: _Inbox, before: threading.Thread | None) -> None:
    if before is not None:
        before.join()
    connection: sqlite3.Connection | None = None
    going_on = True
    while going_on:
        batch, going_on = inbox.next_batch()
        if not batch:
            continue
        try:
            if connection is None:
                connection = connect(path)
        except Exception as error:
            _tell(batch, explain(path, error))
            continue
        if not _write(path, connection, batch):
            _close(connection)  # after an I/O error nothing that it remembers can be trusted
            connection = None
    if connection is not None:
        _close(connection)


def _write(path: Path, connection: sqlite3.Connection, batch: list[Job]) -> bool:
    """False if the connection should not be used again."""
    try:
        with transaction(connection):
            for work, jobs in groupby(batch, attrgetter("work")):
                work.write(connection, [job.step for job in jobs])
    except Exception as error:
        failure = explain(path, error)
        locked = isinstance(error, sqlite3.Error) and failure.kind == "in_use"
        if len(batch) > 1 and not locked:  # a lock would be waited for with each of them again
            outcomes = [_write(path, connection, [job]) for job in batch]
            return all(outcomes)
        if failure is not error:
            failure.__cause__ = error
        _tell(batch, failure)
        return not isinstance(error, sqlite3.OperationalError)
    _tell(batch, None)
    return True


def _tell(batch: list[Job], error: SessionError | None) -> None:
    """Each event loop is woken once, however many wait in it: that is what costs most of a round."""
    waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for work, _, waiter in batch:
        work.ended(error)
        if waiter is not None:
            waiting.setdefault(waiter.get_loop(), []).append(waiter)
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


def _close(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.close()
