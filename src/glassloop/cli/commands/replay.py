"""`glassloop replay`: a recorded session once more, offline; or its first rounds, and then something else, live."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from glassloop.cli.asking import Asker
from glassloop.cli.failures import ANSWERED, FAILED, exit_code_for, report
from glassloop.cli.going_on import say_after
from glassloop.cli.keeping import found, keeping_of, open_store
from glassloop.cli.looping import run_async
from glassloop.cli.options import Options, agent_of, agent_options, surroundings
from glassloop.cli.printing import JsonPrinter, Printer, announce, say, width_of_terminal
from glassloop.cli.safe_text import one_line
from glassloop.cli.screen import Line, counted
from glassloop.cli.wording import program
from glassloop.config import SESSION, load
from glassloop.core.entries import System
from glassloop.core.errors import GlassloopError, ReplayMismatch, SessionError
from glassloop.core.events import Event, Finished
from glassloop.core.tools import ToolSpec
from glassloop.tools import builtin

if TYPE_CHECKING:
    from glassloop.cli.rehearsal import Rehearsal
    from glassloop.sessions.replaying import RecordedRun
    from glassloop.sessions.store import Store
    from glassloop.sessions.timeline import Step

_LIVE_ONLY = "These options are for what goes on live: add --from-round N, or leave them away."


@click.command()
@click.argument("recording", metavar="[FILE|SESSION]", required=False)
@click.option(
    "--from-round",
    "number",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take the rounds before N from the recording, and go on live from there, in a new session.",
)
@agent_options
@click.option("--json", "as_json", is_flag=True, help="Write every event as one line of JSON.")
@click.option("--yes", is_flag=True, help="With --from-round: let every tool call run without asking.")
def command(recording: str | None, number: int | None, as_json: bool, yes: bool, **chosen: object) -> int:
    """Play a recorded session again, offline, through the same code: FILE is one exported with --wire. Without
    either: the last session of this folder.

    No request is sent and no tool runs: answers and results come from the recording. The exit code is 0 if every
    request was, byte for byte, the recorded one, and the end was the same; 1 if not, and the difference is shown.

    With --from-round N the recording only gives the rounds before N. Then a real model is asked and real tools run, in
    a new session: what would have happened with another model, other tools or other instructions?

    \b
      glassloop replay 3f2a
      glassloop sessions export 3f2a --wire -o run.jsonl
      glassloop replay run.jsonl
      glassloop replay 3f2a --from-round 2 -m ollama:qwen3 -T tools.py
    """
    options = Options(**chosen)  # type: ignore[arg-type]
    printer = JsonPrinter() if as_json else Printer(sys.stdout.isatty())
    if number is not None:
        return _what_if(recording, number, options, printer, yes=yes)
    if options != Options() or yes:
        raise click.UsageError(_LIVE_ONLY)
    with _opened(recording) as (store, session_id):
        return _played(store, session_id, printer)


@contextmanager
def _opened(recording: str | None) -> Iterator[tuple[Store, str]]:
    """Where the recording is: a session of ours, or a file, which is read into a place of its own."""
    from glassloop.sessions.store import Store

    path = _file(recording)
    if path is None:
        store = open_store()
        yield store, found(store, recording)
        return
    with tempfile.TemporaryDirectory(prefix="glassloop-replay-") as folder:
        store = Store(Path(folder) / "sessions.db")
        yield store, _imported(store, path)


def _file(recording: str | None) -> Path | None:
    """The file that is meant; None if it is a session."""
    return Path(recording) if recording is not None and Path(recording).is_file() else None


def _imported(store: Store, path: Path) -> str:
    from glassloop.cli.commands.sessions import imported
    from glassloop.models.recorded import FORMAT

    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        if FORMAT in file.readline(200):
            raise SessionError(
                f"{path} is the recording of a test: its test replays it. Here sessions are replayed."
            )
        file.seek(0)
        return imported(store, file, str(path))


# ── As it was ────────────────────────────────────────────────────────────────────────────────────────


def _played(store: Store, session_id: str, printer: JsonPrinter | Printer) -> int:
    from glassloop.cli.rehearsal import Rehearsal
    from glassloop.sessions import masking
    from glassloop.sessions.replaying import recorded_runs

    secrets = load().secrets
    rehearsals = [
        Rehearsal(run, lambda data: masking.body(data, secrets))
        for run in recorded_runs(store.path, session_id)
    ]
    for rehearsal in rehearsals:
        if rehearsal.task is not None:
            say(Line(f"› {one_line(rehearsal.task.text)}", "title"))
        error = run_async(_play(rehearsal, printer))
        if error is not None:
            report(error)
            return FAILED
    requests = sum(rehearsal.requests for rehearsal in rehearsals)
    say(Line(f"✓ replayed: {counted(requests, 'request')}, byte for byte as recorded", "good"))
    return ANSWERED


async def _play(rehearsal: Rehearsal, printer: JsonPrinter | Printer) -> GlassloopError | None:
    """Play one run to its end. Gives how it differs from the recording, if it does."""
    task = rehearsal.task
    run = rehearsal.agent.stream(task.parts if task else None, history=rehearsal.history)
    rehearsal.attach(run)
    failed: GlassloopError | None = None
    async with run:
        try:
            async for event in run:
                if not (isinstance(event, Finished) and rehearsal.has_no_end):
                    _show(event, printer)
        except ReplayMismatch as mismatch:
            return mismatch
        except GlassloopError as error:  # as it was when it was recorded, which is what `verify` looks at
            failed = error
        try:
            rehearsal.verify(run.result)
        except ReplayMismatch as mismatch:
            return mismatch
    if failed is not None:
        say(Line(f"✗ the run failed, as it did then: {one_line(str(failed))}", "bad"))
    return None


def _show(event: Event, printer: JsonPrinter | Printer) -> None:
    if isinstance(event, Finished) and isinstance(event.error, ReplayMismatch):
        event = structs.replace(event, error=None)  # said at the end, once
    printer.show(event)


# ── What if ──────────────────────────────────────────────────────────────────────────────────────────


def _what_if(
    recording: str | None, number: int, options: Options, printer: JsonPrinter | Printer, *, yes: bool
) -> int:
    """The rounds before `number` from the recording; from there on a live run, in a fork of the session."""
    from glassloop.cli.playing import ask_once
    from glassloop.sessions.replaying import recorded_runs

    store = open_store()
    path = _file(recording)
    session_id = found(store, recording) if path is None else _imported(store, path)
    steps = store.timeline(session_id).steps
    at = _place(steps, number)
    run = next(run for run in recorded_runs(store.path, session_id) if run.run_id == steps[at].run_id)
    options, its_own = _as_recorded(options, run), options.system is None
    config = options.config()
    announce(config)
    around = surroundings(options, config)
    if its_own:  # then what the folder had to say is part of the recorded instructions
        around.instructions = ""
    fork = store.fork(session_id, steps[at - 1].entry_id)
    for line in _before(store, fork):
        say(line)
    say(Line(f"· live from round {number} on, in the new session {fork}", "quiet"))
    keeping, session = keeping_of(replace(options, resume=fork), config)
    if isinstance(printer, Printer):
        printer.screen.before = number - 1
    asker = Asker(yes=yes)
    agent = agent_of(options, config, approve=asker, keeping=keeping, around=around)
    _name_other_tools(run, agent.tools.specs)
    try:
        result, error = run_async(ask_once(agent, None, printer.show, asker, session))
    finally:
        keeping.close()
    if error is not None:
        report(error)
    if isinstance(printer, Printer):
        say_after(result, agent, keeping, f"{program()} run -r {{}}{options.spelled(result.stop_reason)}")
    return FAILED if error is not None else exit_code_for(result.stop_reason)


def _place(steps: Sequence[Step], number: int) -> int:
    """Which step is the reply that round `number` begins with."""
    replies = [place for place, step in enumerate(steps) if step.kind == "reply"]
    if number > len(replies):
        raise SessionError(
            f"The recording has {counted(len(replies), 'round')}: there is no round {number} in it."
        )
    if replies[number - 1] == 0:
        raise SessionError("The recording begins with an answer: there is nothing before it to go on from.")
    return replies[number - 1]


def _as_recorded(options: Options, run: RecordedRun) -> Options:
    """What the options leave open is as it was recorded: the model, the instructions and the ready-made tools."""
    told = next((entry.text for entry in run.agent.preface if isinstance(entry, System)), None)
    setup = json.loads(next((one.endpoint for one in run.exchanges if one.endpoint), "{}"))
    if options.model is None and options.base_url is None and setup:
        provider, name = setup["provider"], setup["model"]
        model = f"{provider}:{name}" if provider else f"{setup['base_url']}#{name}"
        options = replace(options, model=model, said_by=SESSION)
    if not options.tools and not options.no_tools:
        names = [spec.name for spec in run.agent.tools]
        ready_made = tuple(name for name in names if name in builtin.TOOLS)
        options = replace(options, tools=ready_made, no_tools=not names)
    return replace(options, system=options.system or told)


def _before(store: Store, fork: str) -> Iterator[Line]:
    """The rounds that are taken from the recording."""
    from glassloop.cli.timeline_lines import round_lines, rounds_of

    width = width_of_terminal(sys.stderr)
    for one in rounds_of(store.timeline(fork), []):
        yield from round_lines(one, width)


def _name_other_tools(run: RecordedRun, specs: Sequence[ToolSpec]) -> None:
    recorded, here = {spec.name for spec in run.agent.tools}, {spec.name for spec in specs}
    if missing := one_line(", ".join(sorted(recorded - here))):
        say(Line(f"! the recorded run had tools that are not here: {missing}. Name them with -T.", "mend"))
    if new := one_line(", ".join(sorted(here - recorded))):
        say(Line(f"! the recorded run did not have these tools: {new}", "mend"))
