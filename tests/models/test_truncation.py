"""A server that drops the start of a long conversation and says nothing is noticed, once."""

from __future__ import annotations

import asyncio

import pytest

from glassloop import Agent, Endpoint, Image, Text, Warned
from glassloop.models.profiles import ProfileStore
from glassloop.models.providers import PROVIDERS
from glassloop.testing.server import ChatServer, Completion


def answer(prompt_tokens: int, **more: int) -> Completion:
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": 1,
        "total_tokens": prompt_tokens + 1,
        **more,
    }
    return Completion({"role": "assistant", "content": "ok"}, usage=usage)


def warnings(task: object, *replies: Completion) -> list[str]:
    async def story(base_url: str) -> list[str]:
        endpoint = Endpoint(base_url, "m", provider=PROVIDERS["ollama"], learned=ProfileStore(None))
        said = []
        for _ in replies:
            async with Agent(endpoint).stream(task) as run:  # type: ignore[arg-type]
                said += [event.text async for event in run if isinstance(event, Warned)]
        return said

    with ChatServer(replies) as server:
        return asyncio.run(story(server.base_url))


LONG = "The quick brown fox jumps over the lazy dog. " * 2000


@pytest.mark.parametrize(
    "task", [LONG, "今天天气很好，我们去公园散步吧。" * 1500], ids=["English", "Chinese"]
)
def test_a_dropped_start_is_said_once_with_the_fix(task: str) -> None:
    [said] = warnings(task, answer(2048), answer(2048))
    assert "counted 2048 prompt tokens" in said
    assert "num_ctx" in said


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        (LONG, answer(20_100)),
        (LONG, answer(12_000)),
        (LONG, answer(0)),
        ("short", answer(1)),
        ([Text("What is this?"), Image(data=b"x" * 300_000)], answer(900)),
        (LONG, answer(100, prompt_cache_hit_tokens=20_000)),
    ],
    ids=["counted fully", "another vocabulary", "not counted", "short", "a picture", "cached beside"],
)
def test_nobody_is_accused_without_reason(task: object, reply: Completion) -> None:
    assert warnings(task, reply) == []
