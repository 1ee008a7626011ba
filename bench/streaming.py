"""Streaming: CPU for 10,000 one-token chunks in one burst and paced, and the time to the first token."""

from __future__ import annotations

import measure
from table import OFTEN, OURS, Outcome, Size, Target, in_turn, line, main, ratio, summaries

_PACED = 1000


def run(size: Size) -> Outcome:
    with measure.Server() as server:
        burst = {side: measure.Sample() for side in (*OURS, *size.peers)}
        paced = {side: measure.Sample() for side in (*OURS, *size.peers)}
        first = {side: measure.Sample() for side in (*OURS, *size.peers)}
        for repeat in range(OFTEN * size.repeats):
            for side, sample in in_turn(burst, repeat):
                if side in OURS:
                    _ask(sample, side, "streaming", server, size, chunks=size.chunks, pace=0, runs=5)
                elif repeat < size.repeats:
                    _ask(sample, side, "streaming", server, size, chunks=size.peer_chunks, pace=0, runs=1)
        for _ in range(size.repeats):
            for side, sample in paced.items():
                _ask(sample, side, "streaming", server, size, chunks=_PACED, pace=1, runs=1)
        # The wait for the first token is wall time: more repeats, so that a busy moment does not decide.
        for _ in range(size.repeats + 2):
            for side, sample in first.items():
                times = 300 if side in OURS else 30
                _ask(sample, side, "first_token", server, size, times=times)
    # The lowest of the medians: what a busy machine adds to a wait is no side's own.
    ours_ms, floor_ms = (min(first[side].values["first_token_ms"], default=None) for side in reversed(OURS))
    added = None if ours_ms is None or floor_ms is None else ours_ms - floor_ms
    lines = (
        *line("10,000 chunks in one burst", burst, "cpu_ms_per_10k", "ms"),
        *line("10,000 chunks, one each ms", paced, "cpu_ms_per_10k", "ms"),
        *line("time to first token", first, "first_token_ms", "ms"),
    )
    targets = (
        Target(
            "streaming, CPU per 10,000 chunks in bursts",
            ratio(burst, "glassloop", "floor", "cpu_ms_per_10k"),
            1.5,
        ),
        Target("added time to first token", added, 1.0, "ms"),
    )
    figures = {"burst": summaries(burst), "paced": summaries(paced), "first token": summaries(first)}
    return Outcome("streaming", (*OURS, *size.peers), figures, lines, targets)


def _ask(
    sample: measure.Sample, side: str, scenario: str, server: measure.Server, size: Size, **given: float
) -> None:
    if sample.error is None:
        measure.measure(side, sample, scenario, server, patience=size.patience, **given)


if __name__ == "__main__":
    main(run, __doc__)
