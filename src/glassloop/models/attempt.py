"""One request and its answer: sent, redirected, read. What a failure means is `operation.py`'s business."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

from glassloop.core.entries import Reply
from glassloop.core.errors import ConnectionLost, RequestRejected, StreamStalled
from glassloop.core.events import Delta
from glassloop.core.recording import Recorder
from glassloop.core.tools import ToolSpec
from glassloop.core.values import Value
from glassloop.models.answer import Answer
from glassloop.models.http import Client
from glassloop.models.urls import may_follow
from glassloop.wire.reply import Failure, read_body
from glassloop.wire.request_ids import request_id_of
from glassloop.wire.stream import StreamReader

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS = 3
_DRAIN_SECONDS = 0.25
_KEEP_ALIVE = (b":", b"\n", b"\r")


class Question(Value, frozen=True):
    """Everything that one request needs. `tools` are by the names under which they are sent."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    tools: Mapping[str, ToolSpec]
    tool_mode: str
    streamed: bool


class Refused(Value, frozen=True):
    """An answer that is no reply."""

    status: int
    headers: Mapping[str, str]
    failure: Failure


class Broken(Value, frozen=True, gc=True):
    """The connection failed or stalled. `partial` is what had come until then, None for nothing."""

    error: ConnectionLost | StreamStalled
    partial: Reply | None


class Attempt:
    """Reads one answer: `open()`, then `more()` until it gives nothing, then `outcome`; always `close()`."""

    __slots__ = ("_answer", "_client", "_question", "_reader", "_recorder", "outcome", "url")

    def __init__(self, client: Client, question: Question, recorder: Recorder) -> None:
        self._client = client
        self._question = question
        self._recorder = recorder
        self._answer: Answer | None = None
        self._reader: StreamReader | None = None
        self.outcome: Reply | Refused | Broken | None = None
        self.url = question.url

    @property
    def request_id(self) -> str | None:
        """What the answer's headers call the request, None if they do not."""
        return request_id_of(self._answer.headers) if self._answer is not None else None

    @property
    def status(self) -> int | None:
        """The HTTP status, None before any answer."""
        return self._answer.status if self._answer is not None else None

    async def open(self) -> None:
        """Send the request, and again wherever it is redirected to, as far as its key may go.

        A redirected POST stays a POST, also after 301 to 303: asking with GET would ask for something else.
        """
        question = self._question
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                answer = await self._client.send(
                    "POST", self.url, question.headers, question.body, self._recorder
                )
            except (ConnectionLost, StreamStalled) as error:
                self.outcome = Broken(error, None)
                return
            target = answer.headers.get("Location") if answer.status in _REDIRECTS else None
            if target is None:
                self._answer = answer
                return
            answer.close()
            self.url = _followed(self.url, target, answer.status)
        raise RequestRejected(f"The endpoint redirected more than {_MOST_REDIRECTS} times", url=self.url)

    async def more(self) -> list[Delta]:
        """The next deltas, at least one; none at the end."""
        answer, question = self._answer, self._question
        if answer is None or self.outcome is not None:
            return []
        try:
            if question.streamed:
                return await self._more_of_stream(answer)
            body = await answer.body()
            self._settle(read_body(body, question.tools, tool_mode=question.tool_mode), answer)
            return []
        except (ConnectionLost, StreamStalled) as error:
            error.status, error.request_id = answer.status, self.request_id
            self.outcome = self._after_break(error)
            return self._reader.tail if self._reader is not None else []

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()

    async def _more_of_stream(self, answer: Answer) -> list[Delta]:
        reader = self._reader
        if reader is None:
            question = self._question
            reader = self._reader = StreamReader(question.tools, tool_mode=question.tool_mode)
        while not reader.over and (data := await answer.read()):
            deltas = reader.feed(data)
            if not reader.over:  # else nothing more is waited for
                if deltas or (reader.saw_content and not data.startswith(_KEEP_ALIVE)):
                    answer.content_came()
                if reader.done:
                    answer.nearly_over()
            if deltas:
                return deltas
        if reader.ended:
            await answer.drain(_DRAIN_SECONDS)
        self._settle(reader.finish(), answer)
        return reader.tail

    def _settle(self, read: Reply | Failure, answer: Answer) -> None:
        self.outcome = read if isinstance(read, Reply) else Refused(answer.status, answer.headers, read)

    def _after_break(self, error: ConnectionLost | StreamStalled) -> Reply | Broken:
        """A stream that had said its last word before it broke is whole; else what came of it is partial."""
        if self._reader is None:
            return Broken(error, None)
        read = self._reader.finish()
        return read if isinstance(read, Reply) else Broken(error, read.partial)


def _followed(url: str, location: str, status: int) -> str:
    """Where a redirect leads, if the request may be sent there."""
    target = urljoin(url, location)
    if not may_follow(url, target):
        raise RequestRejected(
            f"The endpoint redirects to {target!r}, another server, where neither the question nor the key is sent",
            status=status,
            url=url,
            hint="If that is where it moved, set it as the base URL.",
        )
    return target
