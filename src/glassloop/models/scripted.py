"""A model that plays a script: no key, no network. For demos, tests and examples."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from glassloop.core.entries import Reply, ToolCall
from glassloop.core.errors import ConfigError
from glassloop.core.events import ReasoningDelta, TextDelta
from glassloop.core.recording import Recorder
from glassloop.models.model import ModelRequest, Said
from glassloop.wire.names import mint_id


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause in the script: so many seconds, or until an `asyncio.Event` is set."""

    until: float | asyncio.Event


Line = str | Reply | Exception | Wait | Callable[[ModelRequest], "str | Reply"]
"""One line of a script: an answer, a reply, something to raise, a pause, or a function of the request."""


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A tool call for a script."""
    return ToolCall("", name, arguments, json.dumps(arguments, ensure_ascii=False))


def calls(*tool_calls: ToolCall, text: str = "") -> Reply:
    """A reply that asks for these calls, with some text beside them if you like."""
    return Reply(text=text, tool_calls=tool_calls, finish_reason="tool_calls")


@dataclass
class ScriptedModel:
    """Plays `script`, one line a request (a `Wait` belongs to the line after it). `requests` is what it was asked.

    `streamed`: text comes word by word, as from a real endpoint. Raises `IndexError` when it is asked
    for more than the script has, and `ConfigError` for a line that is none.
    """

    script: Iterable[Line]
    name: str = "scripted"
    streamed: bool = True
    requests: list[ModelRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        script = [self.script] if isinstance(self.script, str) else list(self.script)
        for number, line in enumerate(script, 1):
            _check(line, f"line {number} of the script")
        self._lines = iter(script)

    async def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        self.requests.append(request)
        reply = await self._reply(request)
        if self.streamed:
            for piece in re.findall(r"\s*\S+\s*$|\s*\S+", reply.reasoning):
                yield ReasoningDelta(piece)
            for piece in re.findall(r"\s*\S+\s*$|\s*\S+", reply.text):
                yield TextDelta(piece)
        yield reply

    async def close(self) -> None:
        """There is nothing to release."""

    async def _reply(self, request: ModelRequest) -> Reply:
        waits, line = self._take()
        for wait in waits:
            await _wait(wait.until)
        if isinstance(line, Exception):
            raise line
        said = line if isinstance(line, (str, Reply)) else line(request)
        if not isinstance(said, (str, Reply)):
            raise ConfigError(
                f"a function of the script gave {_kind(said)}: give text or a Reply, as calls(…) makes"
            )
        reply = Reply(text=said, finish_reason="stop") if isinstance(said, str) else said
        return _with_ids(reply, len(request.entries))

    def _take(self) -> tuple[list[Wait], str | Reply | Exception | Callable[[ModelRequest], str | Reply]]:
        """The next line with its pauses, taken from the script at once, so that a cancelled wait skips the line."""
        waits: list[Wait] = []
        for line in self._lines:
            if not isinstance(line, Wait):
                return waits, line
            waits.append(line)
        raise IndexError(f"the script of {self.name} is over, but it was asked once more")


def _check(line: object, where: str) -> None:
    if not isinstance(line, (str, Reply, Exception, Wait)) and not callable(line):
        raise ConfigError(
            f"{where} is {_kind(line)}: give text, calls(call(…)), an exception, a Wait or a function of the request"
        )


def _kind(thing: object) -> str:
    return f"of the type {type(thing).__name__}"


async def _wait(until: float | asyncio.Event) -> None:
    if isinstance(until, asyncio.Event):
        await until.wait()
    else:
        await asyncio.sleep(until)


def _with_ids(reply: Reply, ordinal: int) -> Reply:
    made = (
        one if one.id else replace(one, id=mint_id(ordinal, i, ())) for i, one in enumerate(reply.tool_calls)
    )
    return replace(reply, tool_calls=tuple(made))
