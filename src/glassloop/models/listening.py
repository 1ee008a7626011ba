"""Asks a model one question and passes on what it says while it answers. What the reply means is for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from glassloop.core.entries import Entry, Mend, Reply
from glassloop.core.errors import EmptyReply
from glassloop.core.events import Delta, Event, Mended, ModelFinished, ReasoningDelta, TextDelta, still_shown
from glassloop.core.recording import Recorder
from glassloop.models.model import Model, ModelRequest
from glassloop.wire.names import with_unique_ids


async def listen(
    model: Model,
    request: ModelRequest,
    recorder: Recorder,
    seq: int,
    all_said: Sequence[Entry],
    *,
    emit: Callable[[Event], None],
    mended: Callable[[Mend], None],
) -> Reply:
    """The reply; `emit` gets the events on the way, `mended` what was mended besides it. Raises `EndpointError`.

    `all_said`: the conversation with what is not sent any more. Some servers count the calls that they see: an id that
    was there before is replaced, for all of it may be sent again.

    The words of a summary are no answer: nobody is shown them as they come.
    """
    aside = request.purpose == "summary"
    began = _now()
    shown = False
    async with aclosing(model.stream(request, recorder)) as said:
        async for one in said:
            if isinstance(one, Reply):
                one = _with_new_ids(one, all_said)
                if not shown and not aside:
                    _show_whole(one, emit)
                for mend in one.mends:
                    emit(Mended(mend))
                emit(ModelFinished(seq, one, _now() - began))
                return one
            if isinstance(one, Mend):
                mended(one)
            elif not (aside and isinstance(one, Delta)):
                shown = still_shown(one, shown)
                emit(one)
    raise EmptyReply(f"{model.name} ended without a reply: its stream() must say one last")


def _with_new_ids(reply: Reply, all_said: Sequence[Entry]) -> Reply:
    if not reply.tool_calls:
        return reply
    taken = {call.id for entry in all_said if isinstance(entry, Reply) for call in entry.tool_calls}
    calls = with_unique_ids(reply.tool_calls, len(all_said), taken)
    return reply if calls == reply.tool_calls else replace(reply, tool_calls=calls)


def _show_whole(reply: Reply, emit: Callable[[Event], None]) -> None:
    """A reply that came in one piece is shown in one piece: a screen needs to know only deltas."""
    if reply.reasoning:
        emit(ReasoningDelta(reply.reasoning))
    if reply.text:
        emit(TextDelta(reply.text))


def _now() -> float:
    return asyncio.get_running_loop().time()
