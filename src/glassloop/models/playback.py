"""The double of an HTTP line: it hands out recorded bytes as `http.Client` and `answer.Answer` hand out real ones.

Whether a request is the recorded one is decided here; what an answer means is not known.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate

from glassloop.core.errors import ConnectionLost, EndpointError, ReplayMismatch, StreamStalled
from glassloop.core.recording import Recorder
from glassloop.models.differences import differences
from glassloop.models.headers import Headers
from glassloop.models.recorded import Recorded
from glassloop.models.urls import host_of, is_loopback_host


class Line:
    """The double of `Client`."""

    def __init__(self, unplayed: list[Recorded], masked: Callable[[bytes], bytes], hint: str) -> None:
        self.unplayed = unplayed
        self._count = len(unplayed)
        self._masked = masked
        self._hint = hint

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, recorder: Recorder
    ) -> Playback:
        """What was answered when the same was asked; raises `ReplayMismatch` if it never was."""
        await asyncio.sleep(0)  # as a real line, it lets others go first
        if method == "GET":
            return self._aside(url, recorder)
        recorded = self._take(method, self._masked(url.encode()).decode(), self._masked(body or b""))
        recorder.sent(method, url, headers, body or b"")
        if recorded.error == _SENT_AGAIN:
            recorder.ended(recorded.error)
            return await self.send(method, url, headers, body, recorder)
        if recorded.status is None:
            recorder.ended(recorded.error)
            raise _broken(recorded)
        answer_headers = dict(recorded.response_headers)
        if recorded.at_ms and not any(name.lower() == "date" for name in answer_headers):
            # A date to wait for was meant from then on, not from now on.
            answer_headers["Date"] = formatdate(recorded.at_ms / 1000, usegmt=True)
        recorder.answered(recorded.status, recorded.response_headers)
        return Playback(recorded, recorded.status, Headers.of(answer_headers), recorder)

    async def close(self) -> None:
        """There is no connection."""

    def _take(self, method: str, url: str, body: bytes) -> Recorded:
        for index, one in enumerate(self.unplayed):
            if (one.method, one.url, one.request) == (method, url, body):
                return self.unplayed.pop(index)
        raise ReplayMismatch(self._mismatch(method, url, body)) if self.unplayed else self.over()

    def _aside(self, url: str, recorder: Recorder) -> Playback:
        """A side question: how large the window is. It is no part of a recording; what it taught is, in how the
        endpoint was set up when it was asked the next time.
        """
        following = self.unplayed[0].endpoint if self.unplayed else None
        window = following.learnt.get("context_window") if following else None
        if following is None or window is None:
            raise EndpointError("The recording has no answer to this", url=url)
        listed = {"data": [{"id": following.model, "context_length": window}]}
        answer = Recorded(following, "GET", url, {}, b"", 200, {}, (json.dumps(listed).encode(),))
        return Playback(answer, 200, {}, recorder)

    def over(self) -> ReplayMismatch:
        """What to raise when more is asked than was recorded."""
        return ReplayMismatch(
            f"The replayed run sends more requests than the {self._count} that were recorded.\n{self._hint}"
        )

    def _mismatch(self, method: str, url: str, body: bytes) -> str:
        expected, number = self.unplayed[0], self._count - len(self.unplayed) + 1
        head = (
            f"The replayed run asks for something else than was recorded (request {number} of {self._count}):"
        )
        lines = []
        if (method, url) != (expected.method, expected.url):
            before = f"{expected.method} {expected.url}"
            lines += ["  the address", f"    recorded: {before}", f"    now:      {method} {url}"]
        if body != expected.request:
            lines += differences(expected.request, body)
        return "\n".join([head, *lines, self._hint])


class Playback:
    """The double of `Answer`: the recorded chunks, one at a time."""

    __slots__ = ("_chunks", "_ended", "_recorded", "_recorder", "headers", "status", "url")

    def __init__(
        self, recorded: Recorded, status: int, headers: Mapping[str, str], recorder: Recorder
    ) -> None:
        self.status = status
        self.headers = headers
        self.url = recorded.url
        self._recorded = recorded
        self._recorder = recorder
        self._chunks = iter(recorded.chunks)
        self._ended = False

    async def read(self) -> bytes:
        """More of the body; b"" at its end. Raises what was raised when it was recorded."""
        if self._ended:
            return b""
        chunk = next(self._chunks, None)
        if chunk is not None:
            self._recorder.received(chunk)
            return chunk
        self._end()
        if self._recorded.error is not None:
            raise _broken(self._recorded)
        return b""

    def content_came(self) -> None:
        """No clock runs here."""

    def nearly_over(self) -> None:
        """No clock runs here."""

    async def body(self) -> bytes:
        """The whole rest of the body."""
        pieces: list[bytes] = []
        while data := await self.read():
            pieces.append(data)
        return b"".join(pieces)

    async def drain(self, seconds: float) -> None:
        """Take what had come behind the end marker."""
        for chunk in self._chunks:
            self._recorder.received(chunk)
        self._end()

    def close(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._recorder.ended(self._recorded.error)


# ── what broke it ────────────────────────────────────────────────────────────────────────────────────

_SENT_AGAIN = "the kept connection was dead; sent again"
"""What `http.py` says of a request that it repeats by itself."""

INTERRUPTED = frozenset({"cancelled", "closed before its end", "no end was reported"})
"""Ends that are no failure of the endpoint: whoever was asking went away."""

_LOCAL_ONCE = "could not be reached"
_BREAKS: Sequence[tuple[str, type[EndpointError], int | None]] = (
    # What `http.py`, `watch.py` and `answer.py` say, the error that they say it with, and how often it is worth
    # trying again where that is less than usual. Whatever else is said is a lost connection.
    ("(Deadlines.connect)", ConnectionLost, None),
    ("(Deadlines.", StreamStalled, None),
    ("The endpoint's answer is larger than the limit", EndpointError, None),
    ("The answer is encoded", EndpointError, None),
    ("The answer is compressed more than once", EndpointError, None),
    ("The compressed answer is damaged", EndpointError, None),
    ("The certificate of ", ConnectionLost, 0),
    (" is not known (", ConnectionLost, 1),
)


def _broken(recorded: Recorded) -> Exception:
    """The error that a recorded exchange ended in."""
    text = recorded.error or "The endpoint hung up before it answered"
    if text in INTERRUPTED:
        return ReplayMismatch(
            "The recorded run was interrupted here: its recording has no more of this answer."
        )
    kind, retries = next(
        ((kind, retries) for words, kind, retries in _BREAKS if words in text), (ConnectionLost, None)
    )
    if _LOCAL_ONCE in text and is_loopback_host(host_of(recorded.url)):
        retries = 1
    error = kind(text, status=recorded.status, url=recorded.url)
    if isinstance(error, ConnectionLost):
        error.retries = retries
    return error
