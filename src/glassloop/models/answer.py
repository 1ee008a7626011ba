"""The answer to one HTTP request, as it arrives: decoded, limited, on the clock. What it means is not known here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from glassloop.core.errors import ConnectionLost, EndpointError, StreamStalled
from glassloop.core.recording import Recorder
from glassloop.models.connection import BadHttp, Connection, HungUp
from glassloop.models.deadlines import Deadlines
from glassloop.models.decoding import BadCoding, Decoder
from glassloop.models.watch import BodyWatch


class Answer:
    """The answer to one request: its head, and its body read piece by piece with `read()`.

    It must be closed. Closing after the last byte gives the connection back to the pool; closing before
    hangs up.
    """

    __slots__ = (
        "_came",
        "_connection",
        "_deadlines",
        "_decoder",
        "_ended",
        "_nearly_over",
        "_recorder",
        "_release",
        "_started",
        "_watch",
        "headers",
        "status",
        "url",
    )

    def __init__(
        self,
        connection: Connection,
        release: Callable[[], None],
        deadlines: Deadlines,
        recorder: Recorder,
        *,
        started: float,
        came: float,
        limit: int,
        url: str,
    ) -> None:
        self.status = connection.status
        self.headers: Mapping[str, str] = connection.headers
        self.url = url
        self._connection = connection
        self._release = release
        self._deadlines = deadlines
        self._started, self._came = started, came
        self._recorder = recorder
        self._watch: BodyWatch | None = None  # made for the first wait; most whole answers need none
        self._ended = self._nearly_over = False
        coding = connection.headers.raw(b"content-encoding")
        self._decoder = Decoder(coding.decode("utf-8", "replace"), limit)

    async def read(self) -> bytes:
        """More of the body, decoded; b"" at its end.

        Raises `StreamStalled` past a deadline, `ConnectionLost` when the endpoint hung up early, and
        `EndpointError` for a body that is too large or cannot be decoded.
        """
        while not self._ended:
            if (data := self._taken()) is None:
                await self._more()
            elif data:
                return data
        return b""

    async def body(self) -> bytes:
        """The whole rest of the body; it raises as `read` does."""
        pieces: list[bytes] = []
        while data := await self.read():
            pieces.append(data)
        return b"".join(pieces)

    def _taken(self) -> bytes | None:
        """What has come, decoded: b"" if that is nothing (yet). None if there is more to wait for."""
        data = self._connection.take()
        if data is None:
            return None
        try:
            data = self._decoder.feed(data) if data else self._last()
        except BadCoding as bad:
            raise self._broken(EndpointError(str(bad), status=self.status, url=self.url)) from None
        if data:
            self._recorder.received(data)
        return data

    async def _more(self) -> None:
        """Wait for bytes, on the clock."""
        if self._watch is None:
            self._watch = BodyWatch(self._deadlines, self._connection, self._started, self._came)
            if self._nearly_over:
                self._watch.nearly_over()
        self._watch.begin()
        try:
            await self._connection.more()
        except (HungUp, BadHttp) as error:
            lost = ConnectionLost("The endpoint hung up before its answer was complete", url=self.url)
            raise self._broken(lost) from error
        except StreamStalled as error:
            error.url = self.url
            raise self._broken(error) from None
        finally:
            self._watch.end()

    def content_came(self) -> None:
        """Tells the clock that something other than a keep-alive arrived."""
        if self._watch is not None:
            self._watch.content_came()

    def nearly_over(self) -> None:
        """Tells the clock that the reply is complete, whatever the endpoint still sends."""
        self._nearly_over = True
        if self._watch is not None:
            self._watch.nearly_over()

    async def drain(self, seconds: float) -> None:
        """After a stream's own end marker: wait briefly for the body's end, so that the connection can be reused."""
        try:
            if self._connection.at_end:  # as nearly always: it came with the end marker
                await self.read()
                return
            async with asyncio.timeout(seconds):
                while await self.read():
                    pass
        except (TimeoutError, EndpointError):
            pass

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._recorder.ended("closed before its end")
            self._let_go()

    def _last(self) -> bytes:
        """At the end of the body: what was held back, unless the end came too early."""
        if self._decoder.cut:
            raise self._broken(ConnectionLost("The compressed answer ended early", url=self.url))
        self._ended = True
        self._recorder.ended(None)
        self._let_go()
        return self._decoder.finish()

    def _broken(self, error: EndpointError) -> EndpointError:
        self._ended = True
        self._recorder.ended(str(error.args[0]))
        self._let_go()
        return error

    def _let_go(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._release()


def words_of(error: BaseException) -> str:
    """What an exception says, on one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
