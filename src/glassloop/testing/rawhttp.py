"""HTTP/1.1 on raw sockets, for servers that must be able to misbehave: exact writes, resets, stalls."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from glassloop.testing.server import Request

_SETTLE = 0.001
"""Seconds between two writes, so that they arrive as two reads."""


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request on a connection, None at its end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    start, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = start.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    raw = await _body(reader, headers)
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    return Request(method, path, headers, body, raw)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "chunked" not in headers.get("transfer-encoding", ""):
        return await reader.readexactly(int(headers.get("content-length", 0)))
    pieces = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)


def _head(status: int, headers: Mapping[str, str], framing: str) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Status"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), framing]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


async def send(
    writer: asyncio.StreamWriter,
    status: int,
    headers: Mapping[str, str],
    pieces: Sequence[bytes],
    end: str = "close",
) -> bool:
    """A body of known length. One that does not end in order lacks its last byte."""
    length = sum(map(len, pieces)) + (end != "close")
    writer.write(_head(status, headers or {"content-type": "application/json"}, f"content-length: {length}"))
    writer.writelines(pieces)
    await writer.drain()
    return await _finish(writer, end)


async def send_chunked(
    writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], pieces: Sequence[bytes], end: str
) -> bool:
    """A stream, each piece one write of its own."""
    writer.write(_head(status, headers, "transfer-encoding: chunked"))
    for piece in filter(None, pieces):
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
        await asyncio.sleep(_SETTLE)
    if end == "close":
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    return await _finish(writer, end)


async def _finish(writer: asyncio.StreamWriter, end: str) -> bool:
    """Whether the connection stays open for more."""
    if end == "stall":
        await asyncio.Event().wait()
    if end == "reset":
        # Without lingering, closing sends RST instead of FIN.
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()
    return end == "close"
