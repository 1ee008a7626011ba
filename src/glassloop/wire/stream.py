"""Chunks → deltas while they come and, at the end, the same `Reply` that one whole body would have given.

The chunks are merged into one completion object, which `completion` reads. What a person may see while
the model still speaks is `shown`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from glassloop.core.entries import JSON, Mend, Reply
from glassloop.core.events import Delta, ReasoningDelta, TextDelta
from glassloop.core.tools import ToolSpec
from glassloop.wire import strictjson
from glassloop.wire.completion import (
    BODY_DECODER,
    MAX_FAILURE_TEXT,
    Failure,
    choices_of,
    content_text,
    error_in,
    finish_kind,
    finish_word,
    incomplete,
    message_of,
    quoted,
    read_completion,
    read_json_body,
    says_error,
    scan_value,
    unwrapped,
)
from glassloop.wire.merging import MergedMessage
from glassloop.wire.reasoning import reasoning_of
from glassloop.wire.shown import Shown, coalesced
from glassloop.wire.sse import ServerEvent, SSEDecoder
from glassloop.wire.usage import usage_object

_BLANKS = b"\xef\xbb\xbf\0 \t\r\n"
"""What may stand before a body: a byte order mark and white space, which some gateways send as a keep-alive."""

_META_FIELDS = ("id", "model", "created", "system_fingerprint", "provider", "service_tier")

_CHOICE_FIELDS = ("native_finish_reason", "finish_details")
_STREAM_STARTS = ("data:", "event:", "id:", "retry:", ":")
_END = re.compile(r'"?\[DONE\]"?|DONE\b', re.IGNORECASE)
_GLUE = re.compile(r"(?:\s|data:|\x1e)*")
"""What may stand between two JSON values of one event."""


@dataclass(slots=True)
class _Choice:
    """One choice under construction."""

    message: MergedMessage
    finish: str | None = None
    fields: dict[str, JSON] = field(default_factory=dict)


class StreamReader:
    """Reads one response body, fed as it comes. It need not be a stream: the first byte says what it is."""

    def __init__(self, tools: Mapping[str, ToolSpec], *, tool_mode: str = "native") -> None:
        self._tools = tools
        self._tool_mode = tool_mode
        self._decoder = SSEDecoder()
        self._shown = Shown(tools, tool_mode)
        self._scan = scan_value
        self._raw: list[bytes] = []  # the whole body, or of a stream what a failure may quote
        self._raw_size = 0
        self._kind = b""  # the first byte that is not blank; b"d" for a stream of events
        self._asked_for_lines = False
        self._choices: dict[int, _Choice] = {}
        self._leader: _Choice | None = None  # the one whose content is shown
        self._plain: Mapping[str, list[str]] = {}  # texts of the first choice, to which ordinary chunks add
        self._meta: dict[str, JSON] = {}
        self._counts: dict[str, JSON] = {}
        self._last_object: JSON = None
        self._error: JSON = None
        self._broken: str | None = None  # a chunk that was cut
        self._noise = 0  # data that is no JSON and never was meant to be
        self._complaint: JSON = None  # what may be an error: it decides if the reply stays incomplete
        self.ended = False
        """`[DONE]` was seen: nothing more will come."""
        self.tail: list[Delta] = []
        """After `finish`: deltas of what was held back until then, or of all if the body was no stream."""

    @property
    def saw_content(self) -> bool:
        """Whether any content, reasoning or call has come: what a "no content" deadline waits for."""
        return any(choice.message for choice in self._choices.values())

    @property
    def done(self) -> bool:
        """Whether the reply is complete: a finish reason or `[DONE]` was seen. Usage may follow; see `ended`."""
        return self.ended or any(choice.finish for choice in self._choices.values())

    def feed(self, data: bytes) -> list[Delta]:
        """More of the body; what may be shown of it by now, adjacent deltas of one kind joined."""
        if self._kind != b"d":
            return self._feed_undecided(data)
        if self._raw_size < MAX_FAILURE_TEXT and not self._choices:
            self._keep(data)
        return self._read_events(self._decoder.feed(data))

    def finish(self) -> Reply | Failure:
        """The body is over, by its end or because the connection broke."""
        if self._kind == b"<":
            return Failure(None, self._raw_text(), "html")
        if self._kind in (b"{", b"[", b'"'):
            whole = self._finish_whole_body()
            if isinstance(whole, Reply):
                self.tail = coalesced([ReasoningDelta(whole.reasoning), TextDelta(whole.text)])
            if whole is not None:
                return whole
        deltas = [*self.tail, *self._read_events(self._decoder.finish())]
        has_calls = any(choice.message.has_calls() for choice in self._choices.values())
        self.tail = coalesced([*deltas, *self._shown.finish(has_calls)])
        return self._verdict()

    # ── what kind of body it is ─────────────────────────────────────────────────────────────────

    def _keep(self, data: bytes) -> None:
        self._raw.append(data)
        self._raw_size += len(data)

    def _raw_text(self) -> str:
        return b"".join(self._raw)[: 4 * MAX_FAILURE_TEXT].decode("utf-8", "replace")[:MAX_FAILURE_TEXT]

    def _feed_undecided(self, data: bytes) -> list[Delta]:
        self._keep(data)
        if not self._kind:
            self._kind = data.lstrip(_BLANKS)[:1]
            if not self._kind:
                return []
            if self._kind not in (b"{", b"[", b'"', b"<"):
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
        self._kind = b"d"
        return self._read_events(self._decoder.feed(b"".join(self._raw)))

    def _finish_whole_body(self) -> Reply | Failure | None:
        """Read the body as one JSON value. None if it is a sequence of chunks after all."""
        text = b"".join(self._raw).decode("utf-8", "replace")
        reply = read_json_body(text, self._tools, tool_mode=self._tool_mode)
        if isinstance(reply, Reply) or reply.reason not in ("not_json", "no_choices"):
            return reply
        if isinstance(reply.payload, list):
            chunks = [unwrapped(chunk) for chunk in reply.payload]
            if not any(map(choices_of, chunks)):
                return reply
            for chunk in chunks:
                self._object("", chunk, [])
            self.ended = True
            return None
        events = self._decoder.feed(b"".join(self._raw))
        events += self._decoder.finish()
        self.tail = self._read_events(events)
        if self._choices or self._error is not None:
            return None
        if reply.reason == "not_json" and strictjson.is_cut_off(text):
            return replace(reply, reason="cut_off")
        return reply

    # ── chunks ──────────────────────────────────────────────────────────────────────────────────

    def _read_events(self, events: Iterable[ServerEvent]) -> list[Delta]:
        deltas: list[Delta] = []
        run: list[str] = []  # of ordinary chunks with text in the same field, shown at once
        run_field = ""
        for name, data in events:
            chunk = self._whole_object(data)
            field = "" if chunk is None or name else self._plain_field(chunk)
            if run and field != run_field:
                deltas += self._show(run_field, run)
                run = []
            if field:
                run_field = field
                run.append(self._plain[field][-1])
                continue
            for obj in self._objects(name, data) if chunk is None else (chunk,):
                self._object(name, obj, deltas)
        if run:
            deltas += self._show(run_field, run)
        return coalesced(deltas)

    def _show(self, field: str, texts: list[str]) -> list[Delta]:
        text = "".join(texts)
        return self._shown.content(text) if field == "content" else self._shown.reasoning(text)

    def _whole_object(self, data: str) -> dict[str, JSON] | None:
        """The one object that the data is, read the quick way. None for anything else."""
        try:
            chunk, end = self._scan(data, 0)
        except (ValueError, StopIteration, RecursionError):
            return None
        return chunk if end == len(data) and isinstance(chunk, dict) else None

    def _plain_field(self, chunk: Mapping[str, JSON]) -> str:
        """Merge the most ordinary chunk, because there are so many: more text in one field of the first choice.

        Returns that field; "" for any other chunk, which is left alone.
        """
        try:
            [choice] = chunk["choices"]
            [(field, text)] = [item for item in choice["delta"].items() if item[1] and item[0] != "role"]
            if (
                type(text) is not str
                or choice.get("index")
                or choice.get("finish_reason")
                or choice.get("error")
                or chunk.get("usage")
                or chunk.get("error")
            ):
                return ""
            self._plain[field].append(text)
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""
        return str(field)

    def _objects(self, name: str, data: str) -> Iterator[JSON]:
        """The JSON values in an event's data: usually one, sometimes glued together, sometimes none."""
        position = 0
        while True:
            position = _GLUE.match(data, position).end()  # type: ignore[union-attr]  # it matches anything
            if position == len(data):
                return
            if end := _END.match(data, position):
                self.ended = True
                position = end.end()
                continue
            try:
                value, position = BODY_DECODER.raw_decode(data, position)
            except (ValueError, RecursionError):
                self._unreadable(name, data[position:])
                return
            yield value

    def _unreadable(self, name: str, data: str) -> None:
        if name == "error":
            self._error = {"error": {"message": data}}
        elif data.startswith(("{", "[")):
            self._broken = data
        else:
            self._noise += 1

    def _object(self, name: str, obj: JSON, deltas: list[Delta]) -> None:
        if isinstance(obj, list) and len(obj) > 1:
            for part in obj:
                self._object(name, part, deltas)
            return
        if isinstance(obj, str):
            obj = _decoded(obj)
        body = unwrapped(obj)
        self._last_object = obj
        choices = choices_of(body)
        if name == "error" or error_in(body):
            self._error = self._error or obj
        elif not choices and says_error(body):
            self._complaint = obj
        for key, value in (usage_object(body) or {}).items():
            if value is not None:
                self._counts[key] = value
        for key in _META_FIELDS:
            if body.get(key) and key not in self._meta:
                self._meta[key] = body[key]
        for choice in choices:
            self._choice(choice, deltas)

    def _choice(self, choice: Mapping[str, JSON], deltas: list[Delta]) -> None:
        index = choice.get("index")
        state = self._choices.setdefault(
            index if isinstance(index, int) else 0, _Choice(MergedMessage(self._tools))
        )
        finish = finish_word(choice.get("finish_reason"))
        if finish and finish_kind(state.finish) not in ("failed", "cut_off"):
            state.finish = finish
        state.fields |= {key: choice[key] for key in _CHOICE_FIELDS if choice.get(key)}
        delta = _delta_of(choice, state.message)
        state.message.add(delta)
        reasoning, _ = reasoning_of(delta)
        text, _ = content_text(delta)
        if self._leader is None and text:
            self._leader = state
        if reasoning and self._leader in (None, state):
            deltas += self._shown.reasoning(reasoning)
        if text and self._leader is state:
            deltas += self._shown.content(text)
        if self._leader not in (None, self._choices.get(0)):
            self._plain = {}
        elif state is self._choices.get(0):
            self._plain = state.message.plain_texts()

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def _completion(self) -> dict[str, JSON]:
        """All chunks as one completion object."""
        choices = [
            {
                "index": index,
                "message": state.message.message(),
                "finish_reason": state.finish,
                **state.fields,
            }
            for index, state in sorted(self._choices.items())
        ]
        return {**self._meta, "choices": choices, "usage": self._counts or None}

    def _verdict(self) -> Reply | Failure:
        error = self._error or (None if self.done else self._complaint)
        if not self._choices:
            return self._nothing_said(error)
        reply = read_completion(self._completion(), self._tools, tool_mode=self._tool_mode)
        if error is not None:
            partial = reply.partial if isinstance(reply, Failure) else incomplete(reply)
            return Failure(error, quoted(error), "error_object", partial)
        if isinstance(reply, Failure):
            return reply
        if not self.done or (self._broken and reply.tool_calls):
            return Failure(None, self._broken or self._raw_text(), "cut_off", incomplete(reply))
        if self._broken or self._noise:
            reply = replace(
                reply, mends=(*reply.mends, Mend("unreadable_chunk", "a chunk that is no JSON was left out"))
            )
        return reply

    def _nothing_said(self, error: JSON) -> Failure:
        text = self._raw_text()
        if error is not None:
            return Failure(error, quoted(error), "error_object")
        if not text.strip("\ufeff\0 \t\r\n"):
            return Failure(None, text, "empty_body")
        if self._last_object is not None or self.ended:
            return Failure(self._last_object, text, "no_choices")
        is_stream = text.lstrip("\ufeff\0 \t\r\n").startswith(_STREAM_STARTS)
        return Failure(None, text, "cut_off" if is_stream else "not_json")


def _decoded(text: str) -> JSON:
    """A chunk that was encoded twice."""
    try:
        return BODY_DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _delta_of(choice: Mapping[str, JSON], merged: MergedMessage) -> Mapping[str, JSON]:
    """A choice's delta; a whole message in its place counts only where no delta came before it."""
    delta = choice.get("delta")
    if isinstance(delta, dict) and delta:
        return delta
    if isinstance(delta, str):
        return {"content": delta}
    return {} if merged and "text" not in choice else message_of(choice)
