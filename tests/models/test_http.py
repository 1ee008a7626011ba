"""The transport: codings, limits, redirects, proxies, certificates, connections."""

import asyncio
import contextlib
import gc
import gzip
import json
import socket
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.asking import ask, heard_from, quick

from glassloop.core.entries import User, parts_of
from glassloop.core.errors import ConfigError, ConnectionLost, EndpointError, RequestRejected
from glassloop.core.events import Learned
from glassloop.core.recording import NoRecorder
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.decoding import BadCoding, Decoder, TooLarge
from glassloop.models.endpoint import Endpoint
from glassloop.models.http import DEFAULT_LIMIT
from glassloop.models.model import ModelRequest
from glassloop.models.proxies import proxy_for
from glassloop.models.urls import is_loopback_host, is_private_host, may_follow, normal_base_url
from glassloop.testing.rawhttp import read_request
from glassloop.testing.server import ChatServer, Raw, events, says

BODY = json.dumps(says("fine").as_json("m")).encode()
STREAM = (
    b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in says("fine").as_chunks("m"))
    + b"data: [DONE]\n\n"
)


def heard(script, **options):
    return asyncio.run(heard_from(script, **options))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def raw_deflate(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(data) + deflater.flush()


# ── codings and limits ───────────────────────────────────────────────────

CODED = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "gzip in several members": ("gzip", lambda data: gzip.compress(data[:40]) + gzip.compress(data[40:])),
    "gzip that no header names": ("", gzip.compress),
    "a header for gzip, but none": ("gzip", bytes),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "a header for deflate, but none": ("deflate", bytes),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["json", "stream"])
@pytest.mark.parametrize("name", CODED)
def test_a_coded_body_is_read_whatever_the_header_says(name, body):
    coding, encode = CODED[name]
    headers = {"content-type": "text/event-stream", **({"content-encoding": coding} if coding else {})}
    said, requests = heard([Raw(cut(encode(body), 7), headers=headers)])
    assert said.reply.text == "fine"
    assert len(requests) == 1


@given(st.binary(max_size=2000), st.integers(1, 50), st.sampled_from(sorted(CODED)))
def test_any_split_of_a_coded_body_decodes_to_the_same(data, size, name):
    coding, encode = CODED[name]
    data = b"{" + data
    decoder = Decoder(coding, 10_000)
    assert b"".join([*(decoder.feed(piece) for piece in cut(encode(data), size)), decoder.finish()]) == data
    assert not decoder.cut


def test_a_compressed_bomb_is_refused_before_it_grows():
    bomb = gzip.compress(b"\0" * 100_000_000)
    said, requests = heard([Raw([bomb], headers={"content-encoding": "gzip"})], limit=1_000_000)
    assert type(said.error) is EndpointError
    assert "larger than the limit" in str(said.error)
    assert len(requests) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_an_endless_body_is_refused_at_the_limit(stream):
    endless = Raw([b"data: " + b"x" * 100_000] * 100, headers={"content-type": "text/event-stream"})
    said, _ = heard([endless], limit=1_000_000, stream=stream)
    assert "larger than the limit" in str(said.error)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_body_beyond_64_mb_is_refused_where_no_other_limit_is_set(coding):
    body = b"{" + b" " * (DEFAULT_LIMIT + 1)
    sent = gzip.compress(body, 1) if coding == "gzip" else body
    said, requests = heard([Raw([sent], headers={"content-encoding": coding})])
    assert DEFAULT_LIMIT == 64 * 1024 * 1024
    assert "larger than the limit" in str(said.error)
    assert len(requests) == 1


REFUSED_CODINGS = {
    "two names": ({"content-encoding": "gzip, gzip"}, gzip.compress(gzip.compress(BODY))),
    "twice under one name": ({"content-encoding": "gzip"}, gzip.compress(gzip.compress(BODY))),
    "unknown": ({"content-encoding": "br"}, b"\x0b\x02\x80"),
    "damaged": ({"content-encoding": "gzip"}, gzip.compress(BODY)[:20] + b"\xff" * 50),
}


@pytest.mark.parametrize("name", REFUSED_CODINGS)
def test_what_cannot_be_decoded_is_a_clear_error(name):
    headers, body = REFUSED_CODINGS[name]
    said, requests = heard([Raw([body], headers=headers)])
    assert type(said.error) is EndpointError
    assert "encoded" in str(said.error) or "compressed" in str(said.error)
    assert len(requests) == 1


def test_a_compressed_body_that_ends_early_is_asked_for_again():
    short = Raw([gzip.compress(BODY)[:-12]], headers={"content-encoding": "gzip"})
    said, requests = heard([short, says("fine")], stream=False)
    assert said.reply.text == "fine"
    assert len(requests) == 2


def test_a_limit_counts_decoded_bytes():
    decoder = Decoder("gzip", 100)
    with pytest.raises(TooLarge):
        decoder.feed(gzip.compress(b"x" * 101))
    with pytest.raises(BadCoding):
        Decoder("gzip, br", 100)


@contextlib.asynccontextmanager
async def raw_server(answer: bytes):
    """Answers every connection with these bytes and closes it."""

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        await server.wait_closed()


NO_HTTP = {
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}",
    "no HTTP at all": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "a header without end": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n\r\n{}",
    "headers without end": b"HTTP/1.1 200 OK\r\n"
    + b"".join(b"x-%d: a\r\n" % n for n in range(20_000))
    + b"\r\n{}",
    "nothing": b"",
    "too short": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}",
}


@pytest.mark.parametrize("name", NO_HTTP)
def test_broken_http_is_a_clear_error(name):
    async def story():
        async with raw_server(NO_HTTP[name]) as base_url:
            endpoint = Endpoint(base_url, "m", retries=Retries(attempts=1, base=0.001))
            said = await ask(endpoint)
            await endpoint.close()
            return said

    said = asyncio.run(story())
    assert isinstance(said.error, ConnectionLost)
    assert said.kinds == ["Retrying"]


def test_a_body_that_ends_with_its_connection_is_whole_unless_it_was_reset():
    async def story():
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
        async with raw_server(head + BODY) as base_url:
            endpoint = Endpoint(base_url, "m")
            said = await ask(endpoint)
            await endpoint.close()
            return said

    assert asyncio.run(story()).reply.text == "fine"


# ── redirects ────────────────────────────────────────────────────────────


def moved(location, status=301):
    return Raw([], status, {"location": location})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirected_question_is_posted_again_and_the_place_remembered(status):
    def script(request):
        return says("fine") if request.path.startswith("/new") else moved("/new/chat/completions", status)

    async def story():
        async with ChatServer(script) as server:
            heard = []
            for _ in range(2):
                endpoint = quick(server, key="k" * 20)
                heard.append(await ask(endpoint))
                await endpoint.close()
            return heard, server.requests

    (first, second), requests = asyncio.run(story())
    assert first.of(Learned)[0].code == "redirect"
    assert second.kinds == ["Reply"]
    assert [request.path for request in requests] == ["/v1/chat/completions", *["/new/chat/completions"] * 2]
    assert requests[0].raw == requests[1].raw
    assert requests[1].headers["Authorization"] == "Bearer " + "k" * 20


def test_a_redirect_to_another_server_is_refused_and_the_key_stays_here():
    async def story():
        async with ChatServer([says("stolen")]) as other, ChatServer([moved(other.base_url)]) as server:
            endpoint = quick(server, key="k" * 20)
            said = await ask(endpoint)
            await endpoint.close()
            return said, other.requests

    said, stolen = asyncio.run(story())
    assert isinstance(said.error, RequestRejected)
    assert "another server" in str(said.error)
    assert not stolen


def test_redirects_in_a_circle_end():
    said, requests = heard(lambda request: moved(request.path))
    assert isinstance(said.error, RequestRejected)
    assert len(requests) == 4


def test_where_an_old_redirect_led_may_vanish_again():
    places = {"moved": True}

    def script(request):
        if request.path.startswith("/new"):
            return says("fine") if places["moved"] else Raw([], 404)
        return moved("/new/chat/completions") if places["moved"] else says("back")

    async def story():
        async with ChatServer(script) as server:
            endpoint = quick(server)
            await ask(endpoint)
            places["moved"] = False
            said = await ask(endpoint)
            await endpoint.close()
            return said

    assert asyncio.run(story()).reply.text == "back"


FOLLOWED = [
    ("http://a.example/v1", "http://a.example/v2", True),
    ("http://a.example/v1", "https://a.example/v1", True),
    ("http://a.example:8080/v1", "https://a.example:8080/v1", True),
    ("http://a.example/v1", "https://a.example:9999/v1", False),
    ("https://a.example/v1", "http://a.example/v1", False),
    ("https://a.example/v1", "https://b.a.example/v1", False),
    ("https://a.example/v1", "https://a.example:444/v1", False),
    ("https://a.example/v1", "https://a.example@b.example/v1", False),
    ("https://a.example/v1", "file:///etc/passwd", False),
]


@pytest.mark.parametrize(("old", "new", "followed"), FOLLOWED)
def test_a_key_follows_only_to_the_same_server_or_the_same_host_with_tls(old, new, followed):
    assert may_follow(old, new) is followed


# ── base URLs and proxies ────────────────────────────────────────────────

BASES = {
    "http://localhost:11434": "http://localhost:11434/v1",
    "http://localhost:11434/": "http://localhost:11434/v1",
    "localhost:11434": "http://localhost:11434/v1",
    "api.example.com": "https://api.example.com/v1",
    " https://api.example.com/v1/ ": "https://api.example.com/v1",
    "https://API.example.com/v1/chat/completions": "https://api.example.com/v1",
    "https://api.example.com/chat/completions/": "https://api.example.com",
    "https://api.example.com/api/paas/v4": "https://api.example.com/api/paas/v4",
    "https://x.example/openai/deployments/d?api-version=1": "https://x.example/openai/deployments/d?api-version=1",
    "http://[::1]:8080": "http://[::1]:8080/v1",
}


@pytest.mark.parametrize(("given_url", "normal"), BASES.items())
def test_a_base_url_has_one_spelling(given_url, normal):
    assert normal_base_url(given_url) == normal
    assert normal_base_url(normal) == normal or not normal.endswith("v1")


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "ftp://x/v1",
        "http://",
        "http://host:port/v1",
        "http://me:secret@host/v1",
        "http://host/v1?Key=secret",
        "http://[::1/v1",
    ],
)
def test_what_is_no_base_url_is_refused_without_its_password(bad):
    with pytest.raises(ConfigError) as refused:
        normal_base_url(bad)
    assert "secret" not in str(refused.value)


HOSTS = {
    "localhost": (True, True),
    "127.0.0.1": (True, True),
    "127.8.8.8": (True, True),
    "::1": (True, True),
    "::ffff:127.0.0.1": (True, True),
    "0.0.0.0": (True, True),
    "192.168.1.5": (False, True),
    "10.0.0.1": (False, True),
    "fd00::1": (False, True),
    "ollama": (False, True),
    "box.local": (False, True),
    "gpu.lan": (False, True),
    "api.example.com": (False, False),
    "8.8.8.8": (False, False),
    "localhost.example.com": (False, False),
}


@pytest.mark.parametrize(("host", "expected"), HOSTS.items())
def test_ones_own_hosts_are_known_by_their_text(host, expected):
    assert (is_loopback_host(host), is_private_host(host)) == expected


def test_the_environments_proxy_is_never_used_for_ones_own_network(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    said, _ = heard([says("fine")])
    assert said.reply.text == "fine"
    assert proxy_for("http://192.168.1.5/v1", None) is None
    assert proxy_for("https://api.example.com/v1", None).url == "http://127.0.0.1:9"


def test_no_proxy_is_honoured_and_a_told_proxy_wins(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://user:p%40ss@proxy.example:3128")
    monkeypatch.setenv("no_proxy", "internal.example.com")
    assert proxy_for("https://internal.example.com/v1", None) is None
    proxy = proxy_for("https://api.example.com/v1", None)
    assert (proxy.url, proxy.user, proxy.password) == ("http://proxy.example:3128", "user", "p@ss")
    assert proxy_for("https://api.example.com/v1", "") is None
    assert proxy_for("http://localhost/v1", "http://other:1").url == "http://other:1"


def test_a_socks_proxy_is_said_to_be_unsupported(monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1080")
    with pytest.raises(ConfigError, match="SOCKS5"):
        proxy_for("https://api.example.com/v1", None)


def test_questions_go_through_a_proxy_that_is_told():
    async def story():
        async with ChatServer([says("through")]) as proxy:
            endpoint = Endpoint("http://model.example/v1", "m", proxy=proxy.url)
            said = await ask(endpoint)
            await endpoint.close()
            return said, proxy.requests

    said, requests = asyncio.run(story())
    assert said.reply.text == "through"
    assert requests[0].headers["Host"] == "model.example"


def test_a_ca_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match="certificate"):
            Endpoint("https://localhost/v1", "m", ca=path)


# ── connections ──────────────────────────────────────────────────────────


def test_questions_one_after_the_other_share_a_connection():
    async def story():
        async with ChatServer(lambda request: says("fine")) as server:
            endpoint = quick(server)
            for _ in range(20):
                assert (await ask(endpoint)).reply.text == "fine"
            await endpoint.close()
            return len(server.peers)

    assert asyncio.run(story()) == 1


def test_three_hundred_questions_at_once_are_answered_and_leave_nothing_behind():
    async def story():
        async with ChatServer(lambda request: says(request.body["messages"][0]["content"])) as server:
            endpoint = quick(server)
            heard = await asyncio.gather(
                *(ask(endpoint, [User(parts_of(f"question {number}"))]) for number in range(300))
            )
            await endpoint.close()
            texts = [each.reply.text for each in heard]
        return texts, len(asyncio.all_tasks())

    texts, tasks = asyncio.run(story())
    assert texts == [f"question {number}" for number in range(300)]
    assert tasks == 1


@pytest.mark.parametrize("how", ["closed", "cancelled"])
def test_an_answer_that_nobody_waits_for_any_more_hangs_up(how):
    async def story():
        endless = events(
            *['{"choices": [{"index": 0, "delta": {"content": "more "}}]}'] * 2, end="stall", done=False
        )
        async with ChatServer(lambda request: endless) as server:
            endpoint = quick(server)

            async def listen():
                said = endpoint.stream(ModelRequest((User(parts_of("hi")),)), NoRecorder())
                try:
                    async for _ in said:
                        if how == "closed":
                            break
                finally:
                    await said.aclose()

            task = asyncio.create_task(listen())
            await asyncio.sleep(0.1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            for _ in range(100):
                if not server.open_connections:
                    break
                await asyncio.sleep(0.01)
            left = server.open_connections
            await endpoint.close()
            return left

    assert asyncio.run(story()) == 0


def test_an_endpoint_works_in_one_loop_after_another():
    with ChatServer(lambda request: says("fine")) as server:
        endpoint = quick(server)

        async def once():
            said = await ask(endpoint)
            await endpoint.close()
            return said.reply.text

        assert [asyncio.run(once()) for _ in range(3)] == ["fine"] * 3


def test_connections_close_with_their_loop_if_nobody_closed_them():
    with ChatServer(lambda request: says("fine")) as server:
        endpoint = quick(server)
        for _ in range(3):
            assert asyncio.run(ask(endpoint)).reply.text == "fine"
            gc.collect()  # an unclosed session would complain here


def test_a_server_that_takes_no_connection_is_given_up_in_time():
    """A listening socket whose queue is full leaves further connections hanging."""

    async def story():
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as waiting:
            for _ in range(2):
                client = waiting.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(full.getsockname())
            deadlines, once = Deadlines(connect=0.1), Retries(attempts=0)
            endpoint = Endpoint(
                f"http://127.0.0.1:{full.getsockname()[1]}/v1", "m", deadlines=deadlines, retries=once
            )
            said = await ask(endpoint)
            await endpoint.close()
            return said

    error = asyncio.run(story()).error
    assert isinstance(error, ConnectionLost)
    assert "Deadlines.connect" in str(error)


def test_a_connection_that_the_server_closed_meanwhile_is_replaced():
    async def story():
        async with ChatServer(lambda request: says("fine"), keep_alive=0.05) as server:
            endpoint = quick(server)
            heard = []
            for _ in range(3):
                heard.append(await ask(endpoint))
                await asyncio.sleep(0.15)
            await endpoint.close()
            return heard

    assert [each.kinds for each in asyncio.run(story())] == [["Reply"]] * 3


class Hanging:
    """A server whose kept connections die: the second request on a connection is read and then hung up on."""

    def __init__(self, *, fresh_too: bool = False) -> None:
        self.requests = 0
        self.connections = 0
        self._fresh_too = fresh_too
        self._handlers: list[asyncio.Task] = []

    async def handle(self, reader, writer) -> None:
        self._handlers.append(asyncio.current_task())
        self.connections += 1
        with contextlib.suppress(OSError):
            await self._answer(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _answer(self, reader, writer) -> None:
        if await read_request(reader) is None:
            return
        self.requests += 1
        if self._fresh_too and self.connections > 1:
            return
        body = json.dumps(says("fine").as_json("m")).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        if await read_request(reader) is not None:
            self.requests += 1

    async def asked(self, times: int, recorder=None, **options):
        server = await asyncio.start_server(self.handle, "127.0.0.1", 0)
        async with server:
            base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            endpoint = quick(None, base_url=base_url, stream=False, **options)
            heard = [await ask(endpoint, recorder=recorder) for _ in range(times)]
            await endpoint.close()
            await asyncio.gather(*self._handlers)
        return heard


def test_a_kept_connection_that_dies_before_its_first_byte_is_replaced_at_once():
    server = Hanging()
    heard = asyncio.run(server.asked(3, retries=Retries(attempts=0)))
    assert [each.kinds for each in heard] == [["Reply"]] * 3
    assert (server.requests, server.connections) == (5, 3)


def test_a_new_connection_that_dies_is_a_failure_like_any_other():
    server = Hanging(fresh_too=True)
    first, second = asyncio.run(server.asked(2, retries=Retries(attempts=1, base=0.001)))
    assert first.kinds == ["Reply"]
    assert second.kinds == ["Retrying"]
    assert isinstance(second.error, ConnectionLost)
    assert (server.requests, server.connections) == (4, 3)


def test_the_recorder_sees_each_time_that_a_request_went_out():
    class Kept(NoRecorder):
        def __init__(self):
            self.seen = []

        def sent(self, method, url, headers, body):
            self.seen.append("sent")

        def ended(self, error=None):
            self.seen.append(error)

    recorder = Kept()
    asyncio.run(Hanging().asked(2, recorder))
    seen = recorder.seen
    assert seen[:3] == ["sent", None, "sent"]
    assert "kept connection" in seen[3]
    assert seen[4:] == ["sent", None]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_that_nothing_listens_is_said_in_the_systems_words(host):
    """`localhost` may be several addresses, of which asyncio makes one long line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = asyncio.run(ask(Endpoint(f"http://{host}:{port}/v1", "m", retries=Retries(attempts=0))))
    assert isinstance(said.error, ConnectionLost)
    assert f"{host} could not be reached (Connection refused)" in str(said.error)
