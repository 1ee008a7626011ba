"""What the tests of `shell`, `python` and the sandbox share: a real project, and what is left when a call has ended."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from glassloop.core.entries import ToolCall, ToolResult
from glassloop.tools.builtin.sandbox import NoSandbox
from glassloop.tools.builtin.sandbox_place import place_from
from glassloop.tools.context import ToolContext
from glassloop.tools.tool import Tool
from glassloop.tools.toolbox import Toolbox

SOON = 3.0
"""Seconds in which the kernel and our own threads have cleaned up, even on a busy machine."""


@cache
def why_no_bubblewrap() -> str:
    """The reason why programs cannot be confined here; "" if they can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = asyncio.run(place_from({"files_root": folder}).sandbox())
        except NoSandbox as error:
            return str(error)
    return "" if found.name == "bubblewrap" else f"this machine has {found.name}"


needs_bubblewrap = pytest.mark.skipif(bool(why_no_bubblewrap()), reason=why_no_bubblewrap())


async def called(made: Tool, context: ToolContext | None = None, **arguments: object) -> ToolResult:
    """The call's result, as an agent gets it once the call is allowed."""
    box = Toolbox([made])
    verdict = box.prepare(ToolCall("c1", made.name, arguments))
    assert verdict.outcome in ("ready", "ask"), verdict.text
    return await box.execute(verdict, context or ToolContext())


def living(place: Path) -> list[str]:
    """The command lines of processes that run in this folder or name it. Zombies do not live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            inside = os.readlink(entry / "cwd")
        except OSError:
            continue
        if inside.startswith(str(place)) or any(str(place) in word for word in words):
            found.append(" ".join(words))
    return found


@contextmanager
def nothing_left(place: Path) -> Iterator[None]:
    """After the block there are no more processes, threads, descriptors, or files in `place` than before."""
    before = _holdings(place)
    yield
    end = time.monotonic() + SOON
    while (after := _holdings(place)) != before and time.monotonic() < end:
        time.sleep(0.02)
    assert after == before


def _holdings(place: Path) -> dict[str, object]:
    return {
        "processes": living(place),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "files": sorted(str(path) for path in place.rglob("*")),
    }
