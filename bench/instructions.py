"""Instructions and cache misses of a request, as valgrind's cachegrind counts them: no table of `make bench`, but what
tells whether a change helped on a machine whose seconds wobble. Takes some minutes, and needs `valgrind`.

    python bench/instructions.py [--tree FOLDER]    FOLDER: another checkout's src, to be counted in its place
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import envs
import measure

_CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=524288,8,64")
"""What one core has to itself on the servers of today; a miss there is a miss in the last of these."""

_ROUNDS, _FEW, _MANY = 20, 3, 9
_FIRST, _LAST = 12, 40
"""Cycles that a miss of a first cache and of the last one costs, about."""

# Under valgrind a commit takes so long that it would be left to the writer's thread, where others' are not.
_START = """
import runpy, sys
if sys.argv[2] == "glassloop" and sys.argv[1] == "journal":
    from glassloop.sessions import inbox, writer
    writer.QUICK_SECONDS, writer._UNKNOWN, inbox.LINGER_SECONDS = 1e9, 0.0, 1e6
sys.path.insert(0, {folder!r})
runpy.run_path({worker!r}, run_name="__main__")
"""


def main(tree: str | None) -> None:
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not here: install it (on Debian or Ubuntu: apt-get install valgrind)")
    with measure.Server() as server:
        for label, scenario, given in (
            ("whole", "rounds", {"stream": False}),
            ("streamed", "rounds", {"stream": True}),
            ("with the journal on", "journal", {}),
        ):
            floor, ours = (
                _request(side, scenario, given, server.url, tree) for side in ("floor", "glassloop")
            )
            for what in floor:
                times = ours[what] / floor[what]
                print(
                    f"{label:22}{what:16} floor {floor[what]:>11,.0f}  ours {ours[what]:>11,.0f} {times:6.2f}×"
                )


def _request(
    side: str, scenario: str, given: dict[str, bool], url: str, tree: str | None
) -> dict[str, float]:
    """What one request costs: the difference between many runs and few."""
    few, many = (_counted(side, scenario, given, url, tree, runs) for runs in (_FEW, _MANY))
    requests = (_MANY - _FEW) * (_ROUNDS + 1)
    each = {name: (many[name] - few[name]) / requests for name in few}
    first = each["I1 misses"] + each["D1 misses"]
    return {
        "instructions": each["I refs"],
        "misses": first,
        "cycles, about": each["I refs"] + _FIRST * first + _LAST * each["LL misses"],
    }


def _counted(
    side: str, scenario: str, given: dict[str, bool], url: str, tree: str | None, runs: int
) -> dict[str, int]:
    start = _START.format(folder=str(measure.HERE), worker=str(measure.HERE / "worker.py"))
    command = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=yes",
        *_CACHES,
        "--cachegrind-out-file=/dev/null",
    ]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "1",
        **({"PYTHONPATH": str(Path(tree).resolve())} if tree else {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        place = {"path": f"{folder}/journal.db"} if scenario == "journal" else {}
        arguments = json.dumps({"server": url, "rounds": _ROUNDS, "runs": runs, **given, **place})
        command += [str(envs.OURS), "-c", start, scenario, side, arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    found = re.findall(r"(I\s+refs|I1\s+misses|D1\s+misses|LL misses):\s+([\d,]+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{side}: {done.stderr[-500:]}")
    return {re.sub(r"\s+", " ", name): int(count.replace(",", "")) for name, count in found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree")
    main(parser.parse_args().tree)
