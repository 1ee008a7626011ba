"""What is said to a server through the SDK: the greeting, the question for its tools, one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from glassloop.core.entries import JSON
from glassloop.tools.mcp.definitions import MOST_TOOLS
from glassloop.tools.mcp.lenient import as_listed

if TYPE_CHECKING:
    from mcp import ClientSession

_MOST_PAGES = 50


async def greet(session: ClientSession) -> None:
    """The handshake of all servers until 2025, or the one that came after it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        await session.discover()


async def listed(session: ClientSession) -> list[Mapping[str, Any]]:
    """All pages of its tools, as it sent them. A server that has none may not know the question."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND, PaginatedRequestParams

    found: list[Mapping[str, Any]] = []
    cursor, seen = None, set()
    for _ in range(_MOST_PAGES):
        try:
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return found
            raise
        found += [as_listed(one.model_dump(by_alias=True)) for one in page.tools]
        cursor = page.next_cursor
        if not cursor or cursor in seen or len(found) > MOST_TOOLS:
            break
        seen.add(cursor)
    return found


async def sent_call(
    session: ClientSession, name: str, arguments: Mapping[str, JSON], tell: Callable[[str], None]
) -> dict[str, Any]:
    """One call, as JSON. Not the SDK's `call_tool`: it would run the server's own regular expressions on the result."""
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    async def report(progress: float, total: float | None, message: str | None) -> None:
        tell(_progress(progress, total, message))

    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=dict(arguments)))
    result = await session.send_request(request, CallToolResult, progress_callback=report)
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _progress(done: float, total: float | None, message: str | None) -> str:
    share = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{message} ({share})" if message else share
