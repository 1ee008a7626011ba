"""Sandboxes: what each lets a program see and do, and which one works on this machine. Running is `process`'s part.

A sandbox counts only after a program was really run in it: where user namespaces are switched off, bubblewrap is
installed and cannot start. There is no silent way down: what cannot be confined does not run, unless a person chose
`none`, and every result names what confined it.

Landlock is not here although it works where user namespaces are blocked: it leaves UDP and Unix sockets open, so
alone it keeps neither DNS nor the socket of a container engine from a program.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin import sandbox_bubblewrap, sandbox_seatbelt
from glassloop.tools.builtin.process import SYSTEM_PATH
from glassloop.tools.builtin.rooted_names import Root
from glassloop.tools.builtin.sandbox_confines import Confines, Guards, guarded, unguarded

OPTION = "sandbox"
CHOICES = ("auto", "accept_none", "none")
"""The best that works; the same, and nothing where none works; nothing."""

_HOW_TO_ALLOW = (
    "Nothing ran. The user can install bubblewrap (Linux), or allow programs to run unconfined with the option"
    " sandbox=none (in the terminal: --i-accept-no-sandbox)"
)


class NoSandbox(Exception):
    """Nothing on this machine can confine a program. The message says why, and how a user can allow it all the same."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One way to confine a program.

    `wrap(argv, confines, guards, cwd, scratch)` is the command that runs `argv` confined. `isolated`: it has a `/tmp`
    and processes of its own, which end with it; else `scratch` is a folder that the caller made for it.
    """

    name: str
    wrap: Callable[[Sequence[str], Confines, Guards, Path, Path], list[str]]
    guard: Callable[[Root], AbstractContextManager[Guards]]
    isolated: bool

    def described(self, confines: Confines) -> str:
        """For results and approvals: the name, and what it does about the network."""
        if self is UNCONFINED:
            return "no sandbox"
        return f"{self.name}, {'with' if confines.network else 'no'} network"


def _as_it_is(argv: Sequence[str], *_: object) -> list[str]:
    return list(argv)


UNCONFINED = Sandbox("none", _as_it_is, unguarded, isolated=False)


def candidates() -> list[Sandbox]:
    """The sandboxes whose program is there, best first. Whether they work is only known after a run."""
    if sys.platform == "darwin":
        found = [sandbox_seatbelt.PROGRAM] if Path(sandbox_seatbelt.PROGRAM).exists() else []
        return [Sandbox("seatbelt", sandbox_seatbelt.wrap, guarded, isolated=False) for _ in found]
    program = shutil.which("bwrap", path=SYSTEM_PATH)
    if program is None:
        return []
    return [
        Sandbox("bubblewrap", sandbox_bubblewrap.wrapper(program, extra), guarded, isolated=True)
        for extra in sandbox_bubblewrap.VARIANTS
    ]


def no_sandbox(tried: Mapping[str, str]) -> NoSandbox:
    """The exception for a machine on which these were tried, each with the reason why it does not work."""
    if not tried:
        return NoSandbox(f"There is no sandbox on this machine: no bubblewrap is installed. {_HOW_TO_ALLOW}.")
    reasons = "; ".join(f"{name}: {reason}" for name, reason in tried.items())
    return NoSandbox(f"No sandbox works on this machine ({reasons}). {_HOW_TO_ALLOW}.")


def chosen(options: Mapping[str, str]) -> str:
    """What the option `sandbox` says; "auto" if nothing. Raises `ConfigError` for anything unknown."""
    choice = options.get(OPTION, "auto")
    if choice not in CHOICES:
        raise ConfigError(f"sandbox is {choice!r}. Choose one of {', '.join(CHOICES)}.")
    return choice
