"""The same situations in every family's own notation: what a model writes, and what must come of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.textcalls.dialects import DIALECTS
from tests.textcalls.kit import (
    TOOLS,
    assert_same_in_pieces,
    calls_of,
    problems_of,
    read_in_pieces,
    without_tail,
)

from glassloop.wire.textcalls import find_calls

OSLO = ("get_weather", {"city": "Oslo"})
ROME = ("get_weather", {"city": "Rome", "unit": "C"})
TYPES = [
    ("add", {"a": 5, "b": -70000000000}),
    ("plan_route", {"stops": ["Oslo", "Rome, Italy"], "fast": True, "note": None}),
    ("set_options", {"options": {"deep": {"list": [1, 2.5, "x"]}}, "level": 0.25}),
]

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=repr)
marked = pytest.mark.parametrize("dialect", [d for d in DIALECTS if not d.whole], ids=repr)
whole = pytest.mark.parametrize("dialect", [d for d in DIALECTS if d.whole], ids=repr)
strict = pytest.mark.parametrize("dialect", [d for d in DIALECTS if d.strict], ids=repr)
plain = pytest.mark.parametrize("dialect", [d for d in DIALECTS if not d.strict], ids=repr)
# In these, nothing follows a call but an invented observation, or another message of the same kind.
followed = pytest.mark.parametrize(
    "dialect", [d for d in DIALECTS if not d.whole and d.name not in {"react", "functionary_v3_2"}], ids=repr
)
unfenced = pytest.mark.parametrize("dialect", [d for d in DIALECTS if "```" not in d.closing], ids=repr)
closed = pytest.mark.parametrize("dialect", [d for d in DIALECTS if d.closing], ids=repr)


def expect(text, calls, content=""):
    read = assert_same_in_pieces(text)
    assert calls_of(read) == calls
    assert read.content == content
    assert not problems_of(read)


@every_dialect
def test_one_call_is_read(dialect):
    text = "Now:\n" + dialect.render([OSLO])
    assert_same_in_pieces(text, every_split=True)
    expect(text, [OSLO], "Now:")


@every_dialect
def test_several_calls_are_read_in_order(dialect):
    text = dialect.render([OSLO, ROME, TYPES[0]])
    expect(text, [OSLO, ROME, TYPES[0]])


@every_dialect
def test_a_call_without_arguments_is_read(dialect):
    expect(dialect.render([("list_cities", {})]), [("list_cities", {})])


@every_dialect
def test_a_line_before_the_call_is_kept(dialect):
    expect("Let me check.\n" + dialect.render([OSLO]), [OSLO], "Let me check.")


@marked
def test_a_long_text_before_the_call_is_kept(dialect):
    before = "I looked at the map first.\n\n- Oslo is north.\n- Rome is south.\n\nNow the weather."
    expect(f"{before}\n\n{dialect.render([OSLO])}", [OSLO], before)


@followed
def test_text_after_the_call_is_kept(dialect):
    expect(dialect.render([OSLO]) + "\nI will tell you soon.", [OSLO], "I will tell you soon.")


@followed
def test_text_between_two_calls_is_kept(dialect):
    text = f"First Oslo.\n{dialect.render([OSLO])}\nThen Rome.\n{dialect.render([ROME])}"
    read = assert_same_in_pieces(text)
    assert calls_of(read) == [OSLO, ROME]
    assert read.content.split() == ["First", "Oslo.", "Then", "Rome."]


@whole
def test_text_on_both_sides_of_a_bare_shape_makes_it_an_example(dialect):
    text = f"You would write:\n\n{dialect.render([OSLO])}\n\nThat is the format for any city."
    expect(text, [], text)


@closed
def test_a_missing_closer_behind_a_complete_body_is_no_matter(dialect):
    expect("Right away.\n" + dialect.render([OSLO]).removesuffix(dialect.closing), [OSLO], "Right away.")


def cut(dialect):
    """A call that ends in the middle of its last value."""
    text = dialect.render([("write_note", {"path": "a.txt", "text": "on the cutting edge"})])
    return text[: text.index("cutting") + 3]


@strict
def test_a_call_that_is_cut_off_never_runs_and_is_reported(dialect):
    read = assert_same_in_pieces(cut(dialect))
    assert calls_of(read) == []
    ((name, problem),) = problems_of(read)
    assert name == "write_note"
    assert "cut off" in problem


@plain
def test_a_call_that_is_cut_off_never_runs_where_only_its_shape_shows_it(dialect):
    text = cut(dialect)
    read = assert_same_in_pieces(text)
    assert calls_of(read) == []
    assert read.content == text or [name for name, _ in problems_of(read)] == ["write_note"]


@every_dialect
def test_every_beginning_of_a_call_is_harmless(dialect):
    text = dialect.render([("write_note", {"path": "a.txt", "text": "on the cutting edge"})])
    for end in range(1, text.index("edge")):
        assert calls_of(find_calls(text[:end], TOOLS)) == [], text[:end]


@every_dialect
def test_unicode_and_line_breaks_in_values_are_kept(dialect):
    call = ("write_note", {"path": "メモ/über.txt", "text": "héllo 👋🏽\n  zweite Zeile\n\nعربي — “ende”"})
    expect(dialect.render([call, OSLO]), [call, OSLO])


@every_dialect
def test_the_familys_own_words_may_stand_in_a_value(dialect):
    call = ("write_note", {"path": "a.txt", "text": f"It writes {dialect.token} in the text."})
    expect(dialect.render([call, OSLO]), [call, OSLO])


@every_dialect
def test_values_have_the_types_of_the_schema(dialect):
    calls = [("write_note", {"path": "5", "text": "true"}), *TYPES]
    expect(dialect.render(calls), calls)


@strict
def test_an_unknown_tool_behind_a_control_token_goes_to_the_loop_by_its_name(dialect):
    read = assert_same_in_pieces(dialect.render([("open_door", {"wide": True})]))
    assert [call.name.removeprefix("functions.").removesuffix(":0") for call in read.calls] == ["open_door"]
    assert read.content == ""


@plain
def test_an_unknown_tool_in_a_shape_that_prose_may_have_is_text(dialect):
    text = dialect.render([("open_door", {"wide": True})])
    expect(text, [], text)


@unfenced
def test_a_call_in_a_quoted_fence_is_an_example(dialect):
    text = f"It looks like this, for any city you want to know about.\nSee:\n```\n{dialect.render([OSLO])}\n```\nEasy."
    expect(text, [], text)


@every_dialect
def test_an_end_token_behind_the_call_is_dropped(dialect):
    expect(dialect.render([OSLO]) + "<|im_end|>", [OSLO])


@every_dialect
def test_beside_structured_calls_no_call_is_taken_from_text(dialect):

    text = "Let me check.\n" + dialect.render([OSLO])
    shown, read = read_in_pieces([text], structured_calls=True)
    assert read.calls == ()
    assert shown.strip() == read.content.strip()
    assert read.content.startswith("Let me check.")


def values_for(dialect):
    alphabet = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=dialect.forbidden)
    words = st.text(alphabet | st.just("\n") | st.just('"') | st.just("'") | st.just("\\"), max_size=30)
    own = st.just(f"a {dialect.token} b") if not dialect.forbidden else words
    # A tag that stands alone on its line sets the value off with line breaks, which are then no part of it.
    string = (words | own).map(lambda value: value.strip("\n") if dialect.forbidden else value)
    integers = st.integers(-(10**15), 10**15)
    return st.one_of(
        st.tuples(st.just("write_note"), st.fixed_dictionaries({"path": string, "text": string})),
        st.tuples(st.just("add"), st.fixed_dictionaries({"a": integers, "b": integers})),
        st.tuples(st.just("list_cities"), st.just({})),
        st.tuples(
            st.just("get_weather"),
            st.fixed_dictionaries({"city": string}, optional={"unit": st.sampled_from(["C", "F"])}),
        ),
        st.tuples(
            st.just("plan_route"),
            st.fixed_dictionaries(
                {"stops": st.lists(string.filter(bool), min_size=1, max_size=3)},
                optional={"fast": st.booleans()},
            ),
        ),
    )


@every_dialect
@settings(max_examples=20)
@given(data=st.data())
def test_what_the_template_renders_is_read_back_exactly(dialect, data):
    calls = data.draw(st.lists(values_for(dialect), min_size=1, max_size=4))
    text = dialect.render(calls)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    read = assert_same_in_pieces(text, sizes=(1,))
    assert calls_of(read) == calls
    assert read.content == ""

    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert without_tail(read_in_pieces(pieces)[1]) == without_tail(read)
