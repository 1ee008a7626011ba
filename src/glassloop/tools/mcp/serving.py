"""The other side: tools offered as an MCP server. Nobody can be asked here, so what needs asking is refused."""

from __future__ import annotations

import asyncio
import base64
import itertools
import sys
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, nullcontext, redirect_stdout
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from glassloop.core.entries import File, Image, Part, Text, ToolCall
from glassloop.core.errors import ConfigError
from glassloop.core.tools import ToolSpec
from glassloop.tools.context import ToolContext
from glassloop.tools.mcp.servers import INSTALL
from glassloop.tools.toolbox import Tools

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult


async def serve_stdio(tools: Tools, allowed: Collection[str] = ()) -> None:
    """Serve over standard input and output until the input ends. What else is printed goes to standard error.

    Raises `ConfigError` without the SDK.
    """
    try:
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise ConfigError(INSTALL) from error
    server = server_of(tools, allowed)
    async with stdio_server() as (read, write):
        with redirect_stdout(
            sys.stderr
        ):  # what a tool prints would else wait in a buffer, and come out at the end
            await server.run(read, write, server.create_initialization_options())


def server_of(tools: Tools, allowed: Collection[str] = ()) -> Server[Any]:
    """The SDK's server for these tools. `allowed` run without anybody being asked; denied ones stay denied."""
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult

    numbers = itertools.count(1)
    alone = asyncio.Lock() if any(tools.is_sequential(one.name) for one in tools.specs) else None

    async def on_list(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(one) for one in tools.specs])

    async def on_call(context: Any, params: CallToolRequestParams) -> CallToolResult:
        number = next(numbers)
        verdict = tools.prepare(ToolCall(f"call{number}", params.name, params.arguments or {}))
        if verdict.outcome == "ask" and params.name not in allowed:
            return _failed(
                f"{params.name} needs a person's word, and nobody can be asked here (--allow allows it)"
            )
        guard: AbstractAsyncContextManager[Any] = alone or nullcontext()
        async with guard:
            result = await tools.execute(verdict, _context(context, number))
        return CallToolResult(content=[_block(one) for one in result.parts], is_error=result.state != "ok")

    return Server("glassloop", version=version("glassloop"), on_list_tools=on_list, on_call_tool=on_call)


def _listed(spec: ToolSpec) -> Any:
    from mcp_types import Tool, ToolAnnotations

    hints = ToolAnnotations(read_only_hint=spec.effect == "read", idempotent_hint=spec.effect != "once")
    return Tool(
        name=spec.name, description=spec.description, input_schema=dict(spec.parameters), annotations=hints
    )


def _context(context: Any, number: int) -> ToolContext:
    """Progress becomes the protocol's: how many words have come, and the word."""
    told = itertools.count(1)
    sending: set[asyncio.Task[None]] = set()

    def progress(text: str) -> None:
        task = asyncio.get_running_loop().create_task(
            context.session.report_progress(float(next(told)), None, text)
        )
        sending.add(task)
        task.add_done_callback(sending.discard)

    return ToolContext(call_id=f"call{number}", agent="mcp", progress=progress)


def _block(part: Part) -> Any:
    from mcp_types import ImageContent, TextContent

    match part:
        case Image(media_type=kind, data=bytes() as data):
            return ImageContent(data=base64.b64encode(data).decode(), mime_type=kind)
        case Image(url=url):
            return TextContent(text=f"(a picture at {url})")
        case File(name=name, media_type=kind, data=data):
            return TextContent(text=f"(the file {name}, {kind}, {len(data)} bytes)")
        case Text(text=text):
            return TextContent(text=text)


def _failed(text: str) -> CallToolResult:
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(text=text)], is_error=True)
