"""Plays a whole catalogue of quirks to `Agent` over real HTTP, streamed and not, and says how each ended.

What must come out is the entry's `expect`. Where an entry asks for an adaptation, a new process asks the
same endpoint once more with what was learned, and must not run into it again.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from glassloop.agent import Agent
from glassloop.core.entries import JSON
from glassloop.core.errors import EndpointError, GlassloopError
from glassloop.core.events import TextDelta
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.profiles import ProfileStore
from glassloop.testing.quirks import Quirk, QuirkServer, load, serve
from glassloop.tools.tool import tool

Way = Literal["streamed", "whole"]
WAYS: tuple[Way, ...] = ("streamed", "whole")

_QUESTION = "What is 2 + 2?"
TOGETHER = 24
_SETTINGS = ("temperature", "max_tokens", "max_completion_tokens", "tool_choice")

Ran = tuple[str, dict[str, JSON]]
RAN: ContextVar[list[Ran]] = ContextVar("ran")
"""Where the tools below note that they ran."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one quirk ended: what ran, what was shown, the answer or the error, and what the server saw.

    `met`: whether the endpoint ever showed the quirk; our defaults avoid some. `met_again`: how often a
    new process met it. `problem`: why this is not what the catalogue expects, None if it is.
    """

    quirk: Quirk
    way: Way
    ran: tuple[Ran, ...] = ()
    shown: str = ""
    text: str | None = None
    error: GlassloopError | None = field(default=None, repr=False)
    requests: int = 0
    met: bool = False
    met_again: int = 0
    problem: str | None = None


def play_catalogue(path: Path) -> list[Outcome]:
    """Play all of a catalogue. Raises ValueError for a file that is none."""
    with tempfile.TemporaryDirectory(prefix="glassloop-quirks-") as folder:
        return asyncio.run(_play_all(path, Path(folder)))


async def _play_all(path: Path, folder: Path) -> list[Outcome]:
    turn, store = asyncio.Semaphore(TOGETHER), ProfileStore(folder / "profiles")
    async with serve(path) as server:

        async def one(quirk: Quirk, way: Way) -> Outcome:
            async with turn:
                return await _play(server, quirk, way, store)

        pairs = [(quirk, way) for way in WAYS for quirk in server.quirks.values()]
        outcomes = await asyncio.gather(*(one(quirk, way) for quirk, way in pairs))
        outcomes = await _play_again(server, path, folder, outcomes)
    return [replace(one, problem=problem_of(one)) for one in outcomes]


def deadlines_for(quirk: Quirk) -> Deadlines:
    """Short where the endpoint falls silent for ever. Elsewhere a busy machine must not look like that."""
    return Deadlines(first_byte=60, silence=1.5 if quirk.wire.get("end") == "stall" else 60)


async def _play(server: QuirkServer, quirk: Quirk, way: Way, store: ProfileStore) -> Outcome:
    ran: list[Ran] = []
    RAN.set(ran)
    endpoint = Endpoint(
        server.base_url(quirk.id, way),
        "m",
        retries=Retries(base=0.001),
        deadlines=deadlines_for(quirk),
        learned=store,
        stream=way == "streamed",
    )
    agent = Agent(endpoint, tools=TOOLS, settings=settings_for(quirk))
    shown, text, error = "", None, None
    try:
        async with agent.stream(_QUESTION) as run:
            async for event in run:
                shown = "" if getattr(event, "discard", False) else shown
                shown += event.text if isinstance(event, TextDelta) else ""
        text = run.result.text
    except GlassloopError as raised:
        error = raised
    finally:
        await endpoint.close()
    seen = server.run(quirk.id, way)
    return Outcome(quirk, way, tuple(ran), shown, text, error, len(seen.requests), seen.plays > 0)


async def _play_again(
    server: QuirkServer, path: Path, folder: Path, outcomes: Sequence[Outcome]
) -> list[Outcome]:
    """In a new process, which knows only what is on disk."""
    before = {(one.quirk.id, one.way): server.run(one.quirk.id, one.way).plays for one in outcomes}
    environment = {**os.environ, "GLASSLOOP_DATA_DIR": str(folder)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, str(path), server.url, env=environment, stdout=subprocess.DEVNULL
    )
    if await child.wait() != 0:
        raise RuntimeError("the second process that asks with what was learned failed; its words are above")
    plays = {key: server.run(*key).plays - count for key, count in before.items()}
    return [replace(one, met_again=plays[one.quirk.id, one.way]) for one in outcomes]


async def _ask_as_a_new_process(path: Path, url: str) -> None:
    """The second process: ask every endpoint that had to be adapted to."""
    turn, server = asyncio.Semaphore(TOGETHER), QuirkServer(load(path))
    server.url = url

    async def one(quirk: Quirk, way: Way) -> None:
        async with turn:
            await _play(server, quirk, way, ProfileStore.in_user_folder())

    adapted = [quirk for quirk in server.quirks.values() if quirk.action == "adapt_request"]
    await asyncio.gather(*(one(quirk, way) for way in WAYS for quirk in adapted))


# ── the tools that the catalogue's README assumes ─────────────────────────


def get_weather(city: str, unit: Literal["C", "F"] | None = None) -> str:
    """Weather in a city."""
    RAN.get().append(("get_weather", {"city": city, "unit": unit}))
    return "4 degrees"


def add(a: int, b: int) -> str:
    """The sum of two numbers."""
    RAN.get().append(("add", {"a": a, "b": b}))
    return str(a + b)


def list_cities() -> str:
    """All cities."""
    RAN.get().append(("list_cities", {}))
    return "Oslo, Rome"


def plan_route(stops: list[str], fast: bool = False, note: str | None = None) -> str:
    """A route along stops."""
    RAN.get().append(("plan_route", {"stops": stops, "fast": fast, "note": note}))
    return "planned"


def write_note(path: str, text: str) -> str:
    """Write a note."""
    RAN.get().append(("write_note", {"path": path, "text": text}))
    return "written"


TOOLS = [tool(function) for function in (get_weather, add, list_cities, plan_route, write_note)]


def settings_for(quirk: Quirk) -> dict[str, JSON]:
    """The request fields that the quirk's `when` speaks of."""
    when = quirk.when or {}
    settings = {name: when[name] for name in _SETTINGS if name in when}
    field_name = when.get("has")
    return settings if field_name in (None, "tools") else {**settings, field_name: 1}


# ── what is expected ──────────────────────────────────────────────────────


def problem_of(one: Outcome) -> str | None:
    """Why an outcome is not what the catalogue expects."""
    if (one.quirk.when or {}).get("stream") is True and one.way == "whole":
        return None  # not asked for in the way that shows it
    return _CHECKS[one.quirk.action](one)


def _execute(one: Outcome) -> str | None:
    if one.error is not None:
        return f"ended with {one.error}"
    return _wrong_calls(one) or _wrong_count(one, 2)


def _answer(one: Outcome) -> str | None:
    if one.error is not None:
        return f"ended with {one.error}"
    expected = one.quirk.expect.get("content")
    if expected is not None and expected.startswith("(unchanged"):
        expected = one.quirk.wire["body"]["choices"][0]["message"]["content"]
    if expected is not None and one.text != expected:
        return f"answered {one.text!r}"
    if not one.shown.endswith(one.text or ""):  # thinking that only its closing tag gives away comes first
        return f"showed {one.shown!r}"
    return _wrong_calls(one) or _wrong_count(one, 1)


def _feed_back(one: Outcome) -> str | None:
    if one.error is not None:
        return f"ended with {one.error}"
    return _wrong_calls(one) or _wrong_count(one, 2)


def _retry(one: Outcome) -> str | None:
    if one.error is not None or not one.text:
        return f"ended with {one.error or 'no text'}"
    return _wrong_calls(replace(one, quirk=_without_calls(one.quirk))) or _wrong_count(one, 2)


def _raise(one: Outcome) -> str | None:
    if not isinstance(one.error, EndpointError):
        return f"did not raise, but answered {one.text!r}"
    if not one.error.provider_text:
        return "raised without the provider's words"
    return _wrong_count(one, 1)


def _adapt(one: Outcome) -> str | None:
    if one.error is not None or not one.text:
        return f"ended with {one.error or 'no text'}"
    if one.quirk.when is not None and one.met_again:
        return f"a new process met it {one.met_again} times more"
    return None


_CHECKS = {
    "execute": _execute,
    "answer": _answer,
    "feed_back": _feed_back,
    "retry": _retry,
    "raise": _raise,
    "adapt_request": _adapt,
}


def _wrong_calls(one: Outcome) -> str | None:
    """These calls must have run and no others; optional parameters have their defaults."""
    left = list(one.ran)
    for call in one.quirk.expect.get("calls", ()):
        wanted = (call["name"], call["arguments"])
        match = next((ran for ran in left if ran[0] == wanted[0] and _holds(wanted[1], ran[1])), None)
        if match is None:
            return f"{wanted} did not run; these did: {one.ran}"
        left.remove(match)
    return f"{left} ran" if left else None


def _holds(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return wanted.items() <= given.items()


def _wrong_count(one: Outcome, wanted: int) -> str | None:
    return None if one.requests == wanted else f"took {one.requests} requests, not {wanted}"


def _without_calls(quirk: Quirk) -> Quirk:
    return replace(quirk, expect={**quirk.expect, "calls": []})


# ── for people ────────────────────────────────────────────────────────────


def table(outcomes: Sequence[Outcome], *, markdown: bool = False) -> str:
    """One row a quirk: what it is, who does it, what is right, and how it ended each way."""
    cells = {(one.quirk.id, one.way): _cell(one) for one in outcomes}
    quirks = {one.quirk.id: one.quirk for one in outcomes}
    rows = [
        (quirk.id, quirk.name, quirk.action.replace("_request", ""), *(cells[quirk.id, way] for way in WAYS))
        for quirk in quirks.values()
    ]
    heads = ("id", "what the endpoint does", "right outcome", *WAYS)
    if markdown:
        lines = [heads, tuple("---" for _ in heads), *(tuple(_escaped(cell) for cell in row) for row in rows)]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    else:
        body = "\n".join("\t".join(row) for row in [heads, *rows])
    return f"{body}\n\n{summary(outcomes)}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many of each family ended as they should, and how many were met at all."""
    right, met, every = Counter[str](), Counter[str](), Counter[str]()
    for one in outcomes:
        every[one.quirk.family] += 1
        right[one.quirk.family] += one.problem is None
        met[one.quirk.family] += one.met
    lines = [f"{name}: {right[name]} of {every[name]} right, {met[name]} met" for name in sorted(every)]
    return "\n".join([*lines, f"all: {right.total()} of {every.total()} right, {met.total()} met"])


def _cell(one: Outcome) -> str:
    if one.problem:
        return "WRONG"
    return "right" if one.met else "avoided"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    asyncio.run(_ask_as_a_new_process(Path(sys.argv[1]), sys.argv[2]))
