"""Every quirk of the shared catalogue, played over real HTTP to an `Agent`, streamed and not.

What must come out is the entry's `expect`, read by DESIGN's order of decisions and its error table.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from glassloop.agent import Agent, Result
from glassloop.core.errors import EndpointError, GlassloopError
from glassloop.core.events import TextDelta
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.profiles import ProfileStore
from glassloop.testing.quirks import Quirk, QuirkServer, Run, load, serve
from glassloop.tools.tool import tool

FAR = 45 * 86_400


def with_a_reset_that_stays_far(quirk: Quirk) -> Quirk:
    """A moment in a header is moved with today's date, or an entry would mean something else next year."""
    headers = quirk.wire.get("headers", {})
    value = headers.get("x-ratelimit-reset", "")
    if len(value) < len("1800000000"):
        return quirk
    moment = str(int(time.time() + FAR)) + "0" * (len(value) - len("1800000000"))
    return replace(quirk, wire={**quirk.wire, "headers": {**headers, "x-ratelimit-reset": moment}})


CATALOGUE = Path(
    os.environ.get("GLASSLOOP_QUIRKS") or Path(__file__).parents[3] / "shared/quirks/quirks.jsonl"
)
QUIRKS = [with_a_reset_that_stays_far(quirk) for quirk in load(CATALOGUE)] if CATALOGUE.exists() else []
WAYS = ("streamed", "whole")
IMPATIENT = Deadlines(first_byte=5, silence=1.5)
TOGETHER = 24
SETTINGS = ("temperature", "max_tokens", "max_completion_tokens", "tool_choice")

pytestmark = pytest.mark.skipif(not QUIRKS, reason=f"no catalogue at {CATALOGUE}; set GLASSLOOP_QUIRKS")


@dataclass
class Played:
    """What came of one quirk: what ran, what was shown, how it ended, and what the server saw."""

    ran: list[tuple[str, dict]]
    shown: str
    result: Result | None
    error: GlassloopError | None
    requests: int
    plays_when_known: int


RAN: ContextVar[list[tuple[str, dict]]] = ContextVar("RAN")


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


def settings_for(quirk: Quirk) -> dict:
    """The request fields that the quirk's `when` speaks of."""
    when = quirk.when or {}
    settings = {name: when[name] for name in SETTINGS if name in when}
    field = when.get("has")
    return settings if field in (None, "tools") else {**settings, field: 1}


async def play(server: QuirkServer, quirk: Quirk, way: str, store: ProfileStore) -> Played:
    RAN.set(ran := [])
    result, error, shown = await ask(server, quirk, way, store)
    run = server.run(quirk.id, way)
    requests, plays = len(run.requests), run.plays
    if quirk.action == "adapt_request":
        RAN.set([])
        await ask(server, quirk, way, store)  # as a new process would, with what was learned
    return Played(ran, shown, result, error, requests, run.plays - plays)


async def ask(server: QuirkServer, quirk: Quirk, way: str, store: ProfileStore):
    endpoint = Endpoint(
        server.base_url(quirk.id, way),
        "m",
        retries=Retries(base=0.001),
        deadlines=IMPATIENT,
        learned=store,
        stream=way == "streamed",
    )
    agent = Agent(endpoint, tools=TOOLS, settings=settings_for(quirk))
    shown, error = "", None
    try:
        async with agent.stream("What is 2 + 2?") as run:
            async for event in run:
                shown = "" if getattr(event, "discard", False) else shown
                shown += event.text if isinstance(event, TextDelta) else ""
        result = run.result
    except GlassloopError as raised:
        result, error = raised.result, raised
    finally:
        await endpoint.close()
    return result, error, shown


@pytest.fixture(scope="module")
def played() -> dict[tuple[str, str], Played]:
    """All quirks both ways, many at a time, since some ask to be waited for."""

    async def play_all():
        turn, store = asyncio.Semaphore(TOGETHER), ProfileStore(None)

        async def one(server, quirk, way):
            async with turn:
                return await play(server, quirk, way, store)

        async with serve(CATALOGUE) as server:
            pairs = [(quirk, way) for way in WAYS for quirk in QUIRKS]
            outcomes = await asyncio.gather(*(one(server, quirk, way) for quirk, way in pairs))
        return {(quirk.id, way): outcome for (quirk, way), outcome in zip(pairs, outcomes, strict=True)}

    return asyncio.run(play_all())


def wanted_calls(quirk: Quirk) -> list[tuple[str, dict]]:
    return [(call["name"], call["arguments"]) for call in quirk.expect["calls"]]


def ran_as_wanted(ran: list[tuple[str, dict]], wanted: list[tuple[str, dict]]) -> bool:
    """Whether these calls ran and no others; optional parameters have their defaults."""
    left = list(ran)
    for name, arguments in wanted:
        match = next(
            (each for each in left if each[0] == name and arguments.items() <= each[1].items()), None
        )
        if match is None:
            return False
        left.remove(match)
    return not left


def check_execute(quirk: Quirk, outcome: Played, way: str) -> None:
    if (quirk.when or {}).get("stream") is True and way == "whole":
        return  # not asked for in the way that triggers it
    assert ran_as_wanted(outcome.ran, wanted_calls(quirk)), outcome.ran
    assert outcome.error is None
    assert outcome.requests == 2


def check_answer(quirk: Quirk, outcome: Played, way: str) -> None:
    assert outcome.error is None
    assert not outcome.ran
    assert outcome.requests == 1
    expected = quirk.expect["content"]
    if expected is not None and expected.startswith("(unchanged"):
        expected = quirk.wire["body"]["choices"][0]["message"]["content"]
    assert expected in (None, outcome.result.text)
    if way == "streamed" and outcome.shown:
        # Thinking that only its closing tag gives away was shown before that tag came.
        assert outcome.shown.endswith(outcome.result.text)


def check_feed_back(quirk: Quirk, outcome: Played, way: str) -> None:
    assert outcome.error is None
    assert ran_as_wanted(outcome.ran, wanted_calls(quirk)), outcome.ran
    assert outcome.requests == 2


def check_retry(quirk: Quirk, outcome: Played, way: str) -> None:
    assert outcome.error is None
    assert not outcome.ran
    assert outcome.requests == 2
    assert outcome.result.text


def check_raise(quirk: Quirk, outcome: Played, way: str) -> None:
    assert isinstance(outcome.error, EndpointError)
    assert outcome.error.provider_text
    assert outcome.requests == 1


def check_adapt(quirk: Quirk, outcome: Played, way: str) -> None:
    assert outcome.error is None
    assert outcome.result.text
    if quirk.when is not None:
        assert outcome.plays_when_known == 0


CHECKS = {
    "execute": check_execute,
    "answer": check_answer,
    "feed_back": check_feed_back,
    "retry": check_retry,
    "raise": check_raise,
    "adapt_request": check_adapt,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.id)
def test_a_quirk_ends_as_it_should(quirk, way, played):
    CHECKS[quirk.action](quirk, played[quirk.id, way], way)


def test_the_whole_catalogue_was_played(played):
    assert len(played) >= 2 * 213


def test_a_run_that_was_never_asked_is_empty():
    assert QuirkServer([]).run("none") == Run()
