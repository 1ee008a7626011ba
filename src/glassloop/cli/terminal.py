"""The terminal behind a stream: how wide it is, a line laid out for it, and a yes or no typed at it."""

from __future__ import annotations

import os
import sys
from typing import IO

import click

from glassloop.cli.safe_text import laid_out

WIDE = 120
"""Columns for a stream that is no terminal and says nothing of its width."""


def width_of_terminal(stream: IO[str]) -> int:
    """Columns of the terminal behind a stream; COLUMNS, or `WIDE`, where there is none."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    told = os.environ.get("COLUMNS", "")
    return columns or (int(told) if told.isdigit() and int(told) else WIDE)


def for_stderr(line: str, margin: int = 0) -> list[str]:
    """A line for standard error: wrapped at a terminal's width less a margin, whole where there is no terminal."""
    return laid_out(line, width_of_terminal(sys.stderr) - margin) if sys.stderr.isatty() else [line]


def is_confirmed(question: str) -> bool:
    """Whether a person answers `y` or `yes`; as at every question here, anything else is a no.

    Raises `click.Abort` on Ctrl-C and at the end of the input.
    """
    return typed(f"{question} [y/N]: ").strip().lower() in ("y", "yes")


def typed(prompt: str) -> str:
    """What a person types behind a prompt. Raises `click.Abort` on Ctrl-C and at the end of the input."""
    try:
        said: str = click.prompt(prompt, default="", show_default=False, prompt_suffix="", err=True)
    except click.Abort:
        click.echo(err=True)  # what follows begins on a line of its own
        raise
    return said
