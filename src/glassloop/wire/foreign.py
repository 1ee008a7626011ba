"""Replies in the shape of another API, which gateways pass on as they got them → choices of Chat Completions.

Each reader takes one object, a whole body or one event of a stream, and gives the choice that it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from glassloop.core.entries import JSON

MARK = "shape"
"""On a choice that was made here: which API's shape it had."""

_Choice = dict[str, JSON]


def foreign_choice(body: Mapping[str, JSON]) -> _Choice | None:
    """The choice that an object without choices holds in another API's shape, None if it has none of them."""
    for shape, read in _SHAPES:
        if (choice := read(body)) is not None:
            return {**choice, MARK: shape}
    return None


def _objects(value: JSON) -> Sequence[Mapping[str, JSON]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _call(call_id: JSON, name: JSON, arguments: JSON, index: JSON = None) -> dict[str, JSON]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return call if index is None else {"index": index, **call}


# ── the Responses API ──────────────────────────────────────────────────────────────────────────────────────────────


def _responses_body(body: Mapping[str, JSON]) -> _Choice | None:
    items = [item for item in _objects(body.get("output")) if isinstance(item.get("type"), str)]
    if not items:
        return None
    content = [part for item in items if item["type"] == "message" for part in _objects(item.get("content"))]
    thoughts = [item for item in items if item["type"] == "reasoning"]
    calls = [
        _call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"))
        for item in items
        if item["type"] == "function_call"
    ]
    details = body.get("incomplete_details")
    finish = details.get("reason") if isinstance(details, dict) else None
    if finish is None:
        finish = "stop" if body.get("status") in (None, "completed") else body["status"]
    return {
        "message": {"role": "assistant", "content": [*thoughts, *content], "tool_calls": calls},
        "finish_reason": finish,
    }


def _responses_event(body: Mapping[str, JSON]) -> _Choice | None:
    match body:
        case {"type": "response.output_text.delta", "delta": str(text)}:
            return {"delta": {"content": text}}
        case {"type": "response.completed" | "response.incomplete", "response": dict(whole)}:
            return _responses_body(whole)
    return None


# ── the Messages API, and bare messages ────────────────────────────────────────────────────────────────────────────


def _messages_body(body: Mapping[str, JSON]) -> _Choice | None:
    if body.get("role") != "assistant" or not (body.get("content") or body.get("tool_calls")):
        return None
    return {"message": body, "finish_reason": body.get("stop_reason")}


def _messages_event(body: Mapping[str, JSON]) -> _Choice | None:
    match body:
        case {"type": "content_block_start", "content_block": {"type": "tool_use", **block}}:
            call = _call(block.get("id"), block.get("name"), "", body.get("index"))
            return {"delta": {"tool_calls": [call]}}
        case {"type": "content_block_delta", "delta": {"text": str(text)}}:
            return {"delta": {"content": text}}
        case {"type": "content_block_delta", "delta": {"thinking": str(text)}}:
            return {"delta": {"reasoning_content": text}}
        case {"type": "content_block_delta", "delta": {"partial_json": str(piece)}}:
            call = _call(None, None, piece, body.get("index"))
            return {"delta": {"tool_calls": [call]}}
        case {"type": "message_delta", "delta": {"stop_reason": reason}}:
            return {"delta": {}, "finish_reason": reason}
    return None


# ── Gemini's, and bare texts ───────────────────────────────────────────────────────────────────────────────────────


def _gemini(body: Mapping[str, JSON]) -> _Choice | None:
    candidates = _objects(body.get("candidates"))
    if not candidates:
        return None
    content = candidates[0].get("content")
    parts = _objects(content.get("parts")) if isinstance(content, dict) else []
    texts = [
        {"type": "thinking" if part.get("thought") else "text", "text": part["text"]}
        for part in parts
        if isinstance(part.get("text"), str)
    ]
    asked = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]
    calls = [_call(call.get("id"), call.get("name"), call.get("args")) for call in asked]
    message = {"role": "assistant", "content": texts, **({"tool_calls": calls} if calls else {})}
    return {"message": message, "finish_reason": candidates[0].get("finishReason")}


def _bare_text(body: Mapping[str, JSON]) -> _Choice | None:
    inside = body.get("result") if body.get("success") is True else body if "done" in body else None
    if not isinstance(inside, dict) or not isinstance(inside.get("response"), str):
        return None
    message = {"role": "assistant", "content": inside["response"], "tool_calls": inside.get("tool_calls")}
    ended = inside is not body or body["done"]
    return {"message": message, "finish_reason": body.get("done_reason") or ("stop" if ended else None)}


_SHAPES: Sequence[tuple[str, Callable[[Mapping[str, JSON]], _Choice | None]]] = (
    ("responses", _responses_body),
    ("responses", _responses_event),
    ("messages", _messages_body),
    ("messages", _messages_event),
    ("gemini", _gemini),
    ("bare text", _bare_text),
)
