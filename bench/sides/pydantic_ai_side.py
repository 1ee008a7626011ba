"""Pydantic AI over its OpenAI-compatible provider."""

from __future__ import annotations

from collections.abc import Callable

from openai import AsyncOpenAI
from pydantic_ai import Agent, AgentRunResultEvent, PartDeltaEvent, PartStartEvent
from pydantic_ai.messages import TextPart, TextPartDelta
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits


async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


class Side:
    def __init__(self, base_url: str, *, stream: bool) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key="key")
        model = OpenAIChatModel("bench", provider=OpenAIProvider(openai_client=self._client))
        self._agent = Agent(model, instructions="You are a careful calculator.", tools=[add])
        self._stream = stream
        self._limits = UsageLimits(request_limit=None)

    async def run(self, task: str, heard: Callable[[], None] = lambda: None) -> str:
        if not self._stream:
            return (await self._agent.run(task, usage_limits=self._limits)).output
        output = ""
        async with self._agent.run_stream_events(task, usage_limits=self._limits) as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)) if text:
                        heard()
                    case PartDeltaEvent(delta=TextPartDelta()):
                        heard()
                    case AgentRunResultEvent():
                        output = event.result.output
        return output

    async def close(self) -> None:
        await self._client.close()
