import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.reading import TOOLS, completion, failure_in, ready, reply_in

from glassloop.core.entries import Reply, Usage
from glassloop.wire.reply import Failure, read_body, read_completion

OSLO = {"city": "Oslo"}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
}
READY = [("get_weather", OSLO)]


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [CALL]},
        {"tool_calls": [CALL]},
        {"tool_calls": CALL},
        {"tool_calls": {"0": CALL}},
        {"tool_calls": json.dumps([CALL])},
        {"tool_calls": [json.dumps(CALL)]},
        {"tool_calls": [[CALL]]},
        {"tool_calls": [None, CALL]},
        {"tool_calls": [{}, CALL]},
        {"tool_calls": [{"id": "", "function": {"name": "", "arguments": ""}}, CALL]},
        {"tool_calls": [{"id": "a", "name": "get_weather", "arguments": OSLO}]},
        {"tool_calls": [{"id": "a", "name": "get_weather", "input": OSLO}]},
        {"tool_calls": [{"id": "a", "function": "get_weather", "arguments": OSLO}]},
        {"tool_calls": [{"id": "a", "function": json.dumps(CALL["function"])}]},
        {"tool_calls": [{"id": 7, "function": {"name": "get_weather", "parameters": OSLO}}]},
        {"tool_calls": [{"id": "a", "function": {"name": "get_weather", "arguments": None, "input": OSLO}}]},
        {"tool_calls": [{"type": "custom", "custom": {"name": "get_weather", "input": '{"city":"Oslo"}'}}]},
        {"tool_calls": [], "function_call": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}},
        {"tool_calls": None, "function_call": {"name": "get_weather", "arguments": OSLO}},
        {"content": [{"type": "tool_use", "id": "a", "name": "get_weather", "input": OSLO}]},
    ],
)
@pytest.mark.parametrize("finish", ["tool_calls", "stop", None, "", "anything"])
def test_a_call_is_found_wherever_it_stands_and_whatever_the_finish_reason(message: Any, finish: Any) -> None:
    assert ready(reply_in(completion(message, finish))) == READY


@pytest.mark.parametrize(
    "finish",
    [
        "length",
        "LENGTH",
        "max_tokens",
        "MAX_TOKENS",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
    ],
)
def test_a_call_cut_off_by_length_never_runs(finish: str) -> None:
    reply = reply_in(completion({"tool_calls": [CALL]}, finish))
    [call] = reply.tool_calls
    assert reply.cut_off
    assert call.problem is not None
    assert "cut off" in call.problem
    written = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    assert ready(reply_in(completion({"content": written}, finish))) == []


def test_a_router_that_relabels_the_upstreams_length_does_not_make_a_call_run() -> None:
    body = json.loads(completion({"tool_calls": [CALL]}, "tool_calls"))
    body["choices"][0]["native_finish_reason"] = "MAX_TOKENS"
    assert ready(reply_in(json.dumps(body).encode())) == []


@pytest.mark.parametrize(
    "finish", ["error", "network_error", "FAILED", "MALFORMED_FUNCTION_CALL", "insufficient_system_resource"]
)
def test_a_finish_reason_that_means_failure_fails_the_turn_and_keeps_what_came(finish: str) -> None:
    failure = failure_in(completion({"content": "It is", "tool_calls": [CALL]}, finish))
    assert failure.reason == "error_finish"
    assert failure.partial is not None
    assert failure.partial.text == "It is"
    assert ready(failure.partial) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty_body"),
        (b" \r\n\xef\xbb\xbf", "empty_body"),
        (b"<!DOCTYPE html><html>Bad gateway</html>", "html"),
        (b"  <html>", "html"),
        (b"upstream connect error", "not_json"),
        (b"{nonsense}", "not_json"),
        (b'{"choices":[{"message":{"content":"It is', "cut_off"),
        (b"[" * 5000, "cut_off"),
        (b"{}", "no_choices"),
        (b"[]", "no_choices"),
        (b'"text"', "not_json"),
        (b'{"choices": []}', "no_choices"),
        (b'{"choices": null, "usage": {"prompt_tokens": 1}}', "no_choices"),
        (b'{"choices": [null, 3]}', "no_choices"),
        (b'{"error": {"message": "no", "code": 504}}', "error_object"),
        (b'{"error": "no"}', "error_object"),
        (b'[{"error": {"code": 400}}]', "error_object"),
        (b'{"choices": null, "error": {"code": 429}}', "error_object"),
        (b'{"detail": "Not found"}', "error_object"),
        (b'{"detail": [{"loc": ["body"], "msg": "no"}]}', "error_object"),
        (b'{"object": "error", "message": "no"}', "error_object"),
        (b'{"success": false}', "error_object"),
        (b'{"code": 1, "msg": "no"}', "error_object"),
        (b'{"base_resp": {"status_code": 1004, "status_msg": "no"}, "choices": null}', "error_object"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_reply_says_what_it_is(body: bytes, reason: str) -> None:
    failure = failure_in(body)
    assert failure.reason == reason
    assert failure.payload is not None or reason not in ("error_object", "no_choices")


@pytest.mark.parametrize("error", [None, "", {}, [], {"message": "", "code": None}, {"code": 0}])
def test_an_error_field_that_says_nothing_is_no_error(error: Any) -> None:
    assert reply_in(completion({"content": "It is 4."}, error=error)).text == "It is 4."


def test_an_error_object_decides_although_there_are_choices() -> None:
    failure = failure_in(completion({"content": "It", "tool_calls": [CALL]}, error={"message": "no"}))
    assert failure.reason == "error_object"
    assert failure.partial is not None
    assert failure.partial.text == "It"
    assert ready(failure.partial) == []


@pytest.mark.parametrize(
    "wrap",
    [
        lambda body: {"data": body, "success": True},
        lambda body: {"result": {"data": body}},
        lambda body: [body],
        lambda body: {"response": [body]},
        lambda body: {**body, "choices": body["choices"][0]},
        lambda body: {"choices": [{"delta": body["choices"][0]["message"]}]},
        lambda body: {"message": body["choices"][0]["message"], "done": True},
        lambda body: {"choices": [body["choices"][0]["message"]]},
        json.dumps,
        lambda body: {"choices": [{"message": {"content": ""}}, *body["choices"]]},
    ],
)
def test_a_completion_is_found_inside_its_wrapping(wrap: Any) -> None:
    body = json.loads(completion({"content": "It is 4.", "tool_calls": [CALL]}))
    reply = reply_in(json.dumps(wrap(body)).encode())
    assert (reply.text, ready(reply)) == ("It is 4.", READY)


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ("It is 4.", "It is 4.", ""),
        ([{"type": "text", "text": "It "}, {"type": "text", "text": "is 4."}], "It is 4.", ""),
        ([{"type": "output_text", "text": "It is 4."}], "It is 4.", ""),
        (["It is 4."], "It is 4.", ""),
        ({"type": "text", "text": "It is 4."}, "It is 4.", ""),
        ([{"type": "thinking", "thinking": ""}, {"type": "thinking", "thinking": "2+2"}, {"text": "It is 4."}], "It is 4.", "2+2"),
        ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "It is 4."}], "It is 4.", ""),
        ([], "", ""),
        (None, "", ""),
        (7, "7", ""),
        ({"answer": 4}, '{"answer": 4}', ""),
    ],
)  # fmt: skip
def test_content_of_any_shape_is_read(content: Any, text: str, reasoning: str) -> None:
    reply = reply_in(completion({"content": content}))
    assert (reply.text, reply.reasoning) == (text, reasoning)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}, Usage(9, 3, 12)),
        ({"prompt_tokens": "9", "completion_tokens": 3.0, "total_tokens": None}, Usage(9, 3)),
        ({"input_tokens": 9, "output_tokens": 3}, Usage(9, 3)),
        ({"prompt_tokens_details": {"cached_tokens": 4}}, Usage(cached_tokens=4)),
        ({"prompt_tokens_details": None, "prompt_cache_hit_tokens": 4}, Usage(cached_tokens=4)),
        ({"completion_tokens_details": {"reasoning_tokens": 2}}, Usage(reasoning_tokens=2)),
        ({"prompt_tokens": -1, "completion_tokens": True, "total_tokens": "many"}, Usage()),
        (None, Usage()),
        ([], Usage()),
    ],
)
def test_usage_of_any_shape_is_read_and_never_guessed(usage: Any, expected: Usage) -> None:
    assert reply_in(completion({"content": "x"}, usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("usage", "cost"),
    [({"cost": 0.25}, 0.25), ({"cost": "0.25"}, 0.25), ({"cost": {"total_cost": 1}}, 1.0), ({}, None)],
)
def test_cost_is_read_where_it_is_reported(usage: Any, cost: float | None) -> None:
    assert reply_in(completion({"content": "x"}, usage=usage)).cost == cost


def test_usage_is_also_found_in_the_corners_of_vendors() -> None:
    counts = {"prompt_tokens": 9}
    assert reply_in(completion({"content": "x"}, x_groq={"usage": counts})).usage == Usage(9)
    body = {"choices": [{"message": {"content": "x"}, "usage": counts}]}
    assert reply_in(json.dumps(body).encode()).usage == Usage(9)


def test_a_refusal_is_the_text_and_flagged() -> None:
    reply = reply_in(completion({"content": None, "refusal": "I cannot."}))
    assert (reply.text, reply.refused) == ("I cannot.", True)
    filtered = reply_in(completion({"content": ""}, "content_filter"))
    assert (filtered.refused, filtered.finish_reason, filtered.is_empty) == (True, "content_filter", True)


def test_the_message_is_kept_as_received_with_what_calls_carry_along() -> None:
    call = {**CALL, "index": 0, "extra_content": {"google": {"thought_signature": "s"}}}
    reply = reply_in(
        completion({"content": None, "tool_calls": [call], "reasoning_details": [{"text": "r"}]})
    )
    assert reply.raw["tool_calls"] == [call]
    assert reply.tool_calls[0].extra == {"extra_content": {"google": {"thought_signature": "s"}}}
    assert (reply.reasoning, reply.reasoning_field) == ("r", "reasoning_details")
    assert (reply.model, reply.response_id) == ("m", "c1")


def test_a_draft_in_reasoning_runs_only_if_nothing_else_came() -> None:
    draft = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    assert ready(reply_in(completion({"reasoning_content": draft, "content": "No need."}))) == []
    rome = {"id": "a", "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'}}
    reply = reply_in(completion({"reasoning_content": draft, "tool_calls": [rome]}))
    assert ready(reply) == [("get_weather", {"city": "Rome"})]
    alone = reply_in(completion({"reasoning_content": draft, "content": ""}))
    assert ready(alone) == READY
    assert "call_in_reasoning" in [mend.code for mend in alone.mends]


def test_a_call_without_a_name_is_a_problem_and_an_unknown_name_is_left_alone() -> None:
    [call] = reply_in(completion({"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]})).tool_calls
    assert call.problem is not None
    assert "name" in call.problem
    [call] = reply_in(
        completion({"tool_calls": [{"function": {"name": "open_door", "arguments": "{}"}}]})
    ).tool_calls
    assert (call.id, call.name, call.problem) == ("", "open_door", None)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["{", "<think>", "length", "error"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "delta", "content", "tool_calls", "function", "name", "arguments", "id", "type", "error", "usage", "finish_reason", "index", "text", "thinking", "reasoning_details", "data", "audio"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)  # fmt: skip


@given(_JSON)
def test_no_json_makes_reading_raise(value: Any) -> None:
    for body in (value, {"choices": [{"message": value}]}, {"choices": [{"message": {"tool_calls": value}}]}):
        outcome = read_completion(body, TOOLS)
        assert isinstance(outcome, (Reply, Failure))
        chunk = b"data: " + json.dumps(body).encode() + b"\n\n"
        assert isinstance(read_body(chunk + chunk, TOOLS), (Reply, Failure))


@given(st.binary() | st.text().map(str.encode))
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    for data in (body, b"data: " + body, b"{" + body, b"data: {" + body + b"\n\n"):
        assert isinstance(read_body(data, TOOLS), Failure)


WRITTEN = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
BESIDE = {
    "no arguments": ("", "stop", [("get_weather", {"city": "Oslo"})], ["text_call"]),
    "an empty object": ("{}", "stop", [("get_weather", {"city": "Oslo"})], ["text_call"]),
    "arguments that broke off": ('{"city": "Os', "stop", [("get_weather", {"city": "Oslo"})], ["text_call"]),
    "the same, spelled closer": ('{"city":"Os', "stop", [("get_weather", {"city": "Oslo"})], ["text_call"]),
    "arguments of another call that broke off": ('{"city": "Ro', "stop", [], []),
    "other arguments": ('{"city": "Rome"}', "stop", [("get_weather", {"city": "Rome"})], []),
    "arguments that broke off where all did": ('{"city": "Os', "length", [], []),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_structured_call_takes_from_the_text_only_what_it_lacks_of_the_same_call(name: str) -> None:
    arguments, finish, wanted, mends = BESIDE[name]
    call = {"id": "c", "function": {"name": "get_weather", "arguments": arguments}}
    reply = reply_in(completion({"content": WRITTEN, "tool_calls": [call]}, finish))
    assert ready(reply) == wanted
    assert [mend.code for mend in reply.mends] == mends
    assert len(reply.tool_calls) == 1


def test_a_call_without_arguments_does_not_swallow_another_tools_call_in_the_text() -> None:
    call = {"id": "c", "function": {"name": "add", "arguments": ""}}
    reply = reply_in(completion({"content": WRITTEN, "tool_calls": [call]}))
    assert [call.name for call in reply.tool_calls] == ["add"]
    assert reply.mends == ()
