"""OpenAI Agents SDK over Chat Completions, without tracing."""

from __future__ import annotations

from collections.abc import Callable

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)


@function_tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


class Side:
    def __init__(self, base_url: str, *, stream: bool) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key="key")
        model = OpenAIChatCompletionsModel("bench", openai_client=self._client)
        self._agent = Agent(
            name="bench", instructions="You are a careful calculator.", tools=[add], model=model
        )
        self._stream = stream

    async def run(self, task: str, heard: Callable[[], None] = lambda: None) -> str:
        if not self._stream:
            return (await Runner.run(self._agent, task, max_turns=10_000)).final_output
        result = Runner.run_streamed(self._agent, task, max_turns=10_000)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                heard()
        return result.final_output

    async def close(self) -> None:
        await self._client.close()
