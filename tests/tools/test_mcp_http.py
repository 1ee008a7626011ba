"""Servers over streamable HTTP: the SDK's own on loopback, and wrong ones."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from tests.tools.mcp_kit import called

from glassloop import ConfigError
from glassloop.tools.context import ToolContext
from glassloop.tools.mcp import http, mcp_tools

Answer = Callable[["_Handler", dict[str, Any]], None]


class _Handler(BaseHTTPRequestHandler):
    """Speaks just enough of the protocol; what a call does is `answer`."""

    protocol_version = "HTTP/1.1"
    answer: Answer
    seen: list[dict[str, str]]

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).seen.append({name.lower(): value for name, value in self.headers.items()})
        match message.get("method"):
            case "initialize":
                info = {"name": "raw", "version": "1"}
                self.say(message["id"], {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})  # fmt: skip
            case "tools/list":
                schema = {"type": "object", "properties": {}}
                self.say(
                    message["id"],
                    {"tools": [{"name": one, "inputSchema": schema} for one in ("bad", "good")]},
                )
            case "tools/call" if message["params"]["name"] == "good":
                self.say(message["id"], {"content": [{"type": "text", "text": "well"}]})
            case "tools/call":
                type(self).answer(self, message)
            case _:
                self.send(202, b"")

    def do_GET(self) -> None:
        self.send(405, b"")

    def say(self, id: Any, result: dict[str, Any]) -> None:
        self.send(200, json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode())

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **headers,
        }.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def raw_server(answer: Answer) -> Iterator[tuple[str, list[dict[str, str]]]]:
    handler = type("Handler", (_Handler,), {"answer": staticmethod(answer), "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", handler.seen  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _flood(handler: _Handler, message: dict[str, Any]) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": "x" * 3_000_000}})
    handler.send(200, text.encode())


def _packed(handler: _Handler, message: dict[str, Any]) -> None:
    handler.send(200, gzip.compress(b'{"a": "' + b"x" * 50_000_000 + b'"}'), Content_Encoding="gzip")


def _hang_up(handler: _Handler, message: dict[str, Any]) -> None:
    handler.close_connection = True


def _elsewhere(handler: _Handler, message: dict[str, Any]) -> None:
    handler.send(307, b"", Location="http://localhost:1/mcp")


def _endless_event(handler: _Handler, message: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    try:
        handler.wfile.write(b"data: ")
        while True:
            handler.wfile.write(b"x" * 500_000)
    except OSError:
        handler.close_connection = True


WRONG: dict[str, tuple[Answer, str]] = {
    "floods": (_flood, "more than 2 MB"),
    "sends a packed bomb": (_packed, ""),
    "hangs up": (_hang_up, "failed during this call"),
    "sends an endless event": (_endless_event, "SSE stream failed"),
    "leads elsewhere": (_elsewhere, "not followed"),
    "answers with a page": (
        lambda one, _: one.send(200, b"<html>", **{"Content-Type": "text/html"}),
        "content type",
    ),
    "answers with no JSON": (lambda one, _: one.send(200, b"{"), "no result that can be read"),
    "fails": (lambda one, _: one.send(500, b"oh"), "error"),
    "wants a key": (lambda one, _: one.send(401, b""), "error"),
}


@pytest.mark.parametrize(("answer", "says"), WRONG.values(), ids=list(WRONG))
def test_a_wrong_server_costs_one_tool_error(
    answer: Answer, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LARGEST_MESSAGE", 2_000_000)

    async def tried(url: str) -> tuple[Any, Any]:
        async with mcp_tools({"s": {"url": url, "timeout": 5}}) as tools:
            return await called(tools, "s__bad"), await called(tools, "s__good")

    with raw_server(answer) as (url, _):
        bad, good = asyncio.run(tried(url))
    assert bad.state == "error"
    assert says in bad.text
    assert (good.state, good.text) == ("ok", "well")


def test_headers_go_to_the_server_with_their_variables_put_in() -> None:
    entry = {"headers": {"Authorization": "Bearer ${TOKEN}"}}
    with (
        raw_server(_hang_up) as (url, seen),
        mcp_tools({"s": {"url": url, **entry}}, variables={"TOKEN": "t0ken"}),
    ):
        pass
    assert {one["authorization"] for one in seen} == {"Bearer t0ken"}
    assert {one["accept-encoding"] for one in seen} == {"identity"}


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="'s' failed"), mcp_tools({"s": {"url": "http://127.0.0.1:9/mcp"}}):
        pass


# ── the SDK's own server ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sdk_url() -> Iterator[str]:
    server = MCPServer("sdk")

    @server.tool()
    async def count(upto: int, context: Context) -> list[int]:
        """Count."""
        for one in range(upto):
            await context.report_progress(one + 1, upto, f"at {one + 1}")
        return list(range(1, upto + 1))

    @server.tool()
    async def grow(context: Context) -> str:
        """Have one tool more."""
        server.add_tool(count, name="late")
        await context.session.send_tool_list_changed()
        return "grown"

    config = uvicorn.Config(server.streamable_http_app(), port=0, log_level="error", lifespan="on")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        threading.Event().wait(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/mcp"
    running.should_exit = True
    thread.join()


def test_the_sdks_server_is_used_over_http(sdk_url: str) -> None:
    heard: list[str] = []

    async def used() -> tuple[str, list[str]]:
        async with mcp_tools({"s": {"url": sdk_url}}) as tools:
            result = await called(tools, "s__count", {"upto": 3}, ToolContext(progress=heard.append))
            grown = await called(tools, "s__grow")
            assert grown.text == "grown"
            async with asyncio.timeout(10):
                while not tools.unaccepted():
                    await asyncio.sleep(0.02)
            return result.text, [one.name for _, one in tools.unaccepted()]

    text, late = asyncio.run(used())
    assert text == "1\n2\n3"
    assert late == ["late"]
    assert heard == ["at 1 (1 of 3)", "at 2 (2 of 3)", "at 3 (3 of 3)"]
