"""The `openai` package with a loop of one's own: what most people write first."""

from __future__ import annotations

import json
from collections.abc import Callable

from openai import AsyncOpenAI

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}


async def add(a: int, b: int) -> str:
    return str(a + b)


class Side:
    def __init__(self, base_url: str, *, stream: bool) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key="key")
        self._stream = stream

    async def run(self, task: str, heard: Callable[[], None] = lambda: None) -> str:
        messages: list = [
            {"role": "system", "content": "You are a careful calculator."},
            {"role": "user", "content": task},
        ]
        while True:
            message = await (self._streamed(messages, heard) if self._stream else self._whole(messages))
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                output = await add(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})

    async def _whole(self, messages: list) -> dict:
        answer = await self._client.chat.completions.create(model="bench", messages=messages, tools=[TOOL])
        return answer.choices[0].message.model_dump(exclude_none=True)

    async def _streamed(self, messages: list, heard: Callable[[], None]) -> dict:
        text: list[str] = []
        calls: dict[int, dict] = {}
        stream = await self._client.chat.completions.create(
            model="bench", messages=messages, tools=[TOOL], stream=True
        )
        async for chunk in stream:
            if not chunk.choices:
                continue
            delta = chunk.choices[0].delta
            if delta.content:
                text.append(delta.content)
                heard()
            for fragment in delta.tool_calls or ():
                if fragment.index not in calls:
                    calls[fragment.index] = fragment.model_dump(exclude={"index"})
                else:
                    calls[fragment.index]["function"]["arguments"] += fragment.function.arguments
        message: dict = {"role": "assistant", "content": "".join(text)}
        if calls:
            message["tool_calls"] = list(calls.values())
        return message

    async def close(self) -> None:
        await self._client.close()
