"""What `make torture` found, as the table of `docs/results/torture.md`.

`python tests/torture/report.py OUTCOME.xml`, where OUTCOME.xml is pytest's JUnit report.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "results" / "torture.md"

MEANING: Mapping[str, tuple[str, int]] = {
    "test_none_of_ten_thousand_schedules_breaks_a_rule": ("seeded schedules of crashes, pauses, cancels and approvals, three workers, simulated (F2)", 500),
    "test_the_real_journal_keeps_the_same_rules_in_two_hundred_schedules": ("the same on the real journal in a real file", 20),
    "test_two_hundred_kills_lose_and_repeat_nothing": ("SIGKILLs of the real program, and of its resumes, up to four deep (F3, F4)", 25),
    "test_a_run_that_was_killed_and_taken_up_again_replays_byte_for_byte": ("runs of five rounds, SIGKILLed up to six times and taken up again, then replayed", 1),
    "test_nothing_acknowledged_is_lost_when_the_process_is_killed": ("SIGKILLs of a process that does nothing but write to the journal (F3)", 1),
    "test_four_hundred_sessions_can_be_sent_whatever_was_done_to_them": ("sessions cut, crashed, cancelled, forked, rewound, compacted and imported at random: all can be sent", 100),
    "test_a_log_torn_anywhere_leaves_a_prefix": ("logs cut or overwritten at a random place (F5)", 1),
    "test_power_that_goes_at_a_thousand_syncs_takes_nothing_that_was_acknowledged": ("power cuts at a sync; bytes not synced are lost (F6)", 250),
    "test_a_disk_that_fails_at_any_operation_does": ("sweeps over every write and sync of a run, each failing once, thrice or for good (F7)", 1),
    "test_an_owner_that_was_stopped_and_taken_over_is_locked_out_and_the_call_happened_once": ("owners stopped in a tool, taken over, and woken (F8)", 1),
    "test_a_result_of_a_hundred_megabytes_is_stored": ("results of 100 MB (F17)", 1),
    "test_five_hundred_runs_of_four_processes_in_one_file_are_all_whole": ("runs by four processes in one file (F20)", 500),
}  # fmt: skip
"""What one case of each rule is, and how many of them it holds. A rule that is not here stands under its own name."""


@dataclass
class Row:
    """One rule: how many cases, how many of them failed, and how long they took."""

    cases: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


def page(cases: Iterable[ET.Element]) -> str:
    rows: dict[str, Row] = {}
    for case in cases:
        row = rows.setdefault(case.get("name", "").split("[")[0], Row())
        row.cases += 1
        row.failed += case.find("failure") is not None or case.find("error") is not None
        row.skipped += case.find("skipped") is not None
        row.seconds += float(case.get("time", 0))
    lines = [
        "# Glassloop under torture",
        "",
        "Written by `make torture`. What must hold: no effect that may not be had twice is had twice, nothing that was "
        "completed begins again, nothing that was acknowledged is lost, every run ends or says what it waits for, the "
        "journal tells what really happened, and every history can be sent.",
        "",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()} {platform.release()}, "
        f"{os.cpu_count()} cores.",
        "",
        "| what | how many | outcome | seconds |",
        "|---|---|---|---|",
    ]
    for name in sorted(rows, key=lambda name: list(MEANING).index(name) if name in MEANING else len(MEANING)):
        row = rows[name]
        what, each = MEANING.get(name, (name.removeprefix("test_").replace("_", " "), 1))
        lines.append(f"| {what} | {row.cases * each:,} | {_outcome(row)} | {row.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def _outcome(row: Row) -> str:
    words = [f"{row.failed} of {row.cases} tests failed"] if row.failed else []
    words += [f"{row.skipped} skipped"] if row.skipped else []
    return ", ".join(words) or "all rules held"


if __name__ == "__main__":
    PAGE.write_text(page(ET.parse(Path(sys.argv[1])).iter("testcase")), encoding="utf-8")
    print(f"Written to {PAGE}", file=sys.stderr)
