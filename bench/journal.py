"""What the journal on disk costs: a whole round against the floor with a bare sqlite3 loop, and the file by itself."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import journal_file
import measure
from table import OFTEN, OURS, Outcome, Size, Target, in_turn, line, main, ratio, summaries

_ROUNDS = 20


def run(size: Size) -> Outcome:
    samples = {side: measure.Sample() for side in OURS}
    folder = Path(tempfile.mkdtemp(prefix="glassloop-bench-"))
    try:
        with measure.Server() as server:
            for repeat in range(OFTEN * size.repeats):
                for side, sample in in_turn(samples, repeat):
                    if sample.error is None:
                        path = folder / f"{side}-{repeat}.db"
                        given = {"rounds": _ROUNDS, "runs": 10, "path": str(path)}
                        measure.measure(side, sample, "journal", server, patience=size.patience, **given)
    finally:
        shutil.rmtree(folder)
    file, said, aims = journal_file.measured(repeats=2 * size.repeats - 1)
    lines = (
        *line("with the journal on, CPU", samples, "cpu_us_per_request", "µs"),
        *line("with the journal on, wall", samples, "wall_us_per_request", "µs"),
        *said,
    )
    ours = ratio(samples, "glassloop", "floor", "cpu_us_per_request")
    note = samples["glassloop"].error or ""
    targets = (
        Target("CPU with the journal on, against floor + sqlite3", ours, 1.5, note=note[:80]),
        *aims,
    )
    return Outcome("journal", OURS, {**summaries(samples), "file": file}, lines, targets)


if __name__ == "__main__":
    main(run, __doc__)
