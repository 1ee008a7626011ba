"""One event loop in one daemon thread, for all code that is not async. Started when first needed."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from glassloop.core.errors import ConfigError
from glassloop.core.values import Value

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid = 0


def loop() -> asyncio.AbstractEventLoop:
    """The background loop. A forked child gets its own: threads do not survive a fork."""
    global _loop, _pid
    with _lock:
        if _loop is None or _pid != os.getpid():
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            thread = threading.Thread(target=_serve, args=(_loop,), name="glassloop", daemon=True)
            thread.start()
            atexit.register(_stop, _loop, _pid, thread)
        return _loop


def _serve(running: asyncio.AbstractEventLoop) -> None:
    running.run_forever()
    running.close()


def _stop(running: asyncio.AbstractEventLoop, pid: int, thread: threading.Thread) -> None:
    """At exit: end what still runs, so that no socket is torn down by the garbage collector."""
    if pid != os.getpid() or running.is_closed():
        return
    future = asyncio.run_coroutine_threadsafe(_cancel_all(), running)
    try:
        future.result(timeout=2)
    except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
        return
    running.call_soon_threadsafe(running.stop)
    thread.join(timeout=2)


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()  # where endpoints close their connections


def submit(work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Run a coroutine on the background loop, in a copy of the caller's context variables.

    Raises `ConfigError` when called from that loop's own thread, where waiting would wait for ever.
    """
    running = loop()
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is running:
        work.close()
        raise ConfigError(
            "run_sync was called from inside an async tool or callback: await agent.run(...) there"
        )
    future: concurrent.futures.Future[T] = concurrent.futures.Future()
    context = contextvars.copy_context()

    def start() -> None:
        task = running.create_task(_kept(work), context=context)
        task.add_done_callback(lambda done: _pass_on(done, future))

    running.call_soon_threadsafe(start)
    return future


async def _kept(work: Coroutine[Any, Any, T]) -> T | _Left:
    """`SystemExit` and `KeyboardInterrupt` are for the caller; raised out of a task, they would end the loop."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        return _Left(error)


class _Left(Value, frozen=True, gc=True):
    error: BaseException


def _pass_on(task: asyncio.Task[T | _Left], future: concurrent.futures.Future[T]) -> None:
    if task.cancelled():
        future.cancel()
        future.set_running_or_notify_cancel()
    elif error := task.exception():
        future.set_exception(error)
    elif isinstance(ended := task.result(), _Left):
        future.set_exception(ended.error)
    else:
        future.set_result(ended)


def wait(work: Coroutine[Any, Any, T], on_interrupt: Callable[[], None]) -> T:
    """Run a coroutine and wait for it. Ctrl-C calls `on_interrupt` on the loop, waits for the clean-up, and goes on."""
    future = submit(work)
    try:
        return future.result()
    except KeyboardInterrupt:
        loop().call_soon_threadsafe(on_interrupt)
        concurrent.futures.wait([future])
        raise
