"""A model without faults, for the doctor to find nothing wrong with: it does what it is asked, in the published shape.

The dialects are ways in which healthy servers differ; none of them is a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from glassloop.core.entries import JSON
from glassloop.testing.quirks import example_of
from glassloop.testing.server import Completion, Raw, Reply, Request, calls, fails, says

_BYTES_A_TOKEN = 4
_WANTED = re.compile(r"(\w+) (?=\{)")
_CODEWORD = re.compile(r"codeword is ([A-Z0-9-]+)")


BAD_REQUEST = {"error": {"message": "'messages' must be a list", "type": "invalid_request_error"}}


def completion_for(body: Mapping[str, JSON]) -> Completion:
    """What a willing and able model says to this request, counted as it should be."""
    used = {"prompt_tokens": len(json.dumps(body)) // _BYTES_A_TOKEN, "completion_tokens": 9}
    counts = {**used, "total_tokens": sum(used.values())}
    return replace(_limited(_said(body), body), usage=counts)


def _limited(completion: Completion, body: Mapping[str, JSON]) -> Completion:
    """Cut off where its arguments are longer than the output may be, and it says so."""
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    made = completion.message.get("tool_calls") or ()
    if most is None or sum(len(call["function"]["arguments"]) for call in made) < most * _BYTES_A_TOKEN:
        return completion
    first = made[0]
    text = first["function"]["arguments"][: most * _BYTES_A_TOKEN]
    cut = {**first, "function": {**first["function"], "arguments": text}}
    return replace(completion, message={**completion.message, "tool_calls": [cut]}, finish_reason="length")


def _said(body: Mapping[str, JSON]) -> Completion:
    tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or ()}
    choice = body.get("tool_choice", "auto")
    last = body["messages"][-1]
    text = last["content"] if isinstance(last["content"], str) else json.dumps(last["content"])
    wanted = [one for one in _wanted(text) if one[0] in tools]
    if isinstance(choice, dict):
        name = choice["function"]["name"]
        return calls(next((one for one in wanted if one[0] == name), _example(tools[name])))
    if tools and choice == "required":
        return calls(*(wanted or [_example(next(iter(tools.values())))]))
    if wanted and choice != "none":
        return calls(*wanted)
    if "weather in Oslo right now" in text and "get_weather" in tools and choice != "none":
        return calls(("get_weather", {"city": "Oslo"}))
    if "response_format" in body:
        return says('{"greeting": "Hello", "words": 1}')
    if found := _CODEWORD.search(text):
        return says(found.group(1))
    return says("Hello! It is 18 degrees and sunny.")


def _wanted(text: str) -> list[tuple[str, JSON]]:
    """The calls that a question spells out: a tool's name, then its arguments."""
    found = []
    for match in _WANTED.finditer(text):
        try:
            arguments, _ = json.JSONDecoder().raw_decode(text, match.end())
        except ValueError:
            continue
        found.append((match.group(1), arguments))
    return found


def _example(function: Mapping[str, JSON]) -> tuple[str, JSON]:
    return function["name"], example_of(function.get("parameters") or {})


# ── dialects ─────────────────────────────────────────────────────────────────────────────────────────────────────

Dialect = Callable[[Request], Reply]
_Change = Callable[[list[Any]], list[Any]]


def _unchanged(chunks: list[Any]) -> list[Any]:
    return chunks


def _play(request: Request, change: _Change = _unchanged, **fields: JSON) -> Reply:
    """The healthy answer, its message with more `fields`, its chunks changed."""
    if not isinstance(request.body.get("messages"), list):
        return fails(400, BAD_REQUEST)
    completion = completion_for(request.body)
    completion = replace(completion, message={**completion.message, **fields})
    if not request.body.get("stream"):
        return Raw([json.dumps(completion.as_json("m"), ensure_ascii=False).encode()])
    data = [*(json.dumps(chunk, ensure_ascii=False) for chunk in change(completion.as_chunks("m"))), "[DONE]"]
    return Raw([f"data: {one}\n\n".encode() for one in data], headers={"content-type": "text/event-stream"})


def plain(request: Request) -> Reply:
    """Usage in a last chunk of its own, calls in pieces."""
    return _play(request)


def usage_when_asked(request: Request) -> Reply:
    """Usage in streams only where `stream_options` ask for it, and null in every other chunk then."""
    if (request.body.get("stream_options") or {}).get("include_usage"):
        return _play(request, lambda chunks: [{**one, "usage": one.get("usage")} for one in chunks])
    return _play(request, lambda chunks: chunks[:-1])


def reasoning(request: Request) -> Reply:
    """Thinks first, in a field of its own."""
    return _play(request, reasoning_content="The user wants something. I will do it.")


def keep_alive(request: Request) -> Reply:
    """Comments while it thinks, and longer content types."""
    reply = _play(request)
    assert isinstance(reply, Raw)
    if not request.body.get("stream"):
        return replace(reply, headers={"content-type": "application/json; charset=utf-8"})
    pieces = [b": PROCESSING\n\n", b": PROCESSING\n\n", *reply.pieces]
    return replace(reply, pieces=pieces, headers={"content-type": "text/event-stream; charset=utf-8"})


def whole_calls(request: Request) -> Reply:
    """Streams each call in a single delta."""
    return _play(request, _joined)


def _joined(chunks: list[Any]) -> list[Any]:
    merged: list[Any] = []
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"] if chunk["choices"] else {}
        piece = (delta.get("tool_calls") or [{}])[0]
        if piece and "id" not in piece:
            opened = merged[-1]["choices"][0]["delta"]["tool_calls"][0]["function"]
            opened["arguments"] += piece["function"]["arguments"]
        else:
            merged.append(chunk)
    return merged


DIALECTS: Mapping[str, Dialect] = {
    each.__name__: each for each in (plain, usage_when_asked, reasoning, keep_alive, whole_calls)
}
