"""Fifty calls at once, each with a process, a thread, a socket and a file: in order, and gone after a cancel."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from glassloop import Agent, tool
from glassloop.core.events import ToolStarted
from glassloop.models.scripted import ScriptedModel, call, calls

MANY = 50


def holdings(folder: Path) -> Counter[str]:
    """What this process holds, as the kernel says."""
    children: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            children += (task / "children").read_text().split()
    return Counter(
        [
            *(os.readlink(f"/proc/self/fd/{each}") for each in _open_descriptors()),
            *(f"child {child}" for child in children),
            *(f"thread {thread.name} {thread.ident}" for thread in threading.enumerate()),
            *(f"file {name}" for name in os.listdir(folder)),
        ]
    )


def _open_descriptors() -> list[str]:
    return [each for each in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{each}")]


@tool(effect="read")
async def hold(number: int) -> str:
    """Hold something of each kind for a while. Use it to hold."""
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.NamedTemporaryFile():
        child = await asyncio.create_subprocess_exec("sleep", "60" if number > 0 else "0")
        try:
            await child.wait()
        finally:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return str(number)


@tool(effect="read")
def think(number: int) -> str:
    """Think in a thread. Use it to think."""
    time.sleep(0.01 * (number % 5))
    return str(number)


def test_results_stand_in_the_order_of_their_calls_whatever_ended_first() -> None:
    turn = calls(*(call("hold" if n % 10 == 0 else "think", number=-n) for n in range(MANY)))
    done = Agent(ScriptedModel([turn, "done"]), tools=[hold, think]).run_sync("go")
    told = [entry.text for entry in done.entries if type(entry).__name__ == "ToolResult"]
    assert told == [str(-n) for n in range(MANY)]


def test_a_cancel_in_the_middle_of_fifty_calls_leaves_no_process_thread_socket_or_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    turn = calls(*(call("hold" if n % 2 else "think", number=n) for n in range(MANY)))

    async def cancelled() -> tuple[Counter[str], str]:
        await (
            await asyncio.create_subprocess_exec("true")
        ).wait()  # what watching children needs is there now
        before = holdings(tmp_path)
        async with Agent(ScriptedModel([turn]), tools=[hold, think]).stream("go") as run:
            started = 0
            async for event in run:
                started += isinstance(event, ToolStarted)
                if isinstance(event, ToolStarted) and started == MANY:
                    await asyncio.sleep(0.3)
                    run.cancel()
        until = time.monotonic() + 5
        while (left := holdings(tmp_path) - before) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        return left, run.result.stop_reason

    left, reason = asyncio.run(cancelled())
    assert reason == "cancelled"
    assert not left  # what an earlier test still held may have gone meanwhile
