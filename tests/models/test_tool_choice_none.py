"""A user who asks for no tools: the endpoint may ignore that, and the model may call; nothing runs all the same."""

import asyncio

import pytest
from tests.models.asking import quick

from glassloop.agent import Agent
from glassloop.core.entries import ToolResult
from glassloop.testing.server import ChatServer, Completion, calls, says

CALL = calls(("get_weather", {"city": "Oslo"}))
WRITTEN = says('<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>')
WITH_TEXT = calls(("get_weather", {"city": "Oslo"}), text="Let me look.")


async def asked(script, *, stream, choice, tool_mode="auto"):
    """What ran, the result of the run, and the requests."""
    ran: list[str] = []

    def get_weather(city: str) -> str:
        """Weather in a city."""
        ran.append(city)
        return "20 degrees"

    async with ChatServer(script) as server:
        endpoint = quick(server, stream=stream, tool_mode=tool_mode)
        settings = {"tool_choice": choice}
        result = await Agent(endpoint, tools=[get_weather], settings=settings).run("Weather in Oslo?")
        return ran, result, server.requests


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("unasked", [CALL, WRITTEN, WITH_TEXT], ids=["structured", "written", "beside text"])
def test_a_call_that_was_not_asked_for_never_runs_and_the_model_is_told(unasked: Completion, stream: bool):
    ran, result, requests = asyncio.run(asked([unasked, says("No idea.")], stream=stream, choice="none"))
    assert ran == []
    assert (result.text, len(requests)) == ("No idea.", 2)
    assert "unasked_call" in [mend.code for mend in result.mends]
    [told] = [entry for entry in result.entries if isinstance(entry, ToolResult)]
    assert "tool_choice is none" in told.text
    assert [request.body["tool_choice"] for request in requests] == ["none", "none"]


def test_it_never_runs_where_tools_are_told_in_the_text_either():
    ran, result, _ = asyncio.run(
        asked([WRITTEN, says("No idea.")], stream=True, choice="none", tool_mode="hermes")
    )
    assert (ran, result.text) == ([], "No idea.")


def test_a_model_that_calls_on_and_on_is_stopped():
    ran, result, requests = asyncio.run(asked(lambda request: CALL, stream=False, choice="none"))
    assert ran == []
    assert result.stop_reason == "repeated_calls"
    assert len(requests) < 10


def test_any_other_choice_lets_calls_run():
    ran, result, _ = asyncio.run(asked([CALL, says("20.")], stream=True, choice="auto"))
    assert (ran, result.text) == (["Oslo"], "20.")
    assert result.mends == ()
