"""The doctor against the shared catalogue: what it found, missed and made up, one quirk at a time and in groups.

    python -m tests.doctor.table > docs/results/doctor.md

Each quirk that a request can run into is played by a server that is healthy otherwise (`ward.py`); fault-free
servers and harmless quirks must come out clean. Ends with 1 if anything was missed or made up.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.doctor.expected import ALSO, CHANGES_ALL, DIAGNOSES, FATAL, HARMLESS, NAMES, WAITS
from tests.doctor.healthy import DIALECTS
from tests.doctor.ward import IMPATIENT, Ward, examined, ward

from glassloop.doctor.findings import FAULTS, Report
from glassloop.doctor.probes import PROBES, QUICK
from glassloop.models.deadlines import Deadlines
from glassloop.testing.quirks import Quirk, load
from glassloop.testing.server import ChatServer

QUIRKS = (
    Path(os.environ.get("GLASSLOOP_QUIRKS", Path(__file__).parents[2].parent / "shared" / "quirks"))
    / "quirks.jsonl"
)
SEED = 20261130
A_FAMILY = 10
GROUPS = 12
A_GROUP = 3
TOGETHER = 4


@dataclass(frozen=True)
class Outcome:
    """One examination: which quirks were played there, and what was said. `diagnoses` says what is wrong with those."""

    what: str
    named: tuple[str, ...]
    missed: tuple[str, ...]
    false: tuple[str, ...]
    met: bool = True

    @property
    def right(self) -> bool:
        return not self.missed and not self.false


def catalogue() -> dict[str, Quirk]:
    return {quirk.id: quirk for quirk in load(QUIRKS)}


def drawn(quirks: Iterable[Quirk], count: int, seed: int = SEED) -> list[Quirk]:
    """So many faults of each family, by a fixed seed; all of them where there are fewer."""
    chance, named = random.Random(seed), [quirk for quirk in quirks if quirk.id in NAMES]
    families = sorted({quirk.family for quirk in named})
    chosen = []
    for family in families:
        of_family = [quirk for quirk in named if quirk.family == family]
        chosen += chance.sample(of_family, min(count, len(of_family)))
    return chosen


def grouped(quirks: Iterable[Quirk], count: int, seed: int = SEED) -> list[list[Quirk]]:
    """So many groups, each of three families, by a fixed seed."""
    chance = random.Random(seed)
    able = [quirk for quirk in quirks if quirk.id in NAMES and quirk.id not in (*FATAL, *CHANGES_ALL, *WAITS)]
    groups: list[list[Quirk]] = []
    while len(groups) < count:
        families = chance.sample(sorted({quirk.family for quirk in able}), A_GROUP)
        group = [chance.choice([one for one in able if one.family == family]) for family in families]
        if sum(map(_comes_and_goes, group)) < 2:  # two of them in turn would leave nothing that works
            groups.append(group)
    return groups


def _comes_and_goes(quirk: Quirk) -> bool:
    return quirk.action == "retry" or (quirk.action == "adapt_request" and quirk.when is None)


async def alone(server: Ward, quirk: Quirk) -> Outcome:
    """One quirk at an endpoint of its own."""
    stalls = quirk.wire.get("end") == "stall"
    report = await examined(
        server.base_url(quirk.id),
        QUICK if stalls or quirk.id in WAITS else PROBES,
        deadlines=Deadlines(first_byte=10, silence=0.4) if stalls else IMPATIENT,
    )
    return _outcome(quirk.name, report, [quirk.id], met=bool(server.played.get(quirk.id)))


async def together(server: Ward, quirks: Sequence[Quirk]) -> Outcome:
    """Several quirks at one endpoint. What was never played need not be found."""
    place = "+".join(quirk.id for quirk in quirks)
    report = await examined(server.base_url(place))
    played = [quirk.id for quirk in quirks if server.played.get(place, {}).get(quirk.id)]
    return _outcome(place, report, played, diagnoses=False)


async def healthy(name: str) -> Outcome:
    """A fault-free server."""
    async with ChatServer(DIALECTS[name]) as server:
        return _outcome(f"healthy: {name}", await examined(server.base_url), [])


def _outcome(
    what: str, report: Report, ids: Sequence[str], *, met: bool = True, diagnoses: bool = True
) -> Outcome:
    codes = [one.code for one in report.findings]
    missed = [one for one in ids if one in NAMES and not _any(codes, NAMES[one])]
    allowed = " ".join(f"{NAMES.get(one, '')} {ALSO.get(one, '')}" for one in ids)
    false = [one.code for one in report.findings if one.level in FAULTS and not _any([one.code], allowed)]
    if diagnoses:
        made = {one.code for one in report.diagnoses}
        wanted = {DIAGNOSES[one] for one in ids if one in DIAGNOSES}
        missed += [f"diagnosis {one}" for one in wanted - made]
        false += [f"diagnosis {one}" for one in made - wanted]
    if report.verdict != ("unusable" if set(ids) & set(FATAL) else "ready"):
        false.append(f"verdict {report.verdict}: {report.why}")
    named = [code for code in codes if _any([code], " ".join(NAMES.get(one, "") for one in ids))]
    return Outcome(what, tuple(named), tuple(missed), tuple(false), met)


def _any(codes: Iterable[str], beginnings: str) -> bool:
    return any(code.startswith(one) for code in codes for one in beginnings.split())


async def whole_table() -> list[tuple[str, str, Outcome]]:
    """Every quirk alone, the groups, and the servers without faults: id, family and outcome of each."""
    quirks = catalogue()
    turn = asyncio.Semaphore(TOGETHER)
    async with ward(list(quirks.values())) as server:

        async def one(quirk: Quirk) -> tuple[str, str, Outcome]:
            async with turn:
                return quirk.id, quirk.family, await alone(server, quirk)

        async def group(members: Sequence[Quirk]) -> tuple[str, str, Outcome]:
            async with turn:
                return "group", "".join(quirk.family for quirk in members), await together(server, members)

        met = [quirk for quirk in quirks.values() if quirk.id in NAMES or quirk.id in HARMLESS]
        rows = list(await asyncio.gather(*map(one, met)))
        rows += await asyncio.gather(*map(group, grouped(quirks.values(), GROUPS)))
    return rows + [("healthy", "", await healthy(name)) for name in DIALECTS]


def page(rows: Sequence[tuple[str, str, Outcome]]) -> str:
    """The table in Markdown, with its sums first."""
    chosen = {quirk.id for quirk in drawn(catalogue().values(), A_FAMILY)}
    lines = [
        "# What the doctor found",
        "",
        "Printed by `python -m tests.doctor.table`: `glassloop doctor`'s probes against servers that play one fault of",
        "the shared catalogue, or several, and are healthy otherwise. *Found*: the finding that names the fault. *Missed*:",
        "a fault that was played and not named. *False*: a fault that was named and is none. Which names are right is said",
        f"by hand in `tests/doctor/expected.py`. ● marks the {len(chosen)} that are drawn by a fixed seed.",
        "",
        "| | examined | found | missed | false |",
        "|---|---|---|---|---|",
    ]
    kinds = {family: [row for row in rows if row[1] == family and row[0] in NAMES] for family in "ABCDEFG"}
    kinds["drawn ●"] = [row for row in rows if row[0] in chosen]
    kinds["groups"] = [row for row in rows if row[0] == "group"]
    kinds["harmless"] = [row for row in rows if row[0] in HARMLESS]
    kinds["healthy"] = [row for row in rows if row[0] == "healthy"]
    for kind, of_kind in kinds.items():
        outcomes = [row[2] for row in of_kind]
        found = sum(not one.missed for one in outcomes) if kind not in ("harmless", "healthy") else "–"
        sums = (sum(len(one.missed) for one in outcomes), sum(len(one.false) for one in outcomes))
        lines.append(f"| {kind} | {len(outcomes)} | {found} | {sums[0]} | {sums[1]} |")
    lines += ["", "| id | what is played | found | missed | false |", "|---|---|---|---|---|"]
    for name, _, one in rows:
        cells = (
            f"{name} ●" if name in chosen else name,
            one.what,
            *map(", ".join, (one.named, one.missed, one.false)),
        )
        lines.append(
            "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    table = asyncio.run(whole_table())
    print(page(table))
    sys.exit(0 if all(outcome.right and outcome.met for _, _, outcome in table) else 1)
