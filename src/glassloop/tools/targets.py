"""What a call is aimed at, for rules on arguments: files, command lines, addresses. Values only."""

from __future__ import annotations

from pathlib import Path

from glassloop.core.values import Value


class Command(Value, frozen=True):
    """A command line, as a shell would get it."""

    text: str


class Address(Value, frozen=True):
    """A URL, as the call has it."""

    url: str


Target = Path | Command | Address
"""A path is absolute and resolved: no link and no `..` is left in it."""
