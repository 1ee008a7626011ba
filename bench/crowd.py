"""A thousand agents at once, five rounds each, against a server that takes 50 ms: wall, CPU, memory per agent."""

from __future__ import annotations

import measure
from table import FRAMEWORK, OFTEN, OURS, Outcome, Size, Target, in_turn, line, main, ratio, summaries

ROUNDS = 5
DELAY_MS = 50


def run(size: Size) -> Outcome:
    peers = size.peers if FRAMEWORK in size.peers or not size.peers else (*size.peers, FRAMEWORK)
    samples = {side: measure.Sample() for side in (*OURS, *peers)}
    with measure.Server() as server:
        for repeat in range(OFTEN * size.repeats):
            for side, sample in in_turn(samples, repeat):
                if sample.error is None and (repeat == 0 or side in OURS):
                    agents = size.agents if side in OURS else min(size.agents, size.most_peer_agents)
                    given = {"agents": agents, "rounds": ROUNDS, "delay": DELAY_MS}
                    measure.measure(side, sample, "crowd", server, patience=size.patience, **given)
                    _scale(sample, size.agents / agents)
    frameworks = [
        sample.median("wall_s_for_all") for side, sample in samples.items() if side not in (*OURS, "openai")
    ]
    fastest = min((value for value in frameworks if value is not None), default=None)
    ours = samples["glassloop"].median("wall_s_for_all")
    lines = (
        f"  {size.agents} agents × {ROUNDS} rounds at {DELAY_MS} ms; peers were given at most"
        f" {size.most_peer_agents} agents, and their times are multiplied",
        *line("wall", samples, "wall_s_for_all", "s"),
        *line("CPU", samples, "cpu_s_for_all", "s"),
        *line("memory per concurrent agent", samples, "kib_per_agent", "KiB"),
        *line("runs that failed", samples, "failed", ""),
        *line("the server's CPU meanwhile", samples, "server_cpu", "s"),
    )
    targets = (
        Target(f"{size.agents} agents, wall", ratio(samples, "glassloop", "floor", "wall_s_for_all"), 1.3),
        Target(
            f"{size.agents} agents, wall against the fastest framework",
            fastest / ours if fastest and ours else None, 15, "× less", at_least=True,
        ),
        Target("memory per concurrent agent", samples["glassloop"].median("kib_per_agent"), 40, "KiB"),
    )  # fmt: skip
    return Outcome("crowd", tuple(samples), summaries(samples), lines, targets)


def _scale(sample: measure.Sample, times: float) -> None:
    """Times for all agents, from the last measurement of fewer: peers never grow less than linearly."""
    for figure in ("wall_s", "cpu_s"):
        if sample.error is None:
            sample.add({f"{figure}_for_all": sample.values[figure][-1] * times})


if __name__ == "__main__":
    main(run, __doc__)
