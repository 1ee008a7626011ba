"""What a doctor says: findings, how each probe ended, and the report of one endpoint. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from glassloop.core.entries import JSON
from glassloop.doctor.tape import Exchange
from glassloop.doctor.words import adaptation
from glassloop.models.profiles import Learnt

Level = Literal["broken", "mended", "weak", "trait"]
"""`broken`: Glassloop cannot get around it. `mended`: the endpoint deviates, and Glassloop copes. `weak`: the model's
doing, not the endpoint's. `trait`: worth knowing, and nothing is wrong."""

FAULTS: frozenset[Level] = frozenset(("broken", "mended"))
"""Levels that say something of the endpoint that should not be so."""

Outcome = Literal["ok", "mended", "weak", "no", "failed", "skipped"]
"""How a probe ended. `no`: the endpoint lacks something that nothing depends on."""

Verdict = Literal["ready", "unusable", "stopped", "interrupted"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was seen. `code` is stable, `words` what it is, `does` what Glassloop does about it.

    `seen` quotes the wire, at most one line.
    """

    code: str
    level: Level
    words: str
    does: str = ""
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe itself makes of what it saw; the deviations on the way are found without it.

    `facts` are plain values for `--json` and for the diagnoses, by a stable name.
    """

    outcome: Outcome
    seen: str
    facts: tuple[tuple[str, JSON], ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe that is over. `seconds`, `requests` and `tokens` are what it cost; `tokens` and `cost` are None where
    the endpoint did not say."""

    name: str
    family: str
    outcome: Outcome
    seen: str
    does: str = ""
    findings: tuple[Finding, ...] = ()
    facts: tuple[tuple[str, JSON], ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    seconds: float = 0.0
    tokens: int | None = None
    cost: float | None = None

    @property
    def requests(self) -> int:
        return len(self.exchanges)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A likely cause behind several findings, and how it is mended: `fix` is a command where there is one."""

    code: str
    words: str
    fix: str


@dataclass(frozen=True, slots=True)
class Report:
    """All about one endpoint and model. `why` says why it is not usable or where it stopped; "" if it is ready."""

    name: str
    base_url: str
    model: str
    verdict: Verdict
    why: str
    probes: tuple[Probed, ...]
    diagnoses: tuple[Diagnosis, ...]
    learnt: Learnt
    profile: JSON

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each finding once, in the order in which they were seen."""
        every = {one.code: one for probed in reversed(self.probes) for one in reversed(probed.findings)}
        return tuple(reversed(every.values()))

    @property
    def adaptations(self) -> tuple[str, ...]:
        """What is done from now on because it was learned, in words."""
        changes = (adaptation(one.code)[1] or one.change for one in self.learnt.lessons)
        return tuple(dict.fromkeys(changes))

    @property
    def calls_tools(self) -> bool:
        """Whether the model called a tool as it was told to, wherever it was told to and answered."""
        counts = [self.facts[name] for name in ("forced_call", "streamed_call") if name in self.facts]
        return any(counts) or not counts

    @property
    def facts(self) -> dict[str, JSON]:
        """What the probes measured, by name."""
        return {name: value for probed in self.probes for name, value in probed.facts}
