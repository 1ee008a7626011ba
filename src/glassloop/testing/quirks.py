"""Plays a catalogue of endpoint quirks over real HTTP: exact bytes, piece by piece, with resets and stalls.

    async with serve("quirks.jsonl") as server:
        Endpoint(server.base_url("C46"), "m")

Each quirk has a base URL of its own. Anything may follow the id in it (`/C46/second-try/v1`): such a path
keeps its own state, so that clients do not disturb each other. When a quirk is played is `triggers`' business.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from glassloop.core.entries import JSON
from glassloop.testing.rawhttp import read_request, send, send_chunked
from glassloop.testing.server import Completion, Request, calls, says
from glassloop.testing.triggers import has_history, is_about_history, triggered

ACTIONS = ("answer", "execute", "feed_back", "retry", "adapt_request", "raise")
"""What may be the right thing to do about a quirk."""

_DONE = "Done."
_NOWHERE = ("", "v1")
"""What stands for an id in the paths to which quirks redirect."""


@dataclass(frozen=True, slots=True)
class Quirk:
    """One entry of the catalogue; its fields are explained there."""

    id: str
    family: str
    name: str
    wire: Mapping[str, JSON]
    expect: Mapping[str, JSON]

    @property
    def action(self) -> str:
        return str(self.expect["action"])

    @property
    def when(self) -> Mapping[str, JSON] | None:
        return self.wire.get("when")


def load(path: str | Path) -> list[Quirk]:
    """The quirks of a JSON Lines file. Raises ValueError naming the line that is none."""
    quirks = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            quirks.append(_quirk(json.loads(line)))
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path}, line {number} is no JSON: {error.msg}, column {error.colno}"
            ) from error
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is no quirk: {error}") from error
    return quirks


_TEXTS = ("id", "family", "name")
_OBJECTS: Mapping[str, tuple[str, ...]] = {"wire": ("mode", "status"), "expect": ("action",)}
"""Fields that are objects, and what each must have."""


def _quirk(data: JSON) -> Quirk:
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    for name in _TEXTS:
        if not isinstance(data.get(name), str):
            raise ValueError(f"its `{name}` is no text")
    for name, needed in _OBJECTS.items():
        missing = [one for one in needed if not isinstance(data.get(name), dict) or one not in data[name]]
        if missing:
            raise ValueError(f"its `{name}` is no object with {' and '.join(missing)}")
    if data["expect"]["action"] not in ACTIONS:
        raise ValueError(f"its `expect.action` is none of {', '.join(ACTIONS)}")
    return Quirk(*(data[name] for name in (*_TEXTS, *_OBJECTS)))


@dataclass(slots=True)
class Run:
    """What one base URL was asked, how often its quirk was played, and whether it was the last time."""

    requests: list[Request] = field(default_factory=list)
    plays: int = 0
    played: bool = False


class QuirkServer:
    """Serves quirks by id. `runs` holds what each base URL was asked, by its path without `/v1`."""

    def __init__(self, quirks: Iterable[Quirk]) -> None:
        self.quirks = {quirk.id: quirk for quirk in quirks}
        self.runs: dict[str, Run] = {}
        self.url = ""

    def base_url(self, quirk_id: str, run: str = "") -> str:
        """Where one quirk is played, for clients that add `/chat/completions` themselves."""
        return f"{self.url}/{quirk_id}{'/' + run if run else ''}/v1"

    def run(self, quirk_id: str, run: str = "") -> Run:
        """What was asked there so far."""
        return self.runs.get(f"{quirk_id}{'/' + run if run else ''}", Run())

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, as long as it is kept open."""
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while (request := await read_request(reader)) is not None:
                    if not await self._answer(request, writer):
                        break
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        place = request.path.strip("/").removesuffix("/chat/completions").removesuffix("/v1").strip("/")
        quirk_id = place.partition("/")[0]
        quirk = self.quirks.get(quirk_id)
        if quirk is None and quirk_id not in _NOWHERE:
            some = ", ".join([*self.quirks][:3])
            words = f"no quirk {quirk_id!r} is served here; there are {len(self.quirks)}, such as {some}"
            return await send(writer, 404, {}, [_json({"error": {"message": words}})])
        if request.method != "POST":
            return await send(
                writer, 200, {}, [_json({"object": "list", "data": [{"id": "m", "object": "model"}]})]
            )
        run = self.runs.setdefault(place, Run())
        run.requests.append(request)
        body = request.body if isinstance(request.body, dict) else {}
        run.played = quirk is not None and triggered(quirk.action, quirk.when, body, played_before=run.played)
        run.plays += run.played
        if quirk is None or not run.played:
            return await _play_normal(writer, body, reply_to(body, quirk.when if quirk else None))
        return await _play(writer, quirk.wire, streamed=body.get("stream") is True)


@asynccontextmanager
async def serve(path: str | Path, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[QuirkServer]:
    """Serve a catalogue for as long as the block runs; `base_url(id)` says where each quirk is."""
    server = QuirkServer(load(path))
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.connected(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, host, port, limit=64 * 1024 * 1024)
    name = f"[{host}]" if ":" in host else host
    server.url = f"http://{name}:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ── playing ──────────────────────────────────────────────────────────────


def reply_to(body: Mapping[str, JSON], when: Mapping[str, JSON] | None) -> Completion:
    """What a server without quirks would say: a call where the quirk is about history, else a word."""
    if when is None or not is_about_history(when) or not body.get("tools") or has_history(body):
        return says(_DONE)
    function = body["tools"][0]["function"]
    wanted = calls((function["name"], example_of(function.get("parameters") or {})))
    return replace(wanted, message={**wanted.message, "reasoning_content": "A tool knows."})


def example_of(schema: Mapping[str, JSON]) -> JSON:
    """A small value that fits a simple schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    properties = schema.get("properties") or {}
    if schema.get("type", "object") == "object":
        return {
            name: example_of(properties.get(name) or {"type": "string"})
            for name in schema.get("required", ())
        }
    return _EXAMPLES.get(str(schema.get("type")), "Oslo")


_EXAMPLES: Mapping[str, JSON] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "null": None}


async def _play_normal(writer: asyncio.StreamWriter, body: Mapping[str, JSON], reply: Completion) -> bool:
    model = str(body.get("model", "m"))
    if body.get("stream") is True:
        events = [*map(json.dumps, reply.as_chunks(model)), "[DONE]"]
        pieces = [f"data: {event}\n\n".encode() for event in events]
        return await send_chunked(writer, 200, {"content-type": "text/event-stream"}, pieces, "close")
    return await send(writer, 200, {}, [_json(reply.as_json(model))])


async def _play(writer: asyncio.StreamWriter, wire: Mapping[str, JSON], *, streamed: bool) -> bool:
    """Play a quirk. A JSON completion is streamed if that was asked for, as its server would have done."""
    status, headers, end = wire["status"], wire.get("headers") or {}, wire.get("end", "close")
    encoding = wire.get("encoding") or "utf-8"
    if wire["mode"] == "sse":
        pieces = [_bytes(event, encoding) for event in wire["events"]]
        return await send_chunked(writer, status, headers, pieces, end)
    if wire["mode"] == "json" and streamed and (wire.get("when") or {}).get("stream") is None:
        events = as_events(wire["body"])
        if events is not None:
            headers = {**headers, "content-type": "text/event-stream"}
            return await send_chunked(writer, status, headers, [event.encode() for event in events], end)
    return await send(writer, status, headers, [_bytes(wire["body"], encoding)], end)


def as_events(body: JSON) -> list[str] | None:
    """A completion as the stream that would carry it: each message one delta, then its finish reason.

    None where it has no well-formed choices, and cannot be streamed.
    """
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices:
        return None
    if not all(isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices):
        return None
    envelope = {key: value for key, value in body.items() if key not in ("choices", "usage", "object")}
    envelope["object"] = "chat.completion.chunk"
    chunks: list[JSON] = []
    for number, choice in enumerate(choices):
        index = choice.get("index", number)
        rest = {
            key: value for key, value in choice.items() if key not in ("index", "message", "finish_reason")
        }
        delta = {**choice["message"], **_indexed(choice["message"])}
        chunks.append(
            {**envelope, "choices": [{"index": index, "delta": delta, "finish_reason": None, **rest}]}
        )
        chunks.append(
            {
                **envelope,
                "choices": [{"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}],
            }
        )
    if "usage" in body:
        chunks.append({**envelope, "choices": [], "usage": body["usage"]})
    return [*(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


def _indexed(message: Mapping[str, JSON]) -> dict[str, JSON]:
    """Calls with the position that a stream's calls carry."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return {}
    return {
        "tool_calls": [
            {"index": at, **call} if isinstance(call, dict) else call for at, call in enumerate(calls)
        ]
    }


def _bytes(value: JSON, encoding: str) -> bytes:
    if not isinstance(value, str):
        return _json(value)
    return base64.b64decode(value) if encoding == "base64" else value.encode(encoding, "surrogatepass")


def _json(value: JSON) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
