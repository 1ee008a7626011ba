"""The one thread that writes to a file: what is queued at a moment goes to disk in one transaction, in its order."""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from glassloop.core.errors import SessionError
from glassloop.sessions.database import connect, explain, explained, transaction

T = TypeVar("T")

LINGER_SECONDS = 0.02
"""How long a write that nobody waits for may stay queued, so that it shares the transaction of the next one."""

_STOP_SECONDS = 10.0


class WriterClosed(Exception):
    """Nobody would do the work: get another writer."""


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    work: Callable[[sqlite3.Connection], T]
    future: Future[T] = field(default_factory=Future)


@dataclass(slots=True)
class _Inbox:
    """Work on its way to the thread. To wake a thread costs more than a row, so what nobody waits for goes along with
    what is waited for, or when it has lingered: also where the event loop is stuck, or has ended.
    """

    closed: bool = False
    _ready: queue.SimpleQueue[list[_Job[Any]] | None] = field(default_factory=queue.SimpleQueue)
    _patient: list[_Job[Any]] = field(default_factory=list)
    # The garbage collector may close it in the middle of anything that its holder does.
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def put(self, job: _Job[Any], *, urgent: bool) -> bool:
        """False if it is closed: nobody would do it."""
        with self._lock:
            if self.closed:
                return False
            self._patient.append(job)
            if urgent:
                self._ready.put(self._take_patient())
            elif len(self._patient) == 1:
                self._ready.put([])  # from now on the thread knows that something waits
        return True

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._ready.put(self._take_patient())
            self._ready.put(None)

    def next_batch(self) -> tuple[list[_Job[Any]], bool]:
        """All that is queued. What is not urgent waits a little for company. False at the end: there is no more."""
        batch: list[_Job[Any]] = []
        wait: float | None = None
        deadline = float("inf")
        while True:
            try:
                jobs = self._ready.get_nowait() if wait == 0 else self._ready.get(timeout=wait)
            except queue.Empty:
                return [*batch, *self._take_patient()], True  # its call may have been taken for the batch's
            if jobs is None:
                return batch, False
            batch += jobs
            deadline = min(deadline, time.monotonic() + LINGER_SECONDS)
            wait = 0 if batch else max(0.0, deadline - time.monotonic())

    def _take_patient(self) -> list[_Job[Any]]:
        with self._lock:
            fresh: list[_Job[Any]] = []
            taken, self._patient = self._patient, fresh
        return taken


class Writer:
    """The writer of one file in this process. Get it from `writer_for`; its thread ends with the last user of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pid = os.getpid()
        self._inbox = _Inbox()
        thread = threading.Thread(
            target=_work, args=(path, self._inbox), name=f"glassloop {path.name}", daemon=True
        )
        thread.start()
        self._stop = weakref.finalize(self, _stop, self._inbox, thread, self._pid)

    def submit(self, work: Callable[[sqlite3.Connection], T], *, urgent: bool) -> Future[T]:
        """Queue work inside a transaction. The future is done when the work is on disk, or has failed.

        `urgent`: somebody waits for it. `work` may run twice: a transaction that fails for one is tried anew
        for each alone. Its errors are `SessionError`s. Raises `WriterClosed` where it is, or was copied by a fork.
        """
        job = _Job(work)
        job.future.set_running_or_notify_cancel()  # from now on it cannot be cancelled, whoever stops waiting
        if not self.works or not self._inbox.put(job, urgent=urgent):
            raise WriterClosed
        return job.future

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
            writer = _writers[key] = Writer(key)
        return writer


def _stop(inbox: _Inbox, thread: threading.Thread, pid: int) -> None:
    if pid != os.getpid():
        return  # copied by a fork, where no thread came along and a lock may be held for ever
    inbox.close()
    if thread is not threading.current_thread():
        thread.join(_STOP_SECONDS)


def _work(path: Path, inbox: _Inbox) -> None:
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
            _fail(batch, _as_session_error(path, error))
            continue
        if not _write(path, connection, batch):
            _close(connection)  # after an I/O error nothing that it remembers can be trusted
            connection = None
    if connection is not None:
        _close(connection)


def _write(path: Path, connection: sqlite3.Connection, batch: list[_Job[Any]]) -> bool:
    """False if the connection should not be used again."""
    try:
        with explained(path), transaction(connection):
            results = [job.work(connection) for job in batch]
    except Exception as error:
        if len(batch) > 1:
            outcomes = [_write(path, connection, [job]) for job in batch]
            return all(outcomes)
        _fail(batch, _as_session_error(path, error))
        return not isinstance(error.__cause__, sqlite3.OperationalError)
    for job, result in zip(batch, results, strict=True):
        job.future.set_result(result)
    return True


def _fail(batch: list[_Job[Any]], error: SessionError) -> None:
    for job in batch:
        job.future.set_exception(error)


def _as_session_error(path: Path, error: Exception) -> SessionError:
    if isinstance(error, SessionError):
        return error
    if isinstance(error, sqlite3.Error):
        return explain(path, error)
    failure = SessionError(f"{path}: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def _close(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.close()
