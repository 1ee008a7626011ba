"""A controller that has the history summed up now and does nothing else: what `/compact` runs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from glassloop.core.context import Context
from glassloop.core.entries import Entry, Reply, Summary
from glassloop.core.journal import Cancelled, ModelFailed, Record
from glassloop.core.limits import Spent
from glassloop.core.steps import CallModel, Finish, Step
from glassloop.core.window import Window


class Compacting:
    """Asks for one summary of `history` but its last turns, and finishes. `hint`: what is to be kept above all.

    With nothing to sum up it finishes at once, without a text.
    """

    def __init__(
        self, history: Sequence[Entry], window: Window, size: int | None = None, hint: str = ""
    ) -> None:
        self.spent = Spent()
        self._context = Context(history, window, size)
        due = self._context.due(hint, least=1)
        self._step: Step = Finish(1, "answered")
        if due:
            self._step = CallModel(1, "summary", due.entries, (), due.replaces, due.most, due.worth)

    @property
    def entries(self) -> list[Entry]:
        return self._context.entries

    def next(self) -> Step:
        return self._step

    def feed(self, record: Record) -> None:
        self.spent = self.spent.after(record.seconds)
        match record.value:
            case Summary() as summary:
                self.spent = self.spent.after_reply(Reply(usage=summary.usage), record.cost, counts=False)
                self._context.summarised(summary)
                self._step = Finish(2, "answered", summary.text, compacted=self._context.compacted)
            case ModelFailed() as failed:
                words = f"No summary could be had, and all stays as it is: {failed.message}"
                self._step = Finish(2, "failed", failure=replace(failed, message=words))
            case Cancelled():
                self._step = Finish(2, "cancelled")
