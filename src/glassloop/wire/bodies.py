"""Where things are in a decoded body: its choices, a message, an error. What they mean is decided elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic_core import from_json

from glassloop.core.entries import JSON
from glassloop.wire import strictjson
from glassloop.wire.foreign import foreign_choice

MAX_QUOTED = 64 * 1024
"""Bytes or characters of a body that a failure keeps for people to read."""

BODY_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda name: None)
"""For what an endpoint wrote: raw control characters pass, and NaN (in log probabilities) is null."""


def whole_object(text: str | bytes) -> dict[str, JSON] | None:
    """The one object that a text is, as `BODY_DECODER` gives it, in less time. None for anything else.

    Also None for what only `BODY_DECODER` lets pass: control characters, NaN, half of a surrogate pair, deep nesting.
    """
    try:
        value = from_json(text, allow_inf_nan=False, cache_strings="keys")
    except (ValueError, TypeError):  # TypeError: for text without UTF-8
        return None
    return value if type(value) is dict else None


def whole_objects(texts: Sequence[str]) -> list[dict[str, JSON] | None]:
    """`whole_object` of each. What comes together is read in one go: most of the time goes to beginning."""
    if len(texts) > 1 and all(text.startswith("{") and text.endswith("}") for text in texts):
        values: list[dict[str, JSON] | None]
        try:
            values = from_json(f"[{','.join(texts)}]", allow_inf_nan=False, cache_strings="keys")
        except (ValueError, TypeError):
            values = []
        if len(values) == len(texts) and all(type(value) is dict for value in values):
            return values
    return [whole_object(text) for text in texts]


_ENVELOPES = ("data", "result", "response", "body", "output", "completion")


def unwrapped(obj: JSON) -> Mapping[str, JSON]:
    """The completion inside a list of one, or inside a gateway's envelope, which may hold it as JSON text.

    {} for what is no object.
    """
    for _ in range(3):
        if isinstance(obj, list) and len(obj) == 1:
            obj = obj[0]
        if not isinstance(obj, dict) or obj.get("choices") is not None:
            break
        opened = (_decoded(obj.get(key)) for key in _ENVELOPES)
        inside = next((value for value in opened if _holds_completion(value)), None)
        if inside is None:
            break
        obj = inside
    return obj if isinstance(obj, dict) else {}


def _decoded(value: JSON) -> JSON:
    if not isinstance(value, str) or not value.lstrip().startswith("{") or '"choices"' not in value:
        return value
    try:
        return BODY_DECODER.decode(value)
    except (ValueError, RecursionError):
        return None


def _holds_completion(value: JSON) -> bool:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return isinstance(value, dict) and bool(value.get("choices") or _holds_completion(value.get("data")))


def choices_of(body: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """The choices of a list, of an object keyed by position, or a lone one; or the message in their place."""
    choices = body.get("choices")
    if isinstance(choices, dict):
        choices = [choices] if choices.keys() & _CHOICE_KEYS else list(choices.values())
    if isinstance(choices, list):
        return [choice for choice in choices if isinstance(choice, dict)]
    message = body.get("message")
    if isinstance(message, dict) and message.keys() & {"role", "content", "tool_calls"}:
        return [body]
    choice = foreign_choice(body) if choices is None else None
    return [choice] if choice is not None else []


_CHOICE_KEYS = ("message", "delta", "text", "finish_reason", "index")


def error_in(body: Mapping[str, JSON]) -> bool:
    """Whether the object reports an error, in any of the shapes in which endpoints do."""
    if ("error" in body and _means_error(body["error"])) or (
        "errors" in body and _means_error(body["errors"])
    ):
        return True
    choices = body.get("choices")
    if choices:
        return isinstance(choices, list) and any(
            isinstance(choice, dict) and "error" in choice and _means_error(choice["error"])
            for choice in choices
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


def message_of(choice: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """A choice's message: `message`, else `delta`, else the choice itself where it holds one's fields.

    Calls that stand beside the message belong to it.
    """
    for key in ("message", "delta"):
        value = choice.get(key)
        if isinstance(value, dict) and value:
            return with_calls_beside(choice, value)
        if isinstance(value, str) and value:
            return _message_in(value) or {"role": "assistant", "content": value}
    if isinstance(choice.get("messages"), list) and choice["messages"]:
        return message_of({"message": choice["messages"][-1]})
    if isinstance(choice.get("text"), str):
        return {"role": "assistant", "content": choice["text"]}
    return {
        key: choice[key] for key in ("role", "content", "tool_calls", "reasoning_content") if key in choice
    }


def _message_in(text: str) -> Mapping[str, JSON] | None:
    """The message that was encoded twice."""
    if not text.startswith("{") or '"role"' not in text:
        return None
    try:
        message = BODY_DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("role") == "assistant" else None


def with_calls_beside(choice: Mapping[str, JSON], message: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The message or delta, with the calls that its choice holds beside it."""
    calls = choice.get("tool_calls")
    return {**message, "tool_calls": calls} if calls and not message.get("tool_calls") else message


def quoted(value: JSON) -> str:
    """A decoded body as text for people, at most `MAX_QUOTED` characters."""
    return strictjson.without_surrogates(json.dumps(value, ensure_ascii=False))[:MAX_QUOTED]
