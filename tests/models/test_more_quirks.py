"""A second catalogue of the reading side's quirks, played over real HTTP.

What must come out was decided by DESIGN's order of decisions and its error table; see `tests/quirks/reading.jsonl`.
"""

import asyncio
import base64
import json
import random
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.wire.reading import TOOLS as SPECS

from glassloop.agent import Agent, Result
from glassloop.core.entries import Reply, ToolResult
from glassloop.core.errors import EndpointError, GlassloopError
from glassloop.models.deadlines import Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.profiles import ProfileStore
from glassloop.testing.catalogue import deadlines_for
from glassloop.testing.quirks import Quirk, QuirkServer, load, serve
from glassloop.testing.server import Request
from glassloop.tools.tool import Tool
from glassloop.wire.stream import StreamReader

CATALOGUE = Path(__file__).parents[1] / "quirks" / "reading.jsonl"
QUIRKS = load(CATALOGUE)
STREAMS = [quirk for quirk in QUIRKS if quirk.wire["mode"] == "sse"]
WAYS = ("streamed", "whole")
TOGETHER = 24

RAN: ContextVar[list[tuple[str, dict]]] = ContextVar("RAN")


def ran(name: str, **arguments) -> str:
    RAN.get().append((name, arguments))
    return "done"


TOOLS = [Tool(name, "A tool.", dict(spec.parameters), partial(ran, name)) for name, spec in SPECS.items()]


@dataclass
class Outcome:
    """What came of one quirk: what ran, how it ended, and what the server was asked."""

    ran: list[tuple[str, dict]]
    result: Result | None
    error: GlassloopError | None
    requests: list[Request]

    @property
    def reply(self) -> Reply:
        return next(entry for entry in self.result.entries if isinstance(entry, Reply))

    @property
    def told(self) -> str:
        """What the model was told about its calls."""
        return " ".join(entry.text for entry in self.result.entries if isinstance(entry, ToolResult))


async def play(server: QuirkServer, quirk: Quirk, way: str, store: ProfileStore) -> Outcome:
    RAN.set(calls := [])
    endpoint = Endpoint(
        server.base_url(quirk.id, way),
        "m",
        retries=Retries(base=0.001),
        deadlines=deadlines_for(quirk),
        learned=store,
        stream=way == "streamed",
    )
    result, error = None, None
    try:
        result = await Agent(endpoint, tools=TOOLS).run("What is 2 + 2?")
    except GlassloopError as raised:
        error = raised
    finally:
        await endpoint.close()
    return Outcome(calls, result, error, server.run(quirk.id, way).requests)


# Each in one way, in turn, to save time: that both ways read the same is tested on the readers themselves.
PAIRS = [(quirk, WAYS[at % 2]) for at, quirk in enumerate(QUIRKS)]


@pytest.fixture(scope="module")
def played() -> dict[tuple[str, str], Outcome]:
    """All pairs, many at a time."""

    async def play_all():
        turn, store = asyncio.Semaphore(TOGETHER), ProfileStore(None)

        async def one(server, quirk, way):
            async with turn:
                return await play(server, quirk, way, store)

        async with serve(CATALOGUE) as server:
            outcomes = await asyncio.gather(*(one(server, quirk, way) for quirk, way in PAIRS))
        return {(quirk.id, way): outcome for (quirk, way), outcome in zip(PAIRS, outcomes, strict=True)}

    return asyncio.run(play_all())


def check_execute(quirk: Quirk, outcome: Outcome) -> None:
    assert outcome.ran == wanted(quirk)
    assert len(outcome.requests) == 2


def check_answer(quirk: Quirk, outcome: Outcome) -> None:
    assert not outcome.ran
    assert outcome.result.text == quirk.expect["content"]
    assert len(outcome.requests) == 1


def check_feed_back(quirk: Quirk, outcome: Outcome) -> None:
    assert outcome.ran == wanted(quirk)
    assert quirk.expect.get("says", "") in outcome.told
    assert len(outcome.requests) == 2


def check_retry(quirk: Quirk, outcome: Outcome) -> None:
    assert not outcome.ran
    assert outcome.result.text == "Done."
    assert len(outcome.requests) == 2


CHECKS = {
    "execute": check_execute,
    "answer": check_answer,
    "feed_back": check_feed_back,
    "retry": check_retry,
}


def wanted(quirk: Quirk) -> list[tuple[str, dict]]:
    return [(call["name"], call["arguments"]) for call in quirk.expect["calls"]]


@pytest.mark.parametrize(("quirk", "way"), PAIRS, ids=lambda one: getattr(one, "id", one))
def test_a_quirk_ends_as_it_should(quirk, way, played):
    outcome = played[quirk.id, way]
    if quirk.action == "raise":
        assert isinstance(outcome.error, EndpointError)
        assert not outcome.ran
        assert len(outcome.requests) == 1
        return
    assert outcome.error is None
    if way == "streamed" or "stream" not in (quirk.when or {}):
        CHECKS[quirk.action](quirk, outcome)
    assert quirk.expect.get("reasoning") in (None, outcome.reply.reasoning)
    assert_sendable(outcome.requests[-1].body["messages"])


def assert_sendable(messages) -> None:
    """Every call is a whole one with an id of its own, and is answered directly after its turn."""
    seen: set[str] = set()
    for at, message in enumerate(messages):
        ids = [call["id"] for call in message.get("tool_calls", ())]
        assert all(id.isprintable() and not set(id) & set(" \t\r\n") and id for id in ids), ids
        assert len(set(ids)) == len(ids)
        assert not seen & set(ids)
        seen |= set(ids)
        assert [each.get("tool_call_id") for each in messages[at + 1 : at + 1 + len(ids)]] == ids
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


@pytest.mark.parametrize("quirk", STREAMS, ids=lambda quirk: quirk.id)
def test_any_split_of_the_bytes_gives_the_same_reply(quirk):
    coded = quirk.wire.get("encoding") == "base64"
    body = b"".join(base64.b64decode(e) if coded else e.encode() for e in quirk.wire["events"])
    cuts = sorted(random.Random(quirk.id).sample(range(len(body) + 1), min(9, len(body))))
    splits = [[body], [body[i : i + 1] for i in range(len(body))], pieces(body, cuts)]
    assert all(read(split) == read([body]) for split in splits)


def pieces(body: bytes, cuts: list[int]) -> list[bytes]:
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def read(split: list[bytes]):
    """What was read, and what was shown meanwhile, by kind."""
    reader = StreamReader(SPECS)
    deltas = [delta for piece in split for delta in reader.feed(piece)]
    outcome = reader.finish()
    shown: dict[str, str] = {}
    for delta in (*deltas, *reader.tail):
        shown[type(delta).__name__] = shown.get(type(delta).__name__, "") + delta.text
    return outcome, shown
