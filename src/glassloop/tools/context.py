"""`ToolContext`: what a running tool may know of the call that it serves. Nothing here reaches the model."""

from __future__ import annotations

from collections.abc import Callable

from glassloop.core.values import Value


def _nobody_listens(text: str) -> None:
    """Progress outside a run goes nowhere."""


class ToolContext(Value, frozen=True, gc=True):
    """Given to a parameter annotated `ToolContext`; the model never sees that parameter.

    `key` is the same whenever this very call runs again after a crash: pass it on to services that
    take an idempotency key. `progress(text)` shows a word to people while the tool runs, from any
    thread. `outside`: the tool by which words of others came into the run before this call, "" if none did.
    """

    run_id: str = ""
    seq: int = 0
    call_id: str = ""
    key: str = ""
    agent: str = ""
    progress: Callable[[str], None] = _nobody_listens
    outside: str = ""
