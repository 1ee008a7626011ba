"""A call as a grammar found it, before its name is looked up and its arguments are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from glassloop.core.entries import JSON
from glassloop.core.values import Value
from glassloop.wire.textcalls.source import BrokenBy


class Field(Value, frozen=True):
    """One argument written as text. `kind` says how to read it: by the tool's schema, as it is, or as JSON."""

    key: str
    text: str
    kind: Literal["schema", "string", "json"] = "schema"


class Found(Value, frozen=True):
    """`arguments` is an object, the text of one, or fields; `problem` is why the call must not run."""

    name: str
    arguments: Mapping[str, JSON] | str | tuple[Field, ...]
    id: str = ""
    problem: str | None = None
    is_python: bool = False  # another one may follow on the next line
    is_flat: bool = False  # the arguments stand beside the name
    has_other_keys: bool = False  # the JSON says more than a call does


class Shape(Value, frozen=True):
    """What was read: the calls, the reasoning before them, and whether text may follow as the answer."""

    family: str
    found: tuple[Found, ...] = ()
    reasoning: str = ""
    text_follows: bool = False


_WRITTEN_NAME = re.compile(r"functions\.(.+?)(?::\d+)?")


def plain_name(written: str) -> str:
    """The tool's name in `functions.get_weather:0`, as Kimi and gpt-oss are trained to write it."""
    found = _WRITTEN_NAME.fullmatch(written)
    return found.group(1) if found else written


CUT_OFF = "The call was cut off before its end, so it did not run. Send it again, shorter or in parts."


def unreadable(what: str) -> str:
    """A problem for which the model can write the call again."""
    return f"The call could not be read: {what.rstrip('.')}. Send it again."


WRONG_BRACKET = unreadable("the brackets do not match")
BROKEN_OFF = unreadable("the arguments are broken off by another tag")


def broken_off(by: BrokenBy) -> str | None:
    """The problem of a call whose bracketed arguments were broken off so; None if they are complete."""
    match by:
        case "":
            return None
        case "end":
            return CUT_OFF
        case "bracket":
            return WRONG_BRACKET
        case "marker":
            return BROKEN_OFF
