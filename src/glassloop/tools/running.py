"""One function call, run to its outcome: sync ones in a thread of their own, with a time limit for both.

A thread cannot be stopped and an async function may refuse to; what outlives its time is let go and
said to be so. Nothing here knows of models, approval or results' text.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from glassloop.core.values import Value

GRACE = 2.0
"""Seconds that a cancelled async tool has for cleaning up before it is let go."""


class Returned(Value, frozen=True, gc=True):
    """It returned `value`."""

    value: Any


class Raised(Value, frozen=True, gc=True):
    """It raised `error`."""

    error: BaseException


class TimedOut(Value, frozen=True):
    """It was still running when its time was over."""


Outcome = Returned | Raised | TimedOut


async def run(
    function: Callable[[], Any],
    finish: Callable[[Any], Any],
    timeout: float | None,
    *,
    on_loop: bool,
) -> Outcome:
    """Call `function`, apply `finish` where it ran, and wait at most `timeout` seconds (None: for ever).

    `on_loop`: the function is async (`is_async`); else it gets a thread.

    Raises only `CancelledError`, when the caller is cancelled, and a real Ctrl-C as `KeyboardInterrupt`.
    """
    task = asyncio.create_task(_outcome(function, finish, on_loop))
    try:
        await asyncio.sleep(0)  # most async tools have ended after that, and need no timer
        if not task.done():
            await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        await _stop(task)
        raise
    if task.done():
        return Raised(asyncio.CancelledError("it cancelled itself")) if task.cancelled() else task.result()
    late = await _stop(task)
    return late if isinstance(late, Returned) else TimedOut()  # it may have answered when told to stop


async def _stop(task: asyncio.Task[Outcome]) -> Outcome | None:
    """Cancel it and wait a little; what it answered all the same."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE)
    if not task.done() or task.cancelled() or task.exception() is not None:
        return None
    return task.result()


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


async def _outcome(function: Callable[[], Any], finish: Callable[[Any], Any], on_loop: bool) -> Outcome:
    try:
        if on_loop:
            value = await function()
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # told to stop, it has ended all the same
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
            return Returned(finish(value))
        ended = await _in_thread(partial(_finished, function, finish))
        if isinstance(ended, Returned) and inspect.isawaitable(ended.value):
            return Returned(finish(await ended.value))
        return ended
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # a tool may call sys.exit(); that is its failure, not ours
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise
        return Raised(error)


def _finished(function: Callable[[], Any], finish: Callable[[Any], Any]) -> Outcome:
    """In the thread: a plain function that hands out a coroutine gets it awaited on the loop instead."""
    try:
        value = function()
        return Returned(value if inspect.isawaitable(value) else finish(value))
    except BaseException as error:  # no Ctrl-C of a person ever arrives in this thread
        return Raised(error.with_traceback(None))  # its frames hold the future that will hold it


def is_async(function: Any) -> bool:
    """Whether calling it gives something to await: an async function, method or object, or a partial of one."""
    inner = function.func if isinstance(function, partial) else function
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(type(inner).__call__)


def _in_thread(function: Callable[[], Outcome]) -> Awaitable[Outcome]:
    """Run in a daemon thread: a hung tool then delays neither other tools nor the end of the program.

    A thread per call instead of a pool: a pool that hung tools have filled would stop every later one.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outcome] = loop.create_future()

    def work() -> None:
        ended = function()
        with suppress(RuntimeError):  # the loop is closed: nobody waits for this tool any more
            loop.call_soon_threadsafe(_settle, future, ended)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="glassloop tool", daemon=True).start()
    return future
