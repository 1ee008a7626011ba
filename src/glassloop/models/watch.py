"""The clocks of one HTTP exchange: how long its head is waited for, and each piece of its body."""

from __future__ import annotations

import asyncio

from glassloop.models.connection import Connection
from glassloop.models.deadlines import Deadlines

_AFTER_THE_REPLY = 5.0


class HeadClock:
    """Bounds the time from a connection to the head of the answer: `seconds`, which are over `at` a time."""

    __slots__ = ("_seconds", "at")

    def __init__(self, seconds: float, at: float) -> None:
        self._seconds = seconds
        self.at = at

    def due(self) -> tuple[float, str]:
        return self.at, f"No answer within {self._seconds:g} s (Deadlines.first_byte)"


class BodyWatch:
    """Bounds silence, waiting for content, and the whole reply, while somebody waits for bytes.

    The cost of a piece of body is reading the clock twice. Time that the caller takes does not count.
    """

    __slots__ = (
        "_armed",
        "_away",
        "_bytes_at",
        "_connection",
        "_content_at",
        "_deadlines",
        "_left_at",
        "_loop",
        "_reading",
        "_silence",
        "_started",
    )

    def __init__(self, deadlines: Deadlines, connection: Connection, started: float, came: float) -> None:
        """`started`: when the request was sent, `came`: when the head of its answer was there."""
        self._deadlines = deadlines
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._started = started
        self._silence = deadlines.silence
        self._away = 0.0
        self._bytes_at = self._left_at = self._content_at = came
        self._reading = self._armed = False
        connection.clock = self

    def begin(self) -> None:
        """Somebody waits for bytes from now on."""
        self._bytes_at = self._loop.time()
        self._away += self._bytes_at - self._left_at
        self._reading = True
        if not self._armed:
            self._armed = True
            self._connection.arm(self._soonest())

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
            self._armed = False

    def close(self) -> None:
        self._connection.clock = None

    def _soonest(self) -> float:
        limits = self._deadlines
        content, whole = self._content_at + limits.content, self._started + limits.whole
        return min(self._bytes_at + self._silence, content + self._away, whole + self._away)

    def due(self) -> tuple[float, str] | None:
        if not self._reading:
            self._armed = False
            return None
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
