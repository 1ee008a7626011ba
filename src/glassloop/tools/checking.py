"""Asking a tool's `check` what became of a call that a crash left in doubt. What then happens is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from glassloop.core.entries import Part
from glassloop.core.resolving import Answer, Done, GiveUp, Retry
from glassloop.tools import hints
from glassloop.tools.context import ToolContext
from glassloop.tools.output import text_of_error
from glassloop.tools.running import Raised, Returned, is_async, run
from glassloop.tools.tool import Check, Tool


async def checked(
    tool: Tool, check: Check, context: ToolContext, show: Callable[[Any], tuple[Part, ...]]
) -> Answer | str:
    """What the check found; or, as text, why it could not. A result is made what a model is shown by `show`."""
    taken = hints.context_parameter(check)
    asking = partial(check, context.key, **({taken: context} if taken else {}))

    match await run(asking, lambda found: _shown(found, show), tool.timeout, on_loop=is_async(check)):
        case Returned(value=Done() | Retry() | GiveUp() as answer):
            return replace(answer, by=answer.by or f"the check of {tool.name}")
        case Returned(value=None):
            return f"the check of {tool.name} cannot tell"
        case Returned(value=other):
            kind = type(other).__name__
            return f"the check of {tool.name} gave {kind}, and neither Done(result), Retry() nor None"
        case Raised(error=error):
            return f"the check of {tool.name} failed: {text_of_error(error)}"
    return f"the check of {tool.name} had not ended after {tool.timeout:g} seconds"


def _shown(found: Any, show: Callable[[Any], tuple[Part, ...]]) -> Any:
    return replace(found, result=show(found.result)) if isinstance(found, Done) else found
