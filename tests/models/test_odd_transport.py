"""HTTP that is unusual or broken, byte by byte: what is merely odd is read, what is broken is asked for again."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import pytest
from tests.models.asking import QUICK, ask

from glassloop.models.endpoint import Endpoint
from glassloop.testing.rawhttp import read_request

COMPLETION = {
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Zwölf Grad."}, "finish_reason": "stop"}
    ]
}
BODY = json.dumps(COMPLETION, ensure_ascii=False).encode()
JSON = b"content-type: application/json\r\n"


def answer(body: bytes, head: bytes = b"HTTP/1.1 200 OK", more: bytes = JSON) -> bytes:
    return head + b"\r\n" + more + b"content-length: %d\r\n\r\n" % len(body) + body


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n", more: bytes = JSON) -> bytes:
    body = b"".join(b"%x;name=value\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\n" + more + b"transfer-encoding: chunked\r\n\r\n" + body + end


ODD = {
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n" + JSON + b"\r\n" + BODY,
    "no length": b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + JSON + b"\r\n" + BODY,
    "100 first": b"HTTP/1.1 100 Continue\r\n\r\n" + answer(BODY),
    "103 first": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + answer(BODY),
    "no reason phrase": answer(BODY, b"HTTP/1.1 200"),
    "201": answer(BODY, b"HTTP/1.1 201 Created"),
    "203": answer(BODY, b"HTTP/1.1 203 Non-Authoritative Information"),
    "a byte order mark": answer(b"\xef\xbb\xbf" + BODY),
    "called a web page": answer(BODY, more=b"content-type: text/html\r\n"),
    "no type": answer(BODY, more=b""),
    "a wrong charset": answer(BODY, more=b"content-type: application/json; charset=iso-8859-1\r\n"),
    "an unknown charset": answer(BODY, more=b"content-type: application/json; charset=utf8mb4\r\n"),
    "gzip": answer(gzip.compress(BODY), more=JSON + b"content-encoding: gzip\r\n"),
    "x-gzip": answer(gzip.compress(BODY), more=JSON + b"content-encoding: x-gzip\r\n"),
    "deflate": answer(zlib.compress(BODY), more=JSON + b"content-encoding: deflate\r\n"),
    "said to be gzip": answer(BODY, more=JSON + b"content-encoding: gzip\r\n"),
    "identity": answer(BODY, more=JSON + b"content-encoding: identity\r\n"),
    "chunk extensions": chunked(BODY[:9], BODY[9:]),
    "trailers": chunked(BODY, end=b"0\r\nx-checksum: 1\r\n\r\n"),
    "blank lines first": answer(b"\r\n\r\n  " + BODY),
    "keep-alive comments first": answer(b": waiting\n\n: waiting\n\n" + BODY),
    "a 100 KB cookie": answer(BODY, more=JSON + b"set-cookie: a=" + b"x" * 50_000 + b"\r\n"),
}
BROKEN = {
    "no answer": b"",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "an empty body": answer(b""),
    "an empty chunked body": chunked(),
    "a body without its end": answer(BODY[:-12]),
    "a chunked body without its end": chunked(BODY[:20], end=b""),
    "a compressed error": answer(
        gzip.compress(b'{"error":{"message":"Overloaded"}}'),
        b"HTTP/1.1 529 Overloaded",
        JSON + b"content-encoding: gzip\r\n",
    ),
    "503 and closed": b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\nno healthy upstream",
    "null": answer(b"null"),
    "a number": answer(b"0"),
    "an empty object": answer(b"{}"),
    "two closing brackets too few": answer(BODY[:-2]),
}


async def asked(first: bytes, *, stream: bool):
    """What one question brings whose first answer is these bytes, and in how many requests."""
    requests = 0
    handlers = []

    async def connected(reader, writer):
        nonlocal requests
        handlers.append(asyncio.current_task())
        while await read_request(reader) is not None:
            requests += 1
            writer.write(first if requests == 1 else answer(BODY))
            await writer.drain()
            if requests == 1:
                break
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", "m", retries=QUICK, stream=stream)
        heard = await ask(endpoint)
        await endpoint.close()
        await asyncio.gather(*handlers)
    return heard, requests


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", ODD)
def test_what_is_merely_odd_is_read_at_once(name, stream):
    heard, requests = asyncio.run(asked(ODD[name], stream=stream))
    assert heard.error is None
    assert heard.reply.text == "Zwölf Grad."
    assert requests == 1


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_asked_for_again(name, stream):
    heard, requests = asyncio.run(asked(BROKEN[name], stream=stream))
    assert heard.error is None
    assert heard.reply.text == "Zwölf Grad."
    assert requests == 2


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_length_beyond_a_whole_body_costs_one_request_at_most(stream):
    heard, requests = asyncio.run(asked(answer(BODY).replace(b"length: ", b"length: 9"), stream=stream))
    assert heard.reply.text == "Zwölf Grad."
    assert requests <= 2


def test_a_server_that_is_not_up_yet_is_asked_again():
    async def starts_late():
        placeholder = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = placeholder.sockets[0].getsockname()[1]
        placeholder.close()
        await placeholder.wait_closed()
        endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", "m")
        question = asyncio.create_task(ask(endpoint))
        await asyncio.sleep(0.05)

        async def connected(reader, writer):
            await read_request(reader)
            writer.write(answer(BODY))
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(connected, "127.0.0.1", port):
            heard = await question
        await endpoint.close()
        return heard

    heard = asyncio.run(starts_late())
    assert heard.reply.text == "Zwölf Grad."
    assert "Retrying" in heard.kinds
