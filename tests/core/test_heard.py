"""Which exchanges of a run led to something, whatever died on the way."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.heard import heard


@dataclass(frozen=True)
class Asked:
    after: int
    epoch: int


ONE_RUN = {
    "each answer has its exchange": ([(1, 1), (3, 1)], [2, 4], [0, 1]),
    "what was retried belongs to the same answer": ([(1, 1), (1, 1), (3, 1)], [2, 4], [0, 1, 2]),
    "nothing was heard": ([(1, 1)], [], []),
    "the last one has no answer yet": ([(1, 1), (3, 1)], [2], [0]),
    "it died with an answer, and another process asked anew": ([(1, 1), (1, 2)], [2], [1]),
    "it died twice": ([(1, 1), (1, 2), (1, 2), (1, 5)], [2], [3]),
    "it died after a retry": ([(1, 1), (1, 1), (1, 2), (3, 2)], [2, 4], [2, 3]),
    "it died, and somebody said something else": ([(1, 1), (2, 2)], [3], [1]),
    "whoever was locked out asked once more": ([(1, 1), (1, 2), (3, 1), (3, 2), (5, 1)], [2, 4, 6], [1, 3]),
    "nobody knows of epochs": ([(1, 0), (1, 0), (2, 0)], [2, 3], [0, 1, 2]),
}


@pytest.mark.parametrize("name", ONE_RUN)
def test_an_answer_was_heard_if_the_process_that_had_it_wrote_it_down(name):
    asked, ends, places = ONE_RUN[name]
    exchanges = [Asked(*one) for one in asked]
    assert heard(exchanges, ends) == [exchanges[place] for place in places]


@given(st.data())
def test_whatever_dies_on_the_way_what_is_heard_is_the_run_as_if_nothing_had_died(data):
    """A run of some calls, each with some retries, in which processes die with what they had asked until then."""
    epoch, wanted, asked = 1, [], []
    calls = data.draw(st.integers(1, 5))
    for call in range(calls):
        for lost in data.draw(st.lists(st.integers(0, 2), max_size=2)):
            asked += [Asked(call, epoch)] * lost
            epoch += 1
        own = [Asked(call, epoch)] * data.draw(st.integers(1, 3))
        asked += own
        wanted += own
    assert heard(asked, range(1, calls + 1)) == wanted
