"""One measurement of one side, in a process of its own and with that side's own Python. Prints one line of JSON.

Run by `measure.py`; it imports nothing of a side but its `Side`, so that each is measured as it comes.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import re
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

sys.path.insert(0, __file__.rsplit("/", 1)[0])

MODULES = {
    "floor": "floor",
    "glassloop": "sides.glassloop_side",
    "openai": "sides.openai_loop",
    "pydantic-ai": "sides.pydantic_ai_side",
    "openai-agents": "sides.openai_agents_side",
}
TASK = "Add the numbers."


def side(name: str, base: str, *, stream: bool = False, **more: Any) -> Any:
    return importlib.import_module(MODULES[name]).Side(base, stream=stream, **more)


def url(server: str, **script: float) -> str:
    return f"{server}/{','.join(f'{name}={value}' for name, value in script.items())}/v1"


async def rounds(name: str, server: str, rounds: int, stream: bool, runs: int) -> dict[str, float]:
    """CPU of a request in a run of so many tool rounds; the process is warm, its connection open."""
    agent = side(name, url(server, calls=rounds), stream=stream)
    warm_up = side(name, url(server, calls=3), stream=stream)
    for _ in range(3):
        await warm_up.run(TASK)
    await side_once(agent, rounds)
    gc.collect()
    began = time.process_time()
    for _ in range(runs):
        await agent.run(TASK)
    cpu = time.process_time() - began
    await agent.close()
    await warm_up.close()
    return {"cpu_us_per_request": cpu / (runs * (rounds + 1)) * 1e6}


async def side_once(agent: Any, rounds: int) -> None:
    """Open the connection before the clock starts; a long run is its own warm-up."""
    if rounds <= 10:
        await agent.run(TASK)


async def streaming(name: str, server: str, chunks: int, pace: float, runs: int) -> dict[str, float]:
    """CPU of reading a streamed answer, every delta handed to the caller, for 10,000 chunks."""
    agent = side(name, url(server, chunks=chunks, pace=pace), stream=True)
    warm_up = side(name, url(server, chunks=50), stream=True)
    await warm_up.run(TASK, lambda: None)
    heard = 0

    def hear() -> None:
        nonlocal heard
        heard += 1

    if not pace:
        await agent.run(TASK, hear)
    heard = 0
    gc.collect()
    began = time.process_time()
    for _ in range(runs):
        text = await agent.run(TASK, hear)
        assert len(text) == 5 * chunks, f"{name} read {len(text)} characters of {5 * chunks}"
    cpu = time.process_time() - began
    await agent.close()
    await warm_up.close()
    return {"cpu_ms_per_10k": cpu / (runs * chunks) * 1e7, "deltas": heard / runs}


async def first_token(name: str, server: str, times: int) -> dict[str, float]:
    """Wall time from asking to the first text in the caller's hands; the server answers at once."""
    agent = side(name, url(server, chunks=20), stream=True)
    for _ in range(10):
        await agent.run(TASK, lambda: None)
    import statistics  # here: a cold process of another scenario must not pay for it

    waits: list[float] = []
    heard: list[float] = []

    def hear() -> None:
        if not heard:
            heard.append(time.perf_counter())

    for _ in range(times):
        heard.clear()
        began = time.perf_counter()
        await agent.run(TASK, hear)
        waits.append(heard[0] - began)
        await asyncio.sleep(0)
    await agent.close()
    return {"first_token_ms": statistics.median(waits) * 1e3}


async def crowd(name: str, server: str, agents: int, rounds: int, delay: float) -> dict[str, float]:
    """So many agents at once: wall, CPU, and how much memory each adds at the peak."""
    _allow_many_connections()
    small = side(name, url(server, calls=1, delay=1))
    await asyncio.gather(*(small.run(TASK) for _ in range(5)))
    await small.close()
    gc.collect()
    before = _memory_now()
    _forget_peak()
    agent = side(name, url(server, calls=rounds - 1, delay=delay))
    began, cpu = time.perf_counter(), time.process_time()
    answers = await asyncio.gather(*(agent.run(TASK) for _ in range(agents)), return_exceptions=True)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = _peak_memory()
    with suppress(Exception):
        await agent.close()
    failed = [answer for answer in answers if not isinstance(answer, str)]
    return {
        "wall_s": wall,
        "cpu_s": cpu,
        "kib_per_agent": (peak - before) / agents,
        "failed": len(failed),
        **({"error": repr(failed[0])[:200]} if failed else {}),
    }


async def memory(name: str, server: str, rounds: int) -> dict[str, float]:
    """Resident memory at the peak of a fresh process that does one run."""
    agent = side(name, url(server, calls=rounds))
    await agent.run(TASK)
    await agent.close()
    return {"peak_mib": _peak_memory() / 1024}


async def one_answer(name: str, server: str) -> dict[str, float]:
    """A cold process: one question, one answer. `measure.py` takes the whole process's time."""
    agent = side(name, url(server), stream=False)
    await agent.run(TASK)
    await agent.close()
    return {}


async def sent(name: str, server: str, rounds: int, stream: bool) -> dict[str, float]:
    """One run whose requests the server keeps; `measure.py` reads them there."""
    agent = side(name, url(server, calls=rounds, keep=1), stream=stream)
    await agent.run(TASK)
    await agent.close()
    return {}


async def journal(name: str, server: str, rounds: int, runs: int, path: str) -> dict[str, float]:
    """CPU and wall of a request with every entry on disk before the next step."""
    agent = side(name, url(server, calls=rounds), journal=path)
    await agent.run(TASK)
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(runs):
        await agent.run(TASK)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    await agent.close()
    requests = runs * (rounds + 1)
    return {"cpu_us_per_request": cpu / requests * 1e6, "wall_us_per_request": wall / requests * 1e6}


SCENARIOS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (rounds, streaming, first_token, crowd, memory, one_answer, sent, journal)
}


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def _proc(field: str) -> int | None:
    try:
        with open("/proc/self/status") as status:
            found = re.search(rf"^{field}:\s+(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


def _memory_now() -> int:
    """KiB resident. Where there is no /proc, the peak so far."""
    return _proc("VmRSS") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _peak_memory() -> int:
    return _proc("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _forget_peak() -> None:
    with suppress(OSError), open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    scenario, name, given = sys.argv[1:4]
    print(json.dumps(asyncio.run(SCENARIOS[scenario](name, **json.loads(given)))))
