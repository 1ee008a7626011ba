"""Calls that were started and of which nobody knows whether they took effect, and what can be said of them.

Only `once` calls come here, after a crash: a `read` and an `idempotent` one simply run again. The driver asks
a resolution already written down, the tool's `check`, its `unknown` policy and then a person, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from glassloop.core.entries import JSON, Part, ToolCall, parts_of
from glassloop.core.values import Value


class Unknown(Value, frozen=True):
    """A call in doubt. `key` is what it gave to the outside as its idempotency key.

    `attempt` counts its starts, from 1. `repeatable` is False where its arguments held a secret that was not
    kept: then it cannot be run again. `why` says what kept its tool from finding out, if it tried.
    """

    call: ToolCall
    arguments: Mapping[str, JSON]
    key: str
    attempt: int = 1
    repeatable: bool = True
    why: str = ""


class Done(Value, frozen=True, gc=True):
    """It took effect, and `result` is what it would have returned: text, parts, or from a `check` any value.

    `by`: who says so.
    """

    result: Any
    by: str = ""


class Retry(Value, frozen=True):
    """It did not take effect, or may safely be done again: run it once more, with the same key."""

    by: str = ""


class GiveUp(Value, frozen=True):
    """Nobody can find out: the model is told that the outcome is unknown, and to check before it repeats it."""

    by: str = ""


Answer = Done | Retry | GiveUp


class Resolution(Value, frozen=True):
    """What was decided of a call in doubt, as it is written down. It holds for this `attempt` and no later one.

    `parts` is the result, where `outcome` is "done".
    """

    call_id: str
    attempt: int
    outcome: Literal["done", "retry", "give_up"]
    parts: tuple[Part, ...] = ()
    by: str = ""


def resolution_of(call_id: str, attempt: int, answer: Answer) -> Resolution:
    """An answer as it is written down. Raises `TypeError` for a result that is neither text nor parts."""
    match answer:
        case Done(result=result, by=by):
            return Resolution(call_id, attempt, "done", parts_of(result), by)
        case Retry(by=by):
            return Resolution(call_id, attempt, "retry", by=by)
        case GiveUp(by=by):
            return Resolution(call_id, attempt, "give_up", by=by)
