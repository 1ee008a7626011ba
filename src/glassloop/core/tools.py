"""What the model is told of a tool, and what is decided about a call before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import field

from glassloop.core.entries import JSON, ToolCall
from glassloop.core.values import Value, repr_without

Effect = Literal["read", "idempotent", "once"]
"""What repeating a call does: nothing (`read`), nothing more than the first with the same key
(`idempotent`), or possibly harm (`once`). It decides repetition after a crash, never permission."""


class ToolSpec(Value, frozen=True, weakref=True, gc=True):
    """A tool as the model sees it. `parameters` is a JSON Schema of type object with its refs inlined."""

    name: str
    description: str
    parameters: Mapping[str, JSON]
    effect: Effect = "once"


class Verdict(Value, frozen=True):
    """What `Tools.prepare` found, without any effect.

    `ready`: may run with `arguments` (coerced, plain JSON). `problem`: must not run; `text` goes to the
    model as the call's result. `ask`: a person must allow it first; `text` says what would happen.
    `bound` carries the validated Python values from prepare to execute; it is never stored. Nothing in it may lead
    to those who keep verdicts: the garbage collector does not look here.
    """

    call: ToolCall
    outcome: Literal["ready", "problem", "ask"]
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    effect: Effect = "once"
    text: str = ""
    tool_hash: str = ""
    bound: Any = None

    def __repr__(self) -> str:
        return repr_without(self, "bound")


class Decision(Value, frozen=True):
    """A person's (or a callback's) answer to an `ask` verdict. `reason` is passed on to the model."""

    call_id: str
    allowed: bool
    reason: str = ""
    by: str = ""
