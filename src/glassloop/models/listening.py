"""Asks a model one question and passes on what it says while it answers. What the reply means is for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from contextlib import aclosing
from dataclasses import replace

from glassloop.core.entries import Mend, Reply
from glassloop.core.errors import EmptyReply
from glassloop.core.events import Delta, Event, Mended, ModelFinished, ReasoningDelta, TextDelta, still_shown
from glassloop.core.recording import Recorder
from glassloop.models.model import Model, ModelRequest
from glassloop.wire.names import with_unique_ids


async def listen(
    model: Model,
    request: ModelRequest,
    recorder: Recorder,
    *,
    seq: int,
    said_before: int,
    used_ids: Container[str],
    emit: Callable[[Event], None],
    mended: Callable[[Mend], None],
) -> Reply:
    """The reply; `emit` gets the events on the way, `mended` what was mended besides it. Raises `EndpointError`.

    `said_before`: how many entries the conversation has, with what is not sent any more; `used_ids`: of all calls in
    it. Some servers count the calls that they see: an id that was there before is replaced, for all of it may be sent
    again.

    The words of a summary are no answer: nobody is shown them as they come.
    """
    aside = request.purpose == "summary"
    began = _now()
    shown = False
    async with aclosing(model.stream(request, recorder)) as said:
        async for one in said:
            if isinstance(one, Reply):
                one = _with_new_ids(one, said_before, used_ids)
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


def _with_new_ids(reply: Reply, said_before: int, used: Container[str]) -> Reply:
    calls = with_unique_ids(reply.tool_calls, said_before, used)
    return reply if calls == reply.tool_calls else replace(reply, tool_calls=calls)


def _show_whole(reply: Reply, emit: Callable[[Event], None]) -> None:
    """A reply that came in one piece is shown in one piece: a screen needs to know only deltas."""
    if reply.reasoning:
        emit(ReasoningDelta(reply.reasoning))
    if reply.text:
        emit(TextDelta(reply.text))


def _now() -> float:
    return asyncio.get_running_loop().time()
