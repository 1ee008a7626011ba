"""Connections to servers: opened (through a proxy if need be), kept while idle, and closed with their event loop."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

from glassloop.models.connection import READ_SIZE, Connection, HungUp
from glassloop.models.proxies import Proxy

_IDLE_SECONDS = 30.0
_HAPPY_EYEBALLS_SECONDS = 0.25
"""How long one address family is waited for before the other is tried too (RFC 8305 recommends 250 ms)."""

Place = tuple[str, str, int, Proxy | None]
"""What a connection leads to: scheme, host, port, and the proxy on the way."""


class ProxyRefused(Exception):
    """The proxy answered a request for a tunnel with this status."""


class ProxyLost(Exception):
    """The proxy could not be reached."""


class Pool:
    """The connections of one event loop."""

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        self._loop = asyncio.get_running_loop()
        self._tls = tls
        self._idle: dict[Place, list[Connection]] = {}
        self._all: set[Connection] = set()
        self._buffer = memoryview(bytearray(READ_SIZE))
        self._sweep: asyncio.TimerHandle | None = None

    def idle(self, place: Place) -> Connection | None:
        """A connection that was used before and is still open; the youngest, which is the likeliest to live."""
        waiting = self._idle.get(place)
        while waiting:
            connection = waiting.pop()
            if connection.reusable:
                return connection
            connection.close()
        return None

    async def connect(self, place: Place) -> Connection:
        """A new connection. Raises `OSError` (`ssl.SSLError` among them), `ProxyLost` and `ProxyRefused`."""
        scheme, host, port, proxy = place
        if proxy is None:
            return await self._opened(host, port, self._tls() if scheme == "https" else None)
        connection = await self._to_proxy(proxy)
        if scheme == "https":
            try:
                await self._tunnel(connection, host, port, proxy)
            except BaseException:
                connection.close()
                raise
        return connection

    def keep(self, place: Place, connection: Connection) -> None:
        """Take back a connection whose answer is read; it is closed if it cannot be used again."""
        if not connection.reusable:
            connection.close()
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(place, []).append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(_IDLE_SECONDS, self._close_old)

    async def close(self) -> None:
        """Hang up everything, and wait until it is done."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._idle.clear()
        for connection in list(self._all):
            connection.close()
        for _ in range(_TURNS_TO_CLOSE):
            if not self._all:
                return
            await asyncio.sleep(0)

    async def _opened(self, host: str, port: int, tls: ssl.SSLContext | None) -> Connection:
        _, connection = await self._loop.create_connection(
            lambda: Connection(self._all.discard, self._buffer),
            host,
            port,
            ssl=tls,
            server_hostname=host if tls else None,
            happy_eyeballs_delay=None if _is_address(host) else _HAPPY_EYEBALLS_SECONDS,
        )
        self._all.add(connection)
        return connection

    async def _to_proxy(self, proxy: Proxy) -> Connection:
        parts = urlsplit(proxy.url)
        secure = parts.scheme == "https"
        try:
            return await self._opened(
                parts.hostname or "", parts.port or (443 if secure else 80), self._tls() if secure else None
            )
        except OSError as error:
            raise ProxyLost(str(error)) from error

    async def _tunnel(self, connection: Connection, host: str, port: int, proxy: Proxy) -> None:
        """Ask the proxy for a tunnel (RFC 9110, 9.3.6), and start TLS in it."""
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *proxy_lines(proxy)]
        connection.ask("\r\n".join([*lines, "", ""]).encode(), b"")
        try:
            await connection.head()
        except HungUp as error:
            raise ProxyLost(str(error)) from error
        if connection.status != 200:
            raise ProxyRefused(str(connection.status))
        await connection.secure(self._tls(), host)

    def _close_old(self) -> None:
        self._sweep = None
        oldest = self._loop.time() - _IDLE_SECONDS
        for place, waiting in list(self._idle.items()):
            for connection in waiting:
                if connection.idle_since <= oldest:
                    connection.close()
            kept = [one for one in waiting if one.idle_since > oldest and one.open]
            self._idle[place] = kept
            if not kept:
                del self._idle[place]
        if self._idle:
            self._sweep = self._loop.call_later(_IDLE_SECONDS, self._close_old)


def _is_address(host: str) -> bool:
    """Whether it is one address already, and no name of several between which to race."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


_TURNS_TO_CLOSE = 10
"""Turns of the event loop within which an aborted transport, TLS included, says that it is lost."""


def proxy_lines(proxy: Proxy) -> list[str]:
    """The header line with which we name ourselves to a proxy, if it wants that."""
    if proxy.user is None:
        return []
    given = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
    return [f"Proxy-Authorization: Basic {given}"]
