"""The strict reading of the published shape: nothing to say about what follows it, one thing about each deviation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.doctor.healthy import DIALECTS

from glassloop.doctor.shape import deviations, stream_of
from glassloop.testing.server import Completion, Raw, Request, calls, says

ANSWER = says("Hello.")
CALL = calls(("get_weather", {"city": "Oslo"}))
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}


def whole(completion: Completion, **changes: Any) -> bytes:
    body = completion.as_json("m")
    body["choices"][0] |= changes
    return json.dumps(body).encode()


def streamed(chunks: list[Any]) -> bytes:
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in chunks) + b"data: [DONE]\n\n"


def places(body: bytes, *, stream: bool = False) -> set[str]:
    return {one.place for one in deviations(body, SSE if stream else JSON, streamed=stream)}


@pytest.mark.parametrize("completion", [ANSWER, CALL], ids=["answer", "call"])
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_the_published_shape_has_no_deviations(completion: Completion, piece: int) -> None:
    cut = Completion(completion.message, completion.finish_reason, piece=piece)
    assert places(whole(completion)) == set()
    assert places(streamed(cut.as_chunks("m")), stream=True) == set()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_dialects_of_healthy_servers_have_no_deviations(dialect: str, stream: bool) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        **({"stream": True} if stream else {}),
    }
    reply = DIALECTS[dialect](Request("POST", "/v1/chat/completions", {}, body, b""))
    assert isinstance(reply, Raw)
    assert deviations(b"".join(reply.pieces), reply.headers, streamed=stream) == []


def _message(**changes: Any) -> bytes:
    return whole(CALL, message={**CALL.message, **changes})


def _call(**changes: Any) -> bytes:
    return _message(tool_calls=[{**CALL.message["tool_calls"][0], **changes}])


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"\xef\xbb\xbf" + whole(ANSWER), "body"),
        (b"\n" + whole(ANSWER), "body"),
        (whole(ANSWER)[:-1] + b', "x": NaN}', "body"),
        (json.dumps([ANSWER.as_json("m")]).encode(), "body"),
        (whole(ANSWER, finish_reason="eos"), "finish_reason"),
        (whole(ANSWER, finish_reason="tool_calls"), "finish_reason"),
        (whole(CALL, finish_reason="stop"), "finish_reason"),
        (_message(role="model"), "role"),
        (_message(content=[{"type": "text", "text": "Hi"}]), "content"),
        (_call(id=7), "tool_calls.id"),
        (_call(type=None), "tool_calls.type"),
        (_call(function={"name": "", "arguments": "{}"}), "tool_calls.name"),
        (_call(function={"name": "add", "arguments": {}}), "arguments"),
        (_call(function={"name": "add", "arguments": "[]"}), "arguments"),
        (_call(function={"name": "add", "arguments": '{"a": 1, "a": 2}'}), "arguments"),
    ],
)
def test_a_deviation_is_said_at_its_place(body: bytes, place: str) -> None:
    assert places(body) == {place}


def test_an_honest_cut_off_is_no_deviation() -> None:
    cut = _call(function={"name": "add", "arguments": '{"a": 1'}).replace(
        b'"finish_reason": "tool_calls"', b'"finish_reason": "length"'
    )
    assert places(cut) == set()


def test_pieces_that_repeat_what_came_before_are_told_from_new_ones() -> None:
    def chunks(*pieces: str) -> bytes:
        opened = CALL.as_chunks("m")
        first, last = opened[:2], opened[-2:]
        more = [
            {
                "choices": [
                    {"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": one}}]}}
                ]
            }
            for one in pieces
        ]
        return streamed([*first, *more, *last])

    assert places(chunks('{"city"', ': "Oslo"}'), stream=True) == set()
    (found,) = deviations(chunks('{"ci', '{"city": "O', '{"city": "Oslo"}'), SSE, streamed=True)
    assert found.how.startswith("come whole in each piece")


def test_a_stream_is_summed_up_by_its_chunks_comments_usage_and_end() -> None:
    body = b": hello\n\n" + streamed(CALL.as_chunks("m"))
    stream = stream_of(body)
    assert (stream.comments, stream.usage, stream.done) == (1, True, True)
    assert stream.chunks == len(CALL.as_chunks("m"))
    assert stream.call_pieces == stream.chunks - 3
