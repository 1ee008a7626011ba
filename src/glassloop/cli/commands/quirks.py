"""`glassloop quirks`: a server that misbehaves as real endpoints do, for any client to be tried on."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import click

from glassloop.cli.failures import ANSWERED, FAILED
from glassloop.cli.printing import say
from glassloop.cli.screen import Line, counted
from glassloop.cli.tables import print_table
from glassloop.cli.wording import program
from glassloop.core.errors import ConfigError

_HOW = (
    "Give a catalogue of quirks: JSON Lines, described in docs/endpoints.md, such as those in tests/quirks."
)


@click.group()
def command() -> None:
    """Play a catalogue of what real endpoints get wrong: JSON Lines, described in docs/endpoints.md, such as
    those in tests/quirks."""


@command.command(short_help="Serve each quirk of FILE under a base URL.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="The port; any free one if not given.",
)
def serve(file: Path, host: str, port: int) -> int:
    """Serve each quirk of FILE under a base URL of its own, until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(file, host, port))
    return ANSWERED


@command.command(short_help="Play each quirk of FILE to an agent.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def play(file: Path, markdown: bool) -> int:
    """Play each quirk of FILE to an agent, streamed and not, and print how it ended."""
    from glassloop.testing.catalogue import play_catalogue, table

    outcomes = play_catalogue(_catalogue(file))
    print(table(outcomes, markdown=markdown))
    failed = [one for one in outcomes if one.problem]
    for one in failed:
        say(Line(f"{one.quirk.id} {one.way}: {one.problem}", "bad"))
    return FAILED if failed else ANSWERED


async def _serve(file: Path, host: str, port: int) -> None:
    from glassloop.testing.quirks import serve as serve_quirks

    async with serve_quirks(_catalogue(file), host, port) as server:
        quirks = list(server.quirks.values())
        print_table(
            ["base URL", "family", "action", "what the endpoint does"],
            [(server.base_url(one.id), one.family, one.action, one.name) for one in quirks],
        )
        sys.stdout.flush()  # who waits for the addresses at a pipe may begin
        say(Line(f"{counted(len(quirks), 'quirk')} served. Ctrl-C ends it.", "good"))
        say(Line(f'Try one: {program()} run "hi" -m {server.base_url(quirks[0].id)}#m', "quiet"))
        await asyncio.Event().wait()


def _catalogue(file: Path) -> Path:
    from glassloop.testing.quirks import load

    if not file.is_file():
        raise ConfigError(f"There is no file {file}. {_HOW}")
    try:
        quirks = load(file)
    except ValueError as error:
        raise ConfigError(f"{error}. {_HOW}") from error
    if not quirks:
        raise ConfigError(f"{file} holds no quirks. {_HOW}")
    return file
