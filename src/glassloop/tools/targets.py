"""What a call is aimed at, for rules on arguments: files, command lines, addresses. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, as a shell would get it."""

    text: str


@dataclass(frozen=True, slots=True)
class Address:
    """A URL, as the call has it."""

    url: str


Target = Path | Command | Address
"""A path is absolute and resolved: no link and no `..` is left in it."""
