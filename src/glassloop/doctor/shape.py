"""How an answer differs from the published shape of Chat Completions, read strictly. Pure.

Reading itself is `wire/`'s business, which takes all of this and more; what is found here says what it had to take.
The reference is the chat completion object and chunk of the API's own documentation
(https://platform.openai.com/docs/api-reference/chat/object and …/chat/streaming).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glassloop.core.entries import JSON
from glassloop.doctor.shape_calls import CallDeltas, Pieces, look_at_call
from glassloop.doctor.strict import Deviation, Look, kind_of, strict_json
from glassloop.wire.sse import SSEDecoder

__all__ = ["Deviation", "Stream", "deviations", "stream_of"]

_FINISH_REASONS = frozenset(("stop", "length", "tool_calls", "content_filter"))
_BOM = b"\xef\xbb\xbf"
_BLANKS = b"\0 \t\r\n"


@dataclass(frozen=True, slots=True)
class Stream:
    """What a streamed answer was like: its chunks, keep-alive comments, and whether it had usage and an end mark."""

    chunks: int
    comments: int
    usage: bool
    done: bool
    call_pieces: int
    """The most pieces in which one call came; 0 without calls."""


def deviations(body: bytes, headers: Mapping[str, str], *, streamed: bool) -> list[Deviation]:
    """Everything about an answer's body that the reference does not have, each once."""
    look = Look()
    _look_at_bytes(body, headers, look)
    text = body.removeprefix(_BOM).strip(_BLANKS).decode("utf-8", "replace")
    if text[:1] in ("{", "[", '"') and not _is_lines(text):
        if streamed:
            look.add("body", "is one JSON body, though a stream was asked for", text)
        _expect_type(headers, "application/json", look)
        _look_at_whole(text, look)
    elif text[:1] not in ("<", ""):
        if not streamed:
            look.add("body", "is a stream, though none was asked for", text)
        _expect_type(headers, "text/event-stream", look)
        _look_at_stream(text, look)
    return look.found


def stream_of(body: bytes) -> Stream:
    """What can be said of a streamed answer as a whole."""
    text = body.decode("utf-8", "replace")
    chunks = [strict_json(data) for _, data in _events(text)]
    objects = [one for one in chunks if isinstance(one, dict)]
    pieces: dict[JSON, int] = {}
    for choice in (choice for one in objects for choice in _choices(one)):
        delta = choice.get("delta")
        for call in (delta.get("tool_calls") or ()) if isinstance(delta, dict) else ():
            if isinstance(call, dict):
                pieces[str(call.get("index"))] = pieces.get(str(call.get("index")), 0) + 1
    return Stream(
        chunks=len(objects),
        comments=sum(line.startswith(":") for line in text.splitlines()),
        usage=any(isinstance(one.get("usage"), dict) for one in objects),
        done=any(data.strip() == "[DONE]" for _, data in _events(text)),
        call_pieces=max(pieces.values(), default=0),
    )


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _look_at_bytes(body: bytes, headers: Mapping[str, str], look: Look) -> None:
    if body.startswith(_BOM):
        look.add("body", "begins with a byte order mark")
    if body[:1] and body[0] in _BLANKS:
        look.add("body", "begins with white space")
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        look.add("body", "is not UTF-8", body[max(0, error.start - 20) : error.start + 20])
    coding = headers.get("content-encoding", "identity").lower()
    if coding not in ("", "identity"):
        look.add("body", "is compressed, though that was not asked for", coding)


def _expect_type(headers: Mapping[str, str], wanted: str, look: Look) -> None:
    told = headers.get("content-type", "").partition(";")[0].strip().lower()
    if told != wanted:
        look.add("content-type", "is not that of the body", told or "(none)")


def _is_lines(text: str) -> bool:
    """Whether a text that begins like JSON is a stream of JSON lines."""
    first, _, rest = text.partition("\n")
    if not rest.strip():
        return False
    value = strict_json(first)
    return isinstance(value, dict) and any("delta" in choice for choice in _choices(value))


# ── a whole completion ───────────────────────────────────────────────────────────────────────────────────────────


def _look_at_whole(text: str, look: Look) -> None:
    value = strict_json(text)
    if value is None:
        look.add("body", "is no strict JSON", text)
    elif not isinstance(value, dict):
        look.add("body", f"is {kind_of(value)}, not an object", text)
    elif "error" in value and value["error"] and not value.get("choices"):
        look.add("error", "came with a status of success", value["error"])
    else:
        _look_at_completion(value, look)


def _look_at_completion(body: Mapping[str, JSON], look: Look) -> None:
    if not _list_of_objects(body.get("choices")):
        look.add("choices", _lack(body, "choices"), body.get("choices", body))
        return
    choices = _choices(body)
    if len(choices) > 1:
        look.add("choices", "are several, though one was asked for")
    for choice in choices:
        _look_at_choice(choice, look)
    usage = body.get("usage")
    if not isinstance(usage, dict):
        look.add("usage", _lack(body, "usage"))
    elif not all(_is_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")):
        look.add("usage", "lacks a count", usage)


def _look_at_choice(choice: Mapping[str, JSON], look: Look) -> None:
    message = choice.get("message")
    if not isinstance(message, dict):
        look.add("message", "is missing" if "message" not in choice else f"is {kind_of(message)}", choice)
        return
    if message.get("role") != "assistant":
        look.add("role", "is missing" if not message.get("role") else "is not assistant", message)
    content = message.get("content")
    if "content" not in message:
        look.add("content", "is missing")
    elif content is not None and not isinstance(content, str):
        look.add("content", f"is {kind_of(content)}", content)
    if message.get("function_call"):
        look.add("function_call", "stands in place of tool_calls", message["function_call"])
    calls, finish = _calls_of(message, look), choice.get("finish_reason")
    for call in calls:
        look_at_call(call, look, whole=finish != "length")
    _look_at_finish(finish, bool(calls), look, seen="finish_reason" in choice)


def _calls_of(message: Mapping[str, JSON], look: Look) -> Sequence[JSON]:
    if "tool_calls" not in message:
        return ()
    calls = message["tool_calls"]
    if not isinstance(calls, list):
        look.add("tool_calls", "are null" if calls is None else f"are {kind_of(calls)}", calls)
        return ()
    if not calls:
        look.add("tool_calls", "are an empty list")
    return calls


def _look_at_finish(reason: JSON, has_calls: bool, look: Look, *, seen: bool = True) -> None:
    if not reason:
        look.add("finish_reason", "is missing" if not seen else "is null or empty", reason)
    elif reason not in _FINISH_REASONS:
        look.add("finish_reason", "is no word of the reference", reason)
    elif has_calls and reason == "stop":
        look.add("finish_reason", "is stop, though there are calls", reason)
    elif reason == "tool_calls" and not has_calls:
        look.add("finish_reason", "is tool_calls, though there are none", reason)


# ── a stream ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _look_at_stream(text: str, look: Look) -> None:
    calls, finish, ended, roles = CallDeltas(look), None, False, 0
    text_pieces = Pieces("content")
    for name, data in _events(text):
        if name:
            look.add("event", "is named, where only data lines are known", name)
        if data.strip() == "[DONE]":
            ended = True
            continue
        chunk = strict_json(data)
        if not isinstance(chunk, dict):
            look.add("chunk", "is empty" if not data.strip() else "is no strict JSON object", data)
            continue
        for choice in _choices_of_chunk(chunk, look):
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                look.add("delta", "is missing" if "delta" not in choice else f"is {kind_of(delta)}", choice)
                delta = {}
            roles += _look_at_delta(delta, look)
            calls.add(delta.get("tool_calls"))
            text_pieces.add(delta.get("content"))
            finish = choice.get("finish_reason") or finish
    if roles > 1:
        look.add("role", "is repeated in later chunks")
    if not text.lstrip().startswith(("data", ":", "event", "id", "retry")):
        look.add("body", "is JSON lines, not events", text)
    calls.end(whole=finish != "length")
    text_pieces.end(look)
    _look_at_finish(finish, calls.any, look, seen=finish is not None)
    if not ended:
        look.add("[DONE]", "is missing")


def _choices_of_chunk(chunk: Mapping[str, JSON], look: Look) -> list[Mapping[str, JSON]]:
    choices = _choices(chunk)
    if chunk.get("error"):
        look.add("error", "came inside a stream", chunk["error"])
    elif not choices and not isinstance(chunk.get("usage"), dict):
        look.add("choices", "are empty in a chunk without usage", chunk)
    return choices


def _look_at_delta(delta: Mapping[str, JSON], look: Look) -> bool:
    """Look at one delta; whether it had a role."""
    content = delta.get("content")
    if content is not None and not isinstance(content, str):
        look.add("content", f"is {kind_of(content)}", content)
    if delta.get("function_call"):
        look.add("function_call", "stands in place of tool_calls", delta["function_call"])
    return bool(delta.get("role"))


def _events(text: str) -> list[tuple[str, str]]:
    decoder = SSEDecoder()
    return [*decoder.feed(text.encode()), *decoder.finish()]


# ── small things ─────────────────────────────────────────────────────────────────────────────────────────────────


def _choices(body: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    choices = body.get("choices")
    return [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []


def _list_of_objects(value: JSON) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _lack(body: Mapping[str, JSON], name: str) -> str:
    if name not in body:
        return "is missing" if name == "usage" else "are missing"
    value = body[name]
    return "are an empty list" if value == [] else f"is {kind_of(value)}"


def _is_count(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
