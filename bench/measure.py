"""Measuring sides against each other: every repeat asks each side once, in turn, so that a busy moment hits all.

Each measurement is a process of its own (`worker.py`). Medians and spread are over the repeats.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import envs  # noqa: E402

RESULTS = HERE / "results"
Figures = dict[str, float]

# Compiled files are kept, as anybody's Python keeps them: an installed package comes with its own.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_ENVIRONMENT["NO_PROXY"] = "127.0.0.1"


class Server:
    """The loopback server while the block runs."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes

    def __enter__(self) -> Server:
        command = [str(envs.OURS), str(HERE / "server.py"), "--processes", str(self._processes)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        self.port = int(self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path) as answer:
            return json.load(answer)

    def stats(self) -> Figures:
        return self.get("/stats")


@dataclass
class Sample:
    """What the repeats of one measurement of one side gave."""

    values: dict[str, list[float]] = field(default_factory=dict)
    error: str | None = None

    def add(self, figures: Figures) -> None:
        for name, value in figures.items():
            if isinstance(value, (int, float)):
                self.values.setdefault(name, []).append(value)

    def median(self, name: str) -> float | None:
        return statistics.median(self.values[name]) if self.values.get(name) else None

    def summary(self) -> dict[str, Any]:
        rows = {name: _spread(values) for name, values in self.values.items()}
        return {**rows, **({"error": self.error} if self.error else {})}


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The median of the ratios within each repeat."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=False) if b]
    return statistics.median(ratios) if ratios else None


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def interleaved(
    sides: Sequence[str], repeats: int, scenario: str, server: Server, *, patience: float = 120, **given: Any
) -> dict[str, Sample]:
    """Measure each side `repeats` times, in turn. A side that fails, or takes too long, is not asked again."""
    samples = {name: Sample() for name in sides}
    for _ in range(repeats):
        for name, sample in samples.items():
            if sample.error is None:
                measure(name, sample, scenario, server, patience=patience, **given)
    return samples


def measure(
    name: str, sample: Sample, scenario: str, server: Server, *, patience: float = 120, **given: Any
) -> None:
    """Measure one side once more. What went wrong is kept in the sample."""
    before = server.stats()
    try:
        figures = run_worker(name, scenario, {"server": server.url, **given}, patience)
    except (subprocess.TimeoutExpired, RuntimeError) as error:
        sample.error = (
            f"more than {patience:g} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
        )
        return
    after = server.stats()
    served = {
        f"server_{key}": after[key] - before[key] for key in ("requests", "connections", "cpu", "bytes_in")
    }
    served["server_connections"] -= 1  # the one that asked for these figures
    sample.add({**figures, **served})


def run_worker(name: str, scenario: str, given: dict[str, Any], patience: float = 120) -> Figures:
    command = [str(envs.python_of(name)), str(HERE / "worker.py"), scenario, name, json.dumps(given)]
    return timed(command, patience)


def timed(command: Sequence[str], patience: float = 120) -> Figures:
    """Run a process: what it printed as JSON, and its own whole CPU and wall time."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=_ENVIRONMENT)
        usage = _waited(process, began + patience, command)
        wall = time.perf_counter() - began
        out.seek(0)
        err.seek(0)
        lines, complaint = out.read().strip().splitlines(), err.read()
    if process.returncode:
        raise RuntimeError(
            " ".join(complaint.strip().splitlines()[-1:])[:300] or f"exit {process.returncode}"
        )
    printed = json.loads(lines[-1]) if lines else {}
    return {**printed, "process_cpu_s": usage.ru_utime + usage.ru_stime, "process_wall_s": wall}


def _waited(process: subprocess.Popen[bytes], deadline: float, command: Sequence[str]) -> Any:
    """The resources of a finished child, as the kernel counted them."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.perf_counter() > deadline:
            process.kill()
            os.wait4(process.pid, 0)
            process.returncode = -9
            raise subprocess.TimeoutExpired(list(command), 0)
        time.sleep(0.002)


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def machine(sides: Sequence[str]) -> dict[str, Any]:
    """Where this was measured."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "versions": {name: envs.versions(name) for name in sides},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def save(table: str, sides: Sequence[str], figures: Any) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{table}.json"
    whole = {
        "table": table,
        "measured": time.strftime("%Y-%m-%d"),
        "machine": machine(sides),
        "figures": figures,
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")
    return path
