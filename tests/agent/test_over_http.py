"""`Agent` against a real server on loopback: the tutorials' story, and many calls from plain code."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from glassloop import (
    Agent,
    Endpoint,
    Example,
    ScriptedModel,
    TextDelta,
    ToolDefinitionError,
    background,
    tool,
)
from glassloop.models.profiles import ProfileStore
from glassloop.testing.server import ChatServer, Completion, Raw, Request, calls, fails, says
from glassloop.tools.builtin import load


@tool(effect="read")
def get_weather(city: str) -> str:
    """The weather in a city. Use it for any question about weather."""
    return f"{city}: 20 °C"


@tool(effect="read")
def read_note(title: str) -> str:
    """A note by its title."""
    raise LookupError(f"there is no note {title!r}")


TOOLS = [get_weather, read_note, *load("calculator")]
STORY = [
    calls(("get_weather", {"city": "北京"}), ("calculator", {"expression": "(15 + 27) * 3"})),
    calls(("read_note", '{"title": "packing"}'), text="Now the note."),
    says("北京 has 20 °C, the result is 126, and there is no note on packing. 🎒"),
]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_the_tutorials_story_over_real_http(stream: bool) -> None:
    async def story(base_url: str) -> tuple[str, str, list[tuple[str, str]]]:
        agent = Agent(Endpoint(base_url, "m", stream=stream), tools=TOOLS, instructions="Be brief.")
        async with agent.stream("北京? (15 + 27) * 3? The note on packing?") as run:
            shown = "".join([event.text async for event in run if isinstance(event, TextDelta)])
        results = [(m["name"], m["content"]) for m in run.result.messages if m["role"] == "tool"]
        return shown, run.result.text, results

    with ChatServer(STORY) as server:
        shown, text, results = asyncio.run(story(server.base_url))
    assert text == "北京 has 20 °C, the result is 126, and there is no note on packing. 🎒"
    assert shown.endswith(text)
    assert results == [
        ("get_weather", "北京: 20 °C"),
        ("calculator", "(15 + 27) * 3 = 126"),
        ("read_note", "LookupError: there is no note 'packing'"),
    ]
    assert [request.body.get("stream", False) for request in server.requests] == [stream] * 3
    last = server.requests[-1].body["messages"]
    assert [m["role"] for m in last] == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    sent_calls = [call for m in last for call in m.get("tool_calls", ())]
    assert [m["tool_call_id"] for m in last if m["role"] == "tool"] == [call["id"] for call in sent_calls]
    assert json.loads(sent_calls[0]["function"]["arguments"]) == {"city": "北京"}


def test_each_request_starts_with_the_bytes_of_the_one_before() -> None:
    with ChatServer(STORY) as server:
        Agent(Endpoint(server.base_url, "m"), tools=TOOLS).run_sync("Go")
    raws = [request.raw for request in server.requests]
    for earlier, later in pairwise(raws):
        shared = earlier.rindex(b"]")  # the end of its messages, which come last
        assert later[:shared] == earlier[:shared]


EXAMPLE = Example("Weather in Rome?", [("get_weather", {"city": "Rome"}, "Rome: 30 °C")], "30 °C in Rome.")


def test_an_example_is_shown_natively_before_the_conversation_and_is_no_part_of_it() -> None:
    with ChatServer([says("ok")]) as server:
        agent = Agent(
            Endpoint(server.base_url, "m"), tools=TOOLS, instructions="Be brief.", examples=[EXAMPLE]
        )
        result = agent.run_sync("And in Oslo?")
    roles = [m["role"] for m in server.requests[0].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [m["role"] for m in result.messages] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("get_whether", {"city": "Rome"}, "x"), "get_whether"),
        (("get_weather", {"town": "Rome"}, "x"), "city"),
    ],
)
def test_an_example_that_could_not_work_is_refused_when_the_agent_is_defined(call: tuple, words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words):
        Agent(ScriptedModel([]), tools=TOOLS, examples=[Example("?", [call], "!")])


def refusing_tools(request: Request) -> Completion | Raw:
    """A server whose model knows nothing of tools, and which says so, as Ollama does."""
    if "tools" in request.body or any(m["role"] == "tool" for m in request.body["messages"]):
        return fails(400, "registry.ollama.ai/library/m does not support tools")
    if "20 °C" in request.body["messages"][-1]["content"]:
        return says("It has 20 °C.")
    return says(
        'I look it up.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    )


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_model_without_tool_calling_costs_one_failed_request_ever(stream: bool, tmp_path: Path) -> None:
    async def ask(base_url: str) -> tuple[str, str]:
        endpoint = Endpoint(base_url, "m", stream=stream, learned=ProfileStore(tmp_path))
        agent = Agent(endpoint, tools=TOOLS, examples=[EXAMPLE])
        async with agent.stream("Oslo?") as run:
            shown = "".join([event.text async for event in run if isinstance(event, TextDelta)])
        await endpoint.close()
        return shown, run.result.text

    with ChatServer(refusing_tools) as server:
        shown, text = asyncio.run(ask(server.base_url))
        assert text == "It has 20 °C."
        assert "tool_call" not in shown
        assert len(server.requests) == 3
        again = [sys.executable, "-c", CHILD, server.base_url, str(tmp_path), str(stream)]
        ran = subprocess.run(again, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "It has 20 °C.\n", ran.stderr
    assert len(server.requests) == 5
    system, question, asked, result, *_ = server.requests[-1].body["messages"]
    assert "get_weather" in system["content"]
    assert question["content"] == "Weather in Rome?"
    assert "<tool_call>" in asked["content"]
    assert "Rome: 30 °C" in result["content"]


CHILD = """
import sys
from pathlib import Path
sys.path[:0] = ["."]
from glassloop import Agent, Endpoint
from glassloop.models.profiles import ProfileStore
from tests.agent.test_over_http import EXAMPLE, TOOLS
base_url, folder, stream = sys.argv[1:]
endpoint = Endpoint(base_url, "m", stream=stream == "True", learned=ProfileStore(Path(folder)))
print(Agent(endpoint, tools=TOOLS, examples=[EXAMPLE]).run_sync("Oslo?").text)
"""


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc/self/fd")
def test_300_sync_calls_from_8_threads_a_notebook_and_plain_code_share_one_pool_and_leak_nothing() -> None:
    def play(request: Request) -> Completion:
        asked = request.body["messages"][-1]
        return says("done") if asked["role"] == "tool" else calls(("get_weather", {"city": "Oslo"}))

    with ChatServer(play) as server:
        endpoint = Endpoint(server.base_url, "m")
        agent = Agent(endpoint, tools=TOOLS)
        assert agent.run_sync("warm up").text == "done"

        async def tasks() -> set[object]:
            return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}

        def at_work() -> set[object]:
            for thread in threading.enumerate():
                if thread.name == "glassloop tool":  # its result is known a moment before it ends
                    thread.join(10)
            return {*threading.enumerate(), *background.submit(tasks()).result()}

        before = at_work()
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda n: agent.run_sync(f"question {n}").text, range(240)))

        async def notebook() -> list[str]:
            return [agent.run_sync(f"cell {n}").text for n in range(30)]

        texts += asyncio.run(notebook())
        texts += [agent.run_sync(f"line {n}").text for n in range(30)]
        assert texts == ["done"] * 300
        assert len(server.requests) == 602
        assert len(server.peers) <= 9
        assert at_work() <= before  # what an earlier test left may have ended meanwhile

        files = open_files()
        for n in range(20):
            agent.run_sync(f"after {n}")
        assert open_files() <= files
        background.submit(endpoint.close()).result()
