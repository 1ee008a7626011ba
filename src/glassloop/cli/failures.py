"""One place that turns any exception into what a person is told (what, where, what to do) and an exit code."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from glassloop.cli.safe_text import visible
from glassloop.cli.terminal import for_stderr
from glassloop.cli.wording import in_terminal_words, program, start_hint
from glassloop.core import errors

ANSWERED, FAILED, USAGE, LIMIT, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: the question was answered; it failed; the command line, a tool file or the configuration is wrong;
a limit stopped the run; the user did."""

_STOPPED_AT_A_LIMIT = frozenset({"rounds", "calls", "tokens", "cost", "seconds", "repeated_calls"})

_NEXT_STEPS: Sequence[tuple[type[BaseException], str]] = (
    (
        errors.AuthenticationFailed,
        "Check the key and where it comes from: {program} run --verbose says which file.",
    ),
    (errors.ContextOverflow, "Ask about less at once, or use a model with a larger context window."),
    (errors.RateLimited, "Wait a little, or choose another model with -m."),
    (errors.OutOfCredit, "Add credit at the provider, or choose another model with -m."),
    (errors.ConnectionLost, "Is the server running, and is the base URL right? Try: {program} models"),
    (errors.StreamStalled, "The endpoint stopped talking. Try again, or choose another model with -m."),
    (errors.EmptyReply, "Try again, or choose another model with -m."),
    (errors.ContentFiltered, "Put the question differently, or choose another model with -m."),
)


class Said(click.ClickException):
    """A failure whose text is already complete, with the exit code that it ends in."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.code = exit_code


def exit_code_for(stop_reason: str) -> int:
    """The exit code of a run by the reason why it stopped."""
    if stop_reason == "answered":
        return ANSWERED
    if stop_reason == "cancelled":
        return INTERRUPTED
    return LIMIT if stop_reason in _STOPPED_AT_A_LIMIT else FAILED


def exit_code_of(error: BaseException) -> int:
    """The exit code that an exception ends the program with."""
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else FAILED
        case Said():
            return error.code
        case click.exceptions.Exit() | click.ClickException():
            return int(error.exit_code)
        case errors.ConfigError() | errors.ToolDefinitionError():
            return USAGE
        case KeyboardInterrupt() | click.Abort() | asyncio.CancelledError():
            return INTERRUPTED
    return FAILED


def report(error: BaseException) -> None:
    """Say on stderr what went wrong; a group without a command shows its help. A reader that has gone is no news."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return
    lines = message_lines(error)
    if not lines:
        return
    head, *rest = [part for line in (f"error: {lines[0]}", *lines[1:]) for part in for_stderr(line)]
    label = click.style("error:", fg="red", bold=True)  # all that fits where a long path comes first
    click.echo(label + head.removeprefix("error:"), err=True, color=color_of(sys.stderr))
    for line in rest:
        click.echo(line, err=True)


def message_lines(error: BaseException) -> list[str]:
    """What went wrong, where, and what to do, safe to print."""
    match error:
        case SystemExit() | click.exceptions.Exit() | BrokenPipeError():
            return []
        case KeyboardInterrupt() | click.Abort() | asyncio.CancelledError():
            return ["interrupted"]
        case click.UsageError():
            return [*_lines(error.format_message()), f"Try: {_command_path(error)} --help"]
        case click.ClickException():
            return _lines(error.format_message())
        case errors.GlassloopError():
            return [*_lines(in_terminal_words(_told(error))), *_next_step(error)]
        case OSError():
            what = error.strerror or str(error)
            return _lines(f"{what}: {error.filename}" if error.filename else what)
    return _unexpected(error)


def _lines(text: str) -> list[str]:
    return visible(text).splitlines() or ["something failed without saying what"]


def _command_path(error: click.UsageError) -> str:
    return error.ctx.command_path if error.ctx else "glassloop"


def _told(error: errors.GlassloopError) -> str:
    """The message; where a known local server is not running, how it is started in place of a general hint."""
    text = str(error)
    if not isinstance(error, errors.ConnectionLost) or "could not be reached" not in text:
        return text
    hint = start_hint(error.url)
    return text.replace(error.hint, hint) if hint and error.hint else text


def _next_step(error: errors.GlassloopError) -> list[str]:
    if getattr(error, "hint", ""):
        return []
    steps = [step for kind, step in _NEXT_STEPS if isinstance(error, kind)]
    return [step.format(program=program()) for step in steps[:1]]


def _unexpected(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "an unknown place"
    return [
        *_lines(f"{type(error).__name__}: {error}"),
        f"This is a mistake in Glassloop (in {where}), not in what you typed. Please report it with these lines.",
    ]


def color_of(stream: object) -> bool:
    """Whether to use color on a stream: only on a terminal, and not if NO_COLOR is set to anything."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(getattr(stream, "isatty", lambda: False)())
