"""A report for people and programs: rows of a table, JSON with stable keys, Markdown for a bug report. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from glassloop.core.entries import JSON
from glassloop.core.secrets import MASK
from glassloop.doctor.findings import FAULTS, Finding, Probed, Report
from glassloop.doctor.tape import Exchange

FORMAT = 1
"""Of the JSON; it grows by keys, and changes its number when one is taken away or means something else."""

COLUMNS = ("probe", "result", "what was seen", "what Glassloop does about it")
COMMAND = "    "
"""Before a line of the summary that is a command."""

_SHOWN_BYTES = 4_000
_KEY = "$KEY"


def rows(report: Report) -> list[tuple[str, str, str, str]]:
    """One row a probe, as `COLUMNS`."""
    return [(one.name, one.outcome, seen_of(one), one.does) for one in report.probes]


def seen_of(probed: Probed) -> str:
    """What a probe saw, and the deviations on the way."""
    deviations = [
        one.words for one in probed.findings if one.level in FAULTS and one.words not in probed.seen
    ]
    return "; ".join(dict.fromkeys([probed.seen, *deviations]))


def summary(report: Report) -> list[str]:
    """The outcome in a few lines: the verdict, what was adapted, what is likely the matter, and what to do."""
    lines = [_verdict(report)]
    lines += [f"adapted: {change}" for change in report.adaptations]
    weak = [one.name for one in report.probes if one.outcome == "weak"]
    if weak:
        lines.append(f"the model's doing, not the endpoint's: {', '.join(weak)}")
    for one in report.diagnoses:
        lines += [f"likely: {one.words}", f"{COMMAND}{one.fix}"]
    return lines


def _verdict(report: Report) -> str:
    match report.verdict:
        case "ready":
            count = len(report.adaptations)
            adapted = f", with {count} adaptation{'' if count == 1 else 's'}" if count else ""
            weak = "" if report.calls_tools else ", but this model did not call a tool as it was told to"
            return f"{report.name} is ready{adapted}{weak}."
        case "unusable":
            return f"{report.name} cannot be used: {report.why}"
        case "stopped":
            return f"Stopped: {report.why}. What is above was found until then."
        case "interrupted":
            return "Interrupted. What is above was found until then."


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def to_json(report: Report, *, wire: bool = False) -> dict[str, JSON]:
    """The whole report; with `wire` also every exchange, its keys masked."""
    return {
        "format": FORMAT,
        "name": report.name,
        "base_url": report.base_url,
        "model": report.model,
        "verdict": report.verdict,
        "why": report.why,
        "adaptations": [asdict(one) for one in report.learnt.lessons],
        "profile": report.profile,
        "learnt": dict(report.learnt.profile),
        "findings": [asdict(one) for one in report.findings],
        "diagnoses": [asdict(one) for one in report.diagnoses],
        "facts": report.facts,
        "probes": [_probe_json(one, wire=wire) for one in report.probes],
        "requests": sum(one.requests for one in report.probes),
        "tokens": sum(one.tokens or 0 for one in report.probes),
    }


def _probe_json(probed: Probed, *, wire: bool) -> dict[str, JSON]:
    shown: dict[str, JSON] = {
        "name": probed.name,
        "family": probed.family,
        "outcome": probed.outcome,
        "seen": probed.seen,
        "does": probed.does,
        "findings": [one.code for one in probed.findings],
        "facts": dict(probed.facts),
        "requests": probed.requests,
        "tokens": probed.tokens,
        "cost": probed.cost,
        "seconds": round(probed.seconds, 3),
    }
    if wire:
        shown["exchanges"] = [_exchange_json(one) for one in probed.exchanges]
    return shown


def _exchange_json(exchange: Exchange) -> dict[str, JSON]:
    return {
        "method": exchange.method,
        "url": exchange.url,
        "headers": dict(exchange.headers),
        "sent": exchange.sent.decode("utf-8", "replace"),
        "status": exchange.status,
        "answered": dict(exchange.answered),
        "body": exchange.body.decode("utf-8", "replace"),
        "error": exchange.error,
        "seconds": round(exchange.seconds, 3),
    }


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────


def to_markdown(report: Report) -> str:
    """For a bug report: the outcome, the table, and for each probe that did not end well how to see it with curl."""
    lines = [f"# {report.name}", "", f"`{report.base_url}`, model `{report.model}`", ""]
    lines += [f"- {line.strip()}" for line in summary(report)]
    lines += ["", *markdown_table(COLUMNS, rows(report)), ""]
    for probed in report.probes:
        if probed.outcome in ("failed", "mended") and (exchange := telling(probed)) is not None:
            lines += _section(probed, exchange)
    return "\n".join(lines).rstrip() + "\n"


def _section(probed: Probed, exchange: Exchange) -> list[str]:
    faults: list[Finding] = [one for one in probed.findings if one.level in FAULTS]
    said = [f"- `{one.code}`: {one.words}" for one in faults] or [f"- {probed.seen}"]
    body = exchange.body[:_SHOWN_BYTES].decode("utf-8", "replace").rstrip()
    status = "no answer" if exchange.status is None else f"HTTP {exchange.status}"
    ended = f" ({exchange.error})" if exchange.error else ""
    return [
        f"## {probed.name}: {probed.outcome}",
        "",
        *said,
        "",
        "````sh",
        curl_of(exchange),
        "````",
        "",
        f"{status}{ended}:",
        "",
        "````",
        body,
        "````",
        "",
    ]


def markdown_table(heads: Sequence[str], table: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, a line a row."""
    lines = [tuple(heads), tuple("---" for _ in heads), *(tuple(_cell(one) for one in row) for row in table)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def telling(probed: Probed) -> Exchange | None:
    """The exchange that shows best what went wrong: the first that failed, else the last question."""
    failed = [one for one in probed.exchanges if one.status is None or one.status >= 400 or _broke(one)]
    questions = [one for one in probed.exchanges if one.is_question]
    return next(iter(failed), None) or (questions[-1] if questions else None)


def _broke(exchange: Exchange) -> bool:
    return exchange.error not in (None, "closed before its end")


def curl_of(exchange: Exchange) -> str:
    """The request as a command. What carries a key says `$KEY`, which is to be set first."""
    parts = [
        "curl",
        "-sS",
        "-N",
        *(["-X", exchange.method] if exchange.method not in ("GET", "POST") else []),
    ]
    words = [shlex.join([*parts, exchange.url])]
    words += [f"-H {_header(name, value)}" for name, value in exchange.headers.items() if _is_needed(name)]
    if exchange.sent:
        words.append(f"-d {shlex.quote(exchange.sent.decode('utf-8', 'replace'))}")
    return " \\\n  ".join(words)


def _is_needed(name: str) -> bool:
    return name.lower() not in ("accept", "accept-encoding", "user-agent")


def _header(name: str, value: str) -> str:
    if value != MASK:
        return shlex.quote(f"{name}: {value}")
    bearer = "Bearer " if name.lower() == "authorization" else ""
    return f'"{name}: {bearer}{_KEY}"'


# ── several ──────────────────────────────────────────────────────────────────────────────────────────────────────

_MEASURED: Mapping[str, str] = {
    "window": "context window",
    "first_token_seconds": "first token, s",
    "tokens_per_second": "tokens a second",
    "calls_by_itself": "calls of its own accord",
    "cached_tokens": "cached tokens",
}


def comparison(reports: Sequence[Report]) -> tuple[list[str], list[list[str]]]:
    """Several reports side by side: the heads, and a row for each probe and each measure."""
    heads = ["", *(report.name for report in reports)]
    table = [["verdict", *(report.verdict for report in reports)]]
    table.append(["adaptations", *(str(len(report.adaptations)) for report in reports)])
    for fact, words in _MEASURED.items():
        values = [report.facts.get(fact) for report in reports]
        if any(value is not None for value in values):
            table.append([words, *("" if value is None else str(value) for value in values)])
    names = dict.fromkeys(one.name for report in reports for one in report.probes)
    for name in names:
        table.append([name, *(_outcome_of(report, name) for report in reports)])
    return heads, table


def _outcome_of(report: Report, name: str) -> str:
    return next((one.outcome for one in report.probes if one.name == name), "")


def json_text(value: JSON) -> str:
    """JSON for a program: one document, indented for people."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
