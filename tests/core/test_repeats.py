"""Which calls are the same, compared with the plainest way to say it: by one text for each."""

import json

from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import JSON, Text, ToolCall, ToolResult
from glassloop.core.repeats import Repeats

VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, "", "1", "北京"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["city", "unit"]), VALUES, max_size=2)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    arguments = draw(st.one_of(st.none(), ARGUMENTS))
    shuffled = None if arguments is None else dict(draw(st.permutations(list(arguments.items()))))
    text = draw(st.sampled_from(["", "{", "no"])) if shuffled is None else json.dumps(shuffled)
    problem = draw(st.sampled_from([None, None, "cut off", "not asked for"]))
    return ToolCall("id", draw(st.sampled_from(["look", "pay"])), shuffled, text, problem)


RESULTS = st.builds(
    lambda text, state: ToolResult("id", "name", (Text(text),), state),
    st.sampled_from(["ok", "sunny"]),
    st.sampled_from(["ok", "error"]),
)
TURNS = st.lists(st.tuples(calls(), RESULTS), min_size=1, max_size=3)


class Plainly:
    """Counts texts."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], int] = {}
        self.seen: set[tuple[str, ...]] = set()

    def add(self, turn: list[tuple[ToolCall, ToolResult]]) -> tuple[int, str]:
        told = [self.told(*one) for one in turn]
        if not self.seen.issuperset(told):
            self.counts.clear()
            self.seen.update(told)
        highest, name = 0, ""
        for one, (call, _) in zip(told, turn, strict=True):
            self.counts[one] = self.counts.get(one, 0) + 1
            if self.counts[one] > highest:
                highest, name = self.counts[one], call.name
        return highest, name

    def told(self, call: ToolCall, result: ToolResult) -> tuple[str, ...]:
        if call.problem:
            asked = f"problem {call.problem}"
        elif call.arguments is None:
            asked = f"text {call.text}"
        else:
            asked = f"arguments {json.dumps(call.arguments, sort_keys=True)}"
        return call.name, asked, result.state, result.text


@given(st.lists(TURNS, max_size=12))
def test_repeats_are_counted_as_if_each_call_were_one_text(
    turns: list[list[tuple[ToolCall, ToolResult]]],
) -> None:
    repeats, plainly = Repeats(), Plainly()
    for turn in turns:
        assert repeats.add(turn) == plainly.add(turn)
