"""Profiles: what is taken, how changes join, and that nothing is lost on the way to disk and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.wire.profile import Profile

TEXTS = st.text(max_size=8)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "tool_mode": TEXTS,
        "stream": st.booleans(),
        "stream_only": st.booleans(),
        "drop_fields": st.lists(TEXTS, max_size=3),
        "rename_fields": st.dictionaries(TEXTS, TEXTS, max_size=2),
        "set_fields": st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers() | TEXTS, max_size=2),
        "max_values": st.dictionaries(
            TEXTS, st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=2
        ),
        "max_output": st.none() | st.integers(),
        "system": st.sampled_from(["system", "developer", "user"]),
        "call_content": st.sampled_from(["", "omit", "null", "blank", "words"]),
        "ids": st.sampled_from(["any", "safe", "nine"]),
        "schema_diet": st.integers(0, 4),
        "reasoning_name": st.none() | TEXTS,
        "context_window": st.none() | st.integers(),
    },
)


@given(CHANGES)
def test_a_profile_survives_json(changes):
    profile = Profile().merged(changes)
    assert Profile.from_json(json.loads(json.dumps(profile.to_json()))) == profile


@given(CHANGES, CHANGES)
def test_merging_the_same_changes_again_changes_nothing(first, second):
    merged = Profile().merged(first).merged(second)
    assert merged.merged(second) == merged


def test_the_neutral_profile_has_nothing_to_say():
    assert Profile().to_json() == {}


def test_lists_and_mappings_add_up_and_other_values_replace():
    profile = Profile().merged({"drop_fields": ["seed"], "max_values": {"max_tokens": 100}, "ids": "safe"})
    profile = profile.merged({"drop_fields": ["stop", "seed"], "max_values": {"top_p": 1}, "ids": "nine"})
    assert profile.drop_fields == ("seed", "stop")
    assert profile.max_values == {"max_tokens": 100, "top_p": 1}
    assert profile.ids == "nine"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"systm": "user"}, ["'systm'", "system"]),
        ({"system": "root"}, ["'system'", "'root'", "'developer'"]),
        ({"stream": "yes"}, ["'stream'", "'yes'", "true or false"]),
        ({"schema_diet": 5}, ["'schema_diet'", "5", "0 to 4"]),
        ({"schema_diet": True}, ["'schema_diet'", "True"]),
        ({"max_tools": 1.5}, ["'max_tools'", "1.5", "a whole number or null"]),
        ({"drop_fields": "seed"}, ["'drop_fields'", "'seed'", "a list of texts"]),
        ({"max_values": {"seed": "1"}}, ["'max_values'", "an object whose values are a number"]),
        ({"tool_name": None}, ["'tool_name'", "None"]),
        ({"max_values": {"seed": float("nan")}}, ["'max_values'", "nan", "a number"]),
        ({"set_fields": {"seed": float("inf")}}, ["'set_fields'", "inf", "JSON"]),
        ({"set_fields": {"seed": {1}}}, ["'set_fields'", "{1}", "JSON"]),
        ({"set_fields": {"messages": []}}, ["'set_fields'", "messages"]),
        ({"set_fields": {"stream": True}}, ["'set_fields'", "stream"]),
        ({"rename_fields": {"seed": "tools"}}, ["'rename_fields'", "tools"]),
    ],
)
def test_what_a_profile_cannot_hold_is_named_with_what_it_can(changes, words):
    with pytest.raises(ValueError, match="profile") as caught:
        Profile().merged(changes)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("value", [None, [], "native", 3])
def test_a_profile_that_is_no_object_is_refused(value):
    with pytest.raises(ValueError, match="must be an object"):
        Profile.from_json(value)


@pytest.mark.parametrize(
    ("changes", "wanted", "tools", "streams"),
    [
        ({}, True, True, True),
        ({}, False, True, False),
        ({"stream": False}, True, False, False),
        ({"stream_with_tools": False}, True, True, False),
        ({"stream_with_tools": False}, True, False, True),
        ({"stream_with_tools": False, "tool_mode": "hermes"}, True, True, True),
        ({"stream_only": True}, False, True, True),
    ],
)
def test_a_request_streams_where_that_is_wanted_and_works(changes, wanted, tools, streams):
    assert Profile().merged(changes).streams(wanted, tools=tools) is streams
