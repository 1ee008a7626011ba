"""A second catalogue of refusals and failures, guessed from the families of the first, played over real HTTP.

It holds what the shared catalogue may hold elsewhere: other wordings, other shapes, other providers. An adaptation
costs exactly one refused request, and none once it was learned.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from glassloop.agent import Agent
from glassloop.core.errors import (
    AuthenticationFailed,
    ContentFiltered,
    EndpointError,
    GlassloopError,
    ModelNotFound,
    OutOfCredit,
    RateLimited,
    RequestRejected,
)
from glassloop.models.deadlines import Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.profiles import ProfileStore
from glassloop.testing.catalogue import RAN, TOGETHER, TOOLS, WAYS, deadlines_for, settings_for
from glassloop.testing.quirks import Quirk, QuirkServer, load, serve
from glassloop.testing.triggers import is_about_history

CATALOGUE = Path(__file__).parents[1] / "quirks" / "rejecting.jsonl"
QUIRKS = load(CATALOGUE)
RAISED = {
    **dict.fromkeys(("H97", "H98", "H99", "H100", "H160", "H161"), AuthenticationFailed),
    **dict.fromkeys(("H101", "H102", "H113", "H116", "H162", "H172"), ModelNotFound),
    **dict.fromkeys(("H106", "H107", "H108", "H163"), OutOfCredit),
    **dict.fromkeys(("H109", "H110", "H164"), ContentFiltered),
    **dict.fromkeys(("H103", "H104", "H105", "H111", "H112", "H114", "H115"), RequestRejected),
    **dict.fromkeys(("H83", "H169"), RateLimited),
}


def is_asked_for(quirk: Quirk, way: str) -> bool:
    """Whether a client that asks in this way triggers it."""
    wanted = (quirk.when or {}).get("stream")
    return wanted is None or wanted == (way == "streamed")


PAIRS = [(quirk, way) for way in WAYS for quirk in QUIRKS if is_asked_for(quirk, way)]


@dataclass
class Played:
    """How a run ended, and what it cost: requests, those of them that were refused, and those refused later on."""

    text: str
    error: GlassloopError | None
    requests: int
    plays: int
    plays_when_known: int


async def ask(server: QuirkServer, quirk: Quirk, way: str, store: ProfileStore):
    RAN.set([])
    endpoint = Endpoint(
        server.base_url(quirk.id, way),
        "m",
        retries=Retries(base=0.001),
        deadlines=deadlines_for(quirk),
        learned=store,
        stream=way == "streamed",
    )
    agent = Agent(endpoint, instructions="Be brief.", tools=TOOLS, settings=settings_for(quirk))
    try:
        return (await agent.run("What is 2 + 2?")).text, None
    except GlassloopError as error:
        return "", error
    finally:
        await endpoint.close()


async def play(server: QuirkServer, quirk: Quirk, way: str, folder: Path) -> Played:
    text, error = await ask(server, quirk, way, ProfileStore(folder))
    run = server.run(quirk.id, way)
    requests, plays = len(run.requests), run.plays
    if quirk.action == "adapt_request":
        await ask(server, quirk, way, ProfileStore(folder))  # as a new process would, with what was learned
    return Played(text, error, requests, plays, run.plays - plays)


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> dict[tuple[str, str], Played]:
    """Each quirk in each way."""
    folder = tmp_path_factory.mktemp("profiles")

    async def play_all():
        turn = asyncio.Semaphore(TOGETHER)

        async def one(server, quirk, way):
            async with turn:
                return await play(server, quirk, way, folder)

        async with serve(CATALOGUE) as server:
            outcomes = await asyncio.gather(*(one(server, quirk, way) for quirk, way in PAIRS))
        return {(quirk.id, way): each for (quirk, way), each in zip(PAIRS, outcomes, strict=True)}

    return asyncio.run(play_all())


def check_adapted(quirk: Quirk, outcome: Played) -> None:
    assert outcome.error is None
    assert outcome.text
    if quirk.when is not None:
        assert outcome.plays_when_known == 0
        assert outcome.requests == 2 + is_about_history(quirk.when)


def check_retried(quirk: Quirk, outcome: Played) -> None:
    assert outcome.error is None
    assert outcome.text
    assert outcome.requests == 2


def check_raised(quirk: Quirk, outcome: Played) -> None:
    assert type(outcome.error) is RAISED[quirk.id]
    assert outcome.requests == (2 if quirk.id == "H112" else 1)  # a page with 200 may be a passing one
    assert outcome.error.provider_text or not quirk.wire["body"]


CHECKS = {"adapt_request": check_adapted, "retry": check_retried, "raise": check_raised}


@pytest.mark.parametrize(("quirk", "way"), PAIRS, ids=lambda each: getattr(each, "id", each))
def test_a_guessed_quirk_ends_as_it_should(quirk, way, played):
    outcome = played[quirk.id, way]
    assert outcome.plays, "it was never played"
    CHECKS[quirk.action](quirk, outcome)


def test_there_are_many():
    assert len(QUIRKS) >= 100
    assert all(issubclass(kind, EndpointError) for kind in RAISED.values())
