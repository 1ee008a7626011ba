"""One bounded request, against real servers that behave well and badly. Bad inputs 38 to 40 of the security contract."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import ssl
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.builtin.webserver import Handler, answer, answering, resolving, serving

from glassloop.testing.server import Request as Came
from glassloop.tools.builtin.web_address import AddressRefused, AddressRule
from glassloop.tools.builtin.web_client import Answer, Bounds, Client, Request

HERE = AddressRule.from_text("127.0.0.1")
SMALL = Bounds(seconds=5, size=100_000)


def asked(
    handler: Handler,
    path: str = "/",
    *,
    bounds: Bounds = SMALL,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """What a client gets from a server on loopback."""

    async def ask() -> Answer:
        async with serving(handler) as port:
            request = Request(f"http://127.0.0.1:{port}{path}", method, headers or {})
            return await Client(HERE, bounds).ask(request)

    return asyncio.run(ask())


def test_a_request_says_who_asks_and_brings_no_cookies() -> None:
    came, handler = answering(b"hello", headers={"Content-Type": "text/plain", "Set-Cookie": "a=b", "X": "1"})
    got = asked(handler, "/a?b=中#c")
    assert (got.status, got.body, got.headers["content-type"], got.cut) == (
        200,
        b"hello",
        "text/plain",
        False,
    )
    assert came[0].path == "/a?b=%E4%B8%AD"
    assert came[0].headers["user-agent"] == "glassloop"
    assert "cookie" not in came[0].headers


def test_a_cookie_of_one_hop_is_not_brought_to_the_next() -> None:
    came: list[Came] = []

    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        came.append(request)
        there = {"Location": "/two", "Set-Cookie": "a=b"}
        writer.write(answer(b"", 302, there) if request.path == "/one" else answer(b"done"))

    assert asked(handler, "/one").body == b"done"
    assert "cookie" not in came[1].headers


# ── where it connects to ───────────────────────────────────────────────────────────────────────────


def test_a_name_that_changes_its_address_is_connected_to_where_it_was_judged() -> None:
    async def ask() -> None:
        good, good_handler = answering(b"judged")
        async with serving(good_handler) as port, serving(answering(b"other")[1], "127.0.0.2"):
            names, resolve = resolving({"good.example": [["127.0.0.1"], ["127.0.0.2"]]})
            client = Client(AddressRule.from_text(f"127.0.0.1:{port}"), SMALL, resolve)
            got = await client.ask(Request(f"http://good.example:{port}/"))
            assert (got.body, names) == (b"judged", ["good.example"])
            assert good[0].headers["host"] == f"good.example:{port}"
            with pytest.raises(AddressRefused, match=r"127\.0\.0\.2 is no public address"):
                await client.ask(Request(f"http://good.example:{port}/"))
            assert len(good) == 1

    asyncio.run(ask())


def test_an_address_of_the_sixth_version_is_asked_by_its_brackets() -> None:
    async def ask() -> None:
        came, handler = answering(b"six")
        async with serving(handler, "::1") as port:
            got = await Client(AddressRule.from_text("::1"), SMALL).ask(Request(f"http://[::1]:{port}/a"))
            assert (got.body, came[0].headers["host"]) == (b"six", f"[::1]:{port}")

    asyncio.run(ask())


def test_of_several_addresses_only_those_judged_fine_are_tried_until_one_answers() -> None:
    async def ask() -> Answer:
        async with serving(answering(b"here")[1], "127.0.0.3") as port:
            _, resolve = resolving({"good.example": [["10.0.0.1", "127.0.0.2", "127.0.0.3"]]})
            rule = AddressRule.from_text("127.0.0.2, 127.0.0.3")
            return await Client(rule, SMALL, resolve).ask(Request(f"http://good.example:{port}/"))

    assert asyncio.run(ask()).body == b"here"


def test_a_certificate_is_judged_by_the_name_that_was_asked_for(tmp_path: Path) -> None:
    asked_for: list[str | None] = []
    context = _self_signed(tmp_path, "good.example")
    context.sni_callback = lambda _object, name, _context: asked_for.append(name)

    async def ask() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context
        )
        async with server:
            port = server.sockets[0].getsockname()[1]
            client = Client(HERE, SMALL, resolving({"good.example": [["127.0.0.1"]]})[1])
            with pytest.raises(ConnectionError, match=r"certificate of good\.example is not trusted"):
                await client.ask(Request(f"https://good.example:{port}/"))

    asyncio.run(ask())
    assert asked_for == ["good.example"]


def _self_signed(folder: Path, name: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    pem, nothing = serialization.Encoding.PEM, serialization.NoEncryption()
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, nothing) + certificate.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:127.0.0.2]/",
        "//127.0.0.2/",
        "http://2130706434/",
        "http://localhost./",
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/plain,hello",
        "http://user@127.0.0.1/",
        "http:\\\\127.0.0.2\\",
        "http://private.example/",
        "javascript:alert(1)",
    ],
)
def test_a_redirect_is_judged_like_the_first_address(location: str) -> None:
    came, handler = answering(status=302, headers={"Location": location})

    async def ask() -> None:
        async with serving(handler) as port:
            client = Client(AddressRule.from_text(f"127.0.0.1:{port}"), SMALL)
            if "private" in location:
                client = Client(
                    client.rule, SMALL, resolving({"private.example": [["10.1.2.3"]]} | LOOPBACK)[1]
                )
            with pytest.raises(AddressRefused):
                await client.ask(Request(f"http://127.0.0.1:{port}/"))

    asyncio.run(ask())
    assert len(came) == 1


LOOPBACK: Mapping[str, Sequence[Sequence[str]]] = {"127.0.0.1": [["127.0.0.1"]]}


@pytest.mark.parametrize(("redirects", "arrives"), [(1, True), (5, True), (6, False), (20, False)])
def test_redirects_are_followed_five_times(redirects: int, arrives: bool) -> None:
    came = 0

    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        came += 1
        number = int(request.path.strip("/"))
        writer.write(
            answer(b"", 302, {"Location": f"{number + 1}"}) if number < redirects else answer(b"there")
        )

    if arrives:
        assert asked(handler, "/0").body == b"there"
    else:
        with pytest.raises(ConnectionError, match="redirected more than 5 times, last to http"):
            asked(handler, "/0")
    assert came == min(redirects, 5) + 1


def test_headers_of_a_request_do_not_go_along_to_another_origin() -> None:
    async def ask() -> None:
        there, there_handler = answering(b"there")
        async with serving(there_handler, "127.0.0.2") as other:
            here, here_handler = answering(status=307, headers={"Location": f"http://127.0.0.2:{other}/"})
            async with serving(here_handler) as port:
                client = Client(AddressRule.from_text("127.0.0.1, 127.0.0.2"), SMALL)
                await client.ask(
                    Request(f"http://127.0.0.1:{port}/", headers={"authorization": "Bearer abc"})
                )
            assert here[0].headers["authorization"] == "Bearer abc"
            assert "authorization" not in there[0].headers

    asyncio.run(ask())


def test_only_reading_requests_follow_a_redirect() -> None:
    came, handler = answering(b"moved", 307, {"Location": "/again"})
    got = asked(handler, method="POST")
    assert (got.status, got.body, got.headers["location"], len(came)) == (307, b"moved", "/again", 1)


def test_a_proxy_of_the_environment_is_not_used_and_named_where_nothing_else_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask() -> None:
        proxy, handler = answering(b"by proxy")
        async with serving(handler) as port:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
            client = Client(AddressRule.from_text("127.0.0.2"), SMALL)
            with pytest.raises(ConnectionError, match=r"could not be reached.*proxy.*web_proxy"):
                await client.ask(Request("http://127.0.0.2:9/"))
            assert not proxy
            told = Client(AddressRule(), SMALL, proxy=f"http://127.0.0.1:{port}")
            assert (await told.ask(Request("http://good.example/a"))).body == b"by proxy"
            assert proxy[0].path == "http://good.example/a"
            with pytest.raises(AddressRefused):
                await told.ask(Request("http://169.254.169.254/"))
            assert len(proxy) == 1

    asyncio.run(ask())


# ── how much, how long ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_small_body_that_grows_is_read_to_the_limit(
    coding: str, compress: Callable[[bytes], bytes]
) -> None:
    packed = compress(b"a" * 20_000_000)
    assert len(packed) < 50_000
    got = asked(answering(packed, headers={"Content-Encoding": coding})[1], bounds=Bounds(size=50_000))
    assert (len(got.body), got.cut) == (50_000, True)


@pytest.mark.parametrize("data", [b"", b"hello", b"hello" * 5_000])
def test_one_content_coding_is_undone(data: bytes) -> None:
    raw = zlib.compressobj(wbits=-15)
    unwrapped = raw.compress(data) + raw.flush()
    for coding, packed in (
        ("gzip", gzip.compress(data)),
        ("gzip", gzip.compress(data[:7]) + gzip.compress(data[7:])),
        ("deflate", zlib.compress(data)),
        ("deflate", unwrapped),
        ("X-GZip", gzip.compress(data)),
        ("identity", data),
    ):
        got = asked(answering(packed, headers={"Content-Encoding": coding})[1])
        assert (got.body, got.cut) == (data, False)


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip, gzip", gzip.compress(gzip.compress(b"hello"))),
        ("gzip, gzip, gzip", b"x"),
        ("deflate, gzip", b"x"),
        ("br", b"\x0b\x02\x80hello\x03"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("bzip2", bz2.compress(b"hello")),
        ("gzip", b"no gzip at all"),
        ("deflate", b"\x78\x9cno deflate"),
    ],
)
def test_another_coding_a_chain_or_a_damaged_body_is_refused(coding: str, packed: bytes) -> None:
    with pytest.raises(ConnectionError, match="cannot be read: the"):
        asked(answering(packed, headers={"Content-Encoding": coding})[1])


def test_a_server_that_sends_without_end_is_hung_up_on_at_the_limit() -> None:
    sent = 0
    hung_up = asyncio.Event()

    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n")
        try:
            for _ in range(2_000):
                writer.write(b"x" * 1_000_000)
                await writer.drain()
                sent += 1_000_000
        except ConnectionError:
            hung_up.set()

    async def ask() -> Answer:
        async with serving(handler) as port:
            got = await Client(HERE, Bounds(seconds=30, size=3_000_000)).ask(
                Request(f"http://127.0.0.1:{port}/")
            )
            await asyncio.wait_for(hung_up.wait(), 30)
            return got

    got = asyncio.run(ask())
    assert (len(got.body), got.cut) == (3_000_000, True)
    assert sent < 100_000_000


async def _drops(writer: asyncio.StreamWriter, start: bytes, piece: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x"),  # a body, a byte at a time
        (b"HTTP/1.1 200 OK\r\nX: ", b"y"),  # a head that goes on
        (b"", b""),  # silence
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),  # never to the point
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n"
            + gzip.compress(b""),
            gzip.compress(b""),  # compressed nothing
        ),
    ],
)
def test_an_answer_that_drips_is_given_up_when_its_time_is_over(start: bytes, piece: bytes) -> None:
    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        await _drops(writer, start, piece)

    with pytest.raises(ConnectionError, match=r"did not answer in full within 0\.3 seconds"):
        asked(handler, bounds=Bounds(seconds=0.3))


def test_redirects_that_take_their_time_share_one_limit() -> None:
    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(answer(b"", 302, {"Location": "/more"}))

    with pytest.raises(ConnectionError, match="did not answer in full"):
        asked(handler, bounds=Bounds(seconds=0.5))


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(5_000)),
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/9 what\r\n",
    ],
)
def test_what_is_no_sane_http_is_an_error_in_words(head: bytes) -> None:
    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"\r\n")

    with pytest.raises(ConnectionError, match="gave no valid answer"):
        asked(handler)


def test_a_body_that_ends_early_is_an_error() -> None:
    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    with pytest.raises(ConnectionError, match="hung up before its answer was complete"):
        asked(handler)


def test_a_cancelled_request_hangs_up() -> None:
    hung_up = asyncio.Event()
    came = asyncio.Event()

    async def handler(request: Came, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n")
        came.set()
        try:
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            hung_up.set()

    async def cancel() -> None:
        async with serving(handler) as port:
            task = asyncio.create_task(Client(HERE).ask(Request(f"http://127.0.0.1:{port}/")))
            await came.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(hung_up.wait(), 10)

    asyncio.run(cancel())


def test_a_name_that_nobody_knows_is_an_error_in_words() -> None:
    async def nobody(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(ConnectionError, match=r"the host nowhere\.example is not known"):
        asyncio.run(Client(AddressRule(), SMALL, nobody).ask(Request("https://nowhere.example/")))
