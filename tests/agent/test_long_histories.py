"""History that outgrows the window, over real HTTP, in memory and in a session's file."""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import threading
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
from tests.cli.terminal import PROGRAM, environment, glassloop

from glassloop import Agent, Compacted, Endpoint, Limits, Reply, Summary, User, Window, tool
from glassloop.core.entries import ToolResult, parts_of
from glassloop.core.errors import ContextOverflow, SessionError
from glassloop.core.events import Event, TextDelta
from glassloop.models.profiles import ProfileStore
from glassloop.sessions.journal import SqliteJournal
from glassloop.testing.server import ChatServer, Completion, Raw, Request, calls, fails, says

LIMIT = 14_000
"""Bytes of a request that the server takes: about 3,500 tokens."""

TOO_LONG = "This model's maximum context length is 3500 tokens. However, your messages resulted in {} tokens."
SUMMARY = "GOAL: look into rooms\nDONE: some rooms\nOPEN: the others"


def in_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test, run in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: object, **named: object) -> None:
        asyncio.run(test(*arguments, **named))  # type: ignore[arg-type]

    return run


@in_a_loop
async def test_an_id_of_a_call_comes_once_in_a_conversation_though_the_server_counts_only_what_it_sees() -> (
    None
):
    def play(request: Request) -> Completion:
        if request.body["messages"][-1]["role"] == "tool":
            return says("Seen.")
        return calls(("look", {"room": 1}))  # call_look_0, each time

    async with ChatServer(play) as server:
        agent = Agent(Endpoint(server.base_url, "m"), tools=[look], window=Window("trim", size=700))
        session = None
        for number in range(5):
            done = await agent.run(f"Look, for the {number}. time.", session=session)
            session = done.session
        roles = [one["role"] for one in server.requests[-1].body["messages"]]
        await agent.model.close()
    assert roles.count("tool") < 5  # the first ones are not sent any more
    ids = [call.id for one in done.entries if isinstance(one, Reply) for call in one.tool_calls]
    assert len(set(ids)) == len(ids) == 5
    assert [one.call_id for one in done.entries if isinstance(one, ToolResult)] == ids


LOOK = '''
from glassloop import tool


@tool(effect="read")
def look(room: int) -> str:
    """Look into a room.

    Args:
        room: Its number.
    """
    return f"room {room}: " + "the quick brown fox jumps over the lazy dog. " * 30
'''


@tool(effect="read")
def look(room: int) -> str:
    """Look into a room.

    Args:
        room: Its number.
    """
    return f"room {room}: " + "the quick brown fox jumps over the lazy dog. " * 30


class Rooms:
    """A model that looks into `rooms` rooms, behind a server that takes so many bytes and sums up when asked."""

    def __init__(self, rooms: int, summary: Completion | Raw | None = None) -> None:
        self.left = rooms
        self.summary = summary or says(SUMMARY)
        self.sums: list[str] = []

    def __call__(self, request: Request) -> Completion | Raw:
        if len(request.raw) > LIMIT:
            return fails(400, TOO_LONG.format(len(request.raw) // 4))
        used = {
            "prompt_tokens": len(request.raw) // 4,
            "completion_tokens": 9,
            "total_tokens": len(request.raw) // 4 + 9,
        }
        last = str(request.body["messages"][-1]["content"])
        if "<transcript>" in last:
            self.sums.append(last)
            return self.summary
        if not self.left or "tools" not in request.body:
            return Completion({"role": "assistant", "content": "All seen."}, usage=used)
        self.left -= 1
        made = calls(("look", {"room": self.left}))
        return Completion(made.message, made.finish_reason, used)


def endpoint(server: ChatServer, folder: Path, **known: object) -> Endpoint:
    return Endpoint(server.base_url, "m", learned=ProfileStore(folder), profile=known)  # type: ignore[arg-type]


async def heard(agent: Agent[str], task: str | User, **more: object) -> tuple[object, list[Event]]:
    events: list[Event] = []
    async with agent.stream(task, **more) as run:  # type: ignore[arg-type]
        async for event in run:
            events.append(event)
        return run.result, events


@in_a_loop
async def test_an_overflow_is_summed_up_the_run_goes_on_and_the_next_time_it_does_not_come_to_it(
    tmp_path: Path,
) -> None:
    rooms = Rooms(14)
    async with ChatServer(rooms) as server:
        agent = Agent(endpoint(server, tmp_path), tools=[look])
        result, events = await heard(agent, "Look into all rooms.")
        refused = sum(len(one.raw) > LIMIT for one in server.requests)
        assert (result.text, result.stop_reason, refused) == ("All seen.", "answered", 1)
        assert rooms.sums
        compacted = [event for event in events if isinstance(event, Compacted)]
        assert {event.how for event in compacted} == {"summary"}
        assert all(event.after < event.before for event in compacted)
        assert not any(isinstance(event, TextDelta) and "GOAL" in event.text for event in events)
        assert sum(isinstance(entry, Summary) for entry in result.entries) == len(rooms.sums)
        assert sum("tool_calls" in message for message in result.messages) == 14
        rooms.left = 14
        again, _ = await heard(agent, "Once more.", session=result.session)
        assert again.text == "All seen."
        assert sum(len(one.raw) > LIMIT for one in server.requests) == 1


@in_a_loop
async def test_with_a_known_window_nothing_is_refused_and_prefixes_stay_between_summaries(
    tmp_path: Path,
) -> None:
    rooms = Rooms(20)
    async with ChatServer(rooms) as server:
        result, events = await heard(
            Agent(endpoint(server, tmp_path, context_window=3_500), tools=[look]), "Look into all rooms."
        )
    assert result.stop_reason == "answered"
    assert all(len(one.raw) <= LIMIT for one in server.requests)
    turns = [one.raw.removesuffix(b"]}") for one in server.requests if b"<transcript>" not in one.raw]
    broken = sum(not after.startswith(before) for before, after in pairwise(turns))
    assert broken == sum(isinstance(event, Compacted) for event in events) == len(rooms.sums) <= 4


@pytest.mark.parametrize("summary", [says(""), calls(("look", {"room": 1})), fails(400, "no summaries here")])
@in_a_loop
async def test_where_no_summary_can_be_had_old_turns_are_left_out_and_that_is_said(
    summary: Completion | Raw, tmp_path: Path
) -> None:
    async with ChatServer(Rooms(14, summary)) as server:
        agent = Agent(endpoint(server, tmp_path, context_window=3_500), tools=[look])
        result, events = await heard(agent, "Look into all rooms.")
    assert result.text == "All seen."
    assert "summary_failed" in {mend.code for mend in result.mends}
    assert {event.how for event in events if isinstance(event, Compacted)} == {"trim"}


@in_a_loop
async def test_what_never_fits_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    async with ChatServer(Rooms(3)) as server:
        agent = Agent(endpoint(server, tmp_path), tools=[look], instructions="Mind the gap. " * 1_500)
        with pytest.raises(ContextOverflow) as failed:
            await agent.run("Look into all rooms.")
    assert "fewer tools or shorter instructions" in str(failed.value)
    assert "maximum context length is 3500" in str(failed.value)
    assert len(server.requests) <= 3


def test_a_process_killed_while_summing_up_goes_on_where_it_stood(tmp_path: Path) -> None:
    rooms = Rooms(14)
    asked, killed = threading.Event(), threading.Event()

    async def play(request: Request) -> Completion | Raw:
        if b"<transcript>" in request.raw and not killed.is_set():
            asked.set()
            await asyncio.to_thread(killed.wait)
        return rooms(request)

    (tmp_path / "rooms.py").write_text(LOOK, encoding="utf-8")
    with ChatServer(play) as server:
        options = ["-m", f"{server.base_url}#m", "-T", "rooms.py", "--window", "size=3500"]
        child = subprocess.Popen(
            [*PROGRAM, "run", *options, "Look into all rooms."],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert asked.wait(60)
        child.kill()
        child.wait()
        killed.set()
        left = rooms.left
        done = glassloop("run", "-c", *options, folder=tmp_path)
    assert (done.code, done.out) == (0, "All seen.\n")
    assert "history summarised" in done.err
    assert done.err.count("→ look(") == left
    assert len(rooms.sums) >= 1


@in_a_loop
async def test_compacting_by_hand_keeps_the_file_and_a_run_that_is_not_over_is_left_alone(
    tmp_path: Path,
) -> None:
    script = [*(says(f"answer {number} " * 60) for number in range(5)), says(SUMMARY), says("ok")]
    async with ChatServer(script) as server:
        agent = Agent(endpoint(server, tmp_path), journal=SqliteJournal(tmp_path / "s.db"))
        session = None
        for number in range(5):
            task = User(parts_of(f"question {number}"), pinned=number == 1)
            session = (await agent.run(task, session=session)).session
        assert session is not None
        async with agent.compact(session, "the numbers") as run:
            result = await run.wait()
        assert SUMMARY in result.text
        assert sum(isinstance(entry, Reply) for entry in result.entries) == 5
        await Agent(agent.model, journal=SqliteJournal(tmp_path / "s.db")).run("and now?", session=session.id)
    said = [message["content"] for message in server.requests[-1].body["messages"]]
    assert said[:2] == ["question 0", "question 1"]
    assert said[2].endswith(SUMMARY)
    assert said[-1] == "and now?"
    assert not any("answer 0" in text for text in said)


@in_a_loop
async def test_a_session_whose_run_waits_is_not_compacted(tmp_path: Path) -> None:
    @tool(approve=True)
    def send(to: str) -> str:
        """Send it."""
        return "sent"

    async with ChatServer([calls(("send", {"to": "Ada"}))]) as server:
        agent = Agent(
            endpoint(server, tmp_path),
            tools=[send],
            approve=lambda _: None,
            journal=SqliteJournal(tmp_path / "s.db"),
        )
        result = await agent.run("Send it.")
        assert result.stop_reason == "waiting_approval"
        with pytest.raises(SessionError, match="not over"):
            async with agent.compact(result.session):
                pass
        assert (await agent.run(None, session=result.session)).stop_reason == "waiting_approval"


@in_a_loop
async def test_a_server_of_ones_own_is_asked_for_its_window_once_when_it_gets_long(tmp_path: Path) -> None:
    rooms = Rooms(14)
    props = {"/props": {"default_generation_settings": {"n_ctx": 3_500}}}
    async with ChatServer(rooms, gets=props) as server:
        result, _ = await heard(Agent(endpoint(server, tmp_path), tools=[look]), "Look into all rooms.")
    assert result.text == "All seen."
    assert all(len(one.raw) <= LIMIT for one in server.requests)
    assert (
        next(entry for entry in reversed(result.entries) if isinstance(entry, Reply)).context_window == 3_500
    )


@in_a_loop
async def test_settings_that_shape_the_answer_do_not_go_with_the_summary(tmp_path: Path) -> None:
    shape = {"response_format": {"type": "json_object"}, "max_tokens": 50, "temperature": 0}
    async with ChatServer(Rooms(14)) as server:
        agent = Agent(
            endpoint(server, tmp_path, context_window=3_500),
            tools=[look],
            settings=shape,
            limits=Limits(rounds=40),
            window=Window("summarise", keep_last=2),
        )
        await agent.run("Look into all rooms.")
    asked = [json.loads(one.raw) for one in server.requests if b"<transcript>" in one.raw]
    assert asked
    assert all(
        "temperature" in one and not {"response_format", "max_tokens", "tools"} & one.keys() for one in asked
    )
