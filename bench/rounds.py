"""CPU of a tool round at 1, 10, 100 and 300 rounds, whole and streamed answers, and how it grows with the history."""

from __future__ import annotations

import math

import measure
from table import OFTEN, OURS, Outcome, Samples, Size, Target, in_turn, line, main, ratio, summaries

FIGURE = "cpu_us_per_request"
_AIMED_AT = (10, 300)
_REQUESTS = 600
"""About so many requests are in one measurement, so that the clock's grain and the garbage collector even out."""


def run(size: Size) -> Outcome:
    lines: list[str] = []
    targets: list[Target] = []
    figures = {}
    for stream in (False, True):
        mode = "streamed" if stream else "whole"
        by_rounds = {rounds: _measured(size, rounds, stream) for rounds in size.rounds}
        figures[mode] = {str(rounds): summaries(samples) for rounds, samples in by_rounds.items()}
        for rounds, samples in by_rounds.items():
            lines += line(f"{rounds} rounds, {mode}", samples, FIGURE, "µs")
        growth = _growth(by_rounds, "glassloop")
        exponents = {side: _exponent(by_rounds, side) for side in (*OURS, *size.peers)}
        figures[mode]["exponent of the total"] = exponents
        shown = ", ".join(f"{side} {value:.2f}" for side, value in exponents.items() if value is not None)
        lines.append(f"  growth exponent of a whole run's CPU, {mode}: {shown}")
        targets += [
            Target(
                f"CPU a round, 10 rounds, {mode}", ratio(by_rounds[10], "glassloop", "floor", FIGURE), 1.3
            ),
            Target(
                f"CPU a round, 300 rounds, {mode}", ratio(by_rounds[300], "glassloop", "floor", FIGURE), 1.3
            ),
            Target(f"growth of a round's CPU with the history, {mode}", growth, 1.0, "µs/round"),
        ]
    return Outcome("rounds", (*OURS, *size.peers), figures, tuple(lines), tuple(targets))


def _measured(size: Size, rounds: int, stream: bool) -> Samples:
    """Peers take part where their time is bounded; of them one run is enough to see milliseconds."""
    with measure.Server() as server:
        given = {"rounds": rounds, "stream": stream, "patience": size.patience}
        runs = max(1, _REQUESTS // (rounds + 1))
        peers = size.peers if rounds <= size.most_peer_rounds else ()
        samples = {side: measure.Sample() for side in (*OURS, *peers)}
        for repeat in range(size.repeats if rounds not in _AIMED_AT else OFTEN * size.repeats):
            for side, sample in in_turn(samples, repeat):
                if sample.error is None and (side in OURS or repeat < size.repeats):
                    few = runs if side in OURS else max(1, runs // 20)
                    measure.measure(side, sample, "rounds", server, **given, runs=few)
        return samples


def _growth(by_rounds: dict[int, Samples], side: str) -> float | None:
    """Microseconds that a round costs more for every round before it."""
    short, long = min(by_rounds, key=lambda n: abs(n - 10)), max(by_rounds)
    a, b = by_rounds[short][side].median(FIGURE), by_rounds[long][side].median(FIGURE)
    # The mean round of a run of n has n/2 rounds before it.
    return None if a is None or b is None else max(0.0, (b - a) / ((long - short) / 2))


def _exponent(by_rounds: dict[int, Samples], side: str) -> float | None:
    """k of CPU ~ rounds^k for a whole run, between the two longest that were measured: 1 is linear."""
    known = [(n, samples[side].median(FIGURE)) for n, samples in sorted(by_rounds.items()) if side in samples]
    points = [(n, value * (n + 1)) for n, value in known if value is not None and n >= 10]
    if len(points) < 2:
        return None
    (n1, t1), (n2, t2) = points[-2:]
    return math.log(t2 / t1) / math.log((n2 + 1) / (n1 + 1))


if __name__ == "__main__":
    main(run, __doc__)
