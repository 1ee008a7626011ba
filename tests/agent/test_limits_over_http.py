"""Each limit over real HTTP: one last answer without tools, the reason, and all that had come of the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glassloop import Agent, Endpoint, Limits, Result, Warned, tool
from glassloop.core.errors import AuthenticationFailed, ConfigError
from glassloop.core.tools import Verdict
from glassloop.models.profiles import ProfileStore
from glassloop.testing.server import ChatServer, Completion, Raw, Request, calls, fails, says

USED = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "cost": 0.03}


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time can be moved on."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def move_on(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Clock)
    loop.ahead += seconds


@tool(effect="read")
async def look(room: int) -> str:
    """Look into a room.

    Args:
        room: Its number.
    """
    move_on(10)
    return f"room {room} is empty"


def endless(request: Request) -> Completion:
    """Looks into one room after the other, as long as there are tools."""
    if "tools" not in request.body:
        return Completion(dict(says("What I saw so far.").message), usage=USED)
    made = calls(("look", {"room": len(request.body["messages"])}), text="I look.")
    return Completion(made.message, made.finish_reason, USED)


def agent(server: ChatServer, limits: Limits, **more: Any) -> Agent[str]:
    model = Endpoint(server.base_url, "m", learned=ProfileStore(None))
    return Agent(model, tools=more.pop("tools", [look]), limits=limits, **more)


def ran(work: Any) -> Any:
    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(work)


@pytest.mark.parametrize(
    ("limits", "reason", "turns"),
    [
        (Limits(rounds=3), "rounds", 3),
        (Limits(calls=2), "calls", 2),
        (Limits(tokens=300), "tokens", 3),
        (Limits(cost=0.05), "cost", 2),
        (Limits(seconds=15), "seconds", 2),
    ],
)
def test_each_limit_ends_in_one_answer_without_tools_and_hands_back_the_work(
    limits: Limits, reason: str, turns: int
) -> None:
    with ChatServer(endless) as server:
        result: Result[str] = ran(agent(server, limits).run("Look into all rooms."))
    assert (result.stop_reason, result.text) == (reason, "What I saw so far.")
    assert len(server.requests) == turns + 1
    assert "tools" not in server.requests[-1].body
    assert "Tools are no longer available" in str(server.requests[-1].body["messages"][-1]["content"])
    assert sum("tool_calls" in message for message in result.messages) == turns
    assert (result.usage.total_tokens, result.rounds) == (120 * (turns + 1), turns + 1)
    assert result.cost == pytest.approx(0.03 * (turns + 1))


@pytest.mark.parametrize("last", [fails(401, "key revoked"), says("")])
def test_where_the_last_answer_fails_what_was_said_before_comes_back_with_the_reason(
    last: Completion | Raw,
) -> None:
    with ChatServer(lambda request: endless(request) if "tools" in request.body else last) as server:
        result = ran(agent(server, Limits(rounds=1)).run("Look into all rooms."))
    assert (result.stop_reason, result.text) == ("rounds", "I look.")


def test_a_failure_carries_the_partial_result() -> None:
    script = [calls(("look", {"room": 1}), text="I look."), fails(401, "key revoked")]
    with ChatServer(script) as server, pytest.raises(AuthenticationFailed) as failed:
        ran(agent(server, Limits()).run("Look."))
    assert failed.value.result.text == "I look."
    assert len(failed.value.result.messages) == 3


def test_a_cost_that_nobody_knows_is_unknown_and_cannot_be_a_limit() -> None:
    with ChatServer([says("Hi"), says("Hi")]) as server:
        assert ran(agent(server, Limits()).run("Hello")).cost is None
        with pytest.raises(ConfigError, match="what a call costs is not known"):
            ran(agent(server, Limits(cost=1.0)).run("Hello"))


def test_messages_that_a_limit_came_before_are_handed_back_and_that_is_said() -> None:
    async def work(one: Agent[str]) -> tuple[Result[str], list[object]]:
        async with one.stream("Look into all rooms.") as run:
            run.follow_up("And the roof?")
            events: list[object] = [event async for event in run]
            return run.result, events

    with ChatServer(endless) as server:
        result, events = ran(work(agent(server, Limits(rounds=1))))
    assert [message.text for message in result.undelivered] == ["And the roof?"]
    assert "1 of your messages" in next(one.text for one in events if isinstance(one, Warned))
    with ChatServer([says("Done."), says("Also the roof.")]) as server:
        result, _ = ran(work(agent(server, Limits(rounds=5))))
    assert (result.text, result.undelivered) == ("Also the roof.", ())


def test_waiting_for_a_person_does_not_count_as_time_of_the_run() -> None:
    @tool(effect="read", approve=True)
    async def open_door(room: int) -> str:
        """Open a door."""
        return "open"

    async def approve(verdict: Verdict) -> bool:
        move_on(1_000)
        return True

    script = [calls(("open_door", {"room": 1})), calls(("look", {"room": 2})), says("Done.")]
    with ChatServer(script) as server:
        one = agent(server, Limits(seconds=60), tools=[open_door, look], approve=approve)
        result = ran(one.run("Open and look."))
    assert result.stop_reason == "answered"
    assert 10 <= result.seconds < 60
