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
    a full window ─▶ CallModel(summary) ──Summary──▶ CallModel with it in place of old turns
                                        ──ModelFailed──▶ CallModel with old turns left out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from glassloop.core import limits as limiting
from glassloop.core import words
from glassloop.core.context import Context, SummaryDue
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
from glassloop.core.resolving import Resolution
from glassloop.core.steps import (
    AskApproval,
    CallModel,
    CallTools,
    Finish,
    OpenCall,
    Operation,
    PrepareCalls,
    Step,
)
from glassloop.core.summary import SUMMARY_FAILED
from glassloop.core.tools import Decision, Verdict
from glassloop.core.window import Window

_EMPTY_RETRIES = 3
_OVERFLOW_RETRIES = 2
_OUTPUT_RETRIES = 2


class Loop:
    """The controller that Glassloop uses.

    `history`: the conversation so far, instructions first. `limits`: see `Limits`. `accept`: a pure
    function that says what is wrong with an answer, or None if it will do (structured output). `window`: what
    is done when history outgrows the model's context. `size`: how many tokens that holds, where it is known.
    """

    def __init__(
        self,
        history: Sequence[Entry],
        limits: Limits | None = None,
        accept: Callable[[str], str | None] | None = None,
        window: Window | None = None,
        size: int | None = None,
    ) -> None:
        self._spent, self._seconds = Spent(), 0.0
        self._context = Context(history, window or Window(), size)
        self._limits = limits or Limits()
        self._accept = accept
        self._began = len(self.entries)
        self._repeats = Repeats()
        self._seq = 1
        self._notes: list[tuple[int, Note]] = []
        self._turn: list[OpenCall] = []
        self._stopping: StopReason | None = None
        self._hopeless: Reply | None = None
        self._empty = 0
        self._overflows = 0
        self._unfit = 0
        self._due = 0
        self._step: Step | None = self._call_model()

    @property
    def entries(self) -> list[Entry]:
        """The whole conversation, also what is no longer sent."""
        return self._context.entries

    @property
    def spent(self) -> Spent:
        return self._spent.after(self._seconds)

    def next(self) -> Step:
        if self._step is None:
            self._step = self._call_tools()
        return self._step

    def feed(self, record: Record) -> None:
        self._seconds = max(self._seconds, record.seconds)
        match record.value:
            case ToolResult() as result:
                self._on_result(record.seq, result)
            case Verdict() as verdict:
                self._on_verdict(record.seq, verdict)
            case Reply() as reply:
                self._on_reply(reply, record.cost)
            case System() | User() as message:
                self._on_message(message)
            case Summary() as summary:
                self._on_summary(summary, record.cost)
            case Decision() as decision:
                self._on_decision(record.seq, decision)
            case ModelFailed() as failed:
                self._on_failure(failed, record.cost)
            case Cancelled():
                self._step = Finish(self._seq, "cancelled", self._last_text())
            case Note() | Resolution():
                pass  # a note the loop made itself; a resolution the driver heeds when it does what stays due

    # ── steps ────────────────────────────────────────────────────────────

    def _call_model(self) -> CallModel:
        """The question that is due; before it the one for a summary, if the window is full."""
        if self._context.is_full:
            due = self._context.due() if self._may_summarise else None
            if due:
                return self._call_for_summary(due)
            self._context.trim()
        purpose: Purpose = "final" if self._stopping else "turn"
        sent = tuple(self._context.sent)
        return CallModel(self._seq, purpose, sent, self._take_notes(), compacted=self._context.compacted)

    def _call_for_summary(self, due: SummaryDue) -> CallModel:
        notes = self._take_notes()
        return CallModel(self._seq, "summary", due.entries, notes, due.replaces, due.most, due.worth)

    @property
    def _may_summarise(self) -> bool:
        """At a limit nothing more is spent than the last answer."""
        return self._context.window.policy != "trim" and not self._stopping

    def _take_notes(self) -> tuple[tuple[int, Note], ...]:
        notes, self._notes = tuple(self._notes), []
        return notes

    def _add(self, entry: Entry) -> None:
        self._context.add(entry)

    def _note(self, note: Note) -> None:
        self._notes.append((self._seq, note))
        self._seq += 1
        self._add(note)

    def _stop(self, reason: StopReason) -> None:
        """Ask for one last answer without tools, then finish for this reason."""
        self._stopping = reason
        limit = limiting.describe(self._limits, reason)
        self._note(Note(words.LIMIT_REACHED.format(limit=limit), "limit"))
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

    def _on_message(self, message: System | User) -> None:
        """A message takes the number of the step that was due, and the model is (still) to be asked."""
        self._add(message)
        self._seq += 1
        pending = self._step.notes if isinstance(self._step, CallModel) else ()
        self._notes = [*pending, *self._notes]
        self._empty = 0
        self._step = self._call_model()

    def _on_reply(self, reply: Reply, cost: float | None) -> None:
        self._seq += 1
        self._overflows = 0
        if isinstance(self._step, CallModel) and self._step.purpose != "summary":
            self._context.heard(reply, len(self._step.entries))
        counts = not self._stopping and not reply.is_empty
        self._spent = self._spent.after_reply(reply, cost, counts=counts)
        if self._cost_is_unknown() and not self._stopping:
            self._on_unknown_cost(reply)
        elif reply.tool_calls:
            self._open_turn(reply)
        elif reply.is_empty:
            self._on_empty(reply)
        else:
            self._on_answer(reply)

    def _cost_is_unknown(self) -> bool:
        limits = self._limits
        return limits.cost is not None and self._spent.cost is None and not limits.bounds_without_cost()

    def _on_unknown_cost(self, reply: Reply) -> None:
        """The run fails, once each call of the reply has its result: a later one has to send them."""
        self._hopeless = reply
        if reply.tool_calls:
            self._open_turn(reply)
        else:
            self._context.keep(reply)
            self._fail("ConfigError", words.COST_UNKNOWN, reply)

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
        self._context.keep(reply)
        self._empty += 1
        if self._stopping:
            self._finish(self._stopping, reply.reasoning.strip() or self._last_text())
        elif self._empty < _EMPTY_RETRIES:
            if self._empty > 1:
                self._note(Note(words.NUDGE, "empty_reply"))
            self._step = replace(self._call_model(), mends=(words.asked_again(reply),))
        elif reply.reasoning.strip():
            mend = Mend(
                "reasoning_as_answer",
                "the model gave only reasoning, again and again; it stands as the answer",
            )
            self._finish("answered", reply.reasoning.strip(), (mend,))
        else:
            said = f" (finish reason {reply.finish_reason})" if reply.finish_reason else ""
            self._fail("EmptyReply", f"the model answered with nothing {self._empty} times{said}")

    def _on_summary(self, summary: Summary, cost: float | None) -> None:
        self._seq += 1
        self._spent = self._spent.after_reply(Reply(usage=summary.usage), cost, counts=False)
        self._context.summarised(summary)
        self._step = self._call_model()

    def _on_failure(self, failed: ModelFailed, cost: float | None) -> None:
        self._seq += 1
        if failed.kind == SUMMARY_FAILED:
            if failed.partial:
                self._spent = self._spent.after_reply(failed.partial, cost, counts=False)
            self._context.trim()
            self._step = self._call_model()
            return
        if failed.kind == "ContextOverflow":
            self._on_overflow(failed)
            return
        if failed.partial and failed.partial.text.strip():
            self._add(replace(failed.partial, tool_calls=(), cut_off=True))
        if self._stopping:
            self._finish(self._stopping, self._last_text())
        else:
            self._fail(failed.kind, failed.message, failed.partial)

    def _on_overflow(self, failed: ModelFailed) -> None:
        """Once more with a summary in place of old turns, then with less of everything; then it cannot fit."""
        self._overflows += 1
        self._context.overflowed(failed.window)
        again = self._overflows == 1 or self._context.window.policy == "summarise"
        due = self._context.due() if again and self._may_summarise else None
        if self._overflows <= _OVERFLOW_RETRIES and due:
            self._step = self._call_for_summary(due)
        elif self._overflows <= _OVERFLOW_RETRIES and (self._context.trim(overflowed=True) or again):
            self._step = self._call_model()
        elif self._stopping:
            self._finish(self._stopping, self._last_text())
        else:
            self._fail(failed.kind, words.TOO_SMALL.format(tokens=self._context.tokens))

    # ── calls ────────────────────────────────────────────────────────────

    def _open_turn(self, reply: Reply) -> None:
        self._add(reply)
        self._empty = 0
        self._turn = [OpenCall(seq, call) for seq, call in enumerate(reply.tool_calls, self._seq)]
        self._due = len(self._turn)
        self._seq += len(self._turn)
        if self._stopping or self._hopeless:
            self._refuse_all(words.REFUSED_FINAL)
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
            one.decided = refused(one.call, words.not_allowed(decision.reason))
        self._ask_or_run()

    def _ask_or_run(self) -> None:
        """Ask about the calls that nobody has decided on yet; with none left, the turn runs."""
        asks = tuple((e.seq, e.verdict) for e in self._turn if e.verdict and e.asks and not e.decision)
        if asks:
            self._step = AskApproval(asks[0][0], asks)
        else:
            self._run_turn()

    def _run_turn(self) -> None:
        if self._limits.calls is not None:
            self._apply_call_limit(self._limits.calls)
        self._step = None  # made when asked for: a turn of thousands must not cost its square

    def _call_tools(self) -> CallTools:
        due = [Operation(e.seq, e.call, e.verdict, e.decided) for e in self._turn if e.result is None]
        return CallTools(due[0].seq, tuple(due))

    def _apply_call_limit(self, most: int) -> None:
        left = most - self._spent.calls
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
        self._spent = self._spent.after_calls(sum(one.decided is None for one in self._turn))
        self._turn = []
        self._after_turn(turn)

    def _after_turn(self, turn: list[tuple[ToolCall, ToolResult]]) -> None:
        if self._hopeless:
            self._fail("ConfigError", words.COST_UNKNOWN, self._hopeless)
            return
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
                self._note(Note(words.repeated(name, times), "repeated_calls"))
            self._step = self._call_model()

    def _open(self, seq: int) -> OpenCall:
        return self._turn[seq - self._turn[0].seq]
