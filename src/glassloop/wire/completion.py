"""One parsed completion → a `Reply`, or why it is none. How the bytes came (one body, a stream) is decided elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from glassloop.core.entries import JSON, Mend, Reply, ToolCall
from glassloop.core.tools import ToolSpec
from glassloop.wire import strictjson
from glassloop.wire.calls import blocked, call_items, is_call_part, read_calls
from glassloop.wire.reasoning import is_thinking_part, reasoning_of, split_thinking, text_within
from glassloop.wire.textcalls import TextCallReader, TextCalls
from glassloop.wire.usage import read_cost, read_usage, usage_object

MAX_FAILURE_TEXT = 64 * 1024
"""Characters of a body that a failure keeps for people to read."""

FailureReason = Literal[
    "error_object", "no_choices", "not_json", "html", "empty_body", "cut_off", "error_finish"
]


@dataclass(frozen=True, slots=True)
class Failure:
    """A body that is no usable reply.

    `payload` is the decoded body or error object, `text` the raw text (at most 64 KiB), and `partial`
    what could be read all the same; none of its calls may run.
    """

    payload: JSON
    text: str
    reason: FailureReason
    partial: Reply | None = None


def read_json_body(text: str, tools: Mapping[str, ToolSpec], *, tool_mode: str) -> Reply | Failure:
    """A whole body that should be one JSON completion."""
    try:
        body = BODY_DECODER.decode(text.strip("\ufeff\0 \t\r\n"))
        if isinstance(body, str):  # encoded twice
            body = BODY_DECODER.decode(body)
    except (ValueError, RecursionError):
        return Failure(None, text[:MAX_FAILURE_TEXT], "not_json")
    return read_completion(body, tools, tool_mode=tool_mode)


BODY_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda name: None)
"""For what an endpoint wrote: raw control characters pass, and NaN (in log probabilities) is null."""

scan_value: Callable[[str, int], tuple[JSON, int]] = BODY_DECODER.scan_once  # type: ignore[attr-defined]
"""`BODY_DECODER.raw_decode` without its checks: the value at a position that holds one, and the position after it."""


def read_completion(obj: JSON, tools: Mapping[str, ToolSpec], *, tool_mode: str) -> Reply | Failure:
    """Read a completion object. An error object or missing choices decide before anything else."""
    body = unwrapped(obj)
    failed = error_in(body)
    choices = choices_of(body)
    if not choices:
        reason: FailureReason = "error_object" if failed or says_error(body) else "no_choices"
        return Failure(obj, quoted(obj), reason)
    reply, verdict = _read_choices(body, choices, tools, tool_mode)
    if failed:
        return Failure(obj, quoted(obj), "error_object", incomplete(reply))
    if verdict == "failed":
        return Failure(obj, quoted(obj), "error_finish", incomplete(reply))
    return reply


def incomplete(reply: Reply) -> Reply:
    """The reply as far as it came: its calls are blocked."""
    calls = tuple(call if call.problem else blocked(call) for call in reply.tool_calls)
    return replace(reply, tool_calls=calls, cut_off=True)


# ── where the choices are ───────────────────────────────────────────────────────────────────────

_ENVELOPES = ("data", "result", "response", "body", "output", "completion")


def unwrapped(obj: JSON) -> Mapping[str, JSON]:
    """The completion inside a list of one, or inside a gateway's envelope. {} for what is no object."""
    for _ in range(3):
        if isinstance(obj, list) and len(obj) == 1:
            obj = obj[0]
        if not isinstance(obj, dict) or obj.get("choices") is not None:
            break
        inside = next((obj[key] for key in _ENVELOPES if _holds_completion(obj.get(key))), None)
        if inside is None:
            break
        obj = inside
    return obj if isinstance(obj, dict) else {}


def _holds_completion(value: JSON) -> bool:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return isinstance(value, dict) and bool(value.get("choices") or _holds_completion(value.get("data")))


def choices_of(body: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """The choices; a lone object counts as one, and so does a message that stands where choices should be."""
    choices = body.get("choices")
    if isinstance(choices, dict):
        choices = [choices]
    if isinstance(choices, list):
        return [choice for choice in choices if isinstance(choice, dict)]
    message = body.get("message")
    if isinstance(message, dict) and message.keys() & {"role", "content", "tool_calls"}:
        return [body]
    return []


def error_in(body: Mapping[str, JSON]) -> bool:
    """Whether the object reports an error, in any of the shapes in which endpoints do."""
    if _means_error(body.get("error")) or _means_error(body.get("errors")):
        return True
    choices = body.get("choices")
    if choices:
        return isinstance(choices, list) and any(
            isinstance(choice, dict) and _means_error(choice.get("error")) for choice in choices
        )
    status = body.get("base_resp")
    if isinstance(status, dict) and status.get("status_code"):
        return True
    return body.get("object") == "error" or body.get("type") == "error" or body.get("success") is False


def says_error(body: Mapping[str, JSON]) -> bool:
    """Whether an object without choices may be an error: it says something where errors say what went wrong."""
    return any(isinstance(body.get(key), (str, list)) and body[key] for key in _ERROR_TEXTS)


_ERROR_TEXTS = ("detail", "message", "msg", "error_msg", "error_message", "errorMessage")
"""Keys under which an object without choices says what went wrong."""


def _means_error(value: JSON) -> bool:
    """An error field that says something: gateways also send null, "", {} and objects of empty fields."""
    if isinstance(value, dict):
        return any(_means_error(item) for item in value.values())
    if isinstance(value, list):
        return any(_means_error(item) for item in value)
    return bool(value)


# ── finish reasons ──────────────────────────────────────────────────────────────────────────────

FinishKind = Literal["failed", "cut_off", "filtered", "unclear"]

_FINISH_KINDS: Sequence[tuple[FinishKind, Sequence[str]]] = (
    (
        "failed",
        ("error", "fail", "malformed", "abort", "overload", "unavailable", "exception", "unexpected_"),
    ),
    ("failed", ("cancel", "insufficient_", "timeout", "interrupt")),
    (
        "cut_off",
        ("length", "max_tok", "maxtok", "max_output", "max_completion", "token_limit", "context_window"),
    ),
    ("cut_off", ("truncat", "incomplete")),
    (
        "filtered",
        ("filter", "safety", "sensitive", "recitation", "blocklist", "prohibited", "spii", "guardrail"),
    ),
)
"""Parts of the words that endpoints use, since each has its own. The first kind that matches decides."""


def finish_kind(reason: str | None) -> FinishKind:
    """What a finish reason means for the turn: most say nothing that its body does not say."""
    word = (reason or "").lower().replace("-", "_").replace(" ", "_")
    for kind, marks in _FINISH_KINDS:
        if any(mark in word for mark in marks):
            return kind
    return "unclear"


def finish_word(value: JSON) -> str | None:
    """A finish reason as a word; null, "" and "null" are none."""
    if isinstance(value, dict):
        value = value.get("type") or value.get("reason")
    if not isinstance(value, str) or value.strip().lower() in ("", "null", "none"):
        return None
    return value


def _finish_of(choices: Sequence[Mapping[str, JSON]]) -> tuple[str | None, FinishKind]:
    """The choices' finish reason and what it means. A word that fails or blocks the turn outweighs all others,
    also one of the upstream's that a router relabelled."""
    words = [
        word
        for key in ("finish_reason", "finish_details", "native_finish_reason")
        for choice in choices
        if (word := finish_word(choice.get(key)))
    ]
    kinds = [finish_kind(word) for word in words]
    decisive = next(
        (kind for kind in ("failed", "cut_off") if kind in kinds), kinds[0] if kinds else "unclear"
    )
    named = next((word for word, kind in zip(words, kinds, strict=True) if kind == decisive), None)
    return named, decisive


# ── a reply ─────────────────────────────────────────────────────────────────────────────────────


def _read_choices(
    body: Mapping[str, JSON],
    choices: Sequence[Mapping[str, JSON]],
    tools: Mapping[str, ToolSpec],
    tool_mode: str,
) -> tuple[Reply, FinishKind]:
    messages = [_clean(message_of(choice)) for choice in choices]
    finish, kind = _finish_of(choices)
    cut_off = kind == "cut_off"
    message, items, mends = _one_message(messages)
    calls, call_mends = read_calls(items, tools, cut_off=cut_off)
    said = _read_text(message, calls, tools, tool_mode, cut_off=cut_off)
    counts = usage_object(body)
    refusal = message.get("refusal")
    refused = kind == "filtered" or (isinstance(refusal, str) and bool(refusal) and not said.text)
    reply = Reply(
        text=said.text or (refusal if isinstance(refusal, str) and not said.calls else ""),
        reasoning=said.reasoning,
        tool_calls=said.calls,
        finish_reason=finish,
        usage=read_usage(counts),
        cost=read_cost(counts),
        mends=(*mends, *call_mends, *said.mends),
        raw=message,
        reasoning_field=said.reasoning_field,
        model=_text_or_none(body.get("model")),
        response_id=_text_or_none(body.get("id")),
        cut_off=cut_off,
        refused=refused,
    )
    return reply, kind


def message_of(choice: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """A choice's message: `message`, else `delta`, else the choice itself where it holds one's fields."""
    for key in ("message", "delta"):
        value = choice.get(key)
        if isinstance(value, dict) and value:
            return value
        if isinstance(value, str) and value:
            return {"role": "assistant", "content": value}
    if isinstance(choice.get("text"), str):
        return {"role": "assistant", "content": choice["text"]}
    return {
        key: choice[key] for key in ("role", "content", "tool_calls", "reasoning_content") if key in choice
    }


def _one_message(
    messages: Sequence[Mapping[str, JSON]],
) -> tuple[Mapping[str, JSON], list[dict[str, JSON]], list[Mend]]:
    """All choices as one message: the first content and reasoning, and the calls of all."""
    items: list[dict[str, JSON]] = []
    mends: list[Mend] = []
    for message in messages:
        found, found_mends = call_items(message)
        items += [item for item in found if item not in items or len(messages) == 1]
        mends += found_mends
    if len(messages) == 1:
        return messages[0], items, mends
    merged: dict[str, JSON] = {}
    for message in messages:
        merged |= {key: value for key, value in message.items() if merged.get(key) in (None, "", [])}
    if items:
        merged["tool_calls"] = items
    return (
        merged,
        items,
        [*mends, Mend("several_choices", f"{len(messages)} choices were merged into one message")],
    )


@dataclass(frozen=True, slots=True)
class _Said:
    text: str
    reasoning: str
    reasoning_field: str | None
    calls: tuple[ToolCall, ...]
    mends: tuple[Mend, ...]


def _read_text(
    message: Mapping[str, JSON],
    calls: Sequence[ToolCall],
    tools: Mapping[str, ToolSpec],
    tool_mode: str,
    *,
    cut_off: bool,
) -> _Said:
    """The text without thinking and without calls written in it; those count if there are no others."""
    reasoning, field = reasoning_of(message)
    content, mends = content_text(message)
    inside, content, mend = split_thinking(content)
    mends += [mend] if mend else []
    lacking = any(not call.arguments and not call.problem for call in calls)
    found = _text_calls(content, tools, tool_mode, structured=bool(calls) and not lacking, cut_off=cut_off)
    reasoning = reasoning or inside or found.reasoning
    written = found.calls
    mends += found.mends
    if reasoning and not calls and not written and not found.content.strip():
        drafted = _text_calls(reasoning, tools, tool_mode, structured=False, cut_off=cut_off)
        written = drafted.calls
        if written:
            mends += (
                *drafted.mends,
                Mend("call_in_reasoning", "calls stood in the reasoning, and nothing else came"),
            )
    if cut_off:
        written = tuple(map(blocked, written))
    return _Said(found.content, reasoning, field, _combined(calls, written), tuple(mends))


def _combined(calls: Sequence[ToolCall], written: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Structured calls win; but one without arguments takes those of the same call written as text."""
    if not calls:
        return tuple(written)
    return tuple(_filled(call, written) for call in calls)


def _filled(call: ToolCall, written: Sequence[ToolCall]) -> ToolCall:
    if call.arguments or call.problem:
        return call
    for other in written:
        if other.name == call.name and other.arguments and not other.problem:
            return replace(call, arguments=other.arguments, text=other.text)
    return call


def _text_calls(
    content: str, tools: Mapping[str, ToolSpec], tool_mode: str, *, structured: bool, cut_off: bool
) -> TextCalls:
    """The calls written in a whole text, and the text without them."""
    reader = TextCallReader(tools, tool_mode)
    reader.feed(content)
    return reader.finish(structured, cut_off=cut_off)


def content_text(message: Mapping[str, JSON]) -> tuple[str, list[Mend]]:
    """The text of a message's content, a string or a list of parts; thinking and calls among them are left out."""
    content = message.get("content")
    if isinstance(content, str):
        return content, []
    if isinstance(content, list):
        parts = [part for part in content if not is_thinking_part(part) and not is_call_part(part)]
        text = "".join(map(text_within, parts))
        silent = [part for part in parts if not text_within(part)]
        mends = (
            [Mend("content_part", "a part of the content that is no text was left out")]
            if any(silent)
            else []
        )
        return text, mends
    if isinstance(content, dict):
        return text_within(content), [Mend("content_shape", "the content came as an object")]
    audio = message.get("audio")
    return (text_within(audio.get("transcript")), []) if isinstance(audio, dict) else ("", [])


def _clean(message: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The message with halves of surrogate pairs replaced, which no later step could encode."""
    dumped = _dumped_whole(message)
    return strictjson.scrubbed(message) if strictjson.has_surrogates(dumped) else message


def _dumped_whole(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def quoted(value: JSON) -> str:
    """A decoded body as text for people, at most `MAX_FAILURE_TEXT` characters."""
    return strictjson.without_surrogates(_dumped_whole(value))[:MAX_FAILURE_TEXT]


def _text_or_none(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None
