"""The floor: what a tool loop must cost in Python. aiohttp, bytes that are only appended to, pydantic for arguments.

No framework and no care either: no retries, no deadlines, no journal, no events, no deviation of any endpoint.
It is as fast as we could write it plainly, and the measure for everything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import aiohttp
from bare import Bare
from pydantic import BaseModel

TOOL = (
    b'[{"type":"function","function":{"name":"add","description":"Add two numbers.","parameters":{"type":"object",'
    b'"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}}]'
)
INSTRUCTIONS = "You are a careful calculator."


class Add(BaseModel):
    a: int
    b: int


async def add(given: Add) -> str:
    return str(given.a + given.b)


def _nothing() -> None:
    pass


class Side:
    """A loop over one connection pool. `stream`: whether answers are asked for as streams."""

    def __init__(self, base_url: str, *, stream: bool, journal: str | None = None) -> None:
        self._url = f"{base_url}/chat/completions"
        self._stream = stream
        self._head = b'{"model":"bench",' + (b'"stream":true,' if stream else b"") + b'"tools":' + TOOL
        self._session: aiohttp.ClientSession | None = None
        self._journal = Bare(journal) if journal else None
        self._runs = 0

    async def run(self, task: str, heard: Callable[[], None] = _nothing) -> str:
        """Do one task; `heard` is called at every piece of text that could be shown."""
        messages = [_message("system", INSTRUCTIONS), _message("user", task)]
        self._runs += 1
        run = f"run{self._runs}"
        while True:
            message = await self._ask(b",".join(messages), heard)
            seq = len(messages)
            messages.append(json.dumps(message).encode())
            calls = message.get("tool_calls") or ()
            if self._journal:
                self._journal.replied(run, seq, message, calls)
            if not calls:
                return str(message["content"])
            for number, call in enumerate(calls, seq + 1):
                output = await add(Add.model_validate_json(call["function"]["arguments"]))
                result = {"role": "tool", "tool_call_id": call["id"], "content": output}
                messages.append(json.dumps(result).encode())
                if self._journal:
                    self._journal.finished(run, number, call["id"], output)

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def _ask(self, messages: bytes, heard: Callable[[], None]) -> dict:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        body = self._head + b',"messages":[' + messages + b"]}"
        headers = {"Content-Type": "application/json", "Authorization": "Bearer key"}
        async with self._session.post(self._url, data=body, headers=headers) as response:
            if not self._stream:
                return json.loads(await response.read())["choices"][0]["message"]
            return await _streamed(response, heard)


async def _streamed(response: aiohttp.ClientResponse, heard: Callable[[], None]) -> dict:
    """A reply from its chunks: one call at most for each index, whose name comes first."""
    text: list[str] = []
    calls: dict[int, dict] = {}
    rest = b""
    async for data in response.content.iter_any():
        *events, rest = (rest + data).split(b"\n\n")
        for event in events:
            if event == b"data: [DONE]":
                continue
            choices = json.loads(event[6:])["choices"]
            if not choices:
                continue
            delta = choices[0]["delta"]
            if delta.get("content"):
                text.append(delta["content"])
                heard()
            for fragment in delta.get("tool_calls") or ():
                if fragment["index"] not in calls:
                    calls[fragment["index"]] = fragment
                else:
                    calls[fragment["index"]]["function"]["arguments"] += fragment["function"]["arguments"]
    message: dict = {"role": "assistant", "content": "".join(text)}
    if calls:
        message["tool_calls"] = list(calls.values())
    return message


def _message(role: str, content: str) -> bytes:
    return json.dumps({"role": role, "content": content}).encode()
