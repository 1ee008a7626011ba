"""Draws `bench/results/*.json` as SVG into `docs/performance/`, in an environment of its own. `make bench` calls it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "glassloop", "svg.fonttype": "none", "font.size": 10})
from matplotlib import pyplot as plt  # noqa: E402

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "performance"
COLOURS = {
    "floor": "#888888",
    "glassloop": "#0a7d5a",
    "openai": "#b0682a",
    "pydantic-ai": "#a03060",
    "openai-agents": "#3a5fa0",
}


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    for draw in (rounds, streaming, crowd):
        path = HERE / "results" / f"{draw.__name__}.json"
        if path.exists():
            draw(json.loads(path.read_text())["figures"]["measured"])
            plt.savefig(DOCS / f"{draw.__name__}.svg", bbox_inches="tight", metadata={"Date": None})
            plt.close()


def rounds(figures: dict[str, Any]) -> None:
    """CPU a request over the length of the run, one line for each side."""
    by_rounds = {int(n): sides for n, sides in figures["whole"].items() if n.isdigit()}
    _, axes = plt.subplots(figsize=(6.5, 4))
    for side, colour in COLOURS.items():
        known = [(n, sides[side]) for n, sides in sorted(by_rounds.items()) if side in sides]
        points = [(n, one["cpu_us_per_request"]) for n, one in known if "cpu_us_per_request" in one]
        if not points:
            continue
        middle = [value["median"] / 1000 for _, value in points]
        below = [middle[i] - value["min"] / 1000 for i, (_, value) in enumerate(points)]
        above = [value["max"] / 1000 - middle[i] for i, (_, value) in enumerate(points)]
        axes.errorbar(
            [n for n, _ in points], middle, (below, above), color=colour, label=side, marker="o", capsize=3
        )
    axes.set(xscale="log", yscale="log", xlabel="tool rounds in the run", ylabel="CPU a request, ms")
    axes.legend(frameon=False)


def streaming(figures: dict[str, Any]) -> None:
    _bars(figures["burst"], "cpu_ms_per_10k", "CPU for 10,000 chunks in one burst, ms")


def crowd(figures: dict[str, Any]) -> None:
    _bars(figures, "wall_s_for_all", "wall time of 1,000 agents, five rounds each, s")


def _bars(samples: dict[str, Any], figure: str, label: str) -> None:
    known = {side: samples[side][figure] for side in COLOURS if figure in samples.get(side, {})}
    _, axes = plt.subplots(figsize=(6.5, 2.6))
    for row, (side, value) in enumerate(known.items()):
        spread = ([value["median"] - value["min"]], [value["max"] - value["median"]])
        axes.barh(row, value["median"], xerr=spread, color=COLOURS[side], capsize=3)
        axes.annotate(f" {value['median']:,.3g}", (value["max"], row), va="center")
    axes.set(xscale="log", xlabel=label, yticks=range(len(known)), yticklabels=list(known))
    axes.invert_yaxis()


if __name__ == "__main__":
    sys.exit(main())
