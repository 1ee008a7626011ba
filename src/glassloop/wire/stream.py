"""One response body, as its bytes arrive → deltas and, at the end, a `Reply` or why there is none.

The first byte says what the body is, never a header: a stream of events, JSON lines, one JSON value, or HTML.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from glassloop.core.entries import Reply
from glassloop.core.events import Delta, ReasoningDelta, TextDelta
from glassloop.core.tools import ToolSpec
from glassloop.wire import strictjson
from glassloop.wire.bodies import BODY_DECODER, MAX_QUOTED, choices_of, unwrapped
from glassloop.wire.chunks import Chunks
from glassloop.wire.completion import Failure, read_json_body
from glassloop.wire.shown import coalesced
from glassloop.wire.sse import SSEDecoder

_BLANKS = b"\xef\xbb\xbf\0 \t\r\n"
"""What may stand before a body: a byte order mark and white space, which some gateways send as a keep-alive."""

_WHOLE_KINDS = (b"{", b"[", b'"')
_STREAM = b"data"


class StreamReader:
    """Reads one response body, fed as it comes. It need not be a stream: the first byte says what it is."""

    def __init__(self, tools: Mapping[str, ToolSpec], *, tool_mode: str = "native") -> None:
        self._tools = tools
        self._tool_mode = tool_mode
        self._decoder = SSEDecoder()
        self._chunks = Chunks(tools, tool_mode)
        self._raw: list[bytes] = []  # the whole body, or of a stream what a failure may quote
        self._raw_size = 0
        self._kind = b""  # the first byte that is not blank; `_STREAM` for a stream of events
        self._asked_for_lines = False
        self.tail: list[Delta] = []
        """After `finish`: deltas of what was held back until then, or of all if the body was no stream."""

    @property
    def saw_content(self) -> bool:
        """Whether any content, reasoning or call has come: what a "no content" deadline waits for."""
        return self._chunks.saw_content

    @property
    def done(self) -> bool:
        """Whether the reply is complete: a finish reason or `[DONE]` was seen. Usage may follow; see `ended`."""
        return self._chunks.done

    @property
    def ended(self) -> bool:
        """Whether `[DONE]` was seen: nothing more will come."""
        return self._chunks.ended

    @property
    def over(self) -> bool:
        """Whether reading on is of no use: all has come, or a chunk could not be read."""
        return self._chunks.ended or self._chunks.broken

    def feed(self, data: bytes) -> list[Delta]:
        """More of the body; what may be shown of it by now, adjacent deltas of one kind joined."""
        if self._kind != _STREAM:
            return self._feed_undecided(data)
        if self._raw_size < MAX_QUOTED:
            self._keep(data)
        return self._chunks.read(self._decoder.feed(data))

    def finish(self) -> Reply | Failure:
        """The body is over, by its end or because the connection broke."""
        if self._kind == b"<":
            return Failure(None, self._raw_text(), "html")
        if self._kind in _WHOLE_KINDS:
            whole = self._finish_whole_body()
            if isinstance(whole, Reply):
                self.tail = coalesced([ReasoningDelta(whole.reasoning), TextDelta(whole.text)])
            if whole is not None:
                return whole
        if events := self._decoder.finish():
            self.tail += self._chunks.read(events)
        if shown := self._chunks.finish_shown():
            self.tail += shown
        self.tail = coalesced(self.tail)
        return self._chunks.verdict(self._raw_text)

    def _keep(self, data: bytes) -> None:
        self._raw.append(data)
        self._raw_size += len(data)

    def _raw_text(self) -> str:
        return b"".join(self._raw)[:MAX_QUOTED].decode("utf-8", "replace")

    def _feed_undecided(self, data: bytes) -> list[Delta]:
        self._keep(data)
        if not self._kind:
            self._kind = data.lstrip(_BLANKS)[:1]
            if not self._kind:
                return []
            if self._kind not in (*_WHOLE_KINDS, b"<"):
                return self._become_stream()
        if self._kind == b"{" and not self._asked_for_lines and b"\n" in data:
            self._asked_for_lines = True
            if self._first_line_is_chunk():
                return self._become_stream()
        return []

    def _first_line_is_chunk(self) -> bool:
        """Whether the body is a stream of JSON lines: its first line is a whole chunk, and no whole completion."""
        line = b"".join(self._raw).lstrip(_BLANKS).split(b"\n", 1)[0]
        try:
            chunk = BODY_DECODER.decode(line.decode("utf-8", "replace").strip())
        except (ValueError, RecursionError):
            return False
        return any("delta" in choice for choice in choices_of(unwrapped(chunk)))

    def _become_stream(self) -> list[Delta]:
        self._kind = _STREAM
        return self._chunks.read(self._decoder.feed(b"".join(self._raw)))

    def _finish_whole_body(self) -> Reply | Failure | None:
        """Read the body as one JSON value. None if it is a sequence of chunks after all."""
        text = b"".join(self._raw).decode("utf-8", "replace")
        reply = read_json_body(text, self._tools, tool_mode=self._tool_mode)
        if isinstance(reply, Reply) or reply.reason not in ("not_json", "no_choices"):
            return reply
        if isinstance(reply.payload, list):
            if not any(choices_of(unwrapped(chunk)) for chunk in reply.payload):
                return reply
            self.tail = self._chunks.read_list(reply.payload)
            return None
        events = self._decoder.feed(b"".join(self._raw))
        events += self._decoder.finish()
        self.tail = self._chunks.read(events)
        if self._chunks.began or self._chunks.failed:
            return None
        if reply.reason == "not_json" and strictjson.is_cut_off(text):
            return replace(reply, reason="cut_off")
        return reply
