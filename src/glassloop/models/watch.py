"""The clock of one HTTP exchange: a wait is broken off when its deadline passes."""

from __future__ import annotations

import asyncio

from aiohttp import ClientResponse

from glassloop.core.errors import ConnectionLost, EndpointError, StreamStalled
from glassloop.models.deadlines import Deadlines

_AFTER_THE_REPLY = 5.0


class HeadWatch:
    """Bounds the time until the head of the answer: `connect` for a new connection, then `first_byte`."""

    __slots__ = ("_connecting", "_deadlines", "_first_byte", "_loop", "started", "timeout")

    def __init__(self, deadlines: Deadlines, *, loopback: bool) -> None:
        self._deadlines = deadlines
        self._first_byte = min(deadlines.until_first_byte(loopback=loopback), deadlines.whole)
        self._connecting = False
        self._loop = asyncio.get_running_loop()
        self.started = self._loop.time()
        self.timeout = asyncio.timeout(self._first_byte)

    def connecting(self) -> None:
        self._connecting = True
        self.timeout.reschedule(self._loop.time() + self._deadlines.connect)

    def connected(self) -> None:
        self._connecting = False
        self.timeout.reschedule(self._loop.time() + self._first_byte)

    def late(self, url: str) -> EndpointError:
        """What to raise when the time is over."""
        if self._connecting:
            seconds = self._deadlines.connect
            return ConnectionLost(f"No connection within {seconds:g} s (Deadlines.connect)", url=url)
        return StreamStalled(f"No answer within {self._first_byte:g} s (Deadlines.first_byte)", url=url)


class BodyWatch:
    """Bounds silence, waiting for content, and the whole reply, while somebody waits for bytes.

    One timer, set again only when it fires: the cost of a piece of body is reading the clock twice.
    """

    __slots__ = (
        "_away",
        "_bytes_at",
        "_content_at",
        "_deadlines",
        "_left_at",
        "_loop",
        "_reading",
        "_response",
        "_silence",
        "_started",
        "_timer",
        "_url",
    )

    def __init__(self, deadlines: Deadlines, response: ClientResponse, started: float, url: str) -> None:
        self._deadlines = deadlines
        self._response = response
        self._url = url
        self._loop = asyncio.get_running_loop()
        self._started = started
        self._silence = deadlines.silence
        self._away = 0.0
        self._bytes_at = self._left_at = self._content_at = self._loop.time()
        self._reading = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Somebody waits for bytes from now on."""
        self._bytes_at = self._loop.time()
        self._away += self._bytes_at - self._left_at
        self._reading = True
        if self._timer is None:
            self._timer = self._loop.call_at(self._due()[0], self._tick)

    def end(self) -> None:
        """Bytes came, or the wait failed."""
        self._left_at = self._loop.time()
        self._reading = False

    def content_came(self) -> None:
        self._content_at = self._left_at - self._away

    def nearly_over(self) -> None:
        """The reply is complete; only a usage count or an end mark may follow, so long silence is not waited for."""
        if self._silence > _AFTER_THE_REPLY:
            self._silence = _AFTER_THE_REPLY
            self.close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> tuple[float, str]:
        """When the first deadline passes, and what it then says. Time that the caller took does not count."""
        limits = self._deadlines
        return min(
            (self._bytes_at + self._silence, f"No bytes for {self._silence:g} s (Deadlines.silence)"),
            (
                self._content_at + self._away + limits.content,
                f"Keep-alives but no content for {limits.content:g} s (Deadlines.content)",
            ),
            (
                self._started + self._away + limits.whole,
                f"The reply was not complete after {limits.whole:g} s (Deadlines.whole)",
            ),
        )

    def _tick(self) -> None:
        self._timer = None
        if not self._reading:
            return
        due, words = self._due()
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._tick)
        else:
            self._response.content.set_exception(StreamStalled(words, url=self._url))
