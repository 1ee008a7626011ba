"""The chunks of a streamed completion → deltas while they come and, at the end, the same `Reply` as from one body.

The chunks are merged into one completion object, which `completion` reads. What a person may see while
the model still speaks is `shown`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from glassloop.core.entries import JSON, Mend, Reply
from glassloop.core.events import Delta
from glassloop.core.tools import ToolSpec
from glassloop.wire import foreign
from glassloop.wire.bodies import (
    BODY_DECODER,
    choices_of,
    error_in,
    message_of,
    quoted,
    says_error,
    unwrapped,
    whole_objects,
    with_calls_beside,
)
from glassloop.wire.calls import call_items
from glassloop.wire.completion import Failure, content_text, incomplete, read_completion
from glassloop.wire.finish import finish_field, finish_kind
from glassloop.wire.increments import Increments
from glassloop.wire.merging import MergedMessage
from glassloop.wire.ordinary import BODY_FIELDS
from glassloop.wire.reasoning import reasoning_of
from glassloop.wire.shown import Shown, coalesced
from glassloop.wire.sse import ServerEvent
from glassloop.wire.usage import usage_object

_DONE = "[DONE]"
_META_FIELDS = frozenset(("id", "model", "created", "system_fingerprint", "provider", "service_tier"))
_CHOICE_FIELDS = ("native_finish_reason", "finish_details", foreign.MARK)
_CHUNK = "chat.completion.chunk"
_PLAIN_CHOICE = frozenset(("index", "delta", "finish_reason", "logprobs"))
_SILENT = frozenset(("role", "content", "tool_calls"))
"""Fields of a delta that may show nothing."""
_ORDINARY_ENDS = (None, "stop", "tool_calls")
_END_EVENTS = frozenset(("done", "end", "finish", "finished", "complete", "completed", "close"))
"""Names of events without data that end a stream."""
_STREAM_STARTS = ("data:", "event:", "id:", "retry:", ":")
_END = re.compile(r'"?\[DONE\]"?|DONE\b', re.IGNORECASE)
_GLUE = re.compile(r"(?:\s|data:|\x1e)*")
"""What may stand between two JSON values of one event."""
_WAS_CHUNK = re.compile(r"""[\[{]\s*(?:["'{]|\Z)""")
"""How data begins that was meant to be a chunk. Anything else is noise: `ping`, `[KEEPALIVE]`, half of an end mark."""
_OF_NO_CHOICE = re.compile(r'"choices"\s*:\s*(?:\[\s*\]|null)')
"""In the readable part of a broken chunk: it held nothing of the reply."""


@dataclass(slots=True)
class _Choice:
    """One choice under construction."""

    message: MergedMessage
    increments: Increments = field(default_factory=Increments)
    by_deltas: bool = False  # whether what it holds came in deltas
    finish: str | None = None
    fields: dict[str, JSON] = field(default_factory=dict)

    def end(self, finish: str | None) -> None:
        """A finish reason, if there is one; none outweighs that the turn failed or was cut off."""
        if finish and finish_kind(self.finish) not in ("failed", "cut_off"):
            self.finish = finish


class Chunks:
    """Takes the events of one streamed completion in order."""

    def __init__(self, tools: Mapping[str, ToolSpec], tool_mode: str) -> None:
        self._tools = tools
        self._tool_mode = tool_mode
        self._shown: Shown | None = None  # made when there is something to show: most replies are calls alone
        self._choices: dict[int, _Choice] = {}
        self._leader: _Choice | None = None  # the one whose content is shown
        self._plain: Mapping[str, list[str]] = {}  # texts of the first choice, to which ordinary chunks add
        self._meta: dict[str, JSON] = {}
        self._counts: dict[str, JSON] = {}
        self._last_object: JSON = None
        self._error: JSON = None
        self._complaint: JSON = None  # what may be an error: it decides if the reply stays incomplete
        self._noise = False  # data was left out that held nothing of the reply
        self._broken_late = False  # a chunk could not be read, behind the finish reason
        self.broken = False
        """Whether a chunk could not be read: the reply has a hole there, and what follows is not merged."""
        self.ended = False

    @property
    def began(self) -> bool:
        """Whether there was any choice."""
        return bool(self._choices)

    @property
    def failed(self) -> bool:
        """Whether there was an error."""
        return self._error is not None

    @property
    def saw_content(self) -> bool:
        """Whether any content, reasoning or call has come."""
        return any(choice.message for choice in self._choices.values())

    @property
    def done(self) -> bool:
        """Whether a finish reason or the end marker has come."""
        return self.ended or any(choice.finish for choice in self._choices.values())

    def read(self, events: Sequence[ServerEvent]) -> list[Delta]:
        """Merge the events' chunks, as far as they can be read; what may be shown of them by now."""
        deltas: list[Delta] = []
        if self.broken:
            events = ()
        run: list[str] = []  # of ordinary chunks with text in the same field, shown at once
        run_field = ""
        chunks = iter(whole_objects([data for _, data in events if data != _DONE]))
        for name, data in events:
            if data == _DONE:
                self.ended = True
                continue
            chunk = next(chunks)
            field = self._plain_field(chunk) if self._plain and chunk is not None and not name else ""
            if run and field != run_field:
                deltas += self._show(run_field, "".join(run))
                run = []
            if field:
                run_field = field
                run.append(self._plain[field][-1])
                continue
            if chunk is not None and not name and self._takes(chunk, deltas):
                continue
            if name.lower() in _END_EVENTS and not data.strip("{} "):
                self.ended = True
            for obj in self._objects(name, data) if chunk is None else (chunk,):
                self._object(name, obj, deltas)
            if self.broken:
                break
        if run:
            deltas += self._show(run_field, "".join(run))
        return coalesced(deltas) if deltas else deltas

    def read_list(self, chunks: list[JSON]) -> list[Delta]:
        """Merge chunks that came as one JSON list, which is complete with its bracket."""
        deltas: list[Delta] = []
        for chunk in chunks:
            self._object("", chunk, deltas)
        self.ended = True
        return deltas

    def finish_shown(self) -> list[Delta]:
        """What was held back and turned out to be text, when all has come."""
        deltas: list[Delta] = []
        for choice in self._choices.values():
            if rest := choice.increments.rest():
                self._merge(choice, rest, deltas)
        if self._shown is None:
            return deltas
        return deltas + self._shown.finish(
            any(choice.message.has_calls() for choice in self._choices.values())
        )

    def _show(self, field: str, text: str) -> list[Delta]:
        shown = self._shown = self._shown or Shown(self._tools, self._tool_mode)
        return shown.content(text) if field == "content" else shown.reasoning(text)

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

    def _takes(self, chunk: dict[str, JSON], deltas: list[Delta]) -> bool:
        """Merge an ordinary chunk, which deviates in nothing. False for any other, which is left alone."""
        try:
            choices, kind = chunk["choices"], chunk["object"]
        except KeyError:
            return False
        if type(choices) is not list or kind != _CHUNK or not chunk.keys() <= BODY_FIELDS:
            return False
        if choices and (len(choices) > 1 or not self._takes_choice(choices[0], deltas)):
            return False
        usage = chunk.get("usage")
        if type(usage) is dict:
            self._counts |= {key: value for key, value in usage.items() if value is not None}
        self._learn_meta(chunk)
        self._last_object = chunk
        return True

    def _takes_choice(self, choice: JSON, deltas: list[Delta]) -> bool:
        if type(choice) is not dict or not choice.keys() <= _PLAIN_CHOICE:
            return False
        try:
            index, delta, finish = choice["index"], choice["delta"], choice.get("finish_reason")
        except KeyError:
            return False
        if type(index) is not int or index or type(delta) is not dict or finish not in _ORDINARY_ENDS:
            return False
        state = self._choices.get(0) or self._state_of(0)
        if finish:
            state.end(finish)
        if not delta:
            return True
        state.by_deltas = True
        if delta.keys() <= _SILENT and delta.get("content") in (None, ""):
            state.message.add(delta)
        else:
            self._merge(state, state.increments.of(delta), deltas)
        return True

    def _state_of(self, index: int) -> _Choice:
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice(MergedMessage(self._tools))
        return state

    def _learn_meta(self, body: Mapping[str, JSON]) -> None:
        for key in (body.keys() & _META_FIELDS) - self._meta.keys():  # most chunks have nothing new
            if body[key]:
                self._meta[key] = body[key]

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
        elif not _WAS_CHUNK.match(data) or _OF_NO_CHOICE.search(data):
            self._noise = True
        elif any(choice.finish for choice in self._choices.values()):
            self._broken_late = True
        else:
            self.broken = True

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
        self._learn_meta(body)
        for choice in choices:
            self._choice(choice, deltas)
        if body.get("done") is True:
            self.ended = True

    def _choice(self, choice: Mapping[str, JSON], deltas: list[Delta]) -> None:
        index = choice.get("index")
        state = self._state_of(index if isinstance(index, int) else 0)
        state.end(finish_field(choice))
        state.fields |= {key: choice[key] for key in _CHOICE_FIELDS if choice.get(key)}
        self._merge(state, state.increments.of(_delta_of(choice, state)), deltas)

    def _merge(self, state: _Choice, delta: Mapping[str, JSON], deltas: list[Delta]) -> None:
        state.message.add(delta)
        reasoning, _ = reasoning_of(delta)
        text, _ = content_text(delta)
        if self._leader is None and text:
            self._leader = state
        if reasoning and self._leader in (None, state):
            deltas += self._show("reasoning", reasoning)
        if text and self._leader is state:
            deltas += self._show("content", text)
        if self._leader not in (None, self._choices.get(0)):
            self._plain = {}
        elif state is self._choices.get(0):
            texts = state.message.plain_texts()
            self._plain = {field: texts[field] for field in texts if state.increments.are_plain(field)}

    def verdict(self, raw: Callable[[], str]) -> Reply | Failure:
        """What came of all chunks. `raw` gives the beginning of the body, for a failure to quote."""
        done = self.done
        error = self._error or (None if done and self._choices else self._complaint)
        if not self._choices:
            return self._nothing_said(error, raw())
        reply = read_completion(self._completion(), self._tools, tool_mode=self._tool_mode)
        if error is not None:
            partial = reply.partial if isinstance(reply, Failure) else incomplete(reply)
            return Failure(error, quoted(error), "error_object", partial)
        if isinstance(reply, Failure):
            return reply
        if self.broken or (self._broken_late and reply.tool_calls):
            return Failure(None, raw(), "broken_chunk", incomplete(reply))
        if not done:
            return Failure(None, raw(), "cut_off", incomplete(reply))
        mends = self._mends()
        return replace(reply, mends=(*reply.mends, *mends)) if mends else reply

    def _mends(self) -> list[Mend]:
        mends: list[Mend] = []
        for choice in self._choices.values():
            if choice.increments.are_snapshots() or choice.message.has_snapshots():
                words = "each chunk repeated what had come before; only the new was read"
                mends.append(Mend("cumulative_chunks", words))
                break
        if self._broken_late or self._noise:
            mends.append(Mend("unreadable_chunk", "a chunk that is no JSON was left out"))
        return mends

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

    def _nothing_said(self, error: JSON, text: str) -> Failure:
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


def _delta_of(choice: Mapping[str, JSON], state: _Choice) -> Mapping[str, JSON]:
    """A choice's delta. Messages in its place are pieces too; after deltas one repeats them, but for calls."""
    delta = choice.get("delta")
    if isinstance(delta, (dict, str)) and delta:
        state.by_deltas = True
        return {"content": delta} if isinstance(delta, str) else with_calls_beside(choice, delta)
    message = message_of(choice)
    if not state.by_deltas or not state.message or "text" in choice:
        return message
    items, _ = ([], []) if state.message.has_calls() else call_items(message)
    return {"tool_calls": items} if items else {}
