"""A server behind a URL: streamable HTTP by the SDK, with bounds on what is held in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from glassloop.tools.mcp.settings import ServerSettings
from glassloop.tools.mcp.stdio import LARGEST_MESSAGE

_CONNECT_TIMEOUT = 30.0
_SILENCE = 300.0


@asynccontextmanager
async def connection(settings: ServerSettings) -> AsyncIterator[Any]:
    """A transport for the SDK. Redirects are followed within the origin only, so headers go nowhere else."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(_CONNECT_TIMEOUT, read=max(settings.timeout, _SILENCE))
    headers = {**settings.headers, "Accept-Encoding": "identity"}  # what is sent small must not become large
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=timeout, event_hooks={"response": [_bounded]}, follow_redirects=False
        ) as client,
        streamable_http_client(
            settings.url, http_client=client, max_sse_event_size=LARGEST_MESSAGE
        ) as streams,
    ):
        yield streams


async def _bounded(response: Any) -> None:
    """Let no answer grow beyond the bound. A stream of events may be endless; each event has its own bound."""
    import httpx2

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.DecodingError(
            "it sent a packed answer, which was not asked for", request=response.request
        )
    if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return
    response.stream = _bounded_stream(response.stream)


def _bounded_stream(stream: Any) -> Any:
    """A response's bytes, until there are too many."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):  # the client looks at the type
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > LARGEST_MESSAGE:
                    raise httpx2.StreamError(f"it sent more than {LARGEST_MESSAGE // 1_000_000} MB")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
