"""`glassloop tools`: what there is for a model to call, and advice on one's own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence

import click

from glassloop.cli.failures import ANSWERED, FAILED, message_lines
from glassloop.cli.options import DEFAULT_TOOLS
from glassloop.cli.printing import say, say_skipped
from glassloop.cli.safe_text import one_line
from glassloop.cli.screen import Line
from glassloop.cli.tables import print_table
from glassloop.cli.tooling import sandbox_line, settings_of
from glassloop.config import load
from glassloop.core.errors import ConfigError, ToolDefinitionError

_EFFECTS = (
    "read: only looks, and runs without asking. The others ask you first. After a crash, idempotent is run "
    "again, once never is by itself."
)


@click.group(invoke_without_command=True)
@click.option("-T", "--tool", "tools", metavar="TOOL", multiple=True, help="Also list this file's tools.")
@click.pass_context
def command(context: click.Context, tools: tuple[str, ...]) -> int:
    """List your own tools (-T and the configuration) and the ready-made ones.

    `glassloop tools check tools.py` advises on how a model will understand your own.
    """
    if context.invoked_subcommand is not None:
        return ANSWERED
    config = load()
    options = settings_of(config)
    own = _own_rows([*config.tools, *tools], options)
    ready, missing = _ready_rows(options)
    print_table(["tool", "effect", "set", "what it does"], [*own, *ready])
    for line in [*_notes(missing, bool(config.tools or tools)), sandbox_line(options)]:
        say(Line(f"· {line}", "quiet"))
    return ANSWERED


Row = Sequence[str]


def _own_rows(names: Sequence[str], options: Mapping[str, str]) -> list[Row]:
    """Tools that are not ready-made; their file stands where a ready-made tool's set does."""
    from glassloop.tools import builtin
    from glassloop.tools.loading import look_up

    rows: dict[str, Row] = {}
    for name in dict.fromkeys(names):
        loaded = look_up(name, options)  # a ready-made name that is wrong is said here
        if name in builtin.names():
            continue
        say_skipped(loaded.skipped)
        for tool in loaded.tools:
            rows[tool.name] = (tool.name, tool.effect, name, _first_sentence(tool.description))
    return list(rows.values())


def _ready_rows(options: Mapping[str, str]) -> tuple[list[Row], list[str]]:
    """The ready-made tools, set by set, and why some cannot be used here."""
    from glassloop.tools import builtin

    rows: list[Row] = []
    missing: list[str] = []
    for of_set, name in _by_set(builtin.SETS, builtin.TOOLS):
        try:
            (tool,) = builtin.load(name, options)
        except ConfigError as error:
            missing += [message.removeprefix(f"{name}: ") for message in message_lines(error)[:1]]
            missing[-1] = f"{name} cannot be used here: {missing[-1]}"
            continue
        rows.append((tool.name, tool.effect, of_set, _first_sentence(tool.description)))
    return rows, missing


def _by_set(sets: Mapping[str, Sequence[str]], tools: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    in_sets = [(of_set, name) for of_set, names in sets.items() for name in names]
    alone = [("", name) for name in tools if name not in {name for _, name in in_sets}]
    return itertools.chain(in_sets, alone)


def _notes(missing: Sequence[str], chosen: bool) -> list[str]:
    notes = list(missing)
    if sys.stdout.isatty():
        notes += ["-T takes a tool, a whole set, or your own file.", _EFFECTS]
    if not chosen:
        notes.append(f"Used unless -T or a file says otherwise: {', '.join(DEFAULT_TOOLS)}.")
    return notes


@command.command(short_help="Advise on the tools in FILE.")
@click.argument("file")
def check(file: str) -> int:
    """Advise on the tools in FILE; exit code 1 if one of them cannot work, 2 if there is nothing to check."""
    from glassloop.tools.check import advise
    from glassloop.tools.loading import look_up

    try:
        loaded = look_up(file)
    except ToolDefinitionError as error:
        for line in message_lines(error):
            say(Line(f"✗ {line}", "bad"))
        return FAILED
    advice = advise(loaded.tools)
    for tool in loaded.tools:
        of_this = [one for one in advice if one.tool == tool.name]
        click.echo(f"{one_line(tool.name)}: " + ("good" if not of_this else f"{len(of_this)} to improve"))
        for one in of_this:
            click.echo(f"  {one.code}: {one_line(one.message)}.\n    {one_line(one.hint)}")
    say_skipped(loaded.skipped)
    return ANSWERED


def _first_sentence(description: str) -> str:
    return one_line(description.split("\n\n", maxsplit=1)[0]).split(". ")[0].rstrip(".") + "."
