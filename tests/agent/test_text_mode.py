"""Runs with models that have no tool calling: each family's own notation over real HTTP, errors and all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from glassloop import Agent, Endpoint, TextDelta, tool
from glassloop.core.entries import JSON
from glassloop.models.profiles import ProfileStore
from glassloop.testing.server import ChatServer, Completion, Raw, Request, fails, says
from glassloop.wire.textcalls import FAMILIES, family_for


@tool(effect="read")
def get_weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    """The weather in a city."""
    return f"{city}: 20 {unit}"


@tool(effect="read")
def list_cities() -> str:
    """All cities."""
    return "Oslo, {Rome}"


@tool(effect="read")
def plan_route(stops: list[dict[str, int]], fast: bool = False) -> str:
    """A route."""
    return f"{len(stops)} stops, fast: {fast}"


@tool(effect="read")
def read_note() -> str:
    """A note."""
    raise LookupError("there is no {note}")


TOOLS = [get_weather, list_cities, plan_route, read_note]
FIRST = [("get_weather", {"city": "北京", "unit": "F"}), ("plan_route", {"stops": [{"a": 1}], "fast": True})]
SECOND = [("read_note", {}), ("list_cities", {}), ("open_door", {"wide": True})]

MODELS = {
    "hermes": "hermes-3-llama-3.1-8b", "qwen_xml": "qwen3-coder:30b", "glm": "glm-4.5-air", "llama3": "llama-3.1-8b",
    "llama4": "llama-4-scout", "lfm2": "lfm2-1.2b", "olmo": "olmo-3-7b", "mistral": "mistral:7b", "deepseek": "deepseek-v3.1",
    "dsml": "deepseek-v3.2", "kimi": "kimi-k2", "minimax": "minimax-m2", "granite": "granite-3.3-8b",
    "functools": "phi-4-mini", "command_r": "command-r7b", "nemotron": "nemotron-nano-9b-v2", "jamba": "jamba-1.5-mini",
    "internlm": "internlm2.5-7b", "gemma3": "gemma-3-4b", "gemma4": "gemma-4-e4b", "functiongemma": "functiongemma-270m",
    "json": "xlam-2-8b", "react": "qwen1.5-7b",
}  # fmt: skip


def model_of(family: str) -> Callable[[Request], Completion | Raw]:
    """A model without tool calling: two turns of calls in its own notation, then an answer."""

    def answer(request: Request) -> Completion | Raw:
        if "tools" in request.body or any(message["role"] == "tool" for message in request.body["messages"]):
            return fails(400, "registry.ollama.ai/library/m does not support tools")
        turn = sum(message["role"] == "assistant" for message in request.body["messages"])
        # A family without control tokens has no way to name an unknown tool: that would be text.
        second = SECOND if family in STRICT else SECOND[:2]
        return says([FAMILIES[family].calls(FIRST), FAMILIES[family].calls(second), "All done."][turn])

    return answer


STRICT = frozenset(MODELS) - {"llama3", "llama4", "olmo", "functools", "gemma3", "json", "react", "minimax"}


async def play(server: ChatServer, family: str, store: Path, stream: bool) -> str:
    endpoint = Endpoint(server.base_url, MODELS[family], stream=stream, learned=ProfileStore(store))
    agent = Agent(endpoint, tools=TOOLS, instructions="Be brief.")
    async with agent.stream("Go.") as run:
        shown = "".join([event.text async for event in run if isinstance(event, TextDelta)])
    await endpoint.close()
    assert run.result.text == "All done."
    return shown


def test_every_family_is_chosen_by_a_models_name() -> None:
    assert MODELS.keys() == FAMILIES.keys()
    assert {name: family_for(model) for name, model in MODELS.items()} == {name: name for name in MODELS}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("family", MODELS)
def test_a_run_in_text_mode_calls_tools_in_the_models_own_notation(
    family: str, stream: bool, tmp_path: Path
) -> None:
    with ChatServer(model_of(family)) as server:
        shown = asyncio.run(play(server, family, tmp_path, stream))
        assert len(server.requests) == 4  # one failed request, then it works
        asyncio.run(play(server, family, tmp_path, stream))  # with what was learnt on disk
        assert len(server.requests) == 7
    assert shown.strip() == "All done."
    assert "tools" not in server.requests[4].body
    messages: list[JSON] = server.requests[3].body["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert messages[2]["content"] == FAMILIES[family].calls(FIRST)
    first, second = (json.dumps(messages[at]["content"], ensure_ascii=False) for at in (3, 5))
    assert first.index("北京: 20 F") < first.index("1 stops, fast: True")
    assert second.index("there is no {note}") < second.index("Oslo, {Rome}")
    assert ("open_door" in second) == (family in STRICT)


@pytest.mark.parametrize("family", MODELS)
def test_the_prompt_of_text_mode_is_hardly_longer_than_native_tools(family: str, tmp_path: Path) -> None:
    with ChatServer(model_of(family)) as server:
        asyncio.run(play(server, family, tmp_path, True))
    refused, accepted, *_ = server.requests
    native = len(json.dumps(refused.body["tools"], ensure_ascii=False))
    assert len(accepted.body["messages"][0]["content"]) - len("Be brief.") < native + 400


WORDINGS = (
    "This model doesn't support tool calling.", "`tools` is not supported with this model", "tools is not supported",
    "No endpoints found that support tool use.", "tools param requires --jinja flag", "unknown field `tools`",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "模型不支持工具调用",
    "Function calling is not enabled for this model", "Extra inputs are not permitted: tools",
    "Unrecognized request argument supplied: tools", "function call is not supported for this model",
    "Tools are not allowed for this model", "Model m cannot use tools", "Unsupported parameter: 'tools'",
    "This endpoint has no tool calling support.", "The `tools` parameter is disabled for this deployment",
)  # fmt: skip


@pytest.mark.parametrize("words", WORDINGS)
def test_a_refusal_of_tools_in_any_words_leads_to_text_mode(words: str, tmp_path: Path) -> None:
    answer = model_of("hermes")

    def refusing(request: Request) -> Completion | Raw:
        return fails(400, words) if "tools" in request.body else answer(request)

    with ChatServer(refusing) as server:
        asyncio.run(play(server, "hermes", tmp_path, True))
        assert len(server.requests) == 4
