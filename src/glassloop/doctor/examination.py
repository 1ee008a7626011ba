"""Runs probes in their order: what depends on a failed one is skipped, a budget ends it, Ctrl-C gives what there is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

from glassloop.core.errors import EndpointError
from glassloop.doctor.case import Case
from glassloop.doctor.diagnoses import diagnosed
from glassloop.doctor.findings import FAULTS, Answer, Finding, Outcome, Probed, Report, Verdict
from glassloop.doctor.patient import Patient
from glassloop.doctor.probe import Probe
from glassloop.doctor.probes.limits import rate_headers
from glassloop.doctor.reading import findings_of
from glassloop.doctor.tape import Exchange, OutOfBudget

Show = Callable[[Probe, Probed | None], None]
"""Told of each probe when it begins (None) and when it is over."""

ENOUGH: frozenset[Outcome] = frozenset(("ok", "mended", "weak", "no"))
_MUST_WORK = ("forced_call", "streamed_call", "call_then_answer")
"""Questions with tools: where all that ran failed, no agent can work."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an examination will ask, if all is well: about so many requests and tokens."""

    probes: int
    requests: int
    tokens: int


def plan_of(probes: Sequence[Probe]) -> Plan:
    """The size of an examination, beforehand."""
    return Plan(len(probes), sum(one.requests for one in probes), sum(one.tokens for one in probes))


async def examine(
    patient: Patient, probes: Sequence[Probe], show: Show = lambda probe, probed: None
) -> Report:
    """Run the probes and say what they found. Never raises for what the endpoint does; a cancel ends it early."""
    done: list[Probed] = []
    verdict: Verdict = "ready"
    why = ""
    for probe in probes:
        if lacking := _lacking(probe, done):
            done.append(_skipped(probe, f"needs {lacking}"))
        elif why or _is_gone(patient):
            done.append(_skipped(probe, why or _gone(patient)))
        else:
            show(probe, None)
            try:
                done.append(await _run(patient, probe))
            except OutOfBudget as over:
                done.append(_skipped(probe, str(over), patient.exchanges))
                verdict, why = _stopped(patient), str(over)
            except asyncio.CancelledError:
                done.append(_skipped(probe, "interrupted", patient.exchanges))
                verdict, why = "interrupted", "interrupted"
        show(probe, done[-1])
    return _report(patient, done, verdict, why)


def _stopped(patient: Patient) -> Verdict:
    """A limit on requests only makes the examination shorter; one on tokens or cost was set by a person."""
    budget = patient.budget
    return "ready" if budget.tokens is None and budget.cost is None else "stopped"


_GIVEN_UP_AFTER = 4


def _is_gone(patient: Patient) -> bool:
    """Whether so many questions in a row were not taken up that the next ones would tell nothing."""
    return len(patient.unanswered) >= _GIVEN_UP_AFTER


def _gone(patient: Patient) -> str:
    return f"the endpoint stopped answering in the middle: {patient.unanswered[-1]}"


def _lacking(probe: Probe, done: Sequence[Probed]) -> str:
    ended = {one.name: one.outcome for one in done}
    return next((name for name in probe.needs if name in ended and ended[name] not in ENOUGH), "")


def _skipped(probe: Probe, why: str, exchanges: tuple[Exchange, ...] = ()) -> Probed:
    return Probed(probe.name, probe.family, "skipped", why, exchanges=exchanges)


async def _run(patient: Patient, probe: Probe) -> Probed:
    patient.begin()
    started, tokens, cost = time.monotonic(), patient.spent.tokens, patient.spent.cost
    try:
        answer = await probe.work(patient)
    except EndpointError as error:
        found = Finding(f"error:{type(error).__name__}", "broken", str(error.args[0]), error.hint)
        answer = Answer("failed", error.provider_text or str(error.args[0]), (), (found,))
    patient.facts |= dict(answer.facts)
    exchanges = patient.exchanges
    _remember_headers(patient, exchanges)
    findings = _each_once([*(one for asked in patient.asked for one in findings_of(asked)), *answer.findings])
    masked = patient.endpoint.masked
    for exchange in exchanges:
        exchange.hide(masked)
    return Probed(
        probe.name,
        probe.family,
        _outcome(answer.outcome, findings),
        masked(answer.seen),
        _does(findings),
        tuple(replace(one, words=masked(one.words), seen=masked(one.seen)) for one in findings),
        answer.facts,
        exchanges,
        time.monotonic() - started,
        patient.spent.tokens - tokens,
        patient.spent.cost - cost if patient.spent.costs_known else None,
    )


def _outcome(outcome: Outcome, findings: Sequence[Finding]) -> Outcome:
    """What Glassloop had to mend is said of a probe that ended well."""
    if outcome == "ok" and any(one.level in FAULTS for one in findings):
        return "mended"
    return outcome


def _does(findings: Sequence[Finding]) -> str:
    return "; ".join(dict.fromkeys(one.does for one in findings if one.does))


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    return list({one.code: one for one in reversed(findings)}.values())[::-1]


def _remember_headers(patient: Patient, exchanges: Sequence[Exchange]) -> None:
    for exchange in exchanges:
        told = rate_headers(dict(exchange.answered))
        if told:
            patient.facts["rate_headers"] = {**patient.facts.get("rate_headers", {}), **told}
        if exchange.is_question and (ahead := _clock_ahead(exchange)) is not None:
            before = patient.facts.get("clock_ahead_seconds", ahead)
            patient.facts["clock_ahead_seconds"] = min(
                before, ahead, key=abs
            )  # an answer out of a cache is older


def _clock_ahead(exchange: Exchange) -> int | None:
    """How far this machine's clock is ahead of the server's, in seconds."""
    try:
        told = parsedate_to_datetime(exchange.answered["date"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return round(exchange.at - told)


def _report(patient: Patient, done: Sequence[Probed], verdict: Verdict, why: str) -> Report:
    endpoint = patient.endpoint
    unusable = _unusable(done)
    if verdict == "ready" and unusable:
        verdict, why = "unusable", unusable
    elif verdict == "ready" and _is_gone(patient):
        verdict, why = ("stopped" if patient.throttles else "unusable"), _gone(patient)
    elif verdict == "ready":
        why = ""
    report = Report(
        endpoint.name,
        endpoint.base_url,
        endpoint.model,
        verdict,
        endpoint.masked(why),
        tuple(done),
        (),
        endpoint.learnt,
        endpoint.profile.to_json(),
    )
    case = Case(report, endpoint.headers, patient.facts)
    return replace(report, diagnoses=diagnosed(case))


def _unusable(done: Sequence[Probed]) -> str:
    """Why no agent can work there; "" if one can."""
    ended = {one.name: one for one in done}
    for name in ("reachable", "answer"):
        if name in ended and ended[name].outcome == "failed":
            return f"{_WORDS[name]}: {ended[name].seen}"
    ran = [ended[name] for name in _MUST_WORK if name in ended and ended[name].outcome != "skipped"]
    if ran and all(one.outcome == "failed" for one in ran):
        return f"no question with tools is answered: {ran[0].seen}"
    return ""


_WORDS = {"reachable": "nothing answers there", "answer": "no question is answered"}
