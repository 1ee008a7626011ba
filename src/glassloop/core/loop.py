"""What happens next. The whole agent is this state machine; everything that changes a transition lives here.

Theory of operation. `next()` gives the step that is due, the same one until something is fed. `feed()`
takes what happened, always as a journaled `Record`, and moves on. There is no other input: no clock, no
I/O, no randomness. So the same records always lead to the same steps with the same `seq`, and a run can
be replayed, resumed after a crash, or simulated.

    CallModel ──Reply with calls──▶ PrepareCalls ──Verdicts──▶ AskApproval ──Decisions──▶ CallTools
        ▲                                               └───────(none asks)──────────▶      │
        └──────────────────────────── ToolResults, one for each call ◀──────────────────────┘
    CallModel ──Reply with text──▶ Finish(answered)          ──empty──▶ CallModel again, bounded
    a limit or endless repetition ─▶ CallModel(final, without tools) ─▶ Finish(that reason)
    CallModel ──ModelFailed──▶ Finish(failed), or for an overflow: CallModel with less history
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from glassloop.core import limits as limiting
from glassloop.core.entries import (
    Entry,
    Mend,
    Note,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
    refused,
)
from glassloop.core.events import Purpose
from glassloop.core.journal import Cancelled, ModelFailed, Record, StopReason
from glassloop.core.limits import Limits, Spent
from glassloop.core.repeats import Repeats
from glassloop.core.steps import AskApproval, CallModel, CallTools, Finish, Operation, PrepareCalls, Step
from glassloop.core.tokens import Meter, estimate_entries
from glassloop.core.tools import Decision, Verdict
from glassloop.core.window import trim

_EMPTY_RETRIES = 3
_OVERFLOW_RETRIES = 2
_OUTPUT_RETRIES = 2

_NUDGE = "Your last reply was empty. Give the final answer as text now, or call a tool."
_REFUSED_FINAL = "This call was not run: tools are no longer available in this run."


class Loop:
    """The controller that Glassloop uses.

    `history`: the conversation so far, instructions first. `limits`: see `Limits`. `accept`: a pure
    function that says what is wrong with an answer, or None if it will do (structured output).
    """

    def __init__(
        self,
        history: Sequence[Entry],
        limits: Limits | None = None,
        accept: Callable[[str], str | None] | None = None,
    ) -> None:
        self.entries: list[Entry] = list(history)
        self.spent = Spent()
        self._limits = limits or Limits()
        self._accept = accept
        self._sent: list[Entry] = list(history)
        self._began = len(self.entries)
        self._meter = Meter()
        self._repeats = Repeats()
        self._seq = 1
        self._notes: list[tuple[int, Note]] = []
        self._turn: list[_OpenCall] = []
        self._stopping: StopReason | None = None
        self._empty = 0
        self._overflows = 0
        self._unfit = 0
        self._due = 0
        self._step: Step | None = self._call_model()

    def next(self) -> Step:
        if self._step is None:
            self._step = self._call_tools()
        return self._step

    def feed(self, record: Record) -> None:
        self.spent = self.spent.after(record.seconds)
        match record.value:
            case System() | User() | Summary() as message:
                self._on_message(message)
            case Reply() as reply:
                self._on_reply(reply, record.cost)
            case Verdict() as verdict:
                self._on_verdict(record.seq, verdict)
            case Decision() as decision:
                self._on_decision(record.seq, decision)
            case ToolResult() as result:
                self._on_result(record.seq, result)
            case ModelFailed() as failed:
                self._on_failure(failed)
            case Cancelled():
                self._step = Finish(self._seq, "cancelled", self._last_text())
            case Note():
                pass  # the loop made it itself, from the records before it

    # ── steps ────────────────────────────────────────────────────────────

    def _call_model(self) -> CallModel:
        purpose: Purpose = "final" if self._stopping else "turn"
        notes, self._notes = tuple(self._notes), []
        return CallModel(self._seq, purpose, tuple(self._sent), notes)

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._sent.append(entry)

    def _note(self, note: Note) -> None:
        self._notes.append((self._seq, note))
        self._seq += 1
        self._add(note)

    def _stop(self, reason: StopReason) -> None:
        """Ask for one last answer without tools, then finish for this reason."""
        self._stopping = reason
        limit = limiting.describe(self._limits, reason)
        self._note(
            Note(
                f"You have reached {limit}. Tools are no longer available. "
                "Answer now with what you have found, and say what is missing.",
                "limit",
            )
        )
        self._step = self._call_model()

    def _finish(self, reason: StopReason, text: str, mends: tuple[Mend, ...] = ()) -> None:
        self._step = Finish(self._seq, reason, text, mends)

    def _fail(self, kind: str, message: str, partial: Reply | None = None) -> None:
        text = partial.text if partial else self._last_text()
        self._step = Finish(self._seq, "failed", text, failure=ModelFailed(kind, message, partial))

    def _last_text(self) -> str:
        """The last words of the model in this run; what it said in earlier ones is no answer to this task."""
        said = (entry.text for entry in reversed(self.entries[self._began :]) if isinstance(entry, Reply))
        return next((text for text in said if text.strip()), "")

    # ── what was said ────────────────────────────────────────────────────

    def _on_message(self, message: System | User | Summary) -> None:
        """A message takes the number of the step that was due, and the model is (still) to be asked."""
        self._add(message)
        self._seq += 1
        pending = self._step.notes if isinstance(self._step, CallModel) else ()
        self._notes = [*pending, *self._notes]
        self._empty = 0
        self._step = self._call_model()

    def _on_reply(self, reply: Reply, cost: float | None) -> None:
        self._seq += 1
        if isinstance(self._step, CallModel):
            self._meter.heard(reply.usage.prompt_tokens, self._step.entries)
        counts = not self._stopping and not reply.is_empty
        self.spent = self.spent.after_reply(reply, cost, counts=counts)
        if self._cost_is_unknown() and not self._stopping:
            self.entries.append(reply)
            self._fail("ConfigError", _COST_UNKNOWN, reply)
        elif reply.tool_calls:
            self._open_turn(reply)
        elif reply.is_empty:
            self._on_empty(reply)
        else:
            self._on_answer(reply)

    def _cost_is_unknown(self) -> bool:
        limits = self._limits
        return limits.cost is not None and self.spent.cost is None and not limits.bounds_without_cost()

    def _on_answer(self, reply: Reply) -> None:
        self._add(reply)
        problem = self._accept(reply.text) if self._accept else None
        if problem and not self._stopping:
            self._on_unfit(reply, problem)
        else:
            self._finish(self._stopping or "answered", reply.text)

    def _on_unfit(self, reply: Reply, problem: str) -> None:
        """Send back an answer that does not fit, a few times."""
        self._unfit += 1
        if self._unfit > _OUTPUT_RETRIES:
            self._fail(
                "OutputInvalid", f"the answer still does not fit after {_OUTPUT_RETRIES} corrections", reply
            )
            return
        self._note(Note(problem, "output"))
        self._step = self._call_model()

    def _on_empty(self, reply: Reply) -> None:
        """The same request once, then a nudge, then the reasoning if there was any, else give up."""
        self.entries.append(reply)
        self._empty += 1
        if self._stopping:
            self._finish(self._stopping, reply.reasoning.strip() or self._last_text())
        elif self._empty == 1:
            self._step = self._call_model()
        elif self._empty < _EMPTY_RETRIES:
            self._note(Note(_NUDGE, "empty_reply"))
            self._step = self._call_model()
        elif reply.reasoning.strip():
            mend = Mend(
                "reasoning_as_answer",
                "the model gave only reasoning, again and again; it stands as the answer",
            )
            self._finish("answered", reply.reasoning.strip(), (mend,))
        else:
            said = f" (finish reason {reply.finish_reason})" if reply.finish_reason else ""
            self._fail("EmptyReply", f"the model answered with nothing {self._empty} times{said}")

    def _on_failure(self, failed: ModelFailed) -> None:
        self._seq += 1
        if failed.kind == "ContextOverflow" and self._overflows < _OVERFLOW_RETRIES:
            self._overflows += 1
            self._sent = list(trim(self._sent, self._target(failed)))
            self._meter.restart()
            self._step = self._call_model()
            return
        if failed.partial and failed.partial.text.strip():
            self._add(replace(failed.partial, tool_calls=(), cut_off=True))
        if self._stopping:
            self._finish(self._stopping, self._last_text())
        else:
            self._fail(failed.kind, failed.message, failed.partial)

    def _target(self, failed: ModelFailed) -> int:
        """Estimated tokens that are to be left: three quarters of the window if it is known, and never over half."""
        now = estimate_entries(self._sent)
        known = int(failed.window * 0.75 / self._meter.scale) if failed.window else now
        return min(known, now // 2)

    # ── calls ────────────────────────────────────────────────────────────

    def _open_turn(self, reply: Reply) -> None:
        self._add(reply)
        self._empty = 0
        self._turn = [_OpenCall(self._seq + i, call) for i, call in enumerate(reply.tool_calls)]
        self._due = len(self._turn)
        self._seq += len(self._turn)
        if self._stopping:
            self._refuse_all(_REFUSED_FINAL)
        elif len(self._turn) > limiting.MOST_CALLS_IN_ONE_REPLY:
            most = limiting.MOST_CALLS_IN_ONE_REPLY
            self._refuse_all(f"Not run: {len(self._turn)} calls in one reply; send at most {most}.")
        else:
            self._step = PrepareCalls(self._turn[0].seq, tuple((one.seq, one.call) for one in self._turn))

    def _refuse_all(self, text: str) -> None:
        for one in self._turn:
            one.decided = refused(one.call, text)
        self._run_turn()

    def _on_verdict(self, seq: int, verdict: Verdict) -> None:
        one = self._open(seq)
        one.verdict = verdict
        if verdict.outcome == "problem":
            one.decided = ToolResult(one.call.id, one.call.name, (Text(verdict.text),), "error")
        if all(each.verdict for each in self._turn):
            self._ask_or_run()

    def _on_decision(self, seq: int, decision: Decision) -> None:
        one = self._open(seq)
        one.decision = decision
        if not decision.allowed:
            because = f" Reason: {decision.reason}" if decision.reason else ""
            one.decided = refused(one.call, f"Not run: this call was not allowed.{because}")
        self._ask_or_run()

    def _ask_or_run(self) -> None:
        """Ask about the calls that nobody has decided on yet; with none left, the turn runs."""
        asks = tuple((e.seq, e.verdict) for e in self._turn if e.verdict and e.asks and not e.decision)
        if asks:
            self._step = AskApproval(asks[0][0], asks)
        else:
            self._run_turn()

    def _run_turn(self) -> None:
        self._apply_call_limit()
        self._step = None  # made when asked for: a turn of thousands must not cost its square

    def _call_tools(self) -> CallTools:
        due = [Operation(e.seq, e.call, e.verdict, e.decided) for e in self._turn if e.result is None]
        return CallTools(due[0].seq, tuple(due))

    def _apply_call_limit(self) -> None:
        if self._limits.calls is None:
            return
        left = self._limits.calls - self.spent.calls
        for one in self._turn:
            if one.decided is None:
                left -= 1
                if left < 0:
                    limit = limiting.describe(self._limits, "calls")
                    one.decided = refused(one.call, f"Not run: {limit} is reached.")

    def _on_result(self, seq: int, result: ToolResult) -> None:
        one = self._open(seq)
        self._due -= one.result is None
        one.result = result
        if self._due:
            if isinstance(self._step, CallTools):
                self._step = None
            return
        turn = [(one.call, one.result) for one in self._turn if one.result]
        for _, each in turn:
            self._add(each)
        self.spent = self.spent.after_calls(sum(e.decided is None for e in self._turn))
        self._turn = []
        self._after_turn(turn)

    def _after_turn(self, turn: list[tuple[ToolCall, ToolResult]]) -> None:
        if self._stopping:
            self._finish(self._stopping, self._last_text())
            return
        times, name = self._repeats.add(turn)
        repeats = self._limits.repeats
        if repeats is not None and times >= repeats + 2:
            self._stop("repeated_calls")
        elif reason := limiting.limit_reached(self._limits, self.spent):
            self._stop(reason)
        else:
            if repeats is not None and times >= repeats:
                self._note(Note(_repeated(name, times), "repeated_calls"))
            self._step = self._call_model()

    def _open(self, seq: int) -> _OpenCall:
        return self._turn[seq - self._turn[0].seq]


@dataclass(slots=True)
class _OpenCall:
    seq: int
    call: ToolCall
    verdict: Verdict | None = None
    decision: Decision | None = None
    decided: ToolResult | None = None
    result: ToolResult | None = None

    @property
    def asks(self) -> bool:
        return self.verdict is not None and self.verdict.outcome == "ask"


_COST_UNKNOWN = (
    "a cost limit is set, but this endpoint does not report what a call costs, so it could never stop the run: "
    "set another limit as well, such as Limits(cost=…, tokens=…)"
)


def _repeated(name: str, times: int) -> str:
    return (
        f"You have called {name} {times} times with the same arguments and got the same result. "
        "Calling it again will not change it: use what you have, try something else, or answer."
    )
