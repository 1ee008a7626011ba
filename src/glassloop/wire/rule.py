"""What a rule about refused requests is made of. The rules are in `refused_tools` and `refused_messages`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from glassloop.core.entries import JSON
from glassloop.wire.sent import Sent

Changes = Mapping[str, JSON]
Step = tuple[str, Changes]
"""A stable code, and the profile fields to change."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """`words`: what the error says. `applies`: whether we sent what it can be about. `steps`: what to change.

    `not_words`: what it says when it is about something else.
    """

    words: re.Pattern[str]
    applies: Callable[[Sent], bool]
    steps: Callable[[Sent, str], Iterator[Step]]
    not_words: re.Pattern[str] | None = None


def always(*steps: Step) -> Callable[[Sent, str], Iterator[Step]]:
    return lambda sent, text: iter(steps)


def or_text(*steps: Step) -> Callable[[Sent, str], Iterator[Step]]:
    """These, and when they are all used up, calls as text."""
    return lambda sent, text: iter((*steps, to_text(sent)))


def to_text(sent: Sent) -> Step:
    """Calls written as text, in the words of the family that the model was trained on."""
    from glassloop.wire.textcalls import family_for

    return "tool_mode:text", {"tool_mode": family_for(sent.model)}


def has_tools(sent: Sent) -> bool:
    return bool(sent.tools)


def has_calls(sent: Sent) -> bool:
    return "tool_calls" in sent.message_fields


def has_results(sent: Sent) -> bool:
    return "tool" in sent.roles
