"""`glassloop sessions`: find, name, give away and delete what was said."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from glassloop.cli.commands.show import command as show
from glassloop.cli.failures import ANSWERED, FAILED, Said
from glassloop.cli.keeping import folder, found, open_store, titled
from glassloop.cli.printing import say
from glassloop.cli.safe_text import INVISIBLE, one_line
from glassloop.cli.screen import Line, counted
from glassloop.cli.tables import print_table
from glassloop.cli.terminal import is_confirmed
from glassloop.config import load
from glassloop.core.errors import SessionError

if TYPE_CHECKING:
    from glassloop.sessions.listing import SessionInfo
    from glassloop.sessions.store import Store

_SHOWN = 30
_INDEXED_SOON = 5_000
"""So many entries are made searchable in less than a second."""
_DAY_MS = 24 * 3600 * 1000
_WHO = {
    "user": "you",
    "reply": "the model",
    "tool_result": "a tool",
    "note": "Glassloop",
    "summary": "Glassloop",
}
_UNITS = {"h": _DAY_MS // 24, "d": _DAY_MS, "w": 7 * _DAY_MS, "m": 30 * _DAY_MS, "y": 365 * _DAY_MS}

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int | None:
    """What was said, in this folder and elsewhere. A session is named by its id, its name, or words said in it.

    \b
      glassloop sessions                             the last ones
      glassloop sessions search 天气                  where that was said
      glassloop sessions export 3f2a -o talk.html    to give away
    """
    return None if context.invoked_subcommand else _list(open_store().sessions(limit=_SHOWN), as_json=False)


command.add_command(show, "show")


# ── Looking ──────────────────────────────────────────────────────────────────────────────────────────


@command.command("list")
@click.option("--here", is_flag=True, help="Only those of this folder.")
@click.option("--label", metavar="LABEL", help="Only those with this label.")
@click.option(
    "-n", "most", type=click.IntRange(1), metavar="N", default=_SHOWN, show_default=True, help="How many."
)
@as_json
def list_(here: bool, label: str | None, most: int, as_json: bool) -> int:
    """List sessions, the last used first."""
    sessions = open_store().sessions(folder=folder() if here else None, label=label, limit=most)
    return _list(sessions, as_json=as_json)


def _list(sessions: Sequence[SessionInfo], *, as_json: bool) -> int:
    from glassloop.sessions.markdown import when

    if as_json:
        return _print_json([asdict(one) for one in sessions])
    rows = [(one.session_id, when(one.updated_ms), one.state, _title(one)) for one in sessions]
    if not rows:
        say(Line("There are no such sessions.", "quiet"))
    print_table(["session", "last used", "state", "about"], rows)
    return ANSWERED


def _title(one: SessionInfo) -> str:
    labels = "".join(f" #{label}" for label in one.labels)
    name = f"{one.name}: " if one.name else ""
    return one_line(f"{name}{one.title}{labels}")


def _print_json(values: Sequence[Mapping[str, Any]]) -> int:
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        print(INVISIBLE.sub(lambda found: json.dumps(found.group())[1:-1], text))
    return ANSWERED


@command.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "-n", "most", type=click.IntRange(1), metavar="N", default=20, show_default=True, help="How many."
)
@as_json
def search(words: tuple[str, ...], most: int, as_json: bool) -> int:
    """Find where all these WORDS were said, by you, a model or a tool."""
    from glassloop.sessions.markdown import when

    store = open_store()
    if (new := store.unindexed()) > _INDEXED_SOON:
        say(Line(f"Making {counted(new, 'new message')} searchable …", "quiet"))
    hits = store.search(" ".join(words), most)
    if as_json:
        return _print_json([dataclasses.asdict(hit) for hit in hits])
    if not hits:
        say(Line("That was said in no session.", "quiet"))
        return FAILED
    rows = [(one.session_id, when(one.at_ms), _WHO.get(one.kind, one.kind), one.snippet) for one in hits]
    print_table(["session", "when", "who", "what"], rows)
    return ANSWERED


# ── Names ────────────────────────────────────────────────────────────────────────────────────────────


@command.command()
@click.argument("session")
@click.argument("name", nargs=-1)
def rename(session: str, name: tuple[str, ...]) -> int:
    """Give SESSION a NAME of its own; none takes it away."""
    store = open_store()
    session_id, wanted = found(store, session), " ".join(name).strip()
    store.rename(session_id, wanted)
    return _said(f"{session_id} is named {wanted}." if wanted else f"{session_id} has no name now.")


@command.command()
@click.argument("session")
@click.argument("labels", nargs=-1)
def label(session: str, labels: tuple[str, ...]) -> int:
    """Make LABELS the session's labels; none takes all away."""
    store = open_store()
    session_id = found(store, session)
    store.set_labels(session_id, [one.removeprefix("#") for one in labels])
    return _said(f"{session_id}: {', '.join(store.info(session_id).labels) or 'no labels'}")


# ── The end ──────────────────────────────────────────────────────────────────────────────────────────


@command.command()
@click.argument("sessions", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Without asking.")
def delete(sessions: tuple[str, ...], yes: bool) -> int:
    """Delete sessions, by id or name, with all that was said in them. There is no way back."""
    store = open_store()
    ids = [store.resolve(one) for one in sessions]  # never by words: they may find another one
    if not yes and not _is_wanted([f"{one}  {titled(store, one)}" for one in ids]):
        return FAILED
    for one in ids:
        store.delete(one)
    return _said(f"Deleted {counted(len(ids), 'session')}.")


@command.command()
@click.option(
    "--older-than", "age", metavar="AGE", default="90d", show_default=True, help="As in 12h, 30d, 8w, 6m, 1y."
)
@click.option(
    "--keep", type=click.IntRange(0), metavar="N", default=0, help="Keep the last N whatever their age."
)
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option("--yes", is_flag=True, help="Without asking.")
def prune(age: str, keep: int, dry_run: bool, yes: bool) -> int:
    """Delete old sessions. Those with a name or a label, and those that are unfinished, stay."""
    before_ms = time.time_ns() // 1_000_000 - _milliseconds(age)
    store = open_store()
    old = store.prune(before_ms=before_ms, keep=keep, dry_run=True)
    if dry_run or not old:
        return _list(old, as_json=False)
    if not yes and not _is_wanted([f"{one.session_id}  {_title(one)}" for one in old]):
        return FAILED
    gone = store.prune(before_ms=before_ms, keep=keep)
    return _said(f"Deleted {counted(len(gone), 'session')}.")


def _milliseconds(age: str) -> int:
    match = re.fullmatch(r"(\d{1,5})([hdwmy])", age.strip().lower())
    if match is None:
        raise click.UsageError(f"--older-than {age!r}: give a number and h, d, w, m or y, as in 30d.")
    return int(match[1]) * _UNITS[match[2]]


def _is_wanted(what: Sequence[str]) -> bool:
    """Ask whether to delete these; where nobody can be asked, it is not done."""
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here: --yes deletes without asking.")
    for one in what:
        say(Line(f"  {one_line(one)}"))
    wanted = is_confirmed(f"Delete {counted(len(what), 'session')} for good?")
    if not wanted:
        say(Line("Nothing was deleted.", "quiet"))
    return wanted


# ── Giving away ──────────────────────────────────────────────────────────────────────────────────────


@command.command()
@click.argument("session", required=False)
@click.option(
    "--format", "kind", type=click.Choice(["jsonl", "md", "html"]), help="Told by FILE's ending if not said."
)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Standard output if not said."
)
@click.option("--wire", is_flag=True, help="With what went over the wire (jsonl only).")
@click.option("--force", is_flag=True, help="Write over FILE if it exists.")
def export(session: str | None, kind: str | None, output: Path | None, wire: bool, force: bool) -> int:
    """Write SESSION as JSON lines, Markdown or one page of HTML.

    Without one: the last of this folder. Keys are masked.
    """
    kind = kind or _kind_of(output)
    if wire and kind != "jsonl":
        raise click.UsageError("--wire goes with --format jsonl only.")
    store = open_store()
    session_id = found(store, session)
    text = _written(store, session_id, wire=wire)[kind]()
    if output is None:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        return ANSWERED
    try:
        with output.open("w" if force else "x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError:
        raise Said(f"{output} exists: give another name, or --force.") from None
    return _said(f"{session_id} is in {output}.")


_ENDINGS = {
    ".jsonl": "jsonl",
    ".md": "md",
    ".markdown": "md",
    ".html": "html",
    ".htm": "html",
}


def _kind_of(output: Path | None) -> str:
    """What a file's ending says; JSON lines where it says nothing. Raises `click.UsageError` for an unknown one."""
    ending = output.suffix.lower() if output else ""
    kind = _ENDINGS.get(ending, "" if ending else "jsonl")
    if not kind:
        known = ", ".join(_ENDINGS)
        raise click.UsageError(
            f"{output}: sessions are written as {known}. Name such a file, or give --format."
        )
    return kind


def _written(store: Store, session_id: str, *, wire: bool) -> Mapping[str, Callable[[], str]]:
    secrets = load().secrets
    return {
        "jsonl": lambda: store.export_jsonl(session_id, secrets, wire=wire),
        "md": lambda: store.export_markdown(session_id, secrets),
        "html": lambda: store.export_html(session_id, secrets),
    }


@command.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"))
def import_(file: Any) -> int:
    """Make a session of FILE, which `export` wrote as JSON lines. For FILE, - is standard input."""
    session_id = imported(open_store(), file, file.name)
    say(Line("Imported.", "good"))
    print(session_id)
    return ANSWERED


def imported(store: Store, lines: Iterable[str], name: str) -> str:
    """The id of the session that was made of these lines. What is wrong with them is said of the file they are from."""
    try:
        return store.import_jsonl(lines, load().secrets)
    except SessionError as error:
        told = str(error).removeprefix(f"{store.path}: ")
        raise SessionError(f"{name}: {told}", error.kind) from error


def _said(text: str) -> int:
    say(Line(one_line(text), "good"))
    return ANSWERED
