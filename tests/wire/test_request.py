"""Requests: any history becomes one that an endpoint takes, the same every time, each part encoded once."""

import gc
import itertools
import json
import re
from collections import UserDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import (
    File,
    Image,
    Note,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from glassloop.core.errors import ConfigError
from glassloop.core.tools import ToolSpec
from glassloop.wire import request
from glassloop.wire.messages import NO_OUTPUT, NO_RESULT
from glassloop.wire.profile import Profile
from glassloop.wire.request import Encoder

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
TOOLS = (ADD,)


def user(text):
    return User((Text(text),))


def call(call_id, name="add", arguments=None, **more):
    return Reply(tool_calls=(ToolCall(call_id, name, arguments if arguments is not None else {}),), **more)


def result(call_id, text="3", name="add"):
    return ToolResult(call_id, name, (Text(text),))


def sent(entries, profile=None, *, tools=TOOLS, settings=None, stream=False, encoder=None):
    encoder = encoder or Encoder(profile or Profile())
    return json.loads(encoder.encode("m", entries, tools, settings or {}, stream=stream))


def messages(entries, **changes):
    return sent(entries, Profile().merged(changes))["messages"]


# ── any history ──────────────────────────────────────────────────────────────────────────────────────────────────

IDS = st.sampled_from(["c1", "c2", " call 1|fc ", "functions.add:0", "", "x" * 60])
WORDS = st.sampled_from(["", " ", "word", "北京", "\ud800", "\ud83d\ude00"])
PARTS = st.lists(
    st.builds(Text, WORDS) | st.just(Image(data=b"p")) | st.just(File("a.txt", "text/plain", b"hello")),
    max_size=3,
).map(tuple)
CALLS = st.builds(
    ToolCall,
    IDS,
    st.sampled_from(["add", "", "my.tool", "工具", "3d_view"]),
    st.none() | st.dictionaries(WORDS, st.integers() | st.floats() | WORDS, max_size=2),
    extra=st.none()
    | st.just({"extra_content": {"google": {"thought_signature": "s"}}, "index": 0, "x": None}),
)
ENTRIES = st.lists(
    st.builds(System, WORDS)
    | st.builds(User, PARTS)
    | st.builds(
        Reply,
        text=WORDS,
        reasoning=WORDS,
        tool_calls=st.lists(CALLS, max_size=3).map(tuple),
        raw=st.sampled_from([{}, {"reasoning_content": "r"}, {"reasoning_details": [{"text": "r"}]}]),
        reasoning_field=st.sampled_from([None, "reasoning_content"]),
    )
    | st.builds(ToolResult, IDS, st.just("add"), PARTS)
    | st.builds(Note, WORDS)
    | st.builds(Summary, WORDS, st.integers(0, 9)),
    max_size=12,
)
PROFILES = st.fixed_dictionaries(
    {},
    optional={
        "system": st.sampled_from(["system", "developer", "user"]),
        "call_content": st.sampled_from(["", "omit", "null", "blank", "words"]),
        "tool_name": st.booleans(),
        "parallel_calls": st.booleans(),
        "ids": st.sampled_from(["any", "safe", "nine"]),
        "arguments": st.sampled_from(["text", "object"]),
        "call_extra": st.booleans(),
        "call_index": st.booleans(),
        "signature": st.booleans(),
        "reasoning_back": st.sampled_from(["loop", "never", "always"]),
        "reasoning_name": st.sampled_from([None, "reasoning_content"]),
        "alternate": st.booleans(),
        "user_after_tool": st.sampled_from(["separate", "fold"]),
        "images": st.booleans(),
        "files": st.booleans(),
        "images_in_tools": st.booleans(),
        "names": st.sampled_from(["plain", "strict"]),
    },
).map(lambda changes: Profile().merged(changes))


@given(ENTRIES, PROFILES)
def test_whatever_the_history_every_call_has_exactly_one_result_directly_after_its_turn(entries, profile):
    waiting = []
    for message in sent(entries, profile)["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        assert all(waiting)
        assert len(set(waiting)) == len(waiting)
    assert not waiting


@given(ENTRIES, PROFILES)
def test_whatever_the_history_each_message_is_one_that_endpoints_take(entries, profile):
    pattern = {"plain": r"[A-Za-z0-9_-]{1,64}", "strict": r"[A-Za-z][A-Za-z0-9_]{0,47}"}[profile.names]
    history = sent(entries, profile)["messages"]
    for position, message in enumerate(history):
        content = message.get("content")
        calls = message.get("tool_calls")
        assert message["role"] in {"system", "developer", "user", "assistant", "tool"}
        assert (message["role"] in {"system", "developer"}) <= (position == 0)
        assert message["role"] != profile.system or profile.system != "user" or content
        assert content or calls
        if message["role"] == "tool" and not profile.images_in_tools:
            assert isinstance(content, str)
            assert content.strip()
        assert all(value is not None for key, value in message.items() if key != "content")
        for call in calls or []:
            assert call["type"] == "function"
            assert re.fullmatch(pattern, call["function"]["name"])
            arguments = call["function"]["arguments"]
            assert isinstance(arguments if profile.arguments == "object" else json.loads(arguments), dict)


@given(ENTRIES, PROFILES)
def test_the_same_history_twice_gives_the_same_bytes(entries, profile):
    encoder = Encoder(profile)
    first = encoder.encode("m", entries, TOOLS, {}, stream=True)
    assert encoder.encode("m", list(entries), TOOLS, {}, stream=True) == first
    assert Encoder(profile).encode("m", entries, TOOLS, {}, stream=True) == first


@given(ENTRIES, PROFILES)
def test_turns_alternate_where_they_must(entries, profile):
    roles = [m["role"] for m in sent(entries, profile.merged({"alternate": True}))["messages"]]
    roles = [role for role in roles if role not in {"system", "developer"}]
    assert "assistant" not in roles[-1:]
    for before, after in itertools.pairwise(roles):
        assert (before, after) not in {("user", "user"), ("assistant", "assistant")}


@given(ENTRIES, ENTRIES, PROFILES)
def test_what_was_encoded_before_never_shows_in_the_bytes(first, second, profile):
    encoder = Encoder(profile)
    histories = [first, first + second, second, first[: len(first) // 2] + second, first + second]
    for history in histories:
        fresh = Encoder(profile).encode("m", history, TOOLS, {}, stream=True)
        assert encoder.encode("m", history, TOOLS, {}, stream=True) == fresh


@given(ENTRIES, ENTRIES, PROFILES)
def test_a_history_that_grows_entry_by_entry_and_parts_is_sent_as_if_it_were_new(entries, others, profile):
    encoder = Encoder(profile)
    half = len(entries) // 2
    grown = [entries[:count] for count in range(len(entries) + 1)]
    parted = [entries[:half] + others[:count] for count in range(len(others) + 1)]
    for history in [*grown, *parted, entries]:
        fresh = Encoder(profile).encode("m", history, TOOLS, {}, stream=True)
        assert encoder.encode("m", history, TOOLS, {}, stream=True) == fresh


# ── encoded once ─────────────────────────────────────────────────────────────────────────────────────────────────


def rounds(count):
    history = [System("s"), user("go")]
    for number in range(count):
        yield list(history)
        history += [call(f"c{number}", arguments={"a": number}), result(f"c{number}")]


def test_a_request_up_to_its_messages_end_is_a_prefix_of_the_next():
    encoder = Encoder(Profile())
    bodies = [encoder.encode("m", history, TOOLS, {}, stream=True) for history in rounds(6)]
    for before, after in itertools.pairwise(bodies):
        assert after.startswith(before[: -len(b"]}")])


def test_a_round_encodes_only_what_is_new(monkeypatch):
    encoded = []
    real = request.encoded_quickly
    monkeypatch.setattr(
        request, "encoded_quickly", lambda messages: encoded.extend(messages) or real(messages)
    )
    encoder = Encoder(Profile())
    costs = []
    for history in rounds(40):
        before = len(encoded)
        encoder.encode("m", history, TOOLS, {}, stream=True)
        costs.append(len(encoded) - before)
    assert set(costs[2:]) == {2}  # the turn and its result


def test_a_history_cut_behind_its_summary_is_sent_as_an_encoder_that_never_saw_it_sends_it():
    system, summary = System("Be brief."), Summary("They greeted.", replaces=2)
    kept = [Reply("Yes?"), User((Text("And now?"),)), Reply("Now this.")]
    whole = (system, User((Text("Hello"),)), Reply("Hi."), summary, *kept)
    used = Encoder(Profile())
    for history in (whole, (*whole, User((Text("More."),)))):
        used.encode("m", history, (), {}, stream=False)
    cut = (system, summary, *kept, User((Text("More."),)))
    assert used.encode("m", cut, (), {}, stream=False) == Encoder(Profile()).encode(
        "m", cut, (), {}, stream=False
    )


def test_nothing_is_kept_of_a_conversation_that_is_gone():
    encoder = Encoder(Profile())
    for history in rounds(5):
        encoder.encode("m", history, TOOLS, {}, stream=True)
    del history
    gc.collect()
    assert len(encoder._histories) == 0


# ── what is sent of a turn ───────────────────────────────────────────────────────────────────────────────────────


def test_instructions_are_one_leading_system_message():
    history = messages([System("a"), user("q"), System(""), System("b")])
    assert [m["content"] for m in history] == ["a\n\nb", "q"]
    assert [m["role"] for m in history] == ["system", "user"]


def test_instructions_join_the_first_user_message_where_there_is_no_system_role():
    assert messages([System("a"), user("q")], system="user") == [{"role": "user", "content": "a\n\nq"}]


def test_results_stand_in_call_order_once_and_missing_ones_are_made():
    turn = Reply(tool_calls=(ToolCall("c1", "add", {}), ToolCall("c2", "add", {}), ToolCall("c3", "add", {})))
    history = messages([turn, result("c2", "two"), result("c9"), result("c1", "one"), result("c1", "again")])
    assert [m["content"] for m in history[1:]] == ["one", "two", NO_RESULT]


def test_a_result_behind_a_users_word_still_follows_its_call():
    history = messages([call("c1"), user("hurry"), result("c1")])
    assert [m["role"] for m in history] == ["assistant", "tool", "user"]


def test_a_turn_with_neither_text_nor_calls_is_not_sent():
    assert [m["role"] for m in messages([user("q"), Reply(reasoning="hm"), Note("go on")])] == [
        "user",
        "user",
    ]


def test_an_empty_result_says_so():
    assert messages([call("c1"), result("c1", "  ")])[1]["content"] == NO_OUTPUT


def test_a_note_directly_after_results_joins_the_last_and_any_other_is_the_users():
    history = messages([call("c1"), result("c1"), Note("n"), user("q"), Note("m")])
    assert [(m["role"], m["content"]) for m in history[1:]] == [
        ("tool", "3\n\nn"),
        ("user", "q"),
        ("user", "m"),
    ]


def test_a_summary_stands_for_what_it_replaces_and_never_cuts_a_call_from_its_result():
    turn = [call("c1"), result("c1")]
    history = [System("s"), user("old"), *turn, Reply(text="done"), user("new")]
    assert [m["content"] for m in messages([*history, Summary("sum", 4)])] == ["s", "sum", "new"]
    cut_in_turn = messages([*history, Summary("sum", 2)])
    assert [m["role"] for m in cut_in_turn] == ["system", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("spelling", "content"),
    [("", {"content": ""}), ("omit", {}), ("null", {"content": None}), ("blank", {"content": " "})],
)
def test_a_turn_of_only_calls_has_the_content_that_the_profile_says(spelling, content):
    turn = messages([call("c1"), result("c1")], call_content=spelling)[0]
    assert {key: value for key, value in turn.items() if key == "content"} == content


def test_reasoning_goes_back_on_turns_with_calls_under_the_name_in_which_it_came():
    thought = {"reasoning": "hm", "reasoning_field": "reasoning_content", "raw": {"reasoning_content": "hm"}}
    history = [call("c1", **thought), result("c1"), Reply(text="3", **thought)]
    with_reasoning = {
        back: [
            m.get("reasoning_content")
            for m in messages(history, reasoning_back=back)
            if m["role"] == "assistant"
        ]
        for back in ("loop", "always", "never")
    }
    assert with_reasoning == {"loop": ["hm", None], "always": ["hm", "hm"], "never": [None, None]}
    assert (
        messages([call("c1"), result("c1")], reasoning_name="reasoning_content")[0]["reasoning_content"]
        == " "
    )


def test_structured_reasoning_and_a_calls_extra_fields_go_back_verbatim():
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    signed = ToolCall(
        "c1", "add", {}, extra={"extra_content": {"google": {"thought_signature": "s"}}, "index": 0}
    )
    turn = Reply(
        tool_calls=(signed,), raw={"reasoning_details": details}, reasoning="hm", reasoning_field="reasoning"
    )
    message = messages([turn, result("c1")])[0]
    assert message["reasoning_details"] == details
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert "index" not in message["tool_calls"][0]


@pytest.mark.parametrize(
    ("ids", "pattern"),
    [("any", "functions\\.add:0"), ("safe", "[A-Za-z0-9_-]{1,40}"), ("nine", "[A-Za-z0-9]{9}")],
)
def test_ids_are_as_the_endpoint_takes_them_in_both_places(ids, pattern):
    turn, answer = messages([call("functions.add:0"), result("functions.add:0")], ids=ids)
    assert re.fullmatch(pattern, turn["tool_calls"][0]["id"])
    assert answer["tool_call_id"] == turn["tool_calls"][0]["id"]


def test_parallel_calls_become_turns_of_their_own_where_only_one_is_taken():
    turn = Reply(text="both", tool_calls=(ToolCall("c1", "add", {}), ToolCall("c2", "add", {})))
    history = messages([turn, result("c2", "two"), result("c1", "one")], parallel_calls=False)
    assert [m["content"] for m in history] == ["both", "one", "", "two"]


def test_pictures_in_a_result_follow_in_a_user_message_after_all_results():
    turn = Reply(tool_calls=(ToolCall("c1", "shot", {}), ToolCall("c2", "add", {})))
    shot = ToolResult("c1", "shot", (Text("done"), Image(data=b"p")))
    history = messages([turn, shot, result("c2")])
    assert [m["role"] for m in history] == ["assistant", "tool", "tool", "user"]
    assert history[3]["content"][1]["image_url"]["url"] == "data:image/png;base64,cA=="
    blind = messages([turn, shot, result("c2")], images=False)
    assert [m["role"] for m in blind] == ["assistant", "tool", "tool"]
    assert "left out" in blind[1]["content"]


def test_a_users_pictures_and_files_are_content_parts_and_text_alone_is_a_string():
    parts = (Text("see"), Image(url="https://x/y.png"), File("a.pdf", "application/pdf", b"%"))
    kinds = [part["type"] for part in messages([User(parts)])[0]["content"]]
    assert kinds == ["text", "image_url", "file"]
    text_file = User((Text("see"), File("a.txt", "text/plain", b"hello")))
    assert messages([text_file])[0]["content"] == "see\n\na.txt:\nhello"


def test_calls_travel_as_text_where_the_endpoint_takes_no_tools():
    received = 'Let me see.<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    turn = call("c1", text="Let me see.", raw={"content": received})
    body = sent(
        [System("s"), user("q"), turn, result("c1", "three"), call("c2"), result("c2")],
        Profile(tool_mode="hermes"),
    )
    assert "tools" not in body
    system, _, assistant, answer, made, _ = body["messages"]
    assert '"name":"add"' in system["content"].replace(" ", "")
    assert assistant["content"] == received
    assert answer["role"] == "user"
    assert "three" in answer["content"]
    assert "<tool_call>" in made["content"]
    assert "tool_calls" not in assistant


# ── fields and tools ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_ends_with_its_messages_and_holds_nothing_unasked():
    body = Encoder(Profile()).encode("m", [user("q")], TOOLS, {"seed": 1}, stream=True)
    assert list(json.loads(body)) == ["model", "stream", "seed", "tools", "messages"]
    assert list(sent([user("q")], tools=())) == ["model", "messages"]


@pytest.mark.parametrize(
    ("changes", "settings", "fields"),
    [
        ({}, {"temperature": None, "top_p": 1}, {"top_p": 1}),
        ({"drop_fields": ["seed"]}, {"seed": 1}, {}),
        (
            {"rename_fields": {"max_tokens": "max_completion_tokens"}},
            {"max_tokens": 5},
            {"max_completion_tokens": 5},
        ),
        (
            {"max_values": {"max_tokens": 8}, "min_values": {"top_p": 0.1}},
            {"max_tokens": 9, "top_p": 0},
            {"max_tokens": 8, "top_p": 0.1},
        ),
        ({"max_output": 7}, {}, {"max_tokens": 7}),
        ({"max_output": 7}, {"max_completion_tokens": 5}, {"max_completion_tokens": 5}),
        ({"set_fields": {"enable_thinking": False}}, {}, {"enable_thinking": False}),
        ({"tool_choice": {"required": "any"}}, {"tool_choice": "required"}, {"tool_choice": "any"}),
        ({"tool_choice": {"required": ""}}, {"tool_choice": "required"}, {}),
        ({"tool_mode": "hermes"}, {"tool_choice": "auto", "parallel_tool_calls": True}, {}),
    ],
)
def test_settings_are_sent_as_the_profile_lets_them_through(changes, settings, fields):
    body = sent([user("q")], Profile().merged(changes), settings=settings)
    assert {key: value for key, value in body.items() if key not in {"model", "tools", "messages"}} == fields


@pytest.mark.parametrize(
    ("name", "instead"),
    [("model", "argument"), ("messages", "history="), ("tools", "tools="), ("stream", "stream=")],
)
def test_a_setting_that_is_ours_to_fill_in_is_a_mistake(name, instead):
    with pytest.raises(ConfigError, match=f"{name}.*{instead}"):
        sent([user("q")], settings={name: 1})


CIRCLE: dict = {}
CIRCLE["x"] = CIRCLE


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("-inf"), {1}, b"x", object(), [{"a": [float("nan")]}], {(1, 2): 3}, CIRCLE],
    ids=["nan", "-inf", "a set", "bytes", "an object", "a nan within", "a tuple as name", "a circle"],
)
def test_a_setting_that_is_no_json_is_a_mistake_that_names_it(value):
    with pytest.raises(ConfigError, match=r"settings\['odd'\] cannot be sent as JSON"):
        sent([user("q")], settings={"temperature": 0, "odd": value})


def test_a_setting_may_be_any_json():
    value = MappingProxyType({"a": [1, None, True, "\ud83d\ude00", ("b",)]})
    assert sent([user("q")], settings={"odd": value})["odd"] == {"a": [1, None, True, "😀", ["b"]]}


@pytest.mark.parametrize("names", ["plain", "strict"])
@given(
    st.lists(
        st.text(max_size=80) | st.sampled_from(["my.tool", "my_tool", "3d_view", "a-b"]),
        unique=True,
        max_size=6,
    )
)
def test_tool_names_are_safe_unique_and_lead_back(names, real):
    tools = tuple(ToolSpec(name, "d", {}) for name in real)
    encoder = Encoder(Profile().merged({"names": names}))
    spelled = [
        tool["function"]["name"] for tool in sent([user("q")], tools=tools, encoder=encoder).get("tools", [])
    ]
    assert spelled == [encoder.wire_name(name) for name in real]
    assert [encoder.names_back[name] for name in spelled] == list(real)


def test_a_forced_tool_is_named_as_it_is_sent():
    encoder = Encoder(Profile())
    choice = {"type": "function", "function": {"name": "my.tool"}}
    body = sent(
        [user("q")], tools=(ToolSpec("my.tool", "d", {}),), settings={"tool_choice": choice}, encoder=encoder
    )
    assert body["tool_choice"]["function"]["name"] == body["tools"][0]["function"]["name"]


def test_at_most_as_many_tools_are_sent_as_are_taken():
    tools = tuple(ToolSpec(f"t{number}", "d", {}) for number in range(5))
    assert len(sent([user("q")], Profile(max_tools=2), tools=tools)["tools"]) == 2


def test_a_request_has_its_own_tools_also_where_another_agent_asks_in_the_middle_of_it():
    """As another thread may: settings that ask for another agent while they are read."""
    encoder = Encoder(Profile())
    other = (ToolSpec("other", "Another's.", {"type": "object", "properties": {}}),)

    class Meddling(UserDict):
        def __iter__(self):
            encoder.encode("m", [user("Hi")], other, {}, stream=False)
            return super().__iter__()

    body = sent([user("Hi")], settings=Meddling(temperature=0), encoder=encoder)
    assert [one["function"]["name"] for one in body["tools"]] == ["add"]
    assert list(encoder.offered(TOOLS)) == ["add"]
