"""The reference servers of MCP: each of their tools is called, and what it gave is looked at."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import PROGRAM, environment
from tests.peers import build_mcp
from tests.peers.build import folder_of
from tests.peers.kit import free_port
from tests.tools.mcp_kit import box_of, called

from glassloop import Image, ToolResult
from glassloop.tools.context import ToolContext
from glassloop.tools.mcp import mcp_tools

Call = tuple[str, Mapping[str, Any], str]
"""A tool, its arguments, and a pattern that is found in what it gives."""


def program(requirement: str, path: str) -> str:
    found = folder_of(requirement) / path
    assert found.exists(), f"{requirement} is not installed; run: python tests/peers/build.py"
    return str(found)


def play(entry: Mapping[str, Any], calls: list[Call], progress: Any = None) -> dict[str, ToolResult]:
    """Make the calls, in order; each tool that is listed must be among them, and each call must give what it should."""

    async def made() -> dict[str, ToolResult]:
        context = ToolContext(progress=progress) if progress else ToolContext()
        results = {}
        async with mcp_tools({"s": entry}) as tools:
            box = box_of(tools)
            names = {spec.name.removeprefix("s__") for spec in box.specs}
            assert names == {name for name, _, _ in calls}
            assert not [one for one in tools.warnings if "only as a task" not in one]
            for name, arguments, gives in calls:
                results[name] = result = await called(box, f"s__{name}", arguments, context)
                assert re.search(gives, result.text), (name, result.text)
        return results

    return asyncio.run(made())


EVERYTHING: list[Call] = [
    ("echo", {"message": "你好"}, "Echo: 你好"),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}, "(?i)error"),
    ("get-env", {}, '"PATH"'),
    ("get-resource-links", {"count": 2}, r"a resource of the server: demo://"),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, r"\[demo://"),
    ("get-structured-content", {"location": "Chicago"}, "temperature"),
    ("get-sum", {"a": "19", "b": 23}, "42"),
    ("get-tiny-image", {}, "."),
    (
        "gzip-file-as-resource",
        {"name": "a.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"},
        "a.gz",
    ),
    ("toggle-simulated-logging", {}, "(?i)started"),
    ("toggle-subscriber-updates", {}, "(?i)started"),
    ("trigger-long-running-operation", {"duration": 1, "steps": 2}, "(?i)completed"),
]


@pytest.fixture(params=["stdio", "http"])
def everything(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mapping[str, Any]]:
    command = program(build_mcp.EVERYTHING, "node_modules/.bin/mcp-server-everything")
    if request.param == "stdio":
        yield {"command": command}
        return
    port = free_port()
    env = {**environment(tmp_path), "PORT": str(port)}
    server = subprocess.Popen(
        [command, "streamableHttp"], env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert server.stderr is not None
    try:
        assert any(b"listening" in line for line in server.stderr)
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        server.kill()
        server.communicate()


def test_everything(everything: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    heard: list[str] = []
    results = play(everything, EVERYTHING, heard.append)
    assert any(isinstance(part, Image) for part in results["get-tiny-image"].parts)
    assert any("of 2" in one for one in heard)
    assert results["get-structured-content"].text.count("temperature") == 1
    if "command" in everything:
        assert "sk-of-the-user" not in results["get-env"].text


def test_filesystem(tmp_path: Path) -> None:
    command = program(build_mcp.FILESYSTEM, "node_modules/.bin/mcp-server-filesystem")
    (tmp_path / "picture.png").write_bytes(base64.b64decode("iVBORw0KGgo="))
    at = lambda name: str(tmp_path / name)  # noqa: E731
    results = play(
        {"command": command, "args": [str(tmp_path)]},
        [
            ("list_allowed_directories", {}, re.escape(str(tmp_path))),
            ("write_file", {"path": at("a.txt"), "content": "one\ntwo\nthree"}, "(?i)success"),
            ("read_file", {"path": at("a.txt")}, "one\ntwo"),
            ("read_text_file", {"path": at("a.txt"), "tail": 1}, "three"),
            ("read_media_file", {"path": at("picture.png")}, ""),
            ("read_multiple_files", {"paths": [at("a.txt"), at("none")]}, "(?s)two.*none"),
            ("edit_file", {"path": at("a.txt"), "edits": [{"oldText": "two", "newText": "2"}]}, r"\+2"),
            ("create_directory", {"path": at("sub")}, "(?i)success"),
            ("move_file", {"source": at("a.txt"), "destination": at("sub/b.txt")}, "(?i)success"),
            ("list_directory", {"path": at(".")}, r"\[DIR\] sub"),
            ("list_directory_with_sizes", {"path": at("sub")}, "b.txt"),
            ("directory_tree", {"path": at(".")}, "b.txt"),
            ("search_files", {"path": at("."), "pattern": "**/b.*"}, "b.txt"),
            ("get_file_info", {"path": at("sub/b.txt")}, "size"),
        ],
    )
    assert isinstance(results["read_media_file"].parts[0], Image)
    assert (tmp_path / "sub" / "b.txt").read_text() == "one\n2\nthree"


def test_what_a_server_refuses_is_an_error(tmp_path: Path) -> None:
    command = program(build_mcp.FILESYSTEM, "node_modules/.bin/mcp-server-filesystem")

    async def refused() -> ToolResult:
        async with mcp_tools({"s": {"command": command, "args": [str(tmp_path)]}}) as tools:
            return await called(tools, "s__read_text_file", {"path": "/etc/passwd"})

    result = asyncio.run(refused())
    assert result.state == "error"
    assert "denied" in result.text


def test_time() -> None:
    zones = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Etc/UTC"}
    play(
        {"command": program(build_mcp.TIME, "bin/mcp-server-time")},
        [("get_current_time", {"timezone": "Asia/Tokyo"}, r"\+09:00"), ("convert_time", zones, "T03:00")],
    )


def test_fetch(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<html><body><h1>Otters</h1><p>They float.</p></body></html>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        play(
            {
                "command": program(build_mcp.FETCH, "bin/mcp-server-fetch"),
                "args": ["--ignore-robots-txt", "--allow-private-ips"],
                "env": {"NO_PROXY": "*"},
            },
            [
                (
                    "fetch",
                    {"url": f"http://127.0.0.1:{server.server_port}/index.html", "raw": True},
                    "They float",
                )
            ],
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_git(tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=tmp_path, check=True)
    (tmp_path / "a.txt").write_text("one\n")
    repo = {"repo_path": str(tmp_path)}
    env = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    play(
        {"command": program(build_mcp.GIT, "bin/mcp-server-git"), "env": env},
        [
            ("git_status", repo, "a.txt"),
            ("git_add", {**repo, "files": ["a.txt"]}, "(?i)staged"),
            ("git_diff_staged", repo, r"\+one"),
            ("git_reset", repo, "(?i)reset"),
            ("git_add", {**repo, "files": ["a.txt"]}, "(?i)staged"),
            ("git_commit", {**repo, "message": "second"}, "(?i)committed"),
            ("git_log", {**repo, "max_count": 5}, "(?s)second.*first"),
            ("git_create_branch", {**repo, "branch_name": "side"}, "side"),
            ("git_checkout", {**repo, "branch_name": "side"}, "side"),
            ("git_branch", {**repo, "branch_type": "local"}, "side"),
            ("git_show", {**repo, "revision": "HEAD"}, r"\+one"),
            ("git_diff", {**repo, "target": "HEAD~1"}, r"\+one"),
            ("git_diff_unstaged", repo, "(?i)unstaged"),
        ],
    )


def test_our_own_server_with_the_sdks_client(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    command = [*PROGRAM, "mcp", "serve", "-T", "basics", "-T", "files"]
    (tmp_path / "a.txt").write_text("hello")
    parameters = StdioServerParameters(
        command=command[0], args=command[1:], env=environment(tmp_path), cwd=tmp_path
    )

    async def used(mode: str) -> None:
        async with Client(parameters, mode=mode) as client:
            listed = {one.name: one for one in (await client.list_tools()).tools}
            assert listed["read_file"].annotations.read_only_hint is True
            assert listed["write_file"].annotations.read_only_hint is False
            sums = await client.call_tool("calculator", {"expression": "2 ** 10"})
            assert "1024" in sums.content[0].text
            read = await client.call_tool("read_file", {"path": "a.txt"})
            assert "hello" in read.content[0].text
            for name, arguments in {"write_file": {"path": "b", "content": ""}, "none": {}}.items():
                assert (await client.call_tool(name, arguments)).is_error

    for mode in ("legacy", "auto"):
        asyncio.run(used(mode))
    assert json.dumps(sorted(one.name for one in tmp_path.iterdir())) == '["a.txt", "home"]'
