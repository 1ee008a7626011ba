"""Counts, never seconds: instructions, calls, turns of the event loop, allocations, connections, bytes. `make test`
runs it.

Seconds wobble with the machine, counts do not; so they can be bounded in a test. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import json
import pstats
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import measure
import sent
from worker import TASK, side, url

SHORT, LONG = 10, 60
CHUNKS = 1000
AGENTS = 40


def main() -> dict[str, dict[str, float]]:
    with measure.Server() as server:
        return {name: asyncio.run(_counts(name, server.url)) for name in ("floor", "glassloop")} | {
            "requests": _requests()
        }


async def _counts(name: str, server: str) -> dict[str, float]:
    counts: dict[str, float] = {}
    for stream in (False, True):
        mode = "streamed" if stream else "whole"
        for rounds in (SHORT, LONG):
            agent = side(name, url(server, calls=rounds), stream=stream)
            calls, turns = await _calls(agent.run, TASK)
            instructions = await _instructions(agent.run, TASK)
            await agent.close()
            counts[f"calls a request, {rounds} rounds, {mode}"] = calls / (rounds + 1)
            counts[f"loop turns a request, {rounds} rounds, {mode}"] = turns / (rounds + 1)
            counts[f"instructions a request, {rounds} rounds, {mode}"] = instructions / (rounds + 1)
    counts["calls a chunk"] = await _calls_a_chunk(name, server)
    counts["KiB an agent"] = await _kib_an_agent(name, server)
    return counts


async def _calls(run: Callable[..., Awaitable[Any]], *given: Any) -> tuple[int, int]:
    """Function calls, and turns of the loop, of one run; the first run pays for caches and imports."""
    await run(*given)
    profile = cProfile.Profile()
    profile.enable()
    await run(*given)
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # typeshed does not know it
    turns = sum(each[0] for (_, _, function), each in stats.items() if function == "_run_once")
    return sum(each[1] for each in stats.values()), turns


async def _instructions(run: Callable[..., Awaitable[Any]], *given: Any) -> int:
    """Instructions of Python's own machine in one run; what is done in C is one of them, however long it takes."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "opcode"
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return trace

    sys.settrace(trace)
    try:
        await run(*given)
    finally:
        sys.settrace(None)
    return count


async def _calls_a_chunk(name: str, server: str) -> float:
    totals = []
    for chunks in (CHUNKS, 2 * CHUNKS):
        agent = side(name, url(server, chunks=chunks), stream=True)
        totals.append((await _calls(agent.run, TASK, lambda: None))[0])
        await agent.close()
    return (totals[1] - totals[0]) / CHUNKS


async def _kib_an_agent(name: str, server: str) -> float:
    """What the allocator holds at the peak for each of many agents at once."""
    agent = side(name, url(server, calls=2, delay=20))
    await agent.run(TASK)
    gc.collect()
    tracemalloc.start()
    await asyncio.gather(*(agent.run(TASK) for _ in range(AGENTS)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await agent.close()
    return peak / AGENTS / 1024


def _requests() -> dict[str, float]:
    """Connections, prefix and bytes of a run of ours, whole and streamed."""
    found = {mode: sent.figures_of("glassloop", mode == "streamed") for mode in ("whole", "streamed")}
    return {f"{name}, {mode}": value for mode, figures in found.items() for name, value in figures.items()}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
