"""`glassloop tools`: what there is for a model to call, and advice on one's own."""

from __future__ import annotations

import click

from glassloop.cli.failures import ANSWERED, FAILED, message_lines
from glassloop.cli.options import DEFAULT_TOOLS
from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line
from glassloop.cli.screen import Line
from glassloop.cli.tables import print_table
from glassloop.config import load
from glassloop.core.errors import ConfigError, GlassloopError


@click.group(invoke_without_command=True)
@click.option("-T", "--tool", "tools", metavar="TOOL", multiple=True, help="Also list this file's tools.")
@click.pass_context
def command(context: click.Context, tools: tuple[str, ...]) -> int:
    """List the ready-made tools and those of -T and the configuration.

    `glassloop tools check tools.py` advises on how a model will understand your own.
    """
    if context.invoked_subcommand is not None:
        return ANSWERED
    from glassloop.tools import builtin
    from glassloop.tools.loading import load_tools

    config = load()
    rows: dict[str, list[str]] = {}
    missing = []
    for name in dict.fromkeys((*builtin.names(), *config.tools, *tools)):
        try:
            loaded = load_tools(name, {"notes_folder": config.notes_folder})
        except ConfigError as error:
            if name not in builtin.names():
                raise
            missing += [f"{name}: {line}" for line in message_lines(error)[:1]]
            continue
        for tool in loaded:
            rows.setdefault(tool.name, [tool.name, tool.effect, _first_sentence(tool.description)])
    print_table(["tool", "effect", "what it does"], rows.values())
    for line in missing:
        say(Line(f"! not usable now: {line}", "mend"))
    if not config.tools and not tools:
        say(Line(f"· used unless -T or a file says otherwise: {', '.join(DEFAULT_TOOLS)}", "quiet"))
    return ANSWERED


@command.command()
@click.argument("file")
def check(file: str) -> int:
    """Advise on the tools in FILE; exit code 1 if one of them cannot work."""
    from glassloop.tools.check import advise
    from glassloop.tools.loading import load_tools

    try:
        tools = load_tools(file)
    except GlassloopError as error:
        for line in message_lines(error):
            say(Line(f"✗ {line}", "bad"))
        return FAILED
    advice = advise(tools)
    for tool in tools:
        of_this = [one for one in advice if one.tool == tool.name]
        click.echo(f"{one_line(tool.name)}: " + ("good" if not of_this else f"{len(of_this)} to improve"))
        for one in of_this:
            click.echo(f"  {one.code}: {one_line(one.message)}.\n    {one_line(one.hint)}")
    return ANSWERED


def _first_sentence(description: str) -> str:
    return one_line(description.split("\n\n", maxsplit=1)[0]).split(". ")[0].rstrip(".") + "."
