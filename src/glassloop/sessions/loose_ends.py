"""Calls that a run left open which does not go on here, and the result that is true of each. Nothing is stored here."""

from __future__ import annotations

from dataclasses import dataclass, field

from glassloop.core.entries import Reply, ToolCall, ToolResult, refused, unknown
from glassloop.core.journal import Record
from glassloop.core.tools import Decision, Verdict

_LEFT = "Not run to its end: the run was not over where this session was exported, and it did not go on."


@dataclass(slots=True)
class LooseEnds:
    """Is told a run's records in their order.

    An export holds no intents: a `once` call that was allowed to start may have been started.
    """

    _open: dict[str, tuple[int, ToolCall]] = field(default_factory=dict)
    _taken: set[int] = field(default_factory=set)
    _asked: set[int] = field(default_factory=set)
    _begun: set[int] = field(default_factory=set)
    _seconds: float = 0.0

    def note(self, record: Record) -> None:
        """One more record of the run."""
        self._seconds = max(self._seconds, record.seconds)
        match record.value:
            case Reply(tool_calls=calls):
                self._open.update({call.id: (record.seq + 1 + i, call) for i, call in enumerate(calls)})
            case ToolResult(call_id=call_id):
                self._open.pop(call_id, None)
                self._taken.add(record.seq)
            case Verdict(outcome="ready", effect="once"):
                self._begun.add(record.seq)
            case Verdict(outcome="ask", effect="once"):
                self._asked.add(record.seq)
            case Decision(allowed=True) if record.seq in self._asked:
                self._begun.add(record.seq)

    def results(self) -> list[Record]:
        """A result for each open call."""
        return [
            Record(seq, unknown(call) if seq in self._begun else refused(call, _LEFT), self._seconds)
            for seq, call in self._open.values()
            if seq not in self._taken
        ]
