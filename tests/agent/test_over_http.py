"""`Agent` against a real server on loopback: the tutorials' story, and many calls from plain code."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from glassloop import Agent, Endpoint, TextDelta, background, tool
from glassloop.testing.server import ChatServer, Completion, Request, calls, says
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
    assert [json.loads(call["function"]["arguments"]) for call in sent_calls][0] == {"city": "北京"}


def test_each_request_starts_with_the_bytes_of_the_one_before() -> None:
    with ChatServer(STORY) as server:
        Agent(Endpoint(server.base_url, "m"), tools=TOOLS).run_sync("Go")
    raws = [request.raw for request in server.requests]
    for earlier, later in zip(raws, raws[1:], strict=False):
        shared = earlier.rindex(b"]")  # the end of its messages, which come last
        assert later[:shared] == earlier[:shared]


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

        async def tasks() -> int:
            return len(asyncio.all_tasks())

        before = (threading.active_count(), background.submit(tasks()).result())
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda n: agent.run_sync(f"question {n}").text, range(240)))

        async def notebook() -> list[str]:
            return [agent.run_sync(f"cell {n}").text for n in range(30)]

        texts += asyncio.run(notebook())
        texts += [agent.run_sync(f"line {n}").text for n in range(30)]
        assert texts == ["done"] * 300
        assert len(server.requests) == 602
        assert len(server.peers) <= 9
        assert (threading.active_count(), background.submit(tasks()).result()) == before

        files = open_files()
        for n in range(20):
            agent.run_sync(f"after {n}")
        assert open_files() <= files
        background.submit(endpoint.close()).result()
