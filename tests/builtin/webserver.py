"""Servers on loopback that answer byte by byte as a test says, and names that resolve as it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from glassloop.testing.rawhttp import read_request
from glassloop.testing.server import Request
from glassloop.tools.builtin.web_client import Resolve

Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """A server's port. One request a connection; whoever hangs up ends the handler."""

    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            with suppress(ConnectionError):
                if request := await read_request(reader):
                    await handler(request, writer)
                    await writer.drain()
                    writer.write_eof()
                    await reader.read()  # until the client has hung up, so that it gets all that was sent
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connected, host, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the loop's next round


def answering(
    body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None
) -> tuple[list[Request], Handler]:
    """A handler that answers every request the same, and the requests that came."""
    came: list[Request] = []

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        came.append(request)
        writer.write(answer(body, status, headers))

    return came, handler


def answer(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole answer as bytes."""
    lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
    head = "\r\n".join([f"HTTP/1.1 {status} Said", *lines, f"Content-Length: {len(body)}", "", ""])
    return head.encode() + body


def resolving(names: Mapping[str, Sequence[Sequence[str]]]) -> tuple[list[str], Resolve]:
    """A resolver with, for each name, the answers that it gives one after the other (the last for ever), and
    the names that were asked for.
    """
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        answers = names[host]
        asked.append(host)
        return answers[min(asked.count(host), len(answers)) - 1]

    return asked, resolve
