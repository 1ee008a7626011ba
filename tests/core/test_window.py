"""What is sent when history outgrows the context."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import Entry, Note, Reply, System, Text, ToolCall, ToolResult, User, parts_of
from glassloop.core.tokens import estimate_entries
from glassloop.core.window import shorten, trim, turns

texts = st.text("ab 北京\n", max_size=400).map(lambda text: text * 10)


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    entries: list[Entry] = [System(draw(texts)), User(parts_of(draw(texts)))]
    for number in range(draw(st.integers(0, 8))):
        ids = [f"{number}-{i}" for i in range(draw(st.integers(0, 3)))]
        entries.append(Reply(draw(texts), tool_calls=tuple(ToolCall(one, "look", {}) for one in ids)))
        entries += [ToolResult(one, "look", (Text(draw(texts)),)) for one in ids]
        if draw(st.booleans()):
            entries.append(Note(draw(texts)))
        if draw(st.booleans()):
            entries.append(User(parts_of(draw(texts))))
    return entries


def shape(group: list[Entry]) -> list[str]:
    return [getattr(entry, "call_id", type(entry).__name__) for entry in group]


@given(histories(), st.integers(0, 5000))
def test_a_call_is_never_split_from_its_result(history: list[Entry], target: int) -> None:
    whole = [shape(group) for group in turns(history)]
    for group in turns(trim(history, target)):
        assert shape(group) in whole


@given(histories(), st.integers(0, 5000))
def test_the_instructions_the_first_task_and_the_last_turn_stay(history: list[Entry], target: int) -> None:
    kept = trim(history, target)
    assert kept[0] == history[0]
    assert isinstance(kept[1], User)
    assert shape(turns(kept)[-1]) == shape(turns(history)[-1])


@given(histories(), st.integers(0, 5000))
def test_trimming_never_grows_and_is_idempotent_where_it_reaches_its_target(
    history: list[Entry], target: int
) -> None:
    kept = trim(history, target)
    assert estimate_entries(kept) <= estimate_entries(history)
    if estimate_entries(kept) <= target:
        assert trim(kept, target) == kept


def test_what_fits_is_left_alone() -> None:
    history = [System("a"), User(parts_of("b")), Reply("c")]
    assert list(trim(history, 1000)) == history


def test_a_single_endless_result_is_shortened_before_it_is_dropped() -> None:
    history: list[Entry] = [
        User(parts_of("Read it")),
        Reply(tool_calls=(ToolCall("1", "read", {}),)),
        ToolResult("1", "read", (Text("start " + "x" * 100_000 + " end"),)),
    ]
    kept = trim(history, 2000)
    result = kept[-1]
    assert isinstance(result, ToolResult)
    assert result.text.startswith("start ")
    assert result.text.endswith(" end")
    assert "characters left out" in result.text
    assert estimate_entries(kept) <= 2000


def test_a_shortened_text_says_how_much_is_missing() -> None:
    entry = shorten(ToolResult("1", "read", (Text("a" * 1000),)), 300)
    assert (
        entry.text == "a" * 200 + "\n[… 700 characters left out to fit the model's context …]\n" + "a" * 100
    )
