"""What all tables have in common: how large a run is, what a target is, and how both are printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import envs
import measure

OURS = ("floor", "glassloop")
PEERS = ("openai", "pydantic-ai", "openai-agents")
HAND_LOOP = "openai"
FRAMEWORK = "openai-agents"
"""The framework that costs least per request, of those measured here."""

OFTEN = 4
"""What is aimed at is measured so much more often than what is only looked at: on a machine that others share, a
process may take half as long again as the same one did before it.
"""

Samples = Mapping[str, measure.Sample]


@dataclass(frozen=True)
class Size:
    """How much is measured. Peers are asked for less where they would take hours."""

    peers: tuple[str, ...] = PEERS
    repeats: int = 3
    rounds: tuple[int, ...] = (1, 10, 100, 300)
    most_peer_rounds: int = 100
    chunks: int = 10_000
    peer_chunks: int = 10_000
    agents: int = 1000
    most_peer_agents: int = 100
    patience: float = 300.0


SIZES = {
    "quick": Size(peers=(HAND_LOOP,), most_peer_rounds=10, peer_chunks=2000, patience=60),
    "usual": Size(),
    "full": Size(most_peer_rounds=300, most_peer_agents=1000, patience=3600),
}


@dataclass(frozen=True)
class Target:
    """One line of the issue's table: a figure and the bound it should keep. None: it could not be measured."""

    name: str
    value: float | None
    bound: float
    unit: str = "×"
    at_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        value = "-" if self.value is None else f"{self.value:.3g}"
        sign = "≥" if self.at_least else "≤"
        word = "holds" if self.holds else "MISSED"
        note = f"  ({self.note})" if self.note else ""
        return f"  {word:7} {self.name:58} {value:>7} {self.unit:8} {sign} {self.bound:g}{note}"


@dataclass(frozen=True)
class Outcome:
    """What a table gave: `figures` for the results file, `lines` for people, and its targets."""

    table: str
    sides: tuple[str, ...]
    figures: Any
    lines: tuple[str, ...]
    targets: tuple[Target, ...] = ()

    def show(self) -> None:
        print(
            "\n".join(
                [f"── {self.table} " + "─" * (90 - len(self.table)), *self.lines, *map(str, self.targets)]
            )
        )
        print(flush=True)

    def save(self) -> None:
        targets = [{**vars(target), "holds": target.holds} for target in self.targets]
        measure.save(self.table, self.sides, {"measured": self.figures, "targets": targets})


def in_turn(samples: Samples, repeat: int) -> list[tuple[str, measure.Sample]]:
    """The sides in their order, and each second time the other way round: whoever comes second may meet a disk, or
    connections, that the first has left busy.
    """
    return list(samples.items())[:: -1 if repeat % 2 else 1]


def ratio(samples: Samples, of: str, to: str, figure: str) -> float | None:
    """How many times one side's figure is another's: the median over the repeats, in each of which they stood side
    by side, so that a slow minute of the machine is in both.
    """
    if of not in samples or to not in samples:
        return None
    return measure.paired(samples[of].values.get(figure, ()), samples[to].values.get(figure, ()))


def line(label: str, samples: Samples, figure: str, unit: str, against: str = "floor") -> list[str]:
    """One row for each side: median, spread, and how it compares."""
    rows = []
    for name, sample in samples.items():
        values = sample.values.get(figure)
        if not values:
            rows.append(f"  {label:34} {name:14} {sample.error or 'not measured'}")
            continue
        times = ratio(samples, name, against, figure)
        compared = f"{times:8.2f}× {against}" if times is not None and name != against else ""
        middle = sample.median(figure)
        rows.append(
            f"  {label:34} {name:14} {middle:12,.1f} {unit:7} [{min(values):,.1f} … {max(values):,.1f}] {compared}"
        )
    return rows


def summaries(samples: Samples) -> dict[str, Any]:
    return {name: sample.summary() for name, sample in samples.items()}


def main(run: Callable[[Size], Outcome], description: str | None) -> None:
    """A table alone: `python bench/TABLE.py [--size quick|usual|full] [--repeats N] [--sides a,b]`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", choices=SIZES, default="usual")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--peers", help="such as openai,pydantic-ai; empty for none")
    options = parser.parse_args()
    size = SIZES[options.size]
    if options.repeats:
        size = replace(size, repeats=options.repeats)
    if options.peers is not None:
        size = replace(size, peers=tuple(filter(None, options.peers.split(","))))
    for peer in size.peers:
        envs.build(peer)
    outcome = run(size)
    outcome.show()
    outcome.save()
    sys.exit(not all(target.holds for target in outcome.targets))


def merged(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}
