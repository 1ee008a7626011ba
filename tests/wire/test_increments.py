from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.wire.increments import Increments


def _read(texts: Sequence[str]) -> str:
    increments = Increments()
    read = "".join(str(increments.of({"content": text})["content"]) for text in texts)
    return read + increments.rest().get("content", "")


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["It", " is", " 4."], "It is 4."),
        (["It", "It is", "It is 4."], "It is 4."),
        (["It", "It is", "It is", "It is 4."], "ItIt isIt isIt is 4."),  # no proof before it repeated
        (["The sum of two and two", "The sum of two and two is 4."], "The sum of two and two is 4."),
        (["It", "It is", "It is 4.", "It is 4."], "It is 4."),
        (["It", "It is", "It is 4.", " Sure."], "It is 4. Sure."),
        (["ha", "haha", "!"], "hahaha!"),
        (["ha", "haha"], "hahaha"),
        (["0", "0", "0"], "000"),
        (["1", "10", "0"], "1100"),
        (["\n", "\n\n", "\n\n\n"], "\n\n\n\n\n\n"),
    ],
)
def test_chunks_are_snapshots_only_where_they_prove_it(texts: list[str], whole: str) -> None:
    assert _read(texts) == whole


@given(st.lists(st.text(alphabet="ab \n", min_size=1), min_size=3))
def test_snapshots_that_grow_by_words_give_the_last_of_them(pieces: list[str]) -> None:
    pieces = ["It is", *pieces]
    assert _read(list(accumulate(pieces))) == "".join(pieces)


@given(st.lists(st.text(min_size=1)))
def test_nothing_is_lost_of_chunks_that_do_not_begin_alike(pieces: list[str]) -> None:
    texts = [f"{number} {piece}" for number, piece in enumerate(pieces)]
    assert _read(texts) == "".join(texts)


def test_each_field_is_judged_on_its_own() -> None:
    increments = Increments()
    for text in ("It", "It is", "It is 4."):
        delta = {"content": text, "reasoning": "x"}
        last = increments.of(delta)
    assert last == {"content": " is 4.", "reasoning": "x"}
