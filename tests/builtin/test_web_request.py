"""The http_request tool: what is sent, what is shown, and where secrets go."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.builtin.webserver import Handler, answer, answering, serving

from glassloop.core.entries import ToolCall
from glassloop.core.errors import ConfigError
from glassloop.testing.server import Request as Came
from glassloop.tools import builtin
from glassloop.tools.builtin.web_address import AddressRefused, AddressRule
from glassloop.tools.builtin.web_client import Bounds, Client
from glassloop.tools.builtin.web_request import http_request_tool
from glassloop.tools.builtin.web_secrets import Secret
from glassloop.tools.context import ToolContext
from glassloop.tools.toolbox import Toolbox

HERE = Client(AddressRule.from_text("127.0.0.1, 127.0.0.2"), Bounds(seconds=5, size=100_000))
KEY = "kx-0123456789-secret"


def requested(handler: Handler, *, secret: bool = False, path: str = "/", **arguments: Any) -> str:
    async def request() -> str:
        async with serving(handler) as port:
            origin = f"http://127.0.0.1:{port}"
            made = http_request_tool(HERE, secrets={"API_KEY": Secret(origin, KEY)} if secret else {})
            return str(await made.function(origin + path, **arguments, context=ToolContext()))

    return asyncio.run(request())


def test_status_the_headers_that_matter_and_the_body_are_shown() -> None:
    headers = {"Content-Type": "application/json", "Retry-After": "5", "Set-Cookie": "a=b", "Server": "x"}
    said = requested(answering(b'{"a": "\xe4\xb8\xad"}', 429, headers)[1], path="/v1?q=1")
    head, _, body = said.partition("\n\n")
    assert head.splitlines()[0] == "HTTP 429 Said"
    assert head.splitlines()[2:] == ["content-type: application/json", "retry-after: 5"]
    assert body == '{"a": "中"}'


@pytest.mark.parametrize(
    ("arguments", "sent", "kind"),
    [
        ({"json": {"a": "中"}}, '{"a": "中"}', "application/json"),
        ({"json": []}, "[]", "application/json"),
        ({"body": "a=b", "headers": {"content-TYPE": "application/x-www-form-urlencoded"}}, "a=b", "application/x-www-form-urlencoded"),
        ({"body": "中"}, "中", "text/plain; charset=utf-8"),
        ({"body": ""}, "", "text/plain; charset=utf-8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_body_is_sent_with_its_type(method: str, arguments: dict[str, Any], sent: str, kind: str) -> None:
    came, handler = answering(b"ok")
    requested(handler, method=method, **arguments)
    assert (came[0].method, came[0].raw.decode(), came[0].headers["content-type"]) == (method, sent, kind)


@pytest.mark.parametrize(
    ("method", "body", "headers", "shown"),
    [
        ("HEAD", b"", {"Content-Type": "text/html"}, "(no body)"),
        ("DELETE", b"", {}, "(no body)"),
        ("GET", b"\x89PNG" * 3, {"Content-Type": "image/png"}, "(12 bytes of image/png, not text)"),
        ("GET", b"a\x1b]0;x\x07", {"Content-Type": "text/plain"}, "a\\x1b]0;x\\x07"),
        ("OPTIONS", "中".encode("gbk"), {"Content-Type": "text/plain; charset=gbk"}, "中"),
    ],
)
def test_a_body_that_is_no_text_is_described(
    method: str, body: bytes, headers: dict[str, str], shown: str
) -> None:
    assert requested(answering(body, headers=headers)[1], method=method).endswith(f"\n\n{shown}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"headers": {"Host": "other"}}, "header Host cannot be set"),
        ({"headers": {"transfer-encoding": "chunked"}}, "cannot be set"),
        ({"headers": {"Proxy-Authorization": "x"}}, "cannot be set"),
        ({"headers": {"X": "a\r\nY: b"}}, "one line"),
        ({"headers": {"X": "a\nb"}}, "one line"),
        ({"headers": {"X": "a\0"}}, "one line"),
        ({"headers": {"X": "中"}}, "ASCII"),
        ({"headers": {"X": "a" * 9_000}}, "at most 8,000"),
        ({"headers": {"X: y\r\nZ": "a"}}, "no name of a header"),
        ({"headers": {"": "a"}}, "no name of a header"),
        ({"headers": {f"X-{number}": "" for number in range(60)}}, "60 headers"),
        ({"body": "a", "json": {}}, "both body and json"),
        ({"body": "a" * 1_000_001}, "1,000,001 characters"),
        ({"headers": {"X": "${NOTHING}"}}, r"there is no secret '\$\{NOTHING\}'; there are: \$\{API_KEY\}"),
        ({"headers": {"X": "${}"}}, "there is no secret"),
        ({"body": "${API_KEY}"}, "within headers only"),
        ({"json": {"a": ["${API_KEY}"]}}, "within headers only"),
        ({"path": "/?key=${API_KEY}"}, "within headers only"),
    ],
)
def test_what_would_break_the_request_is_refused_before_anything_is_sent(
    arguments: dict[str, Any], words: str
) -> None:
    came, handler = answering(b"ok")
    with pytest.raises(ValueError, match=words):
        requested(handler, secret=True, method="POST", **arguments)
    assert not came


def test_the_address_rule_holds_for_requests_too() -> None:
    [made] = builtin.load("http_request")
    for url in (
        "http://127.0.0.1/",
        "http://[::ffff:169.254.169.254]/",
        "file:///etc/passwd",
        "http://a@b.example/",
    ):
        with pytest.raises(AddressRefused):
            asyncio.run(made.function(url, "POST", context=ToolContext()))


# ── secrets ────────────────────────────────────────────────────────────────────────────────────────

BEARER = {"Authorization": "Bearer ${API_KEY}"}


def test_a_secret_is_filled_in_when_sending_and_masked_in_what_comes_back() -> None:
    async def echo(request: Came, writer: asyncio.StreamWriter) -> None:
        came.append(request)
        got = request.headers["authorization"]
        writer.write(answer(got.encode(), headers={"Content-Type": "text/plain", "Location": f"/?{got}"}))

    came: list[Came] = []
    said = requested(echo, secret=True, headers=BEARER)
    assert came[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in said
    assert said.endswith("Bearer ***")


@pytest.mark.parametrize(
    ("origin", "fits"),
    [
        ("http://127.0.0.1:{port}", True),
        ("HTTP://127.0.0.1:{port}/", True),
        ("https://127.0.0.1:{port}", False),
        ("http://127.0.0.1:1", False),
        ("http://127.0.0.2:{port}", False),
        ("http://127.0.0.1.example:{port}", False),
    ],
)
def test_a_secret_goes_to_its_own_origin_only(origin: str, fits: bool) -> None:
    async def request() -> None:
        came, handler = answering(b"ok")
        async with serving(handler) as port:
            made = http_request_tool(HERE, secrets={"API_KEY": Secret(origin.format(port=port), KEY)})
            asking = made.function(f"http://127.0.0.1:{port}/", headers=BEARER, context=ToolContext())
            if fits:
                await asking
            else:
                with pytest.raises(ValueError, match=r"is for http.* and not for http.*; nothing was sent"):
                    await asking
            assert bool(came) == fits

    asyncio.run(request())


def test_a_redirect_never_carries_a_secret_to_another_origin() -> None:
    async def request() -> None:
        thief, catch = answering(b"caught")
        async with serving(catch, "127.0.0.2") as other:
            _, handler = answering(status=302, headers={"Location": f"http://127.0.0.2:{other}/"})
            async with serving(handler) as port:
                origin = f"http://127.0.0.1:{port}"
                made = http_request_tool(HERE, secrets={"API_KEY": Secret(origin, KEY)})
                await made.function(origin, headers=BEARER, context=ToolContext())
        assert not any(KEY in value for value in thief[0].headers.values())

    asyncio.run(request())


def test_a_secret_is_in_no_description_and_no_error() -> None:
    secret = Secret("http://127.0.0.1:1", KEY)
    made = http_request_tool(HERE, secrets={"API_KEY": secret})
    with pytest.raises(ConnectionError) as lost:
        asyncio.run(made.function("http://127.0.0.1:1/", headers=BEARER, context=ToolContext()))
    assert KEY not in f"{lost.value!r} {secret!r} {made!r} {made.description} {made.function!r}"


@pytest.mark.parametrize(
    ("origin", "value", "words"),
    [
        ("api.example.com", KEY, "must begin with"),
        ("https://api.example.com/v1", KEY, "more than an origin"),
        ("https://user@api.example.com", KEY, "user name"),
        ("https://api.example.com", "short", "at least 8"),
        ("https://api.example.com", "two\nlines here", "no line"),
    ],
)
def test_a_secret_that_cannot_be_kept_is_refused_when_it_is_made(origin: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Secret(origin, value)


def test_secrets_come_by_name_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    [made] = builtin.load("http_request", {"web_secrets": "MY_API_KEY = https://api.example.com"})
    asked = {"url": "https://api.example.com/", "headers": {"X": "${MY_API_KEY}"}}
    assert "MY_API_KEY" in Toolbox([made]).prepare(ToolCall("1", "http_request", asked)).text
    with pytest.raises(ConfigError, match="no 'OTHER_KEY' in the environment"):
        builtin.load("http_request", {"web_secrets": "OTHER_KEY=https://api.example.com"})


# ── what a person is asked ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"url": "https://a.example/"}, ["GET https://a.example/", "sends a GET request"]),
        (
            {"url": "https://a.example/", "method": "POST", "headers": BEARER, "json": {"a": "b\u202ec\nd"}},
            [
                "POST https://a.example/",
                "Authorization: Bearer ${API_KEY}",
                r"b\u202ec\nd",
                "secret API_KEY",
            ],
        ),
        (
            {"url": "https://a.example/\u202e\n", "body": "one\ntwo\x1b"},
            ["\\u202e\\x0a", "one\n", "two\\x1b"],
        ),
    ],
)
def test_every_request_is_asked_about_with_all_that_would_be_sent(
    arguments: Mapping[str, Any], shown: list[str]
) -> None:
    made = http_request_tool(HERE, secrets={"API_KEY": Secret("https://a.example", KEY)})
    verdict = Toolbox([made]).prepare(ToolCall("1", "http_request", dict(arguments)))
    assert verdict.outcome == "ask"
    assert KEY not in verdict.text
    for words in shown:
        assert words in verdict.text


def test_a_sending_request_without_an_answer_is_said_to_be_in_doubt() -> None:
    async def silent(request: Came, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async def request(method: str) -> None:
        client = Client(HERE.rule, Bounds(seconds=0.3))
        async with serving(silent) as port:
            await http_request_tool(client).function(
                f"http://127.0.0.1:{port}/", method, context=ToolContext()
            )

    with pytest.raises(ConnectionError, match="may have been carried out"):
        asyncio.run(request("POST"))
    with pytest.raises(ConnectionError, match=r"did not answer in full within 0\.3 seconds$"):
        asyncio.run(request("GET"))
