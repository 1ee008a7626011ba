"""HTTP as models need it: one POST or GET, its answer's decoded bytes as they arrive, every deadline kept.

No meaning lives here: statuses, bodies, retries and redirects are judged by the callers.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from glassloop.core.errors import ConfigError, ConnectionLost, EndpointError, StreamStalled
from glassloop.core.recording import Recorder
from glassloop.core.secrets import MASK, SECRET_HEADERS
from glassloop.models.answer import Answer, words_of
from glassloop.models.connection import BadHttp, Connection, HungUp
from glassloop.models.deadlines import Deadlines
from glassloop.models.decoding import BadCoding
from glassloop.models.pool import Place, Pool, ProxyLost, ProxyRefused, proxy_lines
from glassloop.models.providers import start_hint_at
from glassloop.models.proxies import Proxy, proxy_for
from glassloop.models.urls import host_of, is_loopback_host
from glassloop.models.watch import HeadClock

DEFAULT_LIMIT = 64 * 1024 * 1024


class Client:
    """Sends requests. One connection pool per event loop; connections are kept and reused."""

    def __init__(
        self, *, deadlines: Deadlines, verify: bool, ca: str | Path | None, proxy: str | None, limit: int
    ) -> None:
        self._deadlines = deadlines
        self._proxy = proxy
        self._limit = limit
        if ca is not None:
            _tls(verify, ca)  # a file that is none is said now, and not in the first request
        self._tls = cache(partial(_tls, verify, ca))
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._closers: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}
        self._prepared: dict[tuple[str, str], _Prepared] = {}
        # Holds the pools, so that the garbage collector never meets an open connection, and closes them with us.
        weakref.finalize(self, _close_all, self._pools).atexit = False

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, recorder: Recorder
    ) -> Answer:
        """Send one request and wait for the head of its answer. Redirects are answers like any other.

        Raises `ConnectionLost` (not reached, hung up, no HTTP), `StreamStalled` (no first byte in time) and
        `ConfigError` (a proxy that is not supported, a host that is no name). Headers have been checked before.
        """
        prepared = self._prepared_for(method, url, headers)
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop) or await self._new_pool(loop)
        began = loop.time()
        recorder.sent(method, url, prepared.shown, body or b"")
        try:
            while True:
                kept = pool.idle(prepared.place)
                connection = kept or await self._connected(pool, prepared.place)
                clock = HeadClock(prepared.seconds, loop.time() + prepared.seconds)
                try:
                    connection.arm(clock.at)
                    connection.ask(prepared.head(body), body or b"", clock)
                    await connection.head()
                    break
                except HungUp as error:
                    # A server may close an idle connection at any moment, so one that was used before and ends without
                    # a byte of an answer says nothing about the request: it is sent again (RFC 9112, 9.3.1). Each dead
                    # one leaves the pool, so the last is a new one.
                    if kept is None or not error.nothing_came:
                        raise
                recorder.ended("the kept connection was dead; sent again")
                recorder.sent(method, url, prepared.shown, body or b"")
        except (OSError, HungUp, BadHttp, ProxyLost, ProxyRefused) as error:
            lost = _lost(error, url)
            recorder.ended(str(lost.args[0]))
            raise lost from error
        except (ConnectionLost, StreamStalled) as error:
            error.url = url
            recorder.ended(str(error.args[0]))
            raise
        except asyncio.CancelledError:
            recorder.ended("cancelled")
            raise
        recorder.answered(connection.status, connection.headers)
        try:
            return Answer(
                connection,
                partial(pool.keep, prepared.place, connection),
                self._deadlines,
                recorder,
                started=began,
                came=loop.time(),
                limit=self._limit,
                url=url,
            )
        except BadCoding as bad:
            connection.close()
            recorder.ended(str(bad))
            raise EndpointError(str(bad), status=connection.status, url=url) from bad

    async def _connected(self, pool: Pool, place: Place) -> Connection:
        seconds = self._deadlines.connect
        try:
            async with asyncio.timeout(seconds):
                return await pool.connect(place)
        except TimeoutError:
            raise ConnectionLost(f"No connection within {seconds:g} s (Deadlines.connect)") from None

    async def close(self) -> None:
        """Close this loop's connections. They are opened again when something is asked."""
        loop = asyncio.get_running_loop()
        self._pools.pop(loop, None)
        closer = self._closers.pop(loop, None)
        if closer is not None:
            await closer.aclose()

    async def _new_pool(self, loop: asyncio.AbstractEventLoop) -> Pool:
        for over in [each for each in self._pools if each.is_closed()]:
            del self._pools[over]
            self._closers.pop(over, None)
        pool = self._pools[loop] = Pool(self._tls)
        # A loop closes its asynchronous generators when it ends: so these connections close with their loop.
        closer = self._closers[loop] = _closing(pool)
        await anext(closer)
        return pool

    def _prepared_for(self, method: str, url: str, headers: Mapping[str, str]) -> _Prepared:
        """Found once for the same URL and headers, the environment's proxy included."""
        known = self._prepared.get((method, url))
        if known is None or known.headers != headers:
            known = _prepared(method, url, dict(headers), proxy_for(url, self._proxy), self._deadlines)
            self._prepared[method, url] = known
        return known


class _Prepared(NamedTuple):
    """What requests to one URL with the same headers have in common. `shown` are these headers with secrets masked.

    `place`: over which connection; `lines`: how the head begins; `seconds`: how long the answer's head may take.
    """

    place: Place
    lines: bytes
    headers: Mapping[str, str]
    shown: Mapping[str, str]
    seconds: float

    def head(self, body: bytes | None) -> bytes:
        """The request line and headers."""
        return self.lines + (b"\r\n" if body is None else b"Content-Length: %d\r\n\r\n" % len(body))


def _prepared(
    method: str, url: str, headers: Mapping[str, str], proxy: Proxy | None, deadlines: Deadlines
) -> _Prepared:
    parts = urlsplit(url)
    host, secure = _ascii(parts.hostname or ""), parts.scheme == "https"
    usual = 443 if secure else 80
    port = parts.port or usual
    path = quote(parts.path, safe=_PATH) or "/"
    target = path + (f"?{quote(parts.query, safe=_PATH + '?')}" if parts.query else "")
    named = f"[{host.partition('%')[0]}]" if ":" in host else host
    lines = [f"Host: {named}{'' if port == usual else f':{port}'}"]  # first what a connection needs
    if proxy is not None and not secure:
        target = f"http://{named}:{port}{target}"
        lines += proxy_lines(proxy)
    lines = [f"{method} {target} HTTP/1.1", *lines, *[f"{name}: {value}" for name, value in headers.items()]]
    return _Prepared(
        (parts.scheme, host, port, proxy),
        "".join([f"{line}\r\n" for line in lines]).encode(),
        headers,
        masked_headers(headers),
        min(deadlines.until_first_byte(loopback=is_loopback_host(host)), deadlines.whole),
    )


def _ascii(host: str) -> str:
    """The host's name as it is looked up; 例え.jp has another spelling there (RFC 5891)."""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise ConfigError(f"The host {host!r} is no name that could be looked up: {error}") from error


_PATH = "/:@!$&'()*+,;=-._~%"


def _close_all(pools: dict[asyncio.AbstractEventLoop, Pool]) -> None:
    """Close what a forgotten client left open, each on its own loop. A loop that is over has closed its own."""
    for loop, pool in pools.items():
        if loop.is_running():
            asyncio.run_coroutine_threadsafe(pool.close(), loop)


async def _closing(pool: Pool) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await pool.close()


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as a recorder may see them: what carries a key is masked."""
    return {name: MASK if name.lower() in SECRET_HEADERS else value for name, value in headers.items()}


def _tls(verify: bool, ca: str | Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"The certificate file {str(ca)!r} cannot be used: {error}") from error
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""What OpenSSL, by its version, says of a server that answers in plain HTTP."""


def _lost(error: Exception, url: str) -> ConnectionLost:
    host = host_of(url)
    retries = None
    match error:
        case ssl.SSLCertVerificationError():
            words, hint = (
                f"The certificate of {host} is not trusted",
                "Pass `ca=` with your own CA, or `verify=False`.",
            )
            retries = 0
        case socket.gaierror():
            words, hint = f"The host {host} is not known", "Check the base URL and the network."
            retries = 1
        case ProxyLost():
            words, hint = (
                "The proxy could not be reached",
                "Check HTTPS_PROXY, or set NO_PROXY for this host.",
            )
        case ProxyRefused():
            words, hint = "The proxy refused", "Check HTTPS_PROXY and its password."
        case ssl.SSLError(reason=reason) if reason in _NOT_TLS:
            words = f"{host} does not speak TLS at this port"
            lost = ConnectionLost(
                words, url=url, hint="It speaks plain HTTP: write http:// in place of https://."
            )
            lost.retries = 0
            return lost
        case OSError():
            words = f"{host} could not be reached"
            hint = start_hint_at(url) or "Is the server running, and the port right?"
            retries = 1 if is_loopback_host(host) else None
        case BadHttp():
            words, hint = "The answer is not valid HTTP", ""
        case _:
            words, hint = "The endpoint hung up before it answered", ""
    lost = ConnectionLost(f"{words} ({_why(error)})", url=url, hint=hint)
    lost.retries = retries
    return lost


def _why(error: Exception) -> str:
    """What the system says, without asyncio's list of every address that was tried."""
    number = re.search(r"\[Errno (\d+)\]", str(error))
    return os.strerror(int(number[1])) if number else words_of(error)
