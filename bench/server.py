"""The loopback endpoint that every side is measured against: raw asyncio, answers prebuilt, one process or many.

What it answers is written in the path, so that one server serves every table at once:

    /calls=10,delay=50,chunks=1000,pace=1/v1/chat/completions

`calls`: tool rounds before the answer. `delay`: milliseconds before each answer. `chunks`: one-token chunks of a
streamed answer. `pace`: milliseconds between them (0: all in one burst). `keep=1`: request bodies are kept.
Which round it is is read from the request (its tool results are counted), so the server has no state to look up.
`GET /stats` tells requests, connections, bytes and CPU; `GET /bodies` what was kept. Prove its speed: `--prove`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import mmap
import os
import re
import resource
import socket
import struct
import sys
import time
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

TOKEN = " word"
_STATS = struct.Struct("<QQQQd")  # requests, connections, bytes in, bytes out, CPU seconds
_SLOT = 64
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STREAMED = re.compile(rb'"stream" *: *true')


class Script(NamedTuple):
    """What a path asks the server to do."""

    calls: int = 0
    delay: float = 0.0
    chunks: int = 1
    pace: float = 0.0
    keep: int = 0


@lru_cache(maxsize=256)
def script_of(path: bytes) -> Script:
    settings = dict(pair.split("=") for pair in path.decode().split("/")[1].split(",") if "=" in pair)
    return Script(**{name: type(getattr(Script(), name))(value) for name, value in settings.items()})


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


def _call(number: int) -> dict[str, object]:
    arguments = json.dumps({"a": number, "b": 1})
    return {
        "id": f"call_{number:05d}",
        "type": "function",
        "function": {"name": "add", "arguments": arguments},
    }


def _http(body: bytes, content_type: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        content_type,
        len(body),
        body,
    )


_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def _whole(message: dict[str, object], finish: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "bench",
            "choices": [choice], "usage": _USAGE}  # fmt: skip
    return _http(json.dumps(body).encode(), b"application/json")


def _event(delta: dict[str, object], finish: str | None = None, usage: object = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench",
             "choices": [] if usage else [choice], **({"usage": usage} if usage else {})}  # fmt: skip
    return b"data: %b\n\n" % json.dumps(chunk).encode()


def _end(finish: str) -> list[bytes]:
    return [_event({}, finish), _event({}, usage=_USAGE), b"data: [DONE]\n\n"]


@lru_cache(maxsize=4096)
def call_answer(number: int, *, streamed: bool) -> bytes:
    call = _call(number)
    if not streamed:
        return _whole({"content": None, "tool_calls": [call]}, "tool_calls")
    opening = _event({"role": "assistant", "content": None})
    events = [opening, _event({"tool_calls": [{"index": 0, **call}]}), *_end("tool_calls")]
    return _http(b"".join(events), b"text/event-stream")


@lru_cache(maxsize=16)
def text_events(chunks: int) -> list[bytes]:
    return [
        _event({"role": "assistant", "content": ""}),
        *[_event({"content": TOKEN})] * chunks,
        *_end("stop"),
    ]


@lru_cache(maxsize=16)
def text_answer(chunks: int, *, streamed: bool) -> bytes:
    if not streamed:
        return _whole({"content": TOKEN * chunks}, "stop")
    return _http(b"".join(text_events(chunks)), b"text/event-stream")


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


# ── connections ──────────────────────────────────────────────────────────────────────────────────


class Counters:
    """What this process has done, written where the others can read it."""

    def __init__(self, shared: mmap.mmap, slot: int, slots: int) -> None:
        self._shared, self._at, self._slots = shared, slot * _SLOT, slots
        self.requests = self.connections = self.bytes_in = self.bytes_out = 0
        self.kept: list[bytes] = []

    def publish(self) -> None:
        row = (self.requests, self.connections, self.bytes_in, self.bytes_out, time.process_time())
        _STATS.pack_into(self._shared, self._at, *row)

    def total(self) -> dict[str, float]:
        self.publish()
        rows = [_STATS.unpack_from(self._shared, slot * _SLOT) for slot in range(self._slots)]
        names = ("requests", "connections", "bytes_in", "bytes_out", "cpu")
        return {name: sum(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


class Connection(asyncio.Protocol):
    """One client: requests are cut from the bytes, answers written as they are."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._counters.connections += 1
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:end])
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < whole:
                return
            body = bytes(self._buffer[end + 4 : whole])
            del self._buffer[:whole]
            self._counters.requests += 1
            self._counters.bytes_in += whole
            self._asked(head, body)

    def _asked(self, head: bytes, body: bytes) -> None:
        _, path, _ = head.split(b" ", 2)
        if path == b"/stats":
            self._counters.requests -= 1
            self._write(_http(json.dumps(self._counters.total()).encode(), b"application/json"))
            return
        if path == b"/bodies":
            kept, self._counters.kept = self._counters.kept, []
            self._write(_http(json.dumps([one.decode() for one in kept]).encode(), b"application/json"))
            return
        script = script_of(path)
        if script.keep:
            self._counters.kept.append(body)
        if script.delay:
            self._loop.call_later(script.delay / 1000, self._answer, script, body)
        else:
            self._answer(script, body)

    def _answer(self, script: Script, body: bytes) -> None:
        streamed = _STREAMED.search(body[:4096]) is not None or _STREAMED.search(body[-4096:]) is not None
        rounds = body.count(b'"tool_call_id"')
        if rounds < script.calls:
            self._write(call_answer(rounds, streamed=streamed))
        elif streamed and script.pace:
            self._write(_CHUNKED_HEAD)
            self._drip(text_events(script.chunks), 0, script.pace / 1000, self._loop.time())
        else:
            self._write(text_answer(script.chunks, streamed=streamed))

    def _drip(self, events: list[bytes], sent: int, pace: float, began: float) -> None:
        """One chunk at a time, each in a write of its own; a late timer sends what is due."""
        if self._transport.is_closing():
            return
        self._write(_framed(events[sent]))
        sent += 1
        if sent == len(events):
            self._write(b"0\r\n\r\n")
        else:
            self._loop.call_at(began + sent * pace, self._drip, events, sent, pace, began)

    def _write(self, data: bytes) -> None:
        self._counters.bytes_out += len(data)
        self._transport.write(data)


async def _serve(sock: socket.socket, counters: Counters) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(counters), sock=sock, backlog=4096
    )
    async with server:
        while True:
            counters.publish()
            await asyncio.sleep(0.05)


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve(processes: int) -> None:
    """Serve until standard input ends. The first line printed is the port."""
    _allow_many_connections()
    sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
    sock.setblocking(False)
    shared = mmap.mmap(-1, processes * _SLOT)
    children = []
    for slot in range(processes):
        if (child := os.fork()) == 0:
            with suppress(KeyboardInterrupt):
                asyncio.run(_serve(sock, Counters(shared, slot, processes)))
            os._exit(0)
        children.append(child)
    print(sock.getsockname()[1], flush=True)
    sys.stdin.read()
    for child in children:
        os.kill(child, 15)
        os.waitpid(child, 0)


# ── proof ────────────────────────────────────────────────────────────────────────────────────────


def prove(requests: int = 20_000, connections: int = 64) -> dict[str, float]:
    """What the server alone costs, asked by raw sockets with prebuilt requests: far less than any client's own cost."""
    import measure

    with measure.Server() as server:
        body = json.dumps({"model": "bench", "messages": [{"role": "user", "content": "x" * 2000}]}).encode()
        request = b"POST /calls=1/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (
            len(body), body)  # fmt: skip
        socks = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(connections)]
        expected = len(call_answer(0, streamed=False))
        before, began = server.stats(), time.perf_counter()
        for _ in range(requests // connections):
            for sock in socks:
                sock.sendall(request)
            for sock in socks:
                left = expected
                while left:
                    left -= len(sock.recv(left))
        wall, after = time.perf_counter() - began, server.stats()
        for sock in socks:
            sock.close()
    done = after["requests"] - before["requests"]
    return {
        "requests_per_second": done / wall,
        "cpu_us_per_request": (after["cpu"] - before["cpu"]) / done * 1e6,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--prove", action="store_true")
    options = parser.parse_args()
    if options.prove:
        for name, value in prove().items():
            print(f"{name:24} {value:12.1f}")
    else:
        serve(options.processes)
