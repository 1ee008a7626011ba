"""Histories from anywhere: read with tolerance, sent in order, and the same after a round trip."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import Image, Reply, System, ToolResult, User
from glassloop.wire.history import entries_from_messages, messages_from_entries

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def turn(*calls, **more):
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def answer(text="3", **more):
    return {"role": "tool", "tool_call_id": "c1", "content": text, **more}


def test_each_role_becomes_its_entry():
    entries = entries_from_messages(
        [
            {"role": "developer", "content": [{"type": "text", "text": "s"}]},
            {"role": "user", "content": "q"},
            turn(CALL, reasoning_content="hm"),
            answer(),
            {"role": "assistant", "content": "3"},
        ]
    )
    system, question, calls, result, reply = entries
    assert system == System("s")
    assert question.text == "q"
    assert calls.tool_calls[0].arguments == {"a": 1}
    assert calls.reasoning == "hm"
    assert (result.call_id, result.name, result.text) == ("c1", "add", "3")
    assert reply.text == "3"


@pytest.mark.parametrize(
    ("messages", "texts"),
    [
        ([turn({**CALL, "id": ""}), {"role": "tool", "content": "3"}], ["3"]),
        ([turn({**CALL, "id": None}), {"role": "function", "name": "add", "content": "3"}], ["3"]),
        ([turn(CALL), {"role": "user", "content": "hurry"}, answer()], ["3"]),
        ([turn(CALL), answer(), answer("again")], ["3"]),
        ([turn(CALL), answer(tool_call_id="other")], []),
        ([answer(), turn(CALL)], []),
        ([turn(CALL, CALL), answer("one"), answer("two")], ["one", "two"]),
        ([turn(CALL), answer("one"), turn(CALL), answer("two")], ["one", "two"]),
        ([turn(CALL), answer([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])], ["ab"]),
        ([turn(CALL), answer(None)], [""]),
        ([turn(CALL), answer({"sum": 3})], ['{"sum":3}']),
        (
            [
                turn(CALL),
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3"}]},
            ],
            ["3"],
        ),
        (
            [
                {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}},
                {"role": "function", "name": "add", "content": "3"},
            ],
            ["3"],
        ),
    ],
)
def test_a_result_finds_its_call_and_one_without_a_call_is_dropped(messages, texts):
    entries = entries_from_messages(messages)
    assert [entry.text for entry in entries if isinstance(entry, ToolResult)] == texts
    calls = [call.id for entry in entries if isinstance(entry, Reply) for call in entry.tool_calls]
    assert len(set(calls)) == len(calls)
    assert all(calls)
    for before, after in itertools.pairwise(entries):
        assert not isinstance(after, ToolResult) or isinstance(before, (Reply, ToolResult))


def test_arguments_may_be_an_object():
    call = {"id": "c1", "function": {"name": "add", "arguments": {"a": 1}}}
    assert entries_from_messages([turn(call)])[0].tool_calls[0].arguments == {"a": 1}


def test_pictures_are_read_from_data_urls_and_addresses():
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,cA=="}},
        {"type": "image_url", "image_url": "https://x/y.png"},
    ]
    (entry,) = entries_from_messages([{"role": "user", "content": parts}])
    assert entry.parts == (Image("image/gif", b"p"), Image(url="https://x/y.png"))


@pytest.mark.parametrize(("message", "words"), [("hello", "message 0"), ({"role": "king"}, "king")])
def test_what_is_no_message_is_named(message, words):
    with pytest.raises(ValueError, match=words):
        entries_from_messages([message])


def test_a_history_is_the_same_after_a_round_trip():
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{**CALL, "function": {"name": "add", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "3"},
        {"role": "assistant", "content": "It is 3."},
    ]
    assert messages_from_entries(entries_from_messages(messages)) == messages


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"])},
    optional={
        "content": JSONS,
        "tool_calls": st.lists(
            st.just(CALL) | st.fixed_dictionaries({"id": JSONS, "function": JSONS}), max_size=2
        )
        | JSONS,
        "tool_call_id": st.sampled_from(["c1", "", None, 7]),
        "name": st.sampled_from(["add", None]),
        "function_call": JSONS,
    },
)


@given(st.lists(MESSAGES, max_size=6))
def test_whatever_the_messages_the_history_is_sendable_and_stays_so(messages):
    once = messages_from_entries(entries_from_messages(messages))
    waiting = []
    for message in once:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert not waiting
    again = messages_from_entries(entries_from_messages(json.loads(json.dumps(once))))
    assert [m["role"] for m in again] == [m["role"] for m in once]


def test_a_users_content_that_is_only_results_adds_no_message():
    content = [{"type": "tool_result", "tool_use_id": "c1", "content": "3"}]
    entries = entries_from_messages([turn(CALL), {"role": "user", "content": content}])
    assert not any(isinstance(entry, User) for entry in entries)
