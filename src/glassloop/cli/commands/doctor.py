"""`glassloop doctor`: what an endpoint can really do, and what to do about the rest."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from glassloop.cli.failures import ANSWERED, FAILED, INTERRUPTED, LIMIT, color_of
from glassloop.cli.looping import run_async
from glassloop.cli.options import endpoint_options
from glassloop.cli.printing import announce, painted, say
from glassloop.cli.safe_text import one_line, shortened, visible
from glassloop.cli.screen import Line, Style
from glassloop.cli.tables import print_table
from glassloop.cli.terminal import width_of_terminal
from glassloop.cli.wording import in_terminal_words, start_hint
from glassloop.config import Config, load, model_of
from glassloop.core.errors import ConfigError

if TYPE_CHECKING:
    from glassloop.doctor.examination import Plan
    from glassloop.doctor.findings import Probed, Report
    from glassloop.doctor.patient import Patient
    from glassloop.doctor.probe import Probe
    from glassloop.models.endpoint import Endpoint

_QUICK_REQUESTS = 9
_WIDE = 100
"""Columns from which on what Glassloop does has a column of its own."""

_STYLES: dict[str, Style] = {
    "ok": "good",
    "mended": "mend",
    "weak": "mend",
    "no": "quiet",
    "failed": "bad",
    "skipped": "quiet",
}
_EXITS = {"ready": ANSWERED, "unusable": FAILED, "stopped": LIMIT, "interrupted": INTERRUPTED}


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What the command line says of the examination and of the report."""

    quick: bool
    max_cost: float | None
    max_tokens: int | None
    as_json: bool
    markdown: Path | None
    write: bool
    verbose: bool


def _a_place(_ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """A report is not to be lost for want of a folder, once the questions were asked."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}.")
    return path


@click.command()
@endpoint_options
@click.argument("models", nargs=-1)
@click.option(
    "--quick", is_flag=True, help=f"Fewer than {_QUICK_REQUESTS + 1} requests: does it work at all?"
)
@click.option("--compare", is_flag=True, help="Examine each of MODELS and show them side by side.")
@click.option(
    "--write", is_flag=True, help="Keep what was learned, so that no later run has to learn it again."
)
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Stop at this cost.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Stop after so many tokens.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    callback=_a_place,
    help="Also write it as Markdown, for a bug report.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show the bytes that came, keys masked.")
def command(
    model: str | None, base_url: str | None, models: tuple[str, ...], compare: bool, **chosen: object
) -> int:
    """Measure what an endpoint can really do, explain it, and write down what was learned.

    Sends small questions, shows each as it runs, and prints what was seen and what Glassloop does about it. A full
    examination sends some 90 requests; how many tokens is said beforehand. The report goes to standard output.

    \b
      glassloop doctor -m ollama:qwen3 --quick
      glassloop doctor --base-url http://localhost:8080/v1 -m qwen3 --write
      glassloop doctor --compare ollama:qwen3 deepseek:deepseek-chat

    Exit codes: 0 ready (adaptations are named), 1 not usable, 2 wrong usage, 3 stopped at --max-cost, --max-tokens or
    the account's own limit.
    """
    wishes = _Wishes(**chosen)  # type: ignore[arg-type]
    if bool(models) != compare:
        raise click.UsageError("Name the models to compare behind --compare; for one alone, use -m.")
    if compare and model:
        raise click.UsageError(
            "-m names one model, and --compare takes several: write them all behind --compare."
        )
    specs = models if compare else (model,)
    configs = [load(model=spec, base_url=base_url) for spec in specs]
    for config in configs:
        announce(config)
        if config.model is None:
            from glassloop.cli.welcome import show_welcome

            return show_welcome(config)
    # What is wrong with one is said before any is asked.
    endpoints = [_endpoint(config) for config in configs]
    reports = []
    for config, endpoint in zip(configs, endpoints, strict=True):
        report = run_async(_examined(config, endpoint, wishes))
        reports.append(report)
        if report.verdict == "interrupted":
            break
    _print(reports, wishes, compare=compare)
    return _exit_code(reports)


def _exit_code(reports: Sequence[Report]) -> int:
    """That of the one report; of several, of the first that did not end well."""
    codes = [_EXITS[report.verdict] for report in reports]
    return INTERRUPTED if INTERRUPTED in codes else next((code for code in codes if code), ANSWERED)


async def _examined(config: Config, endpoint: Endpoint, wishes: _Wishes) -> Report:
    from glassloop.doctor.examination import examine, plan_of
    from glassloop.doctor.patient import Budget, Patient
    from glassloop.doctor.probes import PROBES, QUICK

    probes = QUICK if wishes.quick else PROBES
    requests = _QUICK_REQUESTS if wishes.quick else None
    budget = Budget(requests, wishes.max_tokens, wishes.max_cost)
    patient = Patient(endpoint, config.settings, budget, tries=1 if wishes.quick else 3)
    _announce_plan(endpoint, plan_of(probes), wishes)
    try:
        report = await examine(patient, probes, _Progress(sys.stderr.isatty()).show)
    finally:
        await endpoint.close()
    if wishes.write:
        _keep(patient, report)
    return report


def _endpoint(config: Config) -> Endpoint:
    """The endpoint as it is, without what was learned of it before."""
    from glassloop.models.deadlines import Retries
    from glassloop.models.endpoint import Endpoint
    from glassloop.models.profiles import ProfileStore

    found = model_of(config, learned=ProfileStore(None), retries=Retries(attempts=2, longest_wait=20))
    if not isinstance(found, Endpoint):
        raise ConfigError(f"{found.name} is no endpoint over HTTP, so there is nothing to examine")
    return found


def _announce_plan(endpoint: Endpoint, plan: Plan, wishes: _Wishes) -> None:
    most = f"at most {_QUICK_REQUESTS}" if wishes.quick else f"about {plan.requests}"
    ends = [f"${wishes.max_cost:g}"] if wishes.max_cost else []
    ends += [f"{wishes.max_tokens} tokens"] if wishes.max_tokens else []
    stops = f"; stops at {' or '.join(ends)}" if ends else ""
    words = f"{endpoint.name}: {plan.probes} probes, {most} requests, about {plan.tokens:,} tokens{stops}"
    say(Line(one_line(words), "title"))


def _keep(patient: Patient, report: Report) -> None:
    """Keep the profile where runs look for it."""
    from glassloop.models.profiles import ProfileStore

    store = ProfileStore.in_user_folder()
    if not report.learnt.lessons:
        say(Line("Nothing had to be learned, so there is nothing to write.", "quiet"))
        return
    trouble = store.save(report.base_url, report.model, report.learnt)
    if trouble:
        say(Line(trouble, "bad"))
        return
    count = len(report.adaptations)
    say(
        Line(f"Kept {count} lesson{'' if count == 1 else 's'} for later runs: glassloop profile show", "good")
    )


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Progress:
    """Each probe on standard error: on a terminal first as it runs, then, everywhere, as a line when it is over."""

    live: bool

    def show(self, probe: Probe, probed: Probed | None) -> None:
        if probed is None:
            self._now(f"… {probe.asks}")
            return
        if probed.outcome == "skipped" and not probed.exchanges:
            return
        self._clear()
        cost = f"{probed.seconds:.1f} s" + (f", {probed.tokens} tokens" if probed.tokens else "")
        line = f"{probed.outcome:<7} {probe.name}: {one_line(in_terminal_words(probed.seen))} ({cost})"
        width = width_of_terminal(sys.stderr) if self.live else None
        click.echo(
            painted(shortened(line, width - 1) if width else line, _STYLES[probed.outcome]),
            err=True,
            color=color_of(sys.stderr),
        )

    def _now(self, text: str) -> None:
        if self.live:
            width = width_of_terminal(sys.stderr)
            click.echo(
                painted(shortened(text, width - 1), "quiet"), nl=False, err=True, color=color_of(sys.stderr)
            )

    def _clear(self) -> None:
        if self.live:
            click.echo("\r\x1b[K", nl=False, err=True, color=True)


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────────


def _print(reports: Sequence[Report], wishes: _Wishes, *, compare: bool) -> None:
    if wishes.as_json:
        _print_json(reports, wishes, compare=compare)
    else:
        _print_for_people(reports, wishes, compare=compare)
    if wishes.markdown is not None:
        _write_markdown(wishes.markdown, reports)


def _print_json(reports: Sequence[Report], wishes: _Wishes, *, compare: bool) -> None:
    from glassloop.doctor.report import json_text, to_json

    values = [to_json(report, wire=wishes.verbose) for report in reports]
    print(json_text(values if compare else values[0]))


def _print_for_people(reports: Sequence[Report], wishes: _Wishes, *, compare: bool) -> None:
    from glassloop.doctor.report import comparison

    if compare:
        heads, table = comparison(reports)
        print_table([one_line(head) for head in heads], table)
    else:
        _print_table(reports[0])
    for report in reports:
        if wishes.verbose:
            _print_wire(report)
        _print_summary(report)


def _print_table(report: Report) -> None:
    from glassloop.doctor.report import COLUMNS, rows

    table = [(name, result, in_terminal_words(seen), does) for name, result, seen, does in rows(report)]
    if sys.stdout.isatty() and width_of_terminal(sys.stdout) < _WIDE:
        narrow = [(name, result, f"{seen} → {does}" if does else seen) for name, result, seen, does in table]
        print_table((*COLUMNS[:2], "what was seen → what Glassloop does"), narrow)
    else:
        print_table(COLUMNS, table)


def _print_summary(report: Report) -> None:
    from glassloop.doctor.report import COMMAND, summary

    head, *rest = summary(report)
    style: Style = "bad" if report.verdict != "ready" else "good" if report.calls_tools else "mend"
    say(Line(visible(in_terminal_words(head)), style))
    for line in rest:
        if line.startswith(COMMAND):  # never broken over lines, so that it can be copied
            click.echo(visible(line), err=True)
        else:
            say(Line(visible(line), "mend" if line.startswith("likely") else "plain"))
    if hint := start_hint(report.base_url) if not _is_reachable(report) else "":
        say(Line(hint, "mend"))


def _is_reachable(report: Report) -> bool:
    return all(one.outcome != "failed" for one in report.probes if one.name == "reachable")


def _print_wire(report: Report) -> None:
    """Every exchange: the request as a command, the answer's bytes."""
    from glassloop.doctor.report import curl_of

    for probed in report.probes:
        for exchange in probed.exchanges:
            status = "no answer" if exchange.status is None else f"HTTP {exchange.status}"
            say(Line(f"── {probed.name}: {status}", "title"))
            click.echo(visible(curl_of(exchange)), err=True)
            click.echo(visible(exchange.body.decode("utf-8", "replace")), err=True)


def _write_markdown(path: Path, reports: Sequence[Report]) -> None:
    from glassloop.doctor.report import to_markdown

    path.write_text("\n".join(map(to_markdown, reports)), "utf-8")
    say(Line(f"Written to {path}.", "good"))
