"""HTTP as models need it: one POST or GET, its answer's decoded bytes as they arrive, every deadline kept.

No meaning lives here: statuses, bodies, retries and redirects are judged by the callers.
"""

from __future__ import annotations

import asyncio
import ssl
import weakref
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from glassloop.core.errors import ConfigError, ConnectionLost, EndpointError
from glassloop.core.recording import Recorder
from glassloop.core.secrets import MASK, SECRET_HEADERS
from glassloop.models.answer import Answer, words_of
from glassloop.models.deadlines import Deadlines
from glassloop.models.decoding import BadCoding
from glassloop.models.proxies import proxy_for
from glassloop.models.urls import host_of, is_loopback_host
from glassloop.models.watch import BodyWatch, HeadWatch

DEFAULT_LIMIT = 64 * 1024 * 1024
_IDLE_SECONDS = 30.0
_HEADER_LIMIT = 64 * 1024


class Client:
    """Sends requests. One connection pool per event loop; connections are kept and reused."""

    def __init__(
        self, *, deadlines: Deadlines, verify: bool, ca: str | Path | None, proxy: str | None, limit: int
    ) -> None:
        self._deadlines = deadlines
        self._proxy = proxy
        self._limit = limit
        self._tls = _tls(verify, ca)
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._closers: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}
        self._proxies: dict[str, dict[str, Any]] = {}
        self._loopback: dict[str, bool] = {}
        # Holds the sessions, so that the garbage collector never meets an open one, and closes them with us.
        weakref.finalize(self, _close_all, self._sessions).atexit = False

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, recorder: Recorder
    ) -> Answer:
        """Send one request and wait for the head of its answer. Redirects are answers like any other.

        Raises `ConnectionLost` (not reached, hung up, no HTTP), `StreamStalled` (no first byte in time) and
        `ConfigError` (a proxy that is not supported).
        """
        session, options = await self._session(), self._proxy_options(url)
        recorder.sent(method, url, masked_headers(headers), body or b"")
        watch = HeadWatch(self._deadlines, loopback=self._is_loopback(url))
        lost: EndpointError
        try:
            async with watch.timeout:
                response = await session.request(
                    method,
                    url,
                    headers=headers,
                    data=body,
                    allow_redirects=False,
                    trace_request_ctx=watch,
                    **options,
                )
        except aiohttp.ClientError as error:
            lost = _lost(error, url)
            recorder.ended(str(lost.args[0]))
            raise lost from error
        except TimeoutError:
            lost = watch.late(url)
            recorder.ended(str(lost.args[0]))
            raise lost from None
        except asyncio.CancelledError:
            recorder.ended("cancelled")
            raise
        recorder.answered(response.status, response.headers)
        try:
            return Answer(
                response, BodyWatch(self._deadlines, response, watch.started, url), recorder, self._limit, url
            )
        except BadCoding as bad:
            response.close()
            recorder.ended(str(bad))
            raise EndpointError(str(bad), status=response.status, url=url) from bad

    async def close(self) -> None:
        """Close this loop's connections. They are opened again when something is asked."""
        closer = self._closers.pop(asyncio.get_running_loop(), None)
        if closer is not None:
            await closer.aclose()

    async def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            for over in [each for each in self._sessions if each.is_closed()]:
                del self._sessions[over]
                self._closers.pop(over, None)
            session = self._sessions[loop] = self._new_session()
            # A loop closes its asynchronous generators when it ends: so this session closes with its loop.
            closer = self._closers[loop] = _closing(session)
            await anext(closer)
        return session

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS, ssl=self._tls),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trace_configs=[_connecting()],
            max_line_size=_HEADER_LIMIT,
            max_field_size=_HEADER_LIMIT,
        )

    def _is_loopback(self, url: str) -> bool:
        known = self._loopback.get(url)
        if known is None:
            known = self._loopback[url] = is_loopback_host(host_of(url))
        return known

    def _proxy_options(self, url: str) -> dict[str, Any]:
        """What aiohttp is told of the proxy; the environment is read once per URL."""
        options = self._proxies.get(url)
        if options is None:
            proxy = proxy_for(url, self._proxy)
            options = {} if proxy is None else {"proxy": proxy.url}
            if proxy is not None and proxy.user is not None:
                options["proxy_auth"] = aiohttp.BasicAuth(proxy.user, proxy.password, "utf-8")
            self._proxies[url] = options
        return options


def _close_all(sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession]) -> None:
    """Close what a forgotten client left open, each on its own loop. A loop that is over has closed its own."""
    for loop, session in sessions.items():
        if loop.is_running() and not session.closed:
            asyncio.run_coroutine_threadsafe(session.close(), loop)


async def _closing(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as a recorder may see them: what carries a key is masked."""
    return {name: MASK if name.lower() in SECRET_HEADERS else value for name, value in headers.items()}


def _connecting() -> aiohttp.TraceConfig:
    """Tells a request's clock when it must open a new connection, and when that is done."""

    async def started(session: Any, context: Any, params: Any) -> None:
        context.trace_request_ctx.connecting()

    async def done(session: Any, context: Any, params: Any) -> None:
        context.trace_request_ctx.connected()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(started)
    trace.on_connection_create_end.append(done)
    return trace


def _tls(verify: bool, ca: str | Path | None) -> ssl.SSLContext | bool:
    if not verify:
        return False
    if ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"The certificate file {str(ca)!r} cannot be used: {error}") from error


def _lost(error: aiohttp.ClientError, url: str) -> ConnectionLost:
    host = host_of(url)
    retries = None
    match error:
        case aiohttp.ClientConnectorCertificateError():
            words, hint = (
                f"The certificate of {host} is not trusted",
                "Pass `ca=` with your own CA, or `verify=False`.",
            )
            retries = 0
        case aiohttp.ClientConnectorDNSError():
            words, hint = f"The host {host} is not known", "Check the base URL and the network."
            retries = 1
        case aiohttp.ClientProxyConnectionError():
            words, hint = (
                "The proxy could not be reached",
                "Check HTTPS_PROXY, or set NO_PROXY for this host.",
            )
        case aiohttp.ClientHttpProxyError():
            words, hint = (
                f"The proxy refused ({error.status} {error.message})",
                "Check HTTPS_PROXY and its password.",
            )
        case aiohttp.ClientConnectorError():
            words, hint = f"{host} could not be reached", "Is the server running, and the port right?"
            retries = 1 if is_loopback_host(host) else None
        case aiohttp.ClientResponseError():
            words, hint = "The answer is not valid HTTP", ""
        case _:
            words, hint = "The endpoint hung up before it answered", ""
    lost = ConnectionLost(f"{words} ({words_of(error)})", url=url, hint=hint)
    lost.retries = retries
    return lost
