"""Asks a model one question and passes on what it says while it answers. What the reply means is for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from glassloop.core.entries import Entry, Mend, Reply
from glassloop.core.errors import EmptyReply
from glassloop.core.events import Delta, Event, Mended, ModelFinished, ReasoningDelta, TextDelta, still_shown
from glassloop.core.recording import Recorder
from glassloop.models.model import Model, ModelRequest
from glassloop.wire.names import with_unique_ids


@dataclass(slots=True)
class Listener:
    """Asks a model for a run: `emit` gets the events on the way.

    `used_ids`: of all calls in the conversation, what is not sent any more included. Some servers count the calls
    that they see: an id that was there before is replaced, for all of it may be sent again.
    """

    model: Model
    recorder: Recorder
    emit: Callable[[Event], None]
    used_ids: dict[str, None] = field(default_factory=dict)  # a third of a set's size

    def knows(self, said: Iterable[Entry]) -> None:
        """So much was said before this run."""
        replies = (entry for entry in said if isinstance(entry, Reply))
        self.used_ids.update((call.id, None) for reply in replies for call in reply.tool_calls)

    async def listen(
        self, request: ModelRequest, seq: int, said_before: int, mended: Callable[[Mend], None]
    ) -> Reply:
        """The reply, after so many entries. Raises `EndpointError`. `mended` gets what was mended besides the reply.

        The words of a summary are no answer: nobody is shown them as they come.
        """
        aside = request.purpose == "summary"
        now = asyncio.get_running_loop().time
        began = now()
        shown = False
        said = self.model.stream(request, self.recorder)
        try:
            async for one in said:
                if isinstance(one, Reply):
                    one = self._with_new_ids(one, said_before)
                    if not shown and not aside:
                        _show_whole(one, self.emit)
                    for mend in one.mends:
                        self.emit(Mended(mend))
                    self.emit(ModelFinished(seq, one, now() - began))
                    return one
                if isinstance(one, Mend):
                    mended(one)
                elif not (aside and isinstance(one, Delta)):
                    shown = still_shown(one, shown)
                    self.emit(one)
        finally:
            await said.aclose()
        raise EmptyReply(f"{self.model.name} ended without a reply: its stream() must say one last")

    def _with_new_ids(self, reply: Reply, said_before: int) -> Reply:
        calls = with_unique_ids(reply.tool_calls, said_before, self.used_ids)
        for call in calls:
            self.used_ids[call.id] = None
        return reply if calls == reply.tool_calls else replace(reply, tool_calls=calls)


def _show_whole(reply: Reply, emit: Callable[[Event], None]) -> None:
    """A reply that came in one piece is shown in one piece: a screen needs to know only deltas."""
    if reply.reasoning:
        emit(ReasoningDelta(reply.reasoning))
    if reply.text:
        emit(TextDelta(reply.text))
