"""Our own HTTP connection: TLS, tunnels, reuse, and bytes that come as they like."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import itertools
import json
import ssl
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from tests.models.asking import QUICK, ask

from glassloop.core.errors import ConnectionLost
from glassloop.core.recording import NoRecorder
from glassloop.models.connection import BadHttp, Connection
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.http import Client
from glassloop.testing.rawhttp import read_request

BODY = json.dumps(
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}]}
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
ONCE = Retries(attempts=0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and localhost that nobody trusts yet, with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "glassloop test")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return file


@asynccontextmanager
async def serving(handle: Any, tls: ssl.SSLContext | None = None):
    """A server on loopback whose handlers have ended when it has. Gives its port."""
    handlers: list[asyncio.Task[Any]] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*handlers, return_exceptions=True)


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await read_request(reader) is not None:
        writer.write(ANSWER)
        await writer.drain()


def tls_of(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def asked_twice(base_url: str, **options: Any) -> list[Any]:
    endpoint = Endpoint(base_url, "m", key="sk-planted", stream=False, **{"retries": QUICK, **options})
    heard = [await ask(endpoint), await ask(endpoint)]
    await endpoint.close()
    return heard


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("trusting", [{"ca": True}, {"verify": False}], ids=["its own CA", "unverified"])
def test_a_server_with_its_own_certificate_is_asked_where_it_is_trusted(certificate, trusting):
    options = {"ca": certificate} if "ca" in trusting else trusting

    async def story():
        async with serving(answering, tls_of(certificate)) as port:
            return await asked_twice(f"https://127.0.0.1:{port}/v1", **options)

    assert [each.reply.text for each in asyncio.run(story())] == ["fine", "fine"]


def test_a_certificate_that_nobody_trusts_is_said_at_once_and_with_what_to_do(certificate):
    async def story():
        async with serving(answering, tls_of(certificate)) as port:
            return await asked_twice(f"https://localhost:{port}/v1")

    first, _ = asyncio.run(story())
    assert isinstance(first.error, ConnectionLost)
    assert "The certificate of localhost is not trusted" in str(first.error)
    assert "ca=" in first.error.hint
    assert first.kinds == []  # it was not asked again


def test_http_spoken_to_a_tls_port_and_tls_to_a_plain_one_are_no_answer(certificate):
    async def story(scheme: str, tls: ssl.SSLContext | None):
        async with serving(answering, tls) as port:
            return await asked_twice(
                f"{scheme}://127.0.0.1:{port}/v1",
                ca=certificate,
                retries=ONCE,
                deadlines=Deadlines(connect=0.3),
            )

    for scheme, tls in (("http", tls_of(certificate)), ("https", None)):
        for heard in asyncio.run(story(scheme, tls)):
            assert isinstance(heard.error, ConnectionLost)


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────────


def tunnelling(seen: list[bytes], status: bytes = b"200 Connection established"):
    """A proxy that opens tunnels, and keeps what it could read."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        writer.write(b"HTTP/1.1 " + status + b"\r\n\r\n")
        if not status.startswith(b"200"):
            return
        host, _, port = head.split()[1].rpartition(b":")
        there, back = await asyncio.open_connection(host.decode(), int(port))

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                seen.append(data)
                target.write(data)
            target.close()

        await asyncio.gather(pass_on(reader, back), pass_on(there, writer))

    return handle


def test_a_tunnel_shows_the_proxy_nothing_but_where_it_leads(certificate):
    seen: list[bytes] = []

    async def story():
        async with (
            serving(answering, tls_of(certificate)) as port,
            serving(tunnelling(seen)) as proxy,
        ):
            url = f"http://ada:p%40ss@127.0.0.1:{proxy}"
            return port, await asked_twice(f"https://127.0.0.1:{port}/v1", ca=certificate, proxy=url)

    port, heard = asyncio.run(story())
    assert [each.reply.text for each in heard] == ["fine", "fine"]
    assert seen[0].startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % port)
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"ada:p@ss") in seen[0]
    assert sum(data.startswith(b"CONNECT") for data in seen) == 1  # and it is kept
    assert not any(b"sk-planted" in data for data in seen)


def test_a_proxy_that_refuses_is_named():
    async def story():
        async with serving(tunnelling([], b"407 Proxy Authentication Required")) as proxy:
            return await asked_twice(
                "https://models.example/v1", proxy=f"http://127.0.0.1:{proxy}", retries=ONCE
            )

    for heard in asyncio.run(story()):
        assert "The proxy refused (407)" in str(heard.error)


def test_a_proxy_that_is_not_there_is_named():
    async def story():
        async with serving(answering) as port:
            pass
        return await asked_twice("https://models.example/v1", proxy=f"http://127.0.0.1:{port}", retries=ONCE)

    for heard in asyncio.run(story()):
        assert "The proxy could not be reached" in str(heard.error)


# ── reuse and flow ───────────────────────────────────────────────────────────────────────────────────

LEFT_OVER = {
    "another answer": ANSWER,
    "a timeout's notice": b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    "garbage": b"\x00\x01\x02 what is this",
}


@pytest.mark.parametrize("name", LEFT_OVER)
def test_a_connection_on_which_more_came_than_was_asked_for_is_not_used_again(name):
    connections = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await read_request(reader) is not None:
            writer.write(ANSWER + LEFT_OVER[name])
            await writer.drain()

    async def story():
        async with serving(handle) as port:
            return await asked_twice(f"http://127.0.0.1:{port}/v1")

    assert [each.reply.text for each in asyncio.run(story())] == ["fine", "fine"]
    assert connections == 2


def test_a_server_is_made_to_wait_while_nobody_reads():
    """What is not read stays with the server, and not in our memory."""
    sent = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for _ in range(1000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    async def story() -> int:
        async with serving(handle) as port:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(
                lambda: Connection(lambda _: None), "127.0.0.1", port
            )
            connection.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"")
            await connection.head()
            before = -1
            while before != sent:
                before = sent
                await asyncio.sleep(0.05)
            stopped = sent
            read = 0
            while data := await _read(connection):
                read += len(data)
            assert read == 100_000_000
            return stopped

    assert asyncio.run(story()) < 50_000_000


def test_a_large_question_is_sent_whole():
    got = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        request = await read_request(reader)
        got = len(request.raw)
        writer.write(ANSWER)
        await writer.drain()
        await reader.read()

    async def story():
        from glassloop.core.entries import User, parts_of

        async with serving(handle) as port:
            endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", "m", retries=ONCE)
            heard = await ask(endpoint, [User(parts_of("长" * 2_000_000))])
            await endpoint.close()
            return heard

    assert asyncio.run(story()).reply.text == "fine"
    assert got > 6_000_000


def test_a_clock_that_is_looked_at_too_late_does_not_outweigh_what_has_come():
    """A loop that was busy for longer than a deadline finds the bytes and the due timer in the same turn."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        head, _, body = ANSWER.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n" + body[:5])
        await writer.drain()
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, writer.write, body[5:])
        loop.call_later(0.05, time.sleep, 1.5)
        await reader.read()

    async def story():
        async with serving(handle) as port:
            limits = Deadlines(silence=1.0)
            endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", "m", retries=ONCE, deadlines=limits)
            heard = await ask(endpoint)
            await endpoint.close()
            return heard

    heard = asyncio.run(story())
    assert heard.error is None
    assert heard.reply.text == "fine"


def test_the_time_that_a_caller_takes_before_it_reads_on_is_not_the_servers():
    """Head and first bytes come together, so that the first wait is after the caller's pause."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await writer.drain()
        await asyncio.sleep(2.4)
        writer.write(b"4\r\nlast\r\n0\r\n\r\n")
        await writer.drain()
        await reader.read()

    async def story():
        async with serving(handle) as port:
            client = Client(deadlines=Deadlines(whole=2.0), verify=True, ca=None, proxy=None, limit=100)
            answer = await client.send("GET", f"http://127.0.0.1:{port}/", {}, None, NoRecorder())
            data = await answer.read()
            await asyncio.sleep(2.3)
            while more := await answer.read():
                data += more
            await client.close()
            return data

    assert asyncio.run(story()) == b"firstlast"


async def _read(connection: Connection) -> bytes:
    await connection.more()
    data = connection.take()
    assert data is not None
    return data


def _feed(connection: Connection, data: bytes) -> None:
    """As an event loop does."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


CHUNKED = (
    b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nX-One: a\r\nx-one: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;note=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: t\r\n\r\n"
)


@given(st.lists(st.integers(0, len(CHUNKED)), max_size=12))
def test_any_cut_of_an_answer_reads_the_same(cuts):
    async def story():
        connection = Connection(lambda _: None)
        places = [0, *sorted(cuts), len(CHUNKED)]
        for start, end in itertools.pairwise(places):
            if start < end:
                _feed(connection, CHUNKED[start:end])
        await connection.head()
        data = b""
        while piece := await _read(connection):
            data += piece
        return connection.status, dict(connection.headers), data, connection.complete

    headers = {"X-One": "a, b", "Transfer-Encoding": "chunked"}
    assert asyncio.run(story()) == (200, headers, b"hello world", True)


@given(st.binary(max_size=300))
def test_whatever_comes_is_an_answer_or_said_to_be_none(data):
    async def story():
        connection = Connection(lambda _: None)
        _feed(connection, data)
        connection.connection_lost(None)
        try:
            await connection.head()
            while await _read(connection):
                pass
        except Exception as error:
            return error
        return None

    error = asyncio.run(story())
    assert error is None or isinstance(error, BadHttp) or type(error).__name__ == "HungUp"
