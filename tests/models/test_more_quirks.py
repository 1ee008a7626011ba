"""A catalogue of the reading side's quirks that was written without looking at the code, played over real HTTP.

What must come out was decided by DESIGN's order of decisions and its error table; see `tests/quirks/reading.jsonl`.
"""

import asyncio
import json
from pathlib import Path

import pytest
from tests.models.test_catalogue_over_http import TOGETHER, WAYS, ask, ran_as_wanted, wanted_calls

from glassloop.core.entries import Reply, ToolResult
from glassloop.core.errors import EndpointError
from glassloop.models.profiles import ProfileStore
from glassloop.testing.quirks import Quirk, load, serve

CATALOGUE = Path(__file__).parents[1] / "quirks" / "reading.jsonl"
QUIRKS = load(CATALOGUE)


class Outcome:
    """What came of one quirk: what ran, what was shown, how it ended, and what the server was asked."""

    def __init__(self, ran, result, error, shown, requests):
        self.ran = ran
        self.result = result
        self.error = error
        self.shown = shown
        self.requests = requests

    @property
    def reply(self) -> Reply:
        return next(entry for entry in self.result.entries if isinstance(entry, Reply))

    @property
    def told(self) -> str:
        """What the model was told about its calls."""
        return " ".join(entry.text for entry in self.result.entries if isinstance(entry, ToolResult))


@pytest.fixture(scope="module")
def played() -> dict[tuple[str, str], Outcome]:
    async def play_all():
        turn, store = asyncio.Semaphore(TOGETHER), ProfileStore(None)

        async def one(server, quirk: Quirk, way: str) -> Outcome:
            from tests.models.test_catalogue_over_http import RAN

            async with turn:
                RAN.set(ran := [])
                result, error, shown = await ask(server, quirk, way, store)
                return Outcome(ran, result, error, shown, server.run(quirk.id, way).requests)

        async with serve(CATALOGUE) as server:
            pairs = [(quirk, way) for way in WAYS for quirk in QUIRKS]
            outcomes = await asyncio.gather(*(one(server, quirk, way) for quirk, way in pairs))
        return {(quirk.id, way): outcome for (quirk, way), outcome in zip(pairs, outcomes, strict=True)}

    return asyncio.run(play_all())


def check_execute(quirk: Quirk, outcome: Outcome) -> None:
    assert ran_as_wanted(outcome.ran, wanted_calls(quirk)), outcome.ran
    assert len(outcome.requests) == 2


def check_answer(quirk: Quirk, outcome: Outcome) -> None:
    assert not outcome.ran
    assert outcome.result.text == quirk.expect["content"]
    assert len(outcome.requests) == 1


def check_feed_back(quirk: Quirk, outcome: Outcome) -> None:
    assert ran_as_wanted(outcome.ran, wanted_calls(quirk)), outcome.ran
    assert quirk.expect.get("says", "") in outcome.told
    assert len(outcome.requests) == 2


def check_retry(quirk: Quirk, outcome: Outcome) -> None:
    assert not outcome.ran
    assert len(outcome.requests) == 2
    assert outcome.result.text == "Done."


CHECKS = {
    "execute": check_execute,
    "answer": check_answer,
    "feed_back": check_feed_back,
    "retry": check_retry,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.id)
def test_a_quirk_ends_as_it_should(quirk, way, played):
    outcome = played[quirk.id, way]
    if way == "whole" and (quirk.when or {}).get("stream"):
        assert outcome.error is None  # only a stream triggers it
        return
    if quirk.action == "raise":
        assert isinstance(outcome.error, EndpointError)
        assert outcome.error.provider_text or outcome.error.args
        assert not outcome.ran
        assert len(outcome.requests) == 1
        return
    assert outcome.error is None
    CHECKS[quirk.action](quirk, outcome)
    assert quirk.expect.get("reasoning") in (None, outcome.reply.reasoning)
    assert_sendable(outcome.requests[-1].body["messages"])


def assert_sendable(messages) -> None:
    """Every call is a whole one with an id of its own, and is answered directly after its turn."""
    seen: set[str] = set()
    for at, message in enumerate(messages):
        ids = [call["id"] for call in message.get("tool_calls", ())]
        assert all(id.strip() and id.isprintable() and " " not in id for id in ids), ids
        assert len(set(ids)) == len(ids)
        assert not seen & set(ids)
        seen |= set(ids)
        assert [each.get("tool_call_id") for each in messages[at + 1 : at + 1 + len(ids)]] == ids
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
