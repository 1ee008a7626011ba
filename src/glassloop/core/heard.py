"""Which of the answers that came over the wire a run heard: a replay plays those, and no answer that nobody read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import groupby
from typing import Protocol, TypeVar


class Asked(Protocol):
    """Where an exchange stands in its run.

    `after`: the highest number (`Record.seq`) that the run had written down when the exchange was over; 0 if none.
    `epoch`: whose it was; it rises each time that the run is taken up again.
    """

    @property
    def after(self) -> int: ...

    @property
    def epoch(self) -> int: ...


T = TypeVar("T", bound=Asked)


def heard(asked: Iterable[T], ends: Iterable[int]) -> list[T]:
    """The exchanges of one run that led to the end of a model call, in their order.

    `ends`: the numbers of the records that ended one. An exchange leads to the first end after it. One of an earlier
    epoch leads nowhere: its process died before the answer was written down, and another one asked anew.
    """
    numbers = sorted(ends)

    def end_of(one: T) -> int:
        return bisect_right(numbers, one.after)

    found: list[T] = []
    epoch = 0
    for end, group in groupby(sorted(asked, key=end_of), end_of):
        together = list(group)
        epoch = max(epoch, *(one.epoch for one in together))
        if end < len(numbers):
            found += [one for one in together if one.epoch == epoch]
    return found
