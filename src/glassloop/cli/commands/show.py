"""`glassloop show`: what happened in a session, round by round, down to the bytes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from glassloop.cli.failures import ANSWERED, color_of
from glassloop.cli.keeping import found, open_store
from glassloop.cli.printing import painted, say
from glassloop.cli.safe_text import wrapped
from glassloop.cli.screen import Line, counted
from glassloop.cli.terminal import width_of_terminal
from glassloop.core.errors import SessionError

if TYPE_CHECKING:
    from glassloop.cli.timeline_lines import Round
    from glassloop.sessions.wire_log import Exchange

_NO_WIRE = (
    "Nothing that went over a wire is kept of this: a scripted model sends nothing, "
    "and an export has it only with --wire."
)


@click.command()
@click.argument("session", required=False)
@click.option(
    "--round", "number", type=click.IntRange(min=1), metavar="N", help="Only this round, with nothing cut."
)
@click.option("--wire", is_flag=True, help="Also the requests and answers as they went over the wire.")
@click.option(
    "--curl", is_flag=True, help="Print a command that sends the (last) request again, its key as a variable."
)
def command(session: str | None, number: int | None, wire: bool, curl: bool) -> int:
    """Show what happened in SESSION, round by round.

    SESSION is its id, its name, or words said in it. Without one: the last of this folder.

    \b
      glassloop show
      glassloop show --round 2 --wire
      glassloop show 3f2a --round 2 --curl | sh    the same request again
    """
    from glassloop.cli.timeline_lines import head_lines, rounds_of

    store = open_store()
    session_id = found(store, session)
    timeline = store.timeline(session_id)
    rounds = rounds_of(timeline, store.exchanges(session_id))
    if number is not None:
        rounds = [one for one in rounds if one.number == number] or _no_such(rounds, session_id)
    if wire and not any(one.exchanges for one in rounds):
        say(Line(f"! {_NO_WIRE}", "mend"))
    if curl:
        return _print_curl([one for each in rounds for one in each.exchanges])
    if number is None:
        _write(head_lines(timeline))
    _write_rounds(rounds, wire=wire, whole=number is not None)
    return ANSWERED


def _no_such(rounds: list[Round], session_id: str) -> list[Round]:
    most = max((one.number for one in rounds), default=0)
    raise SessionError(f"session {session_id} has {counted(most, 'round')}: there is no such round in it")


def _write_rounds(rounds: Iterable[Round], *, wire: bool, whole: bool) -> None:
    from glassloop.cli.timeline_lines import round_lines, run_line, wire_lines

    width = width_of_terminal(sys.stdout)
    run_id = ""
    for one in rounds:
        if one.run.run_id != run_id and not whole:
            _write([run_line(one.run)])
        run_id = one.run.run_id
        _write(round_lines(one, width, whole=whole))
        for exchange in one.exchanges if wire else ():
            _write_whole(wire_lines(exchange))


def _write(lines: Iterable[Line]) -> None:
    """To stdout, for here the lines are what was asked for; broken between words where that is a terminal."""
    width = width_of_terminal(sys.stdout)
    for line in lines:
        text = "\n".join(wrapped(line.text, width)) if sys.stdout.isatty() else line.text
        _write_whole([Line(text, line.style)])


def _write_whole(lines: Iterable[Line]) -> None:
    """To stdout as they are: what went over a wire is not laid out."""
    for line in lines:
        click.echo(painted(line.text, line.style), color=color_of(sys.stdout))


def _print_curl(exchanges: list[Exchange]) -> int:
    from glassloop.sessions.wire_log import curl

    if not exchanges:
        raise SessionError(_NO_WIRE)
    last = exchanges[-1]
    variable = _key_variable(last.url)
    command = curl(last, variable)
    print(command)
    if f"${variable}" in command and variable not in os.environ:
        say(Line(f"· put the key into {variable} before you run it", "quiet"))
    return ANSWERED


def _key_variable(url: str) -> str:
    """The variable that usually holds the key for this address."""
    from glassloop.core.errors import ConfigError
    from glassloop.models.providers import PROVIDERS
    from glassloop.models.urls import origin

    try:
        asked = origin(url)
    except (ConfigError, ValueError):
        return "GLASSLOOP_API_KEY"
    homes = {origin(one.base_url): one.keys[0] for one in PROVIDERS.values() if one.base_url and one.keys}
    return homes.get(asked, "GLASSLOOP_API_KEY")
