"""What `glassloop show` says of each model call: its number, what it cost, and the requests that it took."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from glassloop import Agent, Endpoint, EndpointError, GlassloopError, background
from glassloop.cli.timeline_lines import Round, round_lines, rounds_of
from glassloop.models.deadlines import Retries
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.testing.server import ChatServer, calls, fails, says

LONG = says("A long answer. " * 80)


@pytest.fixture
def rounds(tmp_path: Path) -> list[Round]:
    """A call and its answer after a retry, summaries that fail and do not, and a question that is refused."""
    script = [
        *(calls(("fly", {})), fails(503, "overloaded"), LONG, LONG, LONG, LONG),
        *(says(""), says("GOAL: to show"), fails(400, "no luck"), says("well")),
    ]
    with ChatServer(script) as server:
        journal = SqliteJournal(tmp_path / "s.db")
        endpoint = Endpoint(server.base_url, "m", retries=Retries(base=0.01))
        agent = Agent(endpoint, journal=journal, recorder=journal.wire_log)
        for question in ("one", "two", "three", "four"):
            agent.run_sync(question, session="s")
        for _ in range(2):
            background.submit(_compacted(agent)).result()
        with pytest.raises(EndpointError):
            agent.run_sync("five", session="s")
        agent.run_sync("six", session="s")
        journal.close()
        background.submit(endpoint.close()).result()
    store = Store(tmp_path / "s.db")
    return rounds_of(store.timeline("s"), store.exchanges("s"))


async def _compacted(agent: Agent[str]) -> None:
    async with agent.compact("s") as run:
        with suppress(GlassloopError):
            await run.wait()


def test_each_model_call_is_a_round_or_a_summary_and_has_its_own_requests(rounds: list[Round]) -> None:
    told = [(round_lines(one, 80)[0].text, len(one.exchanges)) for one in rounds if one.exchanges]
    heads = [(text.split(":")[0], text.endswith("no reply"), requests) for text, requests in told]
    assert heads == [
        ("· round 1", False, 1),
        ("· round 2", False, 2),
        *[(f"· round {number}", False, 1) for number in (3, 4, 5)],
        ("· summary", True, 1),
        ("· summary", False, 1),
        ("· round 6", True, 1),
        ("· round 6", False, 1),
    ]
    assert told[1][0].endswith("2 requests")


def test_what_kept_the_model_from_answering_is_said_once(rounds: list[Round]) -> None:
    (failed,) = [one for one in rounds if one.number == 6 and one.said is None]
    first, second = (line.text for line in round_lines(failed, 80))
    assert first == "· round 6: no reply"
    assert second.startswith("✗ ")
    assert "no luck" in second
