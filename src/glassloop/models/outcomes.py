"""What an outcome amounts to, and the error it ends in. Pure: what is done about it is decided in `operation.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from glassloop.core.entries import Mend, Reply
from glassloop.core.errors import (
    ConnectionLost,
    ContextOverflow,
    EmptyReply,
    EndpointError,
    RateLimited,
    RequestRejected,
)
from glassloop.models.attempt import Refused
from glassloop.wire.calls import CUT_OFF
from glassloop.wire.completion import FailureReason
from glassloop.wire.judgement import Judgement, Raise, Retry

_POSSIBLE_NAME = re.compile(r"[^\W\d][\w.:/-]*")
"""What a tool could be called."""

BROKEN_BODIES: Mapping[FailureReason, tuple[str, type[EndpointError], int | None]] = {
    "not_json": ("The answer is no JSON", ConnectionLost, None),
    "empty_body": ("The answer is empty", EmptyReply, None),
    "no_choices": ("The answer holds no choices", EmptyReply, 2),
    "error_finish": ("The model's turn ended in an error", EndpointError, None),
    "html": ("The answer is a web page, not JSON; is the base URL right?", RequestRejected, 1),
}
"""Bodies that are no reply though HTTP claims success: what to say, what to raise, how often to retry."""

_THROTTLED = re.compile(r"rate|throttl|too many|overload|capacity|concurren", re.IGNORECASE)
QUOTED = 500


def is_debris(name: str) -> bool:
    """Whether a call's name can be no tool's, misspelt or invented: a broken parser's debris."""
    return bool(name.strip()) and not _POSSIBLE_NAME.fullmatch(name.strip())


def says_nothing(verdict: Judgement) -> bool:
    """Whether the words of a body gave no better reason than that it is no reply."""
    return isinstance(verdict, Retry) or (
        isinstance(verdict, Raise) and type(verdict.error) is RequestRejected
    )


def could_be_whole(partial: Reply) -> bool:
    """Whether nothing in it shows that anything but the end mark is missing: there is text, or complete calls."""
    complete = all(call.arguments is not None and call.text.strip() for call in partial.tool_calls)
    return complete and not partial.is_empty


def taken_as_whole(partial: Reply) -> Reply:
    """A reply that was only called incomplete because its stream had no end mark."""
    mend = Mend("no_terminal", "the stream ended without a finish reason, as this endpoint's streams do")
    calls = tuple(
        replace(call, problem=None) if call.problem == CUT_OFF else call for call in partial.tool_calls
    )
    return replace(partial, tool_calls=calls, cut_off=False, mends=(*partial.mends, mend))


def overflow_error(window: int | None, words: str, status: int) -> ContextOverflow:
    error = ContextOverflow("The conversation does not fit into the model's context window", status=status)
    error.window, error.provider_text = window, words
    return error


def still_failing(refused: Refused, verdict: Retry) -> EndpointError:
    """What to raise when retries have not helped."""
    status, words = refused.status, verdict.reason
    if status != 429 and not _THROTTLED.search(words):
        return EndpointError(
            "The endpoint failed, also after all retries", status=status, provider_text=words
        )
    error = RateLimited(
        "The endpoint is still throttling after all retries", status=status, provider_text=words
    )
    error.wait_seconds = verdict.after
    return error
