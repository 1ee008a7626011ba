"""`asyncio.run` for commands that run tools: what refuses to stop cannot keep the program from ending."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE = 1.0
"""Seconds that what still runs at the end has for cleaning up before it is let go."""


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in a new event loop. `asyncio.run` would wait for ever for a tool that ignores being cancelled."""
    runner = asyncio.Runner()
    try:
        return runner.run(_tidied(work))
    finally:
        loop = runner.get_loop()
        if asyncio.all_tasks(loop):
            loop.set_exception_handler(lambda *_: None)  # the run has said what became of them
        else:
            runner.close()


async def _tidied(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE)
