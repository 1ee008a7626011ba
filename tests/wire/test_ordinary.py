"""The short ways for ordinary replies and arguments come to what the general ways come to."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.wire.reading import TOOLS

from glassloop.core.entries import Reply
from glassloop.wire.arguments import by_ladder, plain_object, read_arguments
from glassloop.wire.bodies import BODY_DECODER, whole_object
from glassloop.wire.chunks import Chunks
from glassloop.wire.completion import read_any_completion
from glassloop.wire.ordinary import ordinary_reply
from glassloop.wire.slots import CallSlots
from glassloop.wire.stream import StreamReader
from glassloop.wire.textcalls import TextCallReader, find_calls

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}

_ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.just([]), st.just({}), st.just([{}]), st.just({"a": "b"})
)
_WORDS = st.sampled_from(
    ("", "Hello.", "你好", "a\nb", "<think>x</think>y", "[TOOL_CALLS]", "half \ud83d", '{"city": "Oslo"}', "get_weather",
     "```json\n{}\n```", 'Action: get_weather\nAction Input: {"city": "Oslo"}', "error", "stop", "length")
)  # fmt: skip
_VALUES = st.one_of(_WORDS, _ODD)
_ARGUMENTS = st.one_of(
    st.sampled_from(
        ('{"city": "Oslo"}', "{}", "", '{"city": 7}', '{"city": "\\ud83d"}', '{"city": "Oslo"', "null",
         '{"city": "a", "city": "b"}', ' {"city": "東京"} ', '{"arguments": {"city": "Oslo"}}')
    ),
    _VALUES,
)  # fmt: skip


def _mostly(ordinary: Any, otherwise: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 9).flatmap(lambda drawn: otherwise if drawn == 9 else st.just(ordinary))


def _objects(ordinary: dict[str, st.SearchStrategy[Any]], more: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Objects of these fields, with some left out and sometimes one more."""
    fields = st.fixed_dictionaries(ordinary)
    gone = _mostly(None, st.sampled_from(tuple(ordinary)))
    extra = _mostly({}, st.dictionaries(st.sampled_from(more), _VALUES, max_size=1))
    return st.builds(
        lambda fields, gone, extra: {key: fields[key] for key in fields if key != gone} | extra,
        fields, gone, extra,
    )  # fmt: skip


_CALLS = _objects(
    {
        "id": _mostly("call_1", _VALUES),
        "type": _mostly("function", _VALUES),
        "function": _objects(
            {"name": _mostly("get_weather", _VALUES), "arguments": _ARGUMENTS}, ("parameters", "input")
        ),
    },
    ("index", "extra_content", "name"),
)
_MESSAGES = _objects(
    {
        "role": _mostly("assistant", _VALUES),
        "content": st.one_of(st.none(), _VALUES),
        "tool_calls": st.one_of(st.lists(_CALLS, max_size=2), _mostly([CALL], _VALUES)),
    },
    ("refusal", "reasoning_content", "audio", "function_call", "annotations", "\ud83d"),
)
_CHOICES = _objects(
    {
        "index": _mostly(0, _VALUES),
        "message": _MESSAGES,
        "finish_reason": _mostly("tool_calls", _VALUES),
    },
    ("native_finish_reason", "error", "tool_calls", "usage", "text", "delta"),
)
_BODIES = _objects(
    {
        "id": _mostly("chatcmpl-1", _VALUES),
        "model": _mostly("some-model", _VALUES),
        "choices": st.integers(0, 9).flatmap(
            lambda drawn: st.lists(_CHOICES, max_size=2) if drawn == 9 else st.tuples(_CHOICES).map(list)
        ),
        "usage": st.one_of(
            _VALUES, st.fixed_dictionaries({"prompt_tokens": _VALUES, "completion_tokens": _VALUES, "cost": _ODD})
        ),
    },
    ("error", "errors", "data", "x_groq", "base_resp"),
)  # fmt: skip


@given(_BODIES, st.sampled_from(("native", "hermes")))
def test_an_ordinary_reply_is_what_the_general_way_reads(body: Any, tool_mode: str) -> None:
    reply = ordinary_reply(body, TOOLS, tool_mode)
    assert reply is None or reply == read_any_completion(body, TOOLS, tool_mode=tool_mode)


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Hello."},
        {"content": None, "tool_calls": [CALL]},
        {"content": "", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
        {"content": "我先看看。", "tool_calls": [CALL], "refusal": None, "annotations": []},
    ],
)
@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
def test_what_almost_every_reply_looks_like_takes_the_short_way(message: Any, finish: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"id": "chatcmpl-1", "choices": [choice], "usage": {"prompt_tokens": 3}}
    reply = ordinary_reply(body, TOOLS, "native")
    assert reply is not None
    assert reply == read_any_completion(body, TOOLS, tool_mode="native")


_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "any": {},
        "list": {"type": "array", "items": {"type": "string"}},
        "maybe": {"type": ["string", "null"]},
    },
}
_LEAVES = st.one_of(st.text(max_size=5), st.integers(), st.floats(), st.booleans(), st.none())
_NAMES = st.sampled_from((*_SCHEMA["properties"], "arguments", "other", "\ud83d"))
_TREES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2)
)
_OBJECTS = st.dictionaries(_NAMES, _LEAVES | _TREES, max_size=4)
_TEXTS = st.one_of(
    st.builds(lambda value, escaped: json.dumps(value, ensure_ascii=escaped), _OBJECTS, st.booleans()),
    st.builds(lambda value, cut: json.dumps(value)[:cut], _OBJECTS, st.integers(0, 40)),
    st.builds(lambda one, other: f"{json.dumps(one)[:-1]},{json.dumps(other)[1:]}", _OBJECTS, _OBJECTS),
)  # fmt: skip


@given(_TEXTS)
@example('{"text": 1.50}')
@example('{"count": 1e999}')
@example('{"count": NaN}')
@example('{"text": "a\nb"}')
@example(f'{{"count": {"9" * 5000}}}')
@example('{"text": "\\ud83d"}')
def test_plain_arguments_are_what_the_ladder_reads(text: str) -> None:
    plain = plain_object(text, _SCHEMA)
    if plain is None:
        assert repr(read_arguments(text, _SCHEMA)) == repr(by_ladder(text, _SCHEMA, None))
    else:
        assert (plain, ()) == (by_ladder(text, _SCHEMA, None).value, by_ladder(text, _SCHEMA, None).mends)


def test_plain_arguments_take_the_short_way() -> None:
    sent = {"text": "東京", "count": 3, "share": 1.5, "flag": True}
    assert plain_object(json.dumps(sent, ensure_ascii=False), _SCHEMA) == sent


@given(
    st.lists(st.sampled_from((*"\n {[<`", "Rome", "  ", "```json", "get_weather", '{"city": "Oslo"}', "]", "<|", "Act", ">>>", "\u3000")), max_size=5),
    st.sampled_from(("native", "hermes")),
    st.sampled_from((TOOLS, {})),
)  # fmt: skip
def test_a_text_in_which_nothing_begins_is_what_the_reader_finds(words, tool_mode, tools):
    text = "".join(words)
    reader = TextCallReader(tools, tool_mode)
    reader.feed(text)
    found = reader.finish()
    quick = find_calls(text, tools, tool_mode)
    assert (quick.content, quick.calls, quick.mends, quick.reasoning) == (
        found.content, found.calls, found.mends, found.reasoning
    )  # fmt: skip


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────

_DELTAS = st.one_of(
    st.sampled_from(
        (
            {"role": "assistant", "content": None},
            {"role": "assistant", "content": ""},
            {"content": "Rome "},
            {"content": "is."},
            {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '"Oslo"}'}}]},
            {"tool_calls": [{"index": 1, "id": "call_2", "function": {"name": "get_weather", "arguments": '{"city": "Rom"}'}}]},
            {"tool_calls": []},
            {},
        )
    ),
    st.builds(lambda content: {"content": content}, _ODD),
)  # fmt: skip
_FINISHES = _mostly(None, st.sampled_from(("stop", "tool_calls", "length", "error", "content_filter", "", 7)))
_USAGES = _mostly(None, st.one_of(st.just({"prompt_tokens": 3, "completion_tokens": None}), _ODD))
_CHUNKS = st.builds(
    lambda delta, finish, index, usage, choices: {
        "id": "c1",
        "object": "chat.completion.chunk",
        "choices": choices if choices is not None else [{"index": index, "delta": delta, "finish_reason": finish}],
        "usage": usage,
    },
    _DELTAS, _FINISHES, _mostly(0, _ODD), _USAGES, _mostly(None, st.just([])),
)  # fmt: skip


def _as_it_streams(chunks: list[Any], monkeypatch: pytest.MonkeyPatch, *, quickly: bool) -> Any:
    with monkeypatch.context() as patch:
        if not quickly:
            patch.setattr(Chunks, "_takes", lambda self, chunk, deltas: False)
            patch.setattr(CallSlots, "add_ordinary", lambda self, fragments: False)
        reader = StreamReader(TOOLS)
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        shown = reader.feed(body.encode())
        read = reader.finish()
    return shown, reader.tail, read if isinstance(read, Reply) else (read.reason, read.partial)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(chunks=st.lists(_CHUNKS, max_size=9))
def test_a_stream_is_read_the_same_with_and_without_the_short_way(chunks, monkeypatch):
    quick, general = (_as_it_streams(chunks, monkeypatch, quickly=quickly) for quickly in (True, False))
    assert quick == general


@pytest.mark.parametrize("content", [[], {}, None, ""], ids=repr)
def test_a_chunk_without_text_takes_none_away(content, monkeypatch):
    said = [
        {"content": "Rome is "},
        {"content": "the capital "},
        {"content": content},
        {"content": "of Italy."},
    ]
    chunks = [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in said
    ]
    chunks.append(
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    )
    _, _, reply = _as_it_streams(chunks, monkeypatch, quickly=True)
    assert reply.text == "Rome is the capital of Italy."


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("half \ud83d"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@given(st.dictionaries(st.text(), _JSON), st.booleans(), st.sampled_from(("", " ", "\n", "x", "{}", ",")))
def test_an_object_read_the_quick_way_is_the_same_or_left_alone(
    value: Any, ascii_only: bool, end: str
) -> None:
    _is_same_or_left_alone(json.dumps(value, ensure_ascii=ascii_only) + end)


@given(_NUMBERS)
@example("-0")
@example("1e400")
@example("9" * 5000)
def test_a_number_read_the_quick_way_is_the_same_or_left_alone(number: str) -> None:
    _is_same_or_left_alone(f'{{"a": {number}, "b": 1, "a": [{number}]}}')


def _is_same_or_left_alone(text: str) -> None:
    quick = whole_object(text)
    if quick is not None:
        assert repr(quick) == repr(BODY_DECODER.decode(text))
        assert repr(quick) == repr(whole_object(text.encode()))


@given(st.binary(max_size=20))
def test_bytes_that_are_no_utf8_are_left_alone(text: bytes) -> None:
    quick = whole_object(b'{"a": "' + text + b'"}')
    if quick is not None:
        assert repr(quick) == repr(BODY_DECODER.decode('{"a": "' + text.decode() + '"}'))
