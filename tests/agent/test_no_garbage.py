"""A run that is over is freed at once: what it leaves in cycles would stay until a full collection, and a thousand
agents would wait for that. (A run that fails leaves its traceback, as exceptions do that somebody keeps.)
"""

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from glassloop import Agent, Endpoint, ScriptedModel
from glassloop.core.journal import Record
from glassloop.core.loop import Loop
from glassloop.models.scripted import call
from glassloop.models.scripted import calls as scripted
from glassloop.sessions.journal import SqliteJournal
from glassloop.testing.server import ChatServer, calls, says


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def wait(seconds: float = 0.001) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


def fail() -> str:
    """Fail."""
    raise ValueError("never mind")


SCRIPT = [calls(("add", {"a": 1, "b": 2}), ("wait", {})), calls(("fail", {})), says("Done.")]


async def to_the_end(agent: Agent) -> None:
    assert (await agent.run("Go")).text == "Done."


async def listened_to(agent: Agent) -> None:
    async with agent.stream("Go") as run:
        async for _ in run:
            pass
    assert run.result.text == "Done."


async def left(agent: Agent) -> None:
    async with agent.stream("Go") as run:
        async for _ in run:
            break
    assert run.result.stop_reason == "cancelled"


@pytest.mark.parametrize(
    ("how", "stream", "journal"),
    [
        (to_the_end, False, "in memory"),
        (to_the_end, True, "in a file"),
        (listened_to, True, "in memory"),
        (listened_to, False, "in a file"),
        (left, True, "in memory"),
    ],
)
def test_a_run_that_is_over_leaves_nothing_to_the_garbage_collector(
    how: Callable[[Agent], Awaitable[None]], stream: bool, journal: str, tmp_path: Path
) -> None:
    """Some hundred objects a run, if it does: a broken connection of asyncio's is ten."""
    runs = 4

    async def work(base_url: str) -> Counter[str]:
        kept = SqliteJournal(tmp_path / "s.db") if journal == "in a file" else None
        agent = Agent(Endpoint(base_url, "m", stream=stream), tools=[add, wait, fail], journal=kept)
        for _ in range(2):
            await how(agent)
        gc.collect()
        for _ in range(runs):
            await how(agent)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = Counter(type(one).__name__ for one in gc.garbage)
        await agent.model.close()
        return found

    with ChatServer(SCRIPT * (runs + 2)) as server:
        gc.disable()
        try:
            found = asyncio.run(work(server.base_url))
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert sum(found.values()) < 30 * runs, found


class Remembering:
    """A controller that keeps what it was fed, as one for tests or audit does."""

    def __init__(self, inner: Loop, kept: list[Record]) -> None:
        self._inner, self._kept = inner, kept

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def feed(self, record: Record) -> None:
        self._kept.append(record)
        self._inner.feed(record)


def test_a_tool_that_leads_back_to_what_was_kept_of_its_calls_is_collected() -> None:
    def ran() -> weakref.ref[Callable[..., str]]:
        kept: list[Record] = []

        def look(at: int) -> str:
            """Look at what was kept."""
            return f"{len(kept)} at {at}"

        agent = Agent(
            ScriptedModel([scripted(call("look", at=1)), "Done."]),
            tools=[look],
            controller=lambda *given: Remembering(Loop(*given), kept),
        )
        asyncio.run(to_the_end(agent))
        assert [type(one.value).__name__ for one in kept] == [
            "User",
            "Reply",
            "Verdict",
            "ToolResult",
            "Reply",
        ]
        return weakref.ref(look)

    tools = [ran() for _ in range(5)]
    gc.collect()
    assert sum(one() is not None for one in tools) <= 1  # Python may hold the last one a little longer
