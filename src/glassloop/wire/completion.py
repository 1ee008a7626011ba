"""One parsed completion → a `Reply`, or why it is none. How its bytes came is decided elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from glassloop.core.entries import JSON, Mend, Reply, ToolCall
from glassloop.core.tools import ToolSpec
from glassloop.core.values import Value
from glassloop.wire import strictjson
from glassloop.wire.bodies import (
    BODY_DECODER,
    MAX_QUOTED,
    choices_of,
    error_in,
    message_of,
    quoted,
    says_error,
    unwrapped,
    whole_object,
)
from glassloop.wire.calls import blocked, call_items, is_call_part, read_calls
from glassloop.wire.finish import FinishKind, finish_of
from glassloop.wire.foreign import MARK
from glassloop.wire.ordinary import ordinary_reply
from glassloop.wire.reasoning import is_thinking_part, reasoning_of, split_thinking, text_within
from glassloop.wire.textcalls import TextCallReader, TextCalls
from glassloop.wire.usage import read_cost, read_usage, usage_object

FailureReason = Literal[
    "error_object",
    "no_choices",
    "not_json",
    "html",
    "empty_body",
    "cut_off",
    "broken_chunk",
    "error_finish",
]


class Failure(Value, frozen=True):
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
    stripped = text.strip("\ufeff\0 \t\r\n")
    if (completion := whole_object(stripped)) is not None:
        return read_completion(completion, tools, tool_mode=tool_mode)
    try:
        body = BODY_DECODER.decode(stripped)
        if isinstance(body, str):  # encoded twice
            body = BODY_DECODER.decode(body)
    except (ValueError, RecursionError):
        return Failure(None, text[:MAX_QUOTED], "not_json")
    return read_completion(body, tools, tool_mode=tool_mode)


def read_completion(obj: JSON, tools: Mapping[str, ToolSpec], *, tool_mode: str) -> Reply | Failure:
    """Read a completion object. An error object or missing choices decide before anything else."""
    reply = ordinary_reply(obj, tools, tool_mode)
    return reply if reply is not None else read_any_completion(obj, tools, tool_mode=tool_mode)


def read_any_completion(obj: JSON, tools: Mapping[str, ToolSpec], *, tool_mode: str) -> Reply | Failure:
    """Read a completion object of any shape; of an ordinary one this comes to what `ordinary_reply` gives."""
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


def _read_choices(
    body: Mapping[str, JSON],
    choices: Sequence[Mapping[str, JSON]],
    tools: Mapping[str, ToolSpec],
    tool_mode: str,
) -> tuple[Reply, FinishKind]:
    messages = [_clean(message_of(choice)) for choice in choices]
    finish, kind = finish_of(choices)
    cut_off = kind == "cut_off"
    message, items, mends = _one_message(messages)
    if shape := next((choice[MARK] for choice in choices if choice.get(MARK)), None):
        mends.append(Mend("foreign_shape", f"the reply came in the shape of another API ({shape})"))
    calls, call_mends = read_calls(items, tools, cut_off=cut_off)
    said = _read_text(message, tuple(calls), tools, tool_mode, cut_off=cut_off)
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


class _Said(Value, frozen=True):
    text: str
    reasoning: str
    reasoning_field: str | None
    calls: tuple[ToolCall, ...]
    mends: tuple[Mend, ...]


def _read_text(
    message: Mapping[str, JSON],
    calls: tuple[ToolCall, ...],
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
    lacking = not cut_off and any(map(_is_lacking, calls))
    found = _text_calls(content, tools, tool_mode, structured=bool(calls) and not lacking, cut_off=cut_off)
    if lacking and (filled := tuple(_filled(call, found.calls) for call in calls)) != calls:
        calls = filled
    elif lacking:
        found = _text_calls(content, tools, tool_mode, structured=True)
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
    return _Said(found.content, reasoning, field, calls or tuple(written), tuple(mends))


def _is_lacking(call: ToolCall) -> bool:
    """Whether a structured call came without its arguments, or with arguments that cannot be read."""
    return not call.arguments and (call.problem is None or bool(call.text.strip()))


def _filled(call: ToolCall, written: Sequence[ToolCall]) -> ToolCall:
    """The call, lacking as it is, with the arguments of the same call where it is written as text in full.

    Arguments that broke off are the beginning of those in the text, or it is another call.
    """
    if not _is_lacking(call):
        return call
    begun = "".join(call.text.split()) if call.problem else ""
    for other in written:
        whole = "".join(other.text.split())
        if other.name == call.name and other.arguments and not other.problem and whole.startswith(begun):
            return replace(call, arguments=other.arguments, text=other.text, problem=None)
    return call


def _text_calls(
    content: str, tools: Mapping[str, ToolSpec], tool_mode: str, *, structured: bool, cut_off: bool = False
) -> TextCalls:
    """The calls written in a whole text, and the text without them."""
    if not content:
        return TextCalls("", "", (), ())
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
        text = "".join(map(_text_of, parts))
        silent = [part for part in parts if not _text_of(part)]
        mends = (
            [Mend("content_part", "a part of the content that is no text was left out")]
            if any(silent)
            else []
        )
        return text, mends
    if content is not None:
        return _text_of(content), [Mend("content_shape", "the content was no text and no list of parts")]
    audio = message.get("audio")
    return (text_within(audio.get("transcript")), []) if isinstance(audio, dict) else ("", [])


def _text_of(part: JSON) -> str:
    """A part's text. A number, or an object that is no part, is what the model said: its JSON."""
    if isinstance(part, (int, float)) or (isinstance(part, dict) and part and "type" not in part):
        return text_within(part) or json.dumps(part, ensure_ascii=False)
    return text_within(part)


def _clean(message: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The message with halves of surrogate pairs replaced, which no later step could encode."""
    dumped = json.dumps(message, ensure_ascii=False)
    return strictjson.scrubbed(message) if strictjson.has_surrogates(dumped) else message


def _text_or_none(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None
