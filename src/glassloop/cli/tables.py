"""Tables for the terminal: columns that fit its width, wrapping the last one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import click

from glassloop.cli.failures import color_of
from glassloop.cli.safe_text import one_line, wrapped
from glassloop.cli.terminal import width_of_terminal

NARROW = 50
"""Below this many columns a row is a paragraph."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table to stdout. Piped, it is tab-separated lines without a head, for other programs."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(one_line(cell) for cell in row))
        return
    width = width_of_terminal(sys.stdout)
    if width < NARROW:
        for row in rows:
            _print_paragraph([one_line(cell) for cell in row], width)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        last = number == len(columns) - 1
        table.add_column(name, overflow="fold", ratio=1 if last else None, style="" if number else "cyan")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console = Console(width=width, no_color=not color_of(sys.stdout), highlight=False)
    console.print(table)


def _print_paragraph(row: Sequence[str], width: int) -> None:
    """The first cell, the short ones in brackets, and the last below them."""
    first, *others = row
    middle = ", ".join(cell for cell in others[:-1] if cell)
    head = wrapped(f"{first} ({middle})" if middle else first, width)
    below = [line for cell in others[-1:] for line in wrapped(cell, width - 2)]
    lines = [*head, *(f"  {line}" for line in below)]
    name = click.style(lines[0][: len(first)], fg="cyan")
    click.echo(name + lines[0][len(first) :], color=color_of(sys.stdout))
    for line in lines[1:]:
        click.echo(line)
