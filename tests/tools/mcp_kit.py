"""MCP servers for tests: a raw one that can be as wrong as is wanted, and how its tools are called."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassloop.core.entries import ToolCall, ToolResult
from glassloop.tools.approval import Ruling
from glassloop.tools.context import ToolContext
from glassloop.tools.mcp import McpTools
from glassloop.tools.toolbox import Toolbox

RAW = r'''
"""A server in forty lines: `tools` is its list, `call(id, name, arguments, meta)` what it does when called."""
import json, os, sys, time

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def answer(id, text="done", **more):
    send(id=id, result={"content": [{"type": "text", "text": text}], **more})

def tool(name, description="Does something.", schema=None, **more):
    return {"name": name, "description": description, "inputSchema": schema or {"type": "object", "properties": {}}, **more}

tools = [tool("act")]

def call(id, name, arguments, meta):
    answer(id)

def greet(id):
    info = {"name": "raw", "version": "1"}
    send(id=id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info})

page = {}

def other(message):
    pass

%s

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        greet(id)
    elif method == "tools/list":
        send(id=id, result={"tools": tools, **page})
    elif method == "tools/call":
        params = message["params"]
        call(id, params["name"], params.get("arguments"), params.get("_meta") or {})
    elif method == "ping":
        send(id=id, result={})
    else:
        other(message)
'''


def raw(folder: Path, body: str = "", name: str = "raw", **more: Any) -> dict[str, Any]:
    """The settings of a raw server whose behaviour is `body`."""
    script = folder / f"{name}.py"
    script.write_text(RAW % body, "utf-8")
    return {"command": sys.executable, "args": ["-I", "-S", str(script)], **more}


def box_of(tools: McpTools, **options: Any) -> Toolbox:
    """Its tools, all allowed and their results unmarked: who is asked, and what is said of results, are other matters."""
    bare = [replace(one, untrusted=False, **options) for one in tools]
    return Toolbox(bare, policy=lambda tool, arguments: Ruling("allow"))


async def called(
    tools: McpTools | Toolbox,
    name: str,
    arguments: Mapping[str, Any] | None = None,
    context: ToolContext | None = None,
) -> ToolResult:
    """The result of one call, as an agent would make it."""
    box = tools if isinstance(tools, Toolbox) else box_of(tools)
    verdict = box.prepare(ToolCall("call1", name, dict(arguments or {})))
    return await box.execute(verdict, context or ToolContext())
