"""What an imported run lacks to be sendable: is each result that of an open call, and which calls have none?

Nothing is stored here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from glassloop.core.entries import Note, Reply, Summary, System, ToolCall, ToolResult, User, refused, unknown
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record
from glassloop.core.tools import Decision, Verdict

_LEFT = "Not run to its end: the run was not over where this session was exported, and it did not go on."


@dataclass(slots=True)
class LooseEnds:
    """Is told a run's records in their order.

    An export holds no intents: a `once` call that was allowed to start may have been started.
    """

    _open: dict[str, tuple[int, ToolCall]] = field(default_factory=dict)
    _seats: list[int] = field(default_factory=list)
    _asked: set[int] = field(default_factory=set)
    _begun: set[int] = field(default_factory=set)
    _reply: float = float("-inf")
    _last: float = float("-inf")
    _seconds: float = 0.0

    def note(self, record: Record) -> list[Record]:
        """One more record of the run. Gives the results that open calls need before it.

        Raises `SessionError` for a record that no run of ours could have there.
        """
        needed: list[Record] = []
        match record.value:
            case Reply(tool_calls=calls):
                needed = self._close(record.seq)
                self._open = {call.id: (record.seq + 1 + i, call) for i, call in enumerate(calls)}
                if len(self._open) < len(calls):
                    raise SessionError("two calls of one reply have the same id")
                self._seats = [seat for seat, _ in self._open.values()]
                self._reply, self._last = record.seq, record.seq + len(calls)
            case ToolResult(call_id=call_id):
                if record.seq <= self._reply or self._open.pop(call_id, None) is None:
                    raise SessionError("it is the result of no open call")
                self._seats = [seat for seat in self._seats if seat != record.seq]
                self._last = max(self._last, record.seq)
            case User() | System() | Note() | Summary():
                needed = self._close(record.seq)
            case Verdict(outcome="ready", effect="once"):
                self._begun.add(record.seq)
            case Verdict(outcome="ask", effect="once"):
                self._asked.add(record.seq)
            case Decision(allowed=True) if record.seq in self._asked:
                self._begun.add(record.seq)
        self._seconds = max(self._seconds, record.seconds)
        return needed

    def _close(self, seq: int) -> list[Record]:
        if seq <= self._last:
            raise SessionError("it stands between a call and its result")
        return self.results()

    def results(self) -> list[Record]:
        """A result for each open call. From then on none is open."""
        made = [
            Record(seq, unknown(call) if seat in self._begun else refused(call, _LEFT), self._seconds)
            for seq, (seat, call) in zip(self._seats, self._open.values(), strict=False)
        ]
        self._open.clear()
        return made
