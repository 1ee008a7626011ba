"""What `make test-peers` found, as the table of `docs/results/peers.md`. The findings below the table are written by hand.

`python tests/peers/report.py OUTCOME.xml`, where OUTCOME.xml is pytest's JUnit report.
"""

from __future__ import annotations

import platform
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import build

PAGE = build.PEERS.parent / "docs" / "results" / "peers.md"
FINDINGS = "## Findings"

SERVERS = {
    "test_aimock": build.AIMOCK,
    "test_litellm": build.LITELLM,
    "test_llmock": build.LLMOCK,
    "test_llama": f"{build.LLAMA}, {build.MODEL}",
    "test_doctor": "the doctor at LiteLLM and llama.cpp",
    "test_mcp": "the reference servers of MCP (npm and PyPI), and ours with the SDK's client",
}


def page(cases: Iterable[ET.Element], findings: str) -> str:
    counts: dict[str, dict[str, Counter[str]]] = {module: {} for module in SERVERS}
    for case in cases:
        rule = case.get("name", "").split("[")[0].removeprefix("test_").replace("_", " ")
        rules = counts[case.get("classname", "").split(".")[-1]]
        rules.setdefault(rule, Counter())[_outcome(case)] += 1
    lines = [
        "# Glassloop and the servers of other people",
        "",
        "Written by `make test-peers`: real servers in processes of their own, asked over real HTTP by `Agent`.",
        f"Python {platform.python_version()}, {platform.system()}.",
        "",
        "| server | runs | passed | known findings | failed |",
        "|---|---|---|---|---|",
    ]
    for module, server in SERVERS.items():
        total: Counter[str] = sum(counts[module].values(), Counter())
        row = (server, total.total(), total["passed"], total["known"], total["failed"])
        lines.append("| " + " | ".join(map(str, row)) + " |")
    for module, server in SERVERS.items():
        lines += ["", f"## {server}", "", "| rule | runs | outcome |", "|---|---|---|"]
        for rule, outcomes in counts[module].items():
            words = ", ".join(
                f"{count} {outcome}" if len(outcomes) > 1 else outcome for outcome, count in outcomes.items()
            )
            lines.append(f"| {rule} | {outcomes.total()} | {words} |")
    return "\n".join([*lines, "", findings])


def _outcome(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "known" if case.find("skipped") is not None else "passed"


if __name__ == "__main__":
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else FINDINGS
    kept = written[written.index(FINDINGS) :]
    PAGE.write_text(page(ET.parse(Path(sys.argv[1])).iter("testcase"), kept), encoding="utf-8")
    print(f"Written to {PAGE}", file=sys.stderr)
