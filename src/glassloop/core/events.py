"""Everything a run can say while it runs. A screen can be drawn from these alone.

Starts have ends: `ModelStarted` … `ModelFinished` or `ModelGaveUp`, `ToolStarted` … `ToolFinished`,
`ApprovalAsked` … `ApprovalDecided`, `ReviewAsked` … `Reviewed`, `RunStarted` … `Finished`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from glassloop.core.entries import JSON, Mend, Note, Reply, ToolCall, ToolResult, User
from glassloop.core.resolving import Resolution, Unknown
from glassloop.core.tools import Decision, Verdict
from glassloop.core.values import Value, repr_without

Purpose = Literal["turn", "final", "summary"]
"""Why a model is called: an ordinary turn, the last answer without tools, or a summary of old history."""


class RunStarted(Value, frozen=True):
    """A run began. `model` is the name that people know it by."""

    run_id: str
    model: str


class ModelStarted(Value, frozen=True):
    """A request is about to be sent. `round` counts from 1.

    `attempt`: 2 where a process that is gone may have sent it before, and what it answered is lost.
    """

    seq: int
    round: int
    purpose: Purpose = "turn"
    attempt: int = 1


class TextDelta(Value, frozen=True):
    """More of the answer's text."""

    text: str


class ReasoningDelta(Value, frozen=True):
    """More of the model's reasoning."""

    text: str


Delta = TextDelta | ReasoningDelta


class Retrying(Value, frozen=True):
    """The same request is sent again after `wait_seconds`. `discard`: take back the text shown for this reply."""

    reason: str
    attempt: int
    wait_seconds: float = 0.0
    discard: bool = False


class Learned(Value, frozen=True):
    """The endpoint refused something; from now on `change` is applied. `words` are the provider's."""

    code: str
    change: str
    words: str = ""
    discard: bool = False


class Switched(Value, frozen=True):
    """A fallback model took over because `reason`. `discard` as in `Retrying`."""

    from_model: str
    to_model: str
    reason: str
    discard: bool = False


class Mended(Value, frozen=True):
    """A deviation was mended (also in the reply's `mends`)."""

    mend: Mend


class ModelFinished(Value, frozen=True):
    """A complete reply arrived. `seconds` is the time since `ModelStarted`."""

    seq: int
    reply: Reply
    seconds: float


class ModelGaveUp(Value, frozen=True):
    """No reply could be had; `message` quotes the endpoint."""

    seq: int
    message: str


class ApprovalAsked(Value, frozen=True):
    """A call waits for a person's word; `verdict.text` says what would happen."""

    seq: int
    verdict: Verdict


class ApprovalDecided(Value, frozen=True):
    """The answer to it."""

    seq: int
    decision: Decision


class ReviewAsked(Value, frozen=True):
    """A person is asked what became of a call that was started before a crash."""

    seq: int
    unknown: Unknown


class Reviewed(Value, frozen=True):
    """What was found out about such a call, and by whom; None if nobody can say now."""

    seq: int
    resolution: Resolution | None


class ToolStarted(Value, frozen=True):
    """A tool begins to run."""

    seq: int
    call: ToolCall
    arguments: Mapping[str, JSON]


class ToolProgress(Value, frozen=True):
    """A running tool reports something for people."""

    seq: int
    text: str


class ToolFinished(Value, frozen=True):
    """A call has its result. Calls that never ran (problem, denied) have no `ToolStarted` before it."""

    seq: int
    call: ToolCall
    result: ToolResult


class Noted(Value, frozen=True):
    """Glassloop told the model something."""

    note: Note


class Received(Value, frozen=True):
    """A steering or follow-up message was delivered to the model."""

    message: User


class Compacted(Value, frozen=True):
    """Less of the history is sent from now on: `before` and `after` are about so many tokens. Nothing is lost by it.

    `how`: "summary" (the model summed up old turns) or "trim" (old results were shortened, old turns left out).
    """

    how: Literal["summary", "trim"]
    before: int
    after: int


class Warned(Value, frozen=True):
    """Something that a person should know and can act on."""

    code: str
    text: str


class Finished(Value, frozen=True, gc=True):
    """The run is over. `result` is the `Result`; `error` the exception that it ends with, if any."""

    result: Any
    error: BaseException | None = None

    def __repr__(self) -> str:
        return repr_without(self, "result")


Event = (
    RunStarted
    | ModelStarted
    | TextDelta
    | ReasoningDelta
    | Retrying
    | Learned
    | Switched
    | Mended
    | ModelFinished
    | ModelGaveUp
    | ApprovalAsked
    | ApprovalDecided
    | ReviewAsked
    | Reviewed
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | Noted
    | Received
    | Compacted
    | Warned
    | Finished
)


def still_shown(event: object, shown: bool) -> bool:
    """Whether text of an unfinished reply is on the screen after this event, if it was (`shown`) before it."""
    return isinstance(event, Delta) or (shown and not getattr(event, "discard", False))
