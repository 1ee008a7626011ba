import cProfile
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.reading import (
    END,
    TOOLS,
    calls_stream,
    completion,
    event,
    failure_in,
    fragment,
    read_in,
    ready,
    reply_in,
    stream,
)

from glassloop.core.entries import Reply, Usage
from glassloop.core.events import TextDelta
from glassloop.wire.arguments import read_arguments
from glassloop.wire.bodies import whole_object, whole_objects
from glassloop.wire.reply import Failure, read_body
from glassloop.wire.stream import StreamReader

OSLO, ROME = {"city": "Oslo"}, {"city": "Rome"}
OSLO_TEXT, ROME_TEXT = json.dumps(OSLO), json.dumps(ROME)
ONE = [("get_weather", OSLO)]
TWO = [("get_weather", OSLO), ("get_weather", ROME)]


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        ([fragment("", "get_weather", index=0, id="a"), fragment('{"city": ', index=0), fragment('"Oslo"}', index=0)], ONE),
        ([fragment(OSLO_TEXT, "get_weather")], ONE),
        ([fragment(OSLO, "get_weather", index=0)], ONE),
        ([fragment(None, "get_weather", index=0), fragment(OSLO, index=0)], ONE),
        ([{"index": 0, "id": "a", "name": "get_weather", "arguments": OSLO_TEXT}], ONE),
        # names: late, repeated, in pieces, growing
        ([fragment("", index=0, id="a"), fragment(None, "get_weather", index=0), fragment(OSLO_TEXT, index=0)], ONE),
        ([fragment('{"city": ', index=0), fragment('"Oslo"}', "get_weather", index=0)], ONE),
        ([fragment('{"city": ', "get_weather", index=0), fragment('"Oslo"}', "get_weather", index=0)], ONE),
        ([fragment(None, "get_", index=0), fragment(None, "weather", index=0), fragment(OSLO_TEXT, index=0)], ONE),
        ([fragment(None, "get_", index=0), fragment(OSLO_TEXT, "get_weather", index=0)], ONE),
        # ids: repeated, changing, late, blank
        ([fragment('{"city": ', "get_weather", index=0, id="a"), fragment('"Oslo"}', index=0, id="a")], ONE),
        ([fragment('{"city": ', "get_weather", index=0, id="a"), fragment('"Oslo"}', index=0, id="b")], ONE),
        ([fragment('{"city": ', "get_weather", index=0, id="a"), fragment('"Oslo"}', "get_weather", index=0, id="b")], ONE),
        ([fragment('{"city": ', "get_weather", index=0), fragment('"Oslo"}', index=0, id="b")], ONE),
        ([fragment('{"city": ', "get_weather", index=0, id="a"), fragment('"Oslo"}', "", index=0, id="", type=None)], ONE),
        # indexes: missing, null, text, gaps, inconsistent, always the same
        ([fragment('{"city": ', "get_weather", id="a"), fragment('"Oslo"}')], ONE),
        ([fragment('{"city": ', "get_weather", index=None), fragment('"Oslo"}', index=None)], ONE),
        ([fragment('{"city": ', "get_weather", index="0"), fragment('"Oslo"}', index="0")], ONE),
        ([fragment("", "get_weather", index=2, id="a"), fragment(OSLO_TEXT, index=0)], ONE),
        ([fragment(OSLO_TEXT, "get_weather", id="a"), fragment(ROME_TEXT, "get_weather", id="b")], TWO),
        ([fragment(OSLO_TEXT, "get_weather"), fragment(ROME_TEXT, "get_weather")], TWO),
        ([fragment(OSLO_TEXT, "get_weather", index=0, id="a"), fragment(ROME_TEXT, "get_weather", index=0, id="b")], TWO),
        ([fragment(OSLO_TEXT, "get_weather", index=0), fragment(ROME_TEXT, "get_weather", index=0)], TWO),
        ([fragment(OSLO_TEXT, "get_weather", index=1), fragment(ROME_TEXT, "get_weather", index=3)], TWO),
        (
            [fragment("", "get_weather", index=0), fragment("", "get_weather", index=1), fragment('{"city": "Ro', index=1), fragment(OSLO_TEXT, index=0), fragment('me"}', index=1)],
            TWO,
        ),
        (
            [fragment('{"city": ', "get_weather", id="a"), fragment('{"city": ', "get_weather", id="b"), fragment('"Oslo"}', id="a"), fragment('"Rome"}', id="b")],
            TWO,
        ),
        ([fragment("{}", "list_cities", index=0), fragment(OSLO_TEXT, "get_weather", index=0)], [("list_cities", {}), *ONE]),
        # arguments: cumulative, repeated at the end, none at all, an empty object first
        ([fragment(text, "get_weather", index=0) for text in ('{"ci', '{"city": "Os', OSLO_TEXT)], ONE),
        ([fragment('{"city": ', "get_weather", index=0), fragment('"Oslo"}', index=0), fragment(OSLO_TEXT, index=0)], ONE),
        ([fragment(OSLO_TEXT, "get_weather", index=0, id="a")] * 2, ONE),
        ([fragment(None, "list_cities", index=0, id="a")], [("list_cities", {})]),
        ([fragment("{}", "get_weather", index=0, id="a"), fragment(OSLO_TEXT, index=0)], ONE),
    ],
)  # fmt: skip
def test_fragments_are_put_together_by_what_they_say_not_by_one_field(
    fragments: list[Any], calls: list[Any]
) -> None:
    assert ready(reply_in(calls_stream(*fragments))) == calls
    at_once = stream({"tool_calls": fragments})
    assert ready(reply_in(at_once)) == calls


def test_the_last_part_of_cut_off_arguments_never_runs_by_itself() -> None:
    fragments = [fragment('{"stops": [{"x":', "get_weather", index=0), fragment('{"city": "Oslo"}', index=0)]
    assert ready(reply_in(calls_stream(*fragments))) == []


def test_the_legacy_call_is_put_together_too() -> None:
    deltas = [
        {"function_call": {"name": "get_weather", "arguments": ""}},
        {"function_call": {"arguments": OSLO_TEXT}},
    ]
    assert ready(reply_in(stream(*deltas, finish="function_call"))) == ONE


@pytest.mark.parametrize(
    ("deltas", "text", "reasoning"),
    [
        ([{"role": "assistant", "content": "It "}, {"role": "assistant", "content": "is 4."}], "It is 4.", ""),
        ([{"content": None}, {"content": "It is 4."}, None, {}], "It is 4.", ""),
        (["It is ", "4."], "It is 4.", ""),
        ([{"content": [{"type": "text", "text": "It "}]}, {"content": [{"type": "text", "text": "is 4."}]}], "It is 4.", ""),
        ([{"content": "It "}, {"content": [{"type": "text", "text": "is 4."}]}], "It is 4.", ""),
        ([{"content": [{"type": "thinking", "thinking": "2+2"}]}, {"content": "It is 4."}], "It is 4.", "2+2"),
        ([{"reasoning_content": "2"}, {"reasoning_content": "+2", "content": ""}, {"content": "It is 4."}], "It is 4.", "2+2"),
        ([{"reasoning": "2"}, {"reasoning": "+2"}, {"content": "It is 4."}], "It is 4.", "2+2"),
        ([{"reasoning": "2+2", "reasoning_content": "2+2"}, {"content": "It is 4."}], "It is 4.", "2+2"),
        ([{"content": "<thi"}, {"content": "nk>2+2</think"}, {"content": ">It is 4."}], "It is 4.", "2+2"),
        ([{"content": "\ud83d"}, {"content": "\ude00 yes"}], "\U0001f600 yes", ""),
        ([{"content": "half \ud83d"}, {"content": "!"}], "half \ufffd!", ""),
    ],
)  # fmt: skip
def test_text_and_reasoning_are_shown_and_read_alike(deltas: list[Any], text: str, reasoning: str) -> None:
    shown, thought, outcome = read_in([stream(*deltas)])
    assert isinstance(outcome, Reply)
    assert (shown, thought) == (outcome.text, outcome.reasoning) == (text, reasoning)


def test_deltas_of_one_read_are_joined() -> None:
    reader = StreamReader(TOOLS)
    assert reader.feed(b": hello\n\n") == []
    assert not reader.saw_content
    assert reader.feed(event({"role": "assistant", "content": ""})) == []
    assert not reader.saw_content
    assert reader.feed(b"".join(event({"content": text}) for text in ("It ", "is ", "4."))) == [
        TextDelta("It is 4.")
    ]
    assert reader.saw_content
    assert not reader.done
    reader.feed(event({}, "stop"))
    assert reader.done
    assert not reader.ended
    reader.feed(END)
    assert reader.ended


@pytest.mark.parametrize(
    "body",
    [
        b"data: {data}\n\ndata: {stop}\n\n",
        b"data: {data}{stop}\n\ndata: [DONE]\n\n",
        b"data: {data}data: {stop}\n\n",
        b"data: {data}\ndata: {stop}\ndata: [DONE]",
        b"{data}\n{stop}\n",
        b"[{data}, {stop}]",
        b"[{data},\n{stop}\n]",
        b"data: [{data}, {stop}]\n\n",
        b'data: {"data": {data}}\n\ndata: {stop}\n\n',
        b"data: {data}\n\ndata: [DONE]\n\n",
        b'data: {data}\n\ndata: "[DONE]"\n\n',
        b'event: ping\ndata: {}\n\ndata: {data}\n\ndata: {"type": "ping"}\n\ndata: {stop}\n\n',
        b'data: {data}\n\ndata: {stop}\n\ndata: {"choices": [], "usage": {"prompt_tokens": 1}}\n\n',
        b"data: undefined\n\ndata: {data}\n\ndata: {stop}\n\n",
        b'data: {"choices": [], "id": ""}\n\ndata: {data}\n\ndata: {stop}\n\ndata: {stop}\n\ndata: [DONE]\n\ndata: [DONE]\n\n',
    ],
)
def test_chunks_are_found_however_they_are_sent(body: bytes) -> None:
    data, stop = event({"content": "It is 4."})[6:].strip(), event({}, "stop")[6:].strip()
    body = body.replace(b"{data}", data).replace(b"{stop}", stop)
    shown, _, outcome = read_in([body])
    assert isinstance(outcome, Reply), outcome
    assert (shown, outcome.text) == ("It is 4.", "It is 4.")
    assert read_in([bytes([byte]) for byte in body]) == (shown, "", outcome)


@pytest.mark.parametrize(
    ("body", "reason", "text"),
    [
        (event({"content": "It is"}), "cut_off", "It is"),
        (event({"content": "It is"}) + b'data: {"choices": [{"del', "broken_chunk", "It is"),
        (event({"tool_calls": [fragment(OSLO_TEXT, "get_weather", index=0)]}), "cut_off", ""),
        (event({"content": "It is"}) + b'data: {"error": {"message": "no"}}\n\n', "error_object", "It is"),
        (event({"content": "It is"}) + b'event: error\ndata: overloaded\n\n', "error_object", "It is"),
        (event({"content": "It is"}) + b'{\n  "error": "no"\n}\n', "error_object", "It is"),
        (event({"content": "It is"}) + b'data: {"message": "no", "code": 1}\n\n', "error_object", "It is"),
        (event({"content": "It is"}, "error") + END, "error_finish", "It is"),
        (event({"content": "It is"}, None, error={"code": 502, "message": "no"}) + END, "error_object", "It is"),
    ],
)  # fmt: skip
def test_a_broken_stream_is_a_failure_that_keeps_the_text_and_runs_nothing(
    body: bytes, reason: str, text: str
) -> None:
    failure = failure_in(body)
    assert failure.reason == reason
    assert failure.partial is not None
    assert failure.partial.text == text
    assert failure.partial.cut_off
    assert ready(failure.partial) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b": keep-alive\n\n: keep-alive\n\n", "cut_off"),
        (b'data: {"choices": [{"del', "cut_off"),
        (END, "no_choices"),
        (b'data: {"choices": []}\n\n' + END, "no_choices"),
        (b'event: error\ndata: {"error": {"code": "tool_use_failed"}}\n\n', "error_object"),
        (b'data: {"detail": "no"}\n\n', "error_object"),
        (b"data: {nonsense}\n\n", "cut_off"),
    ],
)
def test_a_stream_that_says_nothing_is_a_failure(body: bytes, reason: str) -> None:
    assert failure_in(body).reason == reason


BROKEN_CHUNKS = (
    b'{"choices": [{',
    b"{",
    b'[{"choices": [{"index": 0',
    b'{"choices": [{"index": 0, "deltaent": "is"}, "finish_reason": null}]}',
    b"{'choices': [{'delta': {'content': 'is'",
    event({"content": ""})[6:].strip() + b'{"choices": [{"index": 0, "de',
)
NOTHING_LOST = (
    b"[PING]",
    b"[DON",
    b"{keep-alive}",
    b"undefined",
    b'{"id": "c1", "choices": [], "usage": {"prompt_to',
    b'{"id": "c1", "choices" : null, "usage": {"prompt_to',
)
"""Data that is no JSON, and held nothing of the reply."""


@pytest.mark.parametrize("broken", BROKEN_CHUNKS)
@pytest.mark.parametrize("finish", [event({}, "stop") + END, event({}, "stop"), END, b""])
@pytest.mark.parametrize(
    "said", [{"content": "It is 4."}, {"tool_calls": [fragment(OSLO_TEXT, "get_weather", index=0)]}]
)
def test_a_chunk_that_cannot_be_read_leaves_a_reply_with_a_hole(
    said: dict[str, Any], finish: bytes, broken: bytes
) -> None:
    failure = failure_in(event(said) + b"data: " + broken + b"\n\n" + finish)
    assert failure.reason == "broken_chunk"
    assert failure.partial is not None
    assert failure.partial.cut_off
    assert failure.partial.text == said.get("content", "")
    assert ready(failure.partial) == []


@pytest.mark.parametrize("noise", NOTHING_LOST)
def test_data_that_held_nothing_of_the_reply_breaks_nothing(noise: bytes) -> None:
    call = {"tool_calls": [fragment(OSLO_TEXT, "get_weather", index=0)]}
    reply = reply_in(event(call) + b"data: " + noise + b"\n\n" + event({}, "tool_calls") + END)
    assert [mend.code for mend in reply.mends] == ["unreadable_chunk"]
    assert ready(reply) == [("get_weather", {"city": "Oslo"})]


def test_a_chunk_that_breaks_behind_the_finish_reason_costs_calls_but_no_text() -> None:
    broken = b'data: {"id": "c1", "obj'
    reply = reply_in(event({"content": "It is 4."}) + event({}, "stop") + broken)
    assert (reply.text, [mend.code for mend in reply.mends]) == ("It is 4.", ["unreadable_chunk"])
    call = {"tool_calls": [fragment(OSLO_TEXT, "get_weather", index=0)]}
    assert failure_in(event(call) + event({}, "tool_calls") + broken).reason == "broken_chunk"


def test_a_reader_tells_at_once_that_its_stream_has_a_hole() -> None:
    reader = StreamReader(TOOLS)
    reader.feed(event({"content": "It is "}))
    assert not reader.over
    reader.feed(b'data: {"choices": [{\n\n')
    assert reader.over
    assert not reader.ended


def test_a_length_that_was_said_once_is_not_taken_back() -> None:
    call = event({"tool_calls": [fragment(OSLO_TEXT, "get_weather", index=0)]})
    reply = reply_in(call + event({}, "length") + event({}, "tool_calls") + END)
    assert reply.finish_reason == "length"
    assert ready(reply) == []


def test_usage_comes_last_or_first_or_in_a_corner() -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 3}
    late = b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n"
    text = event({"content": "x"}, usage=None)
    for body in (
        text + event({}, "stop") + late + END,
        event({}, usage=counts) + text + event({}, "stop") + END,
        text + event({}, "stop", x_groq={"usage": counts}) + END,
        event({"content": "x"}, usage={"prompt_tokens": 9, "completion_tokens": 1})
        + event({}, "stop", usage=counts),
    ):
        assert reply_in(body).usage == Usage(9, 3)


def test_reasoning_details_are_merged_for_sending_back() -> None:
    parts = [{"type": "reasoning.text", "index": 0, "text": text} for text in ("2", "+2")]
    signed = {"type": "reasoning.text", "index": 0, "signature": "s"}
    deltas = [{"reasoning_details": [part]} for part in (*parts, signed)]
    reply = reply_in(stream(*deltas, {"content": "4"}))
    assert reply.raw["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "2+2", "signature": "s"}
    ]
    assert reply.reasoning == "2+2"


def test_extra_fields_of_a_streamed_call_are_kept() -> None:
    call = fragment(
        OSLO_TEXT, "get_weather", index=0, id="a", type="function", extra_content={"signature": "s"}
    )
    [read] = reply_in(calls_stream(call)).tool_calls
    assert (read.id, read.extra) == ("a", {"extra_content": {"signature": "s"}})


_TEXTS = st.sampled_from(
    [
        "It is 4.",
        "<think>2+2</think>4",
        "2+2</think>4",
        "`<think>`",
        "a\n<think>b",
        "北京 \U0001f600",
        "<tool_call>",
        " ",
        "",
        "{",
    ]
)
_CALLS = st.lists(
    st.sampled_from(
        [
            {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": OSLO_TEXT}},
            {"id": "b", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": '}},
            {"id": "c", "type": "function", "function": {"name": "list_cities", "arguments": ""}, "extra": 1},
            {"id": "d", "type": "function", "function": {"name": "nope", "arguments": '{"x": [1]}'}},
        ]
    ),
    max_size=3,
    unique_by=lambda call: str(call["id"]),
)


def _deltas(message: dict[str, Any], data: st.DataObject) -> list[dict[str, Any]]:
    """The message as a stream would bring it, cut at random."""
    deltas: list[dict[str, Any]] = []
    for field in ("reasoning_content", "content"):
        deltas += [{field: piece} for piece in _cut(message.get(field) or "", data)]
    for index, call in enumerate(message.get("tool_calls", ())):
        head = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        pieces = _cut(call["function"]["arguments"], data)
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces]
    return deltas


def _cut(text: str, data: st.DataObject) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(_TEXTS, _TEXTS, _CALLS, st.sampled_from(["stop", "tool_calls", "length"]), st.data())
def test_streaming_gives_the_reply_that_one_body_gives(
    content: str, reasoning: str, calls: list[Any], finish: str, data: st.DataObject
) -> None:
    message: dict[str, Any] = {"content": content or None}
    message |= {"reasoning_content": reasoning} if reasoning else {}
    message |= {"tool_calls": calls} if calls else {}
    whole = reply_in(completion(message, finish))
    streamed = reply_in(stream(*_deltas(message, data), finish=finish))
    assert streamed == whole


@given(
    st.lists(st.tuples(_TEXTS, st.sampled_from(["content", "reasoning", "reasoning_content"])), max_size=6),
    st.data(),
)
def test_how_the_bytes_were_cut_changes_nothing(
    texts: Sequence[tuple[str, str]], data: st.DataObject
) -> None:
    body = stream(*({field: text} for text, field in texts))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert read_in(pieces) == read_in([body])


@given(st.binary(max_size=40), st.integers(0, 400), st.integers(0, 400))
def test_no_mutation_of_a_stream_makes_reading_raise(noise: bytes, start: int, end: int) -> None:
    body = calls_stream(fragment('{"city": ', "get_weather", index=0, id="a"), fragment('"Oslo"}', index=0))
    mutated = body[:start] + noise + body[end:]
    assert isinstance(read_body(mutated, TOOLS), (Reply, Failure))


def _operations(work: Callable[[], object]) -> int:
    """How many functions were called, C's included."""
    with cProfile.Profile() as profile:
        work()
    return sum(entry.callcount for entry in profile.getstats())


UNITS = [
    "{",
    "[",
    '"\\',
    "<tool_call>",
    "<think>",
    "</think>",
    "a<think>",
    '{"a":1}',
    "`",
    "&quot;",
    "<parameter=city>x</parameter>",
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "read",
    [
        lambda text: read_arguments(text, TOOLS["get_weather"].parameters, name="get_weather"),
        lambda text: read_body(text.encode(), TOOLS),
        lambda text: read_body(b"data: " + text.encode() + b"\n\n", TOOLS),
        lambda text: read_body(stream(*({"content": text[at : at + 1000]} for at in range(0, len(text), 1000))), TOOLS),
        lambda text: read_body(calls_stream(*(fragment(text[at : at + 1000], "x", index=0) for at in range(0, len(text), 1000))), TOOLS),
    ],
    ids=["arguments", "body", "chunk", "content", "call"],
)  # fmt: skip
def test_the_work_grows_with_the_input_and_not_faster(unit: str, read: Callable[[str], object]) -> None:
    small, large = (_operations(partial(read, unit * (size // len(unit)))) for size in (20_000, 40_000))
    assert large <= 2.2 * small + 200


@pytest.mark.parametrize("unit", UNITS[:5])
@pytest.mark.parametrize(
    "read",
    [
        lambda text: read_arguments(text, TOOLS["get_weather"].parameters, name="get_weather"),
        lambda text: read_body(completion({"content": text}), TOOLS),
    ],
    ids=["arguments", "content"],
)
def test_a_megabyte_is_no_more_than_twice_the_work_of_half_a_megabyte(
    unit: str, read: Callable[[str], object]
) -> None:
    small, large = (_operations(partial(read, unit * (size // len(unit)))) for size in (500_000, 1_000_000))
    assert large <= 2.2 * small + 200


@pytest.mark.parametrize(
    ("events", "codes"),
    [
        ([{"content": "The sum of two"}, {"content": "The sum of two and two"}, {"content": "The sum of two and two is 4."}], ["cumulative_chunks"]),
        ([{"reasoning_content": "a b"}, {"reasoning_content": "a b c"}, {"reasoning_content": "a b c d"}, {"content": "4"}], ["cumulative_chunks"]),
        ([{"content": "The sum"}, {"content": " is 4."}], []),
    ],
)  # fmt: skip
def test_chunks_that_repeat_what_came_before_are_mended_and_that_is_said(events, codes):
    reply = reply_in(stream(*events))
    assert [mend.code for mend in reply.mends] == codes


def test_arguments_that_repeat_what_came_before_are_mended_and_that_is_said():
    pieces = ['{"ci', '{"city": "Os', OSLO_TEXT]
    fragments = [fragment(pieces[0], "get_weather", index=0, id="a")]
    fragments += [fragment(piece, index=0) for piece in pieces[1:]]
    reply = reply_in(calls_stream(*fragments))
    assert reply.tool_calls[0].arguments == OSLO
    assert [mend.code for mend in reply.mends] == ["cumulative_chunks"]


def test_a_function_that_is_json_text_is_read_in_a_stream_too():
    text = json.dumps({"name": "get_weather", "arguments": OSLO_TEXT})
    reply = reply_in(calls_stream({"index": 0, "id": "a", "function": text}))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == ONE


PIECES = st.one_of(
    st.dictionaries(
        st.text(max_size=3), st.one_of(st.none(), st.integers(), st.text(max_size=5)), max_size=3
    ).map(lambda value: json.dumps(value, ensure_ascii=False)),
    st.sampled_from(
        ["", "[]", "{", "}", "{}{}", '{"a":1},{"b":2}', '{"a":[1', "2]}", '{"a":NaN}', "1", "{ }", " {} "]
    ),
    st.text(alphabet='{}[]",:1 ', max_size=6),
)


@given(st.lists(PIECES, max_size=5))
def test_objects_that_came_together_are_read_as_each_would_be_alone(texts: list[str]) -> None:
    assert whole_objects(texts) == [whole_object(text) for text in texts]
