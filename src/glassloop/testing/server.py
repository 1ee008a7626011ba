"""A small real Chat Completions server on loopback: plays scripted replies and keeps the requests it got.

    async with ChatServer([calls(("add", {"a": 1, "b": 2})), says("3")]) as server:
        agent = Agent(Endpoint(server.base_url, "m"), tools=[add])

With a plain `with`, it runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType

from aiohttp import web

from glassloop.core.entries import JSON


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived. `body` is its JSON, None where it is none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: JSON
    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """A well-formed answer, played as JSON or as a stream, whichever was asked for.

    `usage`: what the answer says was used; None: roughly what the request and a short answer come to.
    """

    message: Mapping[str, JSON]
    finish_reason: str = "stop"
    usage: Mapping[str, JSON] | None = None
    piece: int = 4
    """Characters a delta."""

    def as_json(self, model: str) -> dict[str, JSON]:
        choice = {"index": 0, "message": dict(self.message), "finish_reason": self.finish_reason}
        return {
            **_envelope("chat.completion", model),
            "choices": [choice],
            "usage": dict(self.usage or _SHORT),
        }

    def as_chunks(self, model: str) -> list[dict[str, JSON]]:
        chunks: list[JSON] = [{"role": "assistant", "content": ""}]
        for name in ("reasoning_content", "content"):
            text = self.message.get(name) or ""
            chunks += [{name: text[at : at + self.piece]} for at in range(0, len(text), self.piece)]
        for index, call in enumerate(self.message.get("tool_calls") or ()):
            chunks += _call_deltas(index, call, self.piece)
        envelope = _envelope("chat.completion.chunk", model)
        return [
            *(
                {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
                for delta in chunks
            ),
            {**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": self.finish_reason}]},
            {**envelope, "choices": [], "usage": dict(self.usage or _SHORT)},
        ]


def _used(prompt: int) -> dict[str, JSON]:
    return {"prompt_tokens": prompt, "completion_tokens": 9, "total_tokens": prompt + 9}


_SHORT = _used(9)
_SHORT_REQUEST = 6_000
"""Bytes."""

_BYTES_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer byte for byte: each of `pieces` is written by itself, `pause` seconds apart.

    `end`: "close" ends it in order, "reset" cuts the connection, "stall" leaves it open without a word.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    pause: float = 0.0
    end: str = "close"


Reply = Completion | Raw
Script = Sequence[Reply] | Callable[[Request], Reply | Awaitable[Reply]]


def says(text: str, *, reasoning: str = "", finish_reason: str = "stop") -> Completion:
    """A reply of text."""
    message: dict[str, JSON] = {"role": "assistant", "content": text}
    if reasoning:
        message["reasoning_content"] = reasoning
    return Completion(message, finish_reason)


def calls(*wanted: tuple[str, JSON], text: str | None = None) -> Completion:
    """A reply of tool calls, each a name with its arguments: an object, or text to be sent as it is."""
    tool_calls = [
        {
            "id": f"call_{name}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
        }
        for index, (name, args) in enumerate(wanted)
    ]
    return Completion({"role": "assistant", "content": text, "tool_calls": tool_calls}, "tool_calls")


def fails(status: int, error: JSON, headers: Mapping[str, str] | None = None) -> Raw:
    """An error: `error` is the whole JSON body, or the message of an ordinary one."""
    body = {"error": {"message": error}} if isinstance(error, str) else error
    return Raw([json.dumps(body).encode()], status, {"content-type": "application/json", **(headers or {})})


def events(*data: str, done: bool = True, end: str = "close", pause: float = 0.0) -> Raw:
    """A stream of `data:` events as given."""
    lines = [f"data: {each}\n\n".encode() for each in (*data, *(["[DONE]"] if done else []))]
    return Raw(lines, headers={"content-type": "text/event-stream"}, end=end, pause=pause)


class ChatServer:
    """Plays `script`: a sequence in order, or a function of the request. `requests` keeps the POSTs it got.

    Anything after the sequence's end is answered with 599 and a text that says so. `gets` answers GET and
    other POST requests by path; `/v1/models` lists the model "m" unless it says otherwise.
    """

    def __init__(
        self, script: Script, *, gets: Mapping[str, JSON] | None = None, keep_alive: float = 30.0
    ) -> None:
        self.requests: list[Request] = []
        self.peers: set[tuple[str, int]] = set()
        """The other end of every connection there was."""
        self._keep_alive = keep_alive
        self._script = script
        self._gets = {
            "/v1/models": {"object": "list", "data": [{"id": "m", "object": "model"}]},
            **(gets or {}),
        }
        self._server: web.Server | None = None
        self._runner: web.ServerRunner | None = None
        self._stop: Callable[[], object] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        """How many clients are connected now."""
        return len(self._server.connections) if self._server is not None else 0

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def __aenter__(self) -> ChatServer:
        server = self._server = web.Server(
            self._answer, keepalive_timeout=self._keep_alive, handler_cancellation=True
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def __enter__(self) -> ChatServer:
        started = threading.Event()

        async def serve() -> None:
            stop, loop = asyncio.Event(), asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(stop.set)
            async with self:
                started.set()
                await stop.wait()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        self._thread.start()
        started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stop is not None
        self._stop()
        self._thread.join(10)

    async def _answer(self, http: web.BaseRequest) -> web.StreamResponse:
        raw = await http.read()
        if http.transport is not None:
            self.peers.add(http.transport.get_extra_info("peername")[:2])
        if http.path in self._gets:
            return web.json_response(self._gets[http.path])
        if http.method != "POST":
            return web.json_response({"error": {"message": f"no {http.path} here"}}, status=404)
        request = Request(http.method, http.path, dict(http.headers), _json(raw), raw)
        self.requests.append(request)
        reply = await self._next(request)
        return await _play(http, request, reply)

    async def _next(self, request: Request) -> Reply:
        if callable(self._script):
            reply = self._script(request)
            return await reply if isinstance(reply, Awaitable) else reply
        number = len(self.requests) - 1
        return self._script[number] if number < len(self._script) else fails(599, "the script is over")


def _counted(raw: bytes) -> dict[str, JSON]:
    """Usage that grows with the request: a server that counts much less looks as if it dropped some of it.

    A short request always comes to the same, so that a test can name the number.
    """
    return _used(len(raw) // _BYTES_A_TOKEN) if len(raw) > _SHORT_REQUEST else _SHORT


async def _play(http: web.BaseRequest, request: Request, reply: Reply) -> web.StreamResponse:
    if isinstance(reply, Completion):
        model = str(request.body.get("model", "m"))
        reply = replace(reply, usage=_counted(request.raw) if reply.usage is None else reply.usage)
        if not request.body.get("stream"):
            return web.json_response(reply.as_json(model))
        reply = events(*(json.dumps(chunk, ensure_ascii=False) for chunk in reply.as_chunks(model)))
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    with suppress(ConnectionError):  # the client may hang up whenever it likes
        await response.prepare(http)
        await _write(response, reply)
        if reply.end == "reset" and http.transport is not None:
            http.transport.abort()
        else:
            await response.write_eof()
    return response


async def _write(response: web.StreamResponse, reply: Raw) -> None:
    for piece in reply.pieces:
        await response.write(piece)
        if reply.pause:
            await asyncio.sleep(reply.pause)
    if reply.end == "stall":
        await asyncio.Event().wait()


def _envelope(kind: str, model: str) -> dict[str, JSON]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _call_deltas(index: int, call: Mapping[str, JSON], piece: int) -> list[JSON]:
    function = call["function"]
    text = function["arguments"]
    opening = {"index": index, **call, "function": {"name": function["name"], "arguments": ""}}
    pieces = (text[at : at + piece] for at in range(0, len(text), piece))
    return [
        {"tool_calls": [opening]},
        *({"tool_calls": [{"index": index, "function": {"arguments": each}}]} for each in pieces),
    ]


def _json(raw: bytes) -> JSON:
    try:
        return json.loads(raw)
    except ValueError:
        return None
