"""Replies that a gateway passed on in the shape of another API: the same reply comes of them, and a Mend."""

import json
from typing import Any

import pytest
from tests.wire.reading import failure_in, read_in, ready, reply_in

from glassloop.core.entries import Reply
from glassloop.wire.completion import Failure

OSLO = {"city": "Oslo"}
OSLO_TEXT = json.dumps(OSLO)


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def events(*objects: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in objects)


def responses(*items: Any, **fields: Any) -> bytes:
    return body(object="response", output=list(items), **{"status": "completed", **fields})


def gemini(*parts: Any, finish: str | None = "STOP") -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}]}


SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 4."}]}
CALLED = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": OSLO_TEXT}
USED = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": OSLO}
BLOCK = {"type": "content_block_start", "index": 1, "content_block": {**USED, "input": {}}}


def pieces(*texts: str) -> list[dict[str, Any]]:
    return [
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": text},
        }
        for text in texts
    ]


def stopped(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


ANSWERS = {
    "responses": responses(SAID),
    "responses, streamed": events(
        {"type": "response.output_text.delta", "delta": "It is "},
        {"type": "response.output_text.delta", "delta": "4."},
        {"type": "response.completed", "response": {"status": "completed", "output": [SAID]}},
    ),
    "responses, only its end": events({"type": "response.completed", "response": {"output": [SAID]}}),
    "messages": body(
        type="message",
        role="assistant",
        content=[{"type": "text", "text": "It is 4."}],
        stop_reason="end_turn",
    ),
    "messages, streamed": events(
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "2+2"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "It is 4."}},
        stopped("end_turn"),
        {"type": "message_stop"},
    ),
    "a bare message": body(role="assistant", content="It is 4."),
    "gemini": json.dumps(gemini({"text": "2+2", "thought": True}, {"text": "It is 4."})).encode(),
    "gemini, streamed": events(gemini({"text": "It is "}, finish=None), gemini({"text": "4."})),
    "a bare text": body(success=True, result={"response": "It is 4."}, errors=[]),
    "bare texts": b"".join(
        body(model="m", response=text, done=done) + b"\n" for text, done in (("It is ", False), ("4.", True))
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read_in_any_apis_shape_and_said_to_be(name: str) -> None:
    reply = reply_in(ANSWERS[name])
    assert (reply.text, reply.tool_calls) == ("It is 4.", ())
    assert [mend.code for mend in reply.mends] == ["foreign_shape"]


CALLS = {
    "responses": responses(CALLED),
    "responses, streamed": events({"type": "response.completed", "response": {"output": [CALLED]}}),
    "messages": body(type="message", role="assistant", content=[USED], stop_reason="tool_use"),
    "messages, streamed": events(BLOCK, *pieces('{"city": ', '"Oslo"}'), stopped("tool_use")),
    "gemini": json.dumps(gemini({"functionCall": {"name": "get_weather", "args": OSLO}})).encode(),
    "gemini, streamed": events(gemini({"functionCall": {"name": "get_weather", "args": OSLO}})),
    "a bare message": body(
        role="assistant",
        content=None,
        tool_calls=[{"id": "c", "function": {"name": "get_weather", "arguments": OSLO_TEXT}}],
    ),
    "a bare text": body(
        success=True, result={"response": "", "tool_calls": [{"name": "get_weather", "arguments": OSLO}]}
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_read_in_any_apis_shape(name: str) -> None:
    assert ready(reply_in(CALLS[name])) == [("get_weather", OSLO)]


CUT = {
    "responses": responses(CALLED, status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "messages": body(type="message", role="assistant", content=[USED], stop_reason="max_tokens"),
    "messages, streamed": events(BLOCK, *pieces('{"city": "Oslo"}'), stopped("max_tokens")),
    "messages, without an end": events(BLOCK, *pieces('{"city": "Oslo"}')),
    "messages, without half of it": events(BLOCK, *pieces('{"city": '), stopped("tool_use")),
    "gemini": json.dumps(
        gemini({"functionCall": {"name": "get_weather", "args": OSLO}}, finish="MAX_TOKENS")
    ).encode(),
}


@pytest.mark.parametrize("name", CUT)
def test_a_call_that_was_cut_off_never_runs_in_any_apis_shape(name: str) -> None:
    _, _, outcome = read_in([CUT[name]])
    reply = outcome.partial if isinstance(outcome, Failure) else outcome
    assert isinstance(reply, Reply)
    assert [call.name for call in reply.tool_calls] == ["get_weather"]
    assert ready(reply) == []


@pytest.mark.parametrize(
    "nothing",
    [
        body(output=[]),
        body(output="no"),
        body(candidates=[]),
        body(result={"response": "no"}, success=False, errors=[{"message": "no"}]),
        body(response="no"),
        body(role="user", content=[{"type": "text", "text": "no"}]),
        body(candidates=[{"finishReason": "SAFETY"}], error={"message": "no"}),
    ],
)
def test_what_only_looks_like_another_apis_reply_is_none(nothing: bytes) -> None:
    assert failure_in(nothing).reason in ("no_choices", "error_object")


@pytest.mark.parametrize("name", ["done", "end", "complete", "finished"])
def test_an_event_without_data_that_is_called_an_end_is_one(name: str) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "It is 4."}, "finish_reason": None}]}
    assert reply_in(events(chunk) + f"event: {name}\ndata: {{}}\n\n".encode()).text == "It is 4."
    assert failure_in(events(chunk) + b"event: ping\ndata: {}\n\n").reason == "cut_off"


def test_a_line_break_that_was_not_escaped_is_part_of_its_text() -> None:
    chunk = b'data: {"choices":[{"delta":{"content":"one\ntwo: x\nthree"},"finish_reason":"stop"}]}\n\n'
    assert reply_in(chunk).text == "one\ntwo: x\nthree"
