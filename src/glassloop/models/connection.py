"""One connection to a server: a request out, its answer in, one exchange after the other. HTTP/1.1 over asyncio.

`httptools` (llhttp, the parser of Node.js) reads the bytes; here is what surrounds it: who waits for what, when
the connection may be used again, and what it means that it closed. Deadlines are a `Clock`'s business (`watch.py`).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol, cast

import httptools

from glassloop.core.errors import StreamStalled
from glassloop.models.headers import Headers

_MOST_HEAD = 128 * 1024
"""Bytes of a head that are read: far beyond what any server or proxy sends."""

_LONG_HEAD = f"its head is longer than {_MOST_HEAD // 1024} KiB"

READ_SIZE = 256 * 1024
"""The most bytes that one read takes."""

_MOST_HELD = 256 * 1024
"""Bytes of body that may wait for their reader, before the server is made to wait."""


class HungUp(Exception):
    """The connection ended before the answer did. `nothing_came`: not a byte of an answer was seen."""

    def __init__(self, words: str, *, nothing_came: bool) -> None:
        super().__init__(words)
        self.nothing_came = nothing_came


class BadHttp(Exception):
    """What came is not HTTP."""


_NO_HEADERS = Headers()


class Clock(Protocol):
    """Who bounds a wait."""

    def due(self) -> tuple[float, str] | None:
        """When the wait is to be broken off, in the loop's time, and what is then said; None: nobody waits."""


class Connection(asyncio.BufferedProtocol):
    """`ask()` sends a request; `head()` waits for the answer's head, `more()` and `take()` give its body as it comes.

    `when_lost` is told when the connection closes. What goes wrong is raised by whoever waits: `HungUp`,
    `BadHttp`, or what `fail()` was given.
    """

    def __init__(self, when_lost: Callable[[Connection], None], buffer: memoryview | None = None) -> None:
        """`buffer`: where bytes arrive, to be shared by connections of one event loop."""
        self._buffer = buffer if buffer is not None else memoryview(bytearray(READ_SIZE))
        self._loop = asyncio.get_running_loop()
        self._when_lost = when_lost
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._lost: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.clock: Clock | None = None
        self.idle_since = 0.0
        self._parser = _parser(self)
        self._begin()

    def _begin(self) -> None:
        """Ready for the next answer. The parser is too: it begins anew where a message ends."""
        self._pieces: list[bytes] = []
        self._held = 0
        self._arrived = 0
        self._lines: list[tuple[bytes, bytes]] = []  # of a head
        self._error: Exception | None = None
        self._stray = False
        self.status = 0
        self.headers = _NO_HEADERS
        self.has_head = False
        self.complete = False
        self._keeps_alive = False

    # ── for the one who asks ─────────────────────────────────────────────

    @property
    def open(self) -> bool:
        """Whether a request could be sent on it."""
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, head: bytes, body: bytes, clock: Clock | None = None) -> None:
        """Send a request. Only one at a time. The `clock` bounds the wait for the head of its answer."""
        transport = self._transport
        assert transport is not None
        if self.complete:
            self._begin()
        self.clock = clock
        if len(body) < _MOST_HELD:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)

    async def head(self) -> None:
        """Wait for status and headers; hang up if none come."""
        try:
            while not self.has_head:
                await self._wait()
        except BaseException:
            self.close()
            raise
        self.clock = None

    async def more(self) -> None:
        """Wait until there is something to `take`: bytes, or the end."""
        while not (self._pieces or self.complete):
            await self._wait()

    def take(self) -> bytes | None:
        """The body's bytes that have come since; b"" at its end, None while there is `more` to wait for."""
        if not self._pieces:
            return b"" if self.complete else None
        data = b"".join(self._pieces)
        self._pieces = []
        self._held = 0
        if self._paused:
            self._paused = False
            if self._transport is not None:
                self._transport.resume_reading()
        return data

    @property
    def at_end(self) -> bool:
        """Whether the whole answer has come and was read."""
        return self.complete and not self._pieces

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent after this answer."""
        return self._keeps_alive and self.complete and not self._pieces and not self._stray and self.open

    def fail(self, error: Exception) -> None:
        """Break off: whoever waits, or waits next, is raised this."""
        self._error = self._error or error
        self._wake()

    def arm(self, due: float) -> None:
        """Look at the clock at this time at the latest. The timer outlives answers: setting one for each costs more."""
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._timer = None
        found = self.clock.due() if self.clock is not None else None
        if found is None:
            return
        due, words = found
        now = self._loop.time()
        if now < due:
            self.arm(due)
        elif self._waiter is None or self._waiter.done():
            self.arm(now)  # what is waited for has come, but a busy loop has not let its reader know yet
        else:
            self.fail(StreamStalled(words))

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Go on with TLS inside the tunnel that a proxy has opened."""
        assert self._transport is not None
        self._parser = _parser(self)
        self._begin()
        self._transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)

    def _wait(self) -> asyncio.Future[None]:
        """To be awaited at once, by one at a time: done when something has come, or it is over.

        Raises what it is over with, if it is already.
        """
        error = self._error or self._lost
        if error is not None:
            raise error
        self._waiter = waiter = self._loop.create_future()
        return waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ── what asyncio tells ───────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        # One that is there already: asyncio would allocate 256 KiB for each read, which costs five times the read.
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came; they are copied before this returns."""
        if not self.has_head:
            self._arrived += nbytes
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except httptools.HttpParserUpgrade:
            self._broken(BadHttp("the server wants another protocol"))
        except httptools.HttpParserError as error:
            self._broken(BadHttp(str(error) or "it cannot be read"))
        if not self.has_head and self._arrived > _MOST_HEAD:
            self._broken(BadHttp(_LONG_HEAD))
        if self._held > _MOST_HELD and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.has_head and exc is None and not self._says_its_length():
            self.complete = True
        words = " ".join(str(exc).split()) if exc is not None else "the connection was closed"
        self._lost = HungUp(words, nothing_came=self._arrived == 0)
        self._wake()
        self._when_lost(self)

    def _says_its_length(self) -> bool:
        """Else the body ends where the connection does."""
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    def _broken(self, error: Exception) -> None:
        if self.complete:  # the answer was whole; what follows it only ends the connection
            self._stray = True
            return
        self.fail(error)
        self.close()

    # ── what the parser tells ────────────────────────────────────────────

    def on_message_begin(self) -> None:
        if self.complete:
            self._stray = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:  # else it is a trailer
            self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        if self._stray:
            return
        status = self._parser.get_status_code()
        if status < 200 and status != 101:
            self._lines = []
            return
        if (
            self._arrived > _MOST_HEAD
            and sum(len(name) + len(value) for name, value in self._lines) > _MOST_HEAD
        ):
            self._broken(BadHttp(_LONG_HEAD))
            return
        self.status = status
        self.headers = Headers(self._lines)
        self.has_head = True
        self._keeps_alive = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        if not self._stray:
            self._pieces.append(data)
            self._held += len(data)

    def on_message_complete(self) -> None:
        self.complete = self.complete or self.has_head


def _parser(connection: Connection) -> httptools.HttpResponseParser:
    """A parser as lenient as servers are sloppy: odd header bytes, bare line feeds, spaces after a chunk's size."""
    parser = httptools.HttpResponseParser(connection)
    parser.set_dangerous_leniencies(
        lenient_headers=True,
        lenient_optional_cr_before_lf=True,
        lenient_optional_lf_after_cr=True,
        lenient_spaces_after_chunk_size=True,
    )
    return parser
