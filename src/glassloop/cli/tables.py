"""Tables for the terminal: columns that fit its width, wrapping the last one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import click

from glassloop.cli.failures import color_of
from glassloop.cli.safe_text import one_line, width_of, wrapped
from glassloop.cli.terminal import width_of_terminal

_GAP = "   "
_LEAST = 24
"""Columns that the last cell of a row needs; with less, rows are paragraphs."""

_HEAD = 12
"""Columns that a head takes at most; a longer one is wrapped, unless its cells are as wide."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table to stdout. Piped, it is tab-separated lines without a head, for other programs."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            print("\t".join(row))
        return
    if not cells:
        return
    width = width_of_terminal(sys.stdout)
    widths = _widths(columns, cells, width)
    if not widths:
        for row in cells:
            _print_paragraph(row, width)
        return
    for line in _lines(columns, widths):
        click.echo(click.style(_joined(line), bold=True), color=color_of(sys.stdout))
    click.echo("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)))
    for row in cells:
        for first, *others in _lines(row, widths):
            click.echo(_joined([click.style(first, fg="cyan"), *others]), color=color_of(sys.stdout))


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """How wide each column is; nothing where the last one would be too narrow. Only the last one's cells wrap."""
    widest = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    heads = [width_of(name) for name in columns]
    fixed = [max(cell, min(head, _HEAD)) for cell, head in zip(widest[:-1], heads[:-1], strict=True)]
    room = width - sum(fixed) - len(_GAP) * len(fixed)
    last = max(widest[-1], heads[-1])
    return [*fixed, min(room, last)] if room >= min(last, _LEAST) else []


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """The lines of a row, each as its cells, filled up to the columns' widths."""
    pieces = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    return [
        [text + " " * (width - width_of(text)) for text, width in zip(line, widths, strict=True)]
        for line in zip_longest(*pieces, fillvalue="")
    ]


def _joined(cells: Sequence[str]) -> str:
    return _GAP.join(cells).rstrip()


def _print_paragraph(row: Sequence[str], width: int) -> None:
    """The first cell, the short ones in brackets, and the last below them."""
    first, *others = row
    middle = ", ".join(cell for cell in others[:-1] if cell)
    head = wrapped(f"{first} ({middle})" if middle else first, width)
    below = [line for cell in others[-1:] if cell for line in wrapped(cell, width - 2)]
    lines = [*head, *(f"  {line}" for line in below)]
    name = click.style(lines[0][: len(first)], fg="cyan")
    click.echo(name + lines[0][len(first) :], color=color_of(sys.stdout))
    for line in lines[1:]:
        click.echo(line)
