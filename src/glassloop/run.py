"""The one driver: asks the loop what is due, does it, writes it down, and says so. All effects of a run are here.

The order never changes, so that a crash at any point loses and repeats nothing that matters: reply,
verdicts, decisions, intents of all calls in one transaction, execution, results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from glassloop.core import errors
from glassloop.core.entries import Mend, Note, Reply, ToolCall, ToolResult, User
from glassloop.core.errors import ContextOverflow, EndpointError, GlassloopError
from glassloop.core.events import (
    ApprovalAsked,
    ApprovalDecided,
    Event,
    Mended,
    ModelGaveUp,
    ModelStarted,
    Noted,
    Received,
    Reviewed,
    RunStarted,
    ToolFinished,
    Warned,
)
from glassloop.core.journal import (
    Cancelled,
    Journal,
    Journaled,
    ModelFailed,
    Opened,
    Record,
    RunEnd,
    RunStart,
)
from glassloop.core.recording import Recorder
from glassloop.core.steps import (
    AskApproval,
    CallModel,
    CallTools,
    Controller,
    Finish,
    Operation,
    PrepareCalls,
)
from glassloop.core.summary import failure_of, read_summary, settings_for
from glassloop.core.tools import Decision, Effect, Verdict
from glassloop.hands import (
    INTERRUPTED,
    Approve,
    Doubts,
    Hands,
    Review,
    Waits,
    after,
    decision_of,
    effect_of,
    judged,
    left,
    told,
)
from glassloop.models.listening import Listener
from glassloop.models.model import Model, ModelRequest
from glassloop.tools.toolbox import Tools

_BROKE = "Not run to its end: the run broke off."
_LEFT = "Not run: the user said something else before this call was allowed to start."


@dataclass(slots=True)
class Driver:
    """One run of one agent. `drive()` runs it to its end; the attributes tell how it stands at any moment."""

    start: RunStart
    model: Model
    tools: Tools
    journal: Journal
    controller: Controller
    opened: Opened
    preface: int
    recorder: Recorder
    settings: dict[str, Any]
    approve: Approve | None
    review: Review | None
    emit: Callable[[Event], None]
    inbox: list[User] = field(default_factory=list)
    follow_ups: list[User] = field(default_factory=list)
    mends: list[Mend] = field(default_factory=list)
    finish: Finish | None = None
    error: GlassloopError | None = None
    rounds: int = 0
    # The event loop's clock: a simulation may choose its seconds.
    _now: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)
    _began: float = field(init=False)
    _waited: float = 0.0
    _open: dict[int, ToolCall] = field(default_factory=dict)
    _doubts: Doubts = field(init=False)
    _intended: dict[int, Effect] = field(default_factory=dict)
    _written: frozenset[int] = frozenset()
    _listener: Listener = field(init=False)
    _taken_up_at: int | None = None  # a question there may have been asked by a process that is gone
    waits: Waits = field(default_factory=Waits)
    run_id: str = field(init=False)

    def __post_init__(self) -> None:
        """Take up where a run that is continued stood; its records have been fed to the controller."""
        self.run_id = self.start.run_id
        self._doubts = Doubts.of(self.opened)
        self._listener = Listener(self.model, self.recorder, self.emit)
        self._listener.knows(self.controller.entries)
        self._began = self._now() - max((record.seconds for record in self.opened.records), default=0.0)
        for record in self.opened.records:
            match record.value:
                case Reply(mends=mends, tool_calls=tool_calls):
                    self.rounds += 1
                    self.mends.extend(mends)
                    self._open = {record.seq + 1 + i: call for i, call in enumerate(tool_calls)}
                case ToolResult():
                    self._open.pop(record.seq, None)
                case Note():
                    self._written |= {record.seq}

    def cancel(self) -> None:
        """Stop the effect that is going on, or the next one. What is being written down is never interrupted."""
        self.waits.cancel()

    async def drive(self, task: User | None) -> None:
        """Run to the end. What went wrong is in `error`, how it ended in `finish`.

        Raises only what a part of one's own raised (a model, a controller, a journal, `approve`), after
        the run has been put in order and its session let go.
        """
        self.emit(RunStarted(self.run_id, self.model.name))
        broke: BaseException | None = None
        try:
            await self._until_ended(task)
        except BaseException as error:
            broke = error
            await self._close_after_failure()
        self._hand_back()
        try:
            await self._write_end(broke)
        except Exception:
            if broke is None:
                raise
        if broke is not None:
            raise broke

    async def _until_ended(self, task: User | None) -> None:
        try:
            if task is None and self.opened.records:
                self._taken_up_at = self.controller.next().seq
            elif task is not None:
                await self._close_open_calls(_LEFT)
                await self._deliver(task)
            await self._until_finished()
        except asyncio.CancelledError:
            await self._close_after_cancel()

    async def _write_end(self, broke: BaseException | None) -> None:
        end = self.finish or Finish(0, "failed")
        error = told(broke) if broke else str(self.error) if self.error else None
        await self.journal.finish(RunEnd(self.run_id, end.stop_reason, end.text, error))

    async def _until_finished(self) -> None:
        while True:
            match self.controller.next():
                case CallModel() as step:
                    if not self.inbox or not await self._deliver_waiting(self.inbox):
                        await self._call_model(step)
                case PrepareCalls() as step:
                    await self._prepare(step)
                case AskApproval() as step:
                    if not await self._ask(step):
                        return
                case CallTools() as step:
                    if not await self._call_tools(step):
                        return
                case Finish() as step:
                    waiting = (self.inbox, self.follow_ups)
                    if step.stop_reason == "answered" and await self._deliver_waiting(*waiting):
                        continue
                    self._finished(step)
                    return
                case other:
                    raise TypeError(f"next() of the controller gave {type(other).__name__} and not a step")

    def _finished(self, step: Finish) -> None:
        self.finish = step
        if step.compacted:
            self.emit(step.compacted)
        self._mended(*step.mends)
        if step.failure is None and self.error is not None:  # at a limit: that is why it ended, not this
            self.emit(Warned("no_last_answer", f"the last answer could not be had: {self.error}"))
            self.error = None
        elif step.failure and self.error is None:
            self.error = getattr(errors, step.failure.kind, GlassloopError)(step.failure.message)
        elif step.failure and isinstance(self.error, ContextOverflow):
            self.error.hint = self.error.hint or step.failure.message

    def _mended(self, *mends: Mend) -> None:
        self.mends.extend(mends)
        for mend in mends:
            self.emit(Mended(mend))

    # ── messages ─────────────────────────────────────────────────────────

    async def _deliver(self, message: User) -> None:
        await self._happened(self.controller.next().seq, message)
        if message.kind != "task":
            self.emit(Received(message))

    async def _deliver_waiting(self, *queues: list[User]) -> bool:
        delivered = False
        for queue in queues:
            while queue:
                await self._deliver(queue.pop(0))
                delivered = True
        return delivered

    def _hand_back(self) -> None:
        if count := len(self.inbox) + len(self.follow_ups):  # they stand in the result
            self.emit(Warned("undelivered", f"{count} of your messages did not reach the model"))

    async def _happened(self, seq: int, value: Journaled, cost: float | None = None) -> None:
        """Write one thing down, then let the loop see it."""
        await self._all_happened([self._record(seq, value, cost)])

    async def _all_happened(self, records: Sequence[Record]) -> None:
        """The same for several that belong into one transaction."""
        await self.journal.commit(self.run_id, records)
        for record in records:
            self.controller.feed(record)

    def _record(self, seq: int, value: Journaled, cost: float | None = None) -> Record:
        return Record(seq, value, self._now() - self._began - self._waited, cost)

    # ── the model ────────────────────────────────────────────────────────

    async def _call_model(self, step: CallModel) -> None:
        if step.compacted:
            self.emit(step.compacted)
        self._mended(*step.mends)
        new = [self._record(seq, note) for seq, note in step.notes if seq not in self._written]
        if new:
            await self.journal.commit(self.run_id, new)
            for _, note in step.notes:
                self.emit(Noted(note))
        self.rounds += 1
        self.emit(ModelStarted(step.seq, self.rounds, step.purpose, 1 + (step.seq == self._taken_up_at)))
        try:
            reply = await self._reply_to(step)
        except EndpointError as error:
            self.emit(ModelGaveUp(step.seq, str(error)))
            await self._heard(step, failure_of(error, step.purpose), None, error)
            return
        self.mends.extend(reply.mends)
        cost = reply.cost if reply.cost is not None else reply.price
        await self._heard(step, read_summary(reply, step) if step.purpose == "summary" else reply, cost)

    async def _heard(
        self, step: CallModel, value: Journaled, cost: float | None, error: EndpointError | None = None
    ) -> None:
        if step.purpose != "summary":
            self.error = error
        elif isinstance(value, ModelFailed):  # the run goes on without one
            self._mended(Mend("summary_failed", f"no summary of old turns could be had: {value.message}"))
        await self._happened(step.seq, value, cost)

    async def _reply_to(self, step: CallModel) -> Reply:
        specs = self.tools.specs if step.purpose == "turn" else ()
        request = ModelRequest(step.entries, specs, settings_for(step.purpose, self.settings), step.purpose)
        said_before = len(self.controller.entries)
        listening = self._listener.listen(request, step.seq, said_before, self._mended)
        reply = await self.waits.bound(listening)
        if reply.tool_calls and self.settings.get("tool_choice") not in (None, "auto", "none"):
            # A forced call would be forced again in every round, and the run could never end.
            self.settings = {field: value for field, value in self.settings.items() if field != "tool_choice"}
        return reply

    # ── tools ────────────────────────────────────────────────────────────

    async def _prepare(self, step: PrepareCalls) -> None:
        self._open = dict(step.calls)
        tools = after(self.tools, self.controller.entries)
        records = [self._record(seq, judged(tools, call)) for seq, call in step.calls]
        await self.journal.commit(self.run_id, [one.unbound() for one in records])
        for record in records:
            self.controller.feed(record)
            match record.value:
                case Verdict(outcome="ready", call=call, text=text) if text:
                    self._mended(Mend("arguments_coerced", f"{call.name}: {text}"))

    async def _ask(self, step: AskApproval) -> bool:
        """Ask about each call in turn. False: nobody can say now, so the run is suspended."""
        records: list[Record] = []
        for seq, verdict in step.asks:
            self.emit(ApprovalAsked(seq, verdict))
            decision = await self._decision(verdict)
            if decision is None:
                break
            self.emit(ApprovalDecided(seq, decision))
            records.append(self._record(seq, decision))
        if records:
            await self.journal.decide(self.run_id, records)
        for record in records:
            self.controller.feed(record)
        if len(records) < len(step.asks):
            self.finish = Finish(step.seq, "waiting_approval")
        return self.finish is None

    async def _decision(self, verdict: Verdict) -> Decision | None:
        if self.approve is None:
            return Decision(
                verdict.call.id, False, "this tool needs a person's approval, and nobody can be asked here"
            )
        asked = self._now()
        answer: object = self.approve(verdict)
        if isinstance(answer, Awaitable):
            answer = await self.waits.bound(answer)
        self._waited += self._now() - asked
        return decision_of(verdict, answer)

    async def _call_tools(self, step: CallTools) -> bool:
        """Run what may run. False: a call was started before a crash and may have taken effect; a person must look."""
        tools = after(self.tools, self.controller.entries)
        begun = self._doubts.intents
        hands = Hands(tools, self.run_id, self.start.agent, begun, self.emit, self.waits, self._results)
        if begun and not await self._look_into(hands, step.operations):
            self.finish = Finish(step.seq, "needs_review")
            return False
        await hands.run(await self._to_run(hands, step.operations))
        return True

    async def _to_run(self, hands: Hands, operations: Sequence[Operation]) -> list[Operation]:
        """The calls that are to run, once that has been written down, as have the results that are decided."""
        decided, to_run = self._doubts.divided(operations)
        lasting = [one for one in to_run if effect_of(one) != "read"]
        if lasting:
            intents = [hands.intent(one, self._doubts.attempt(one.seq)) for one in lasting]
            await self.journal.intend(self.run_id, intents)
            self._intended.update([(intent.seq, intent.effect) for intent in intents])
        if decided:
            await self._results(decided)
        return to_run

    async def _look_into(self, hands: Hands, operations: Sequence[Operation]) -> bool:
        """Find out about each call in doubt, and write it down before acting on it. False: nobody can say of one."""
        sure = True
        for one in self._doubts.open([one for one in operations if one.result is None]):
            asked = self._now()
            resolution = await self._doubts.look_into(one, hands, self.review)
            self._waited += self._now() - asked
            self.emit(Reviewed(one.seq, resolution))
            if resolution is None:
                sure = False
                continue
            record = self._record(one.seq, resolution)
            await self.journal.decide(self.run_id, [record])
            self.controller.feed(record)
            self._doubts.resolutions[one.seq] = resolution
        return sure

    async def _results(self, results: Sequence[tuple[Operation, ToolResult]]) -> None:
        """Write down results that finished together in one commit, by `seq`, then let the loop see them."""
        await self._all_happened([self._record(one.seq, result) for one, result in results])
        for one, result in results:
            self._open.pop(one.seq, None)
            self.emit(ToolFinished(one.seq, one.call, result))

    # ── cancelling ───────────────────────────────────────────────────────

    async def _close_after_cancel(self) -> None:
        await self._close_open_calls(INTERRUPTED)
        await self._happened(self.controller.next().seq, Cancelled())
        step = self.controller.next()
        self.finish = step if isinstance(step, Finish) else Finish(step.seq, "cancelled")

    async def _close_after_failure(self) -> None:
        """The same where a part failed, as far as it still works. What was about to run may have run."""
        with suppress(Exception):
            await self._close_open_calls(_BROKE, self._intended)

    async def _close_open_calls(self, why: str, also: Mapping[int, Effect] | None = None) -> None:
        """Give every open call the result that is true of it, so that the history stays sendable."""
        effects = {**(also or {}), **{intent.seq: intent.effect for intent in self.opened.intents}}
        closed = [
            self._record(seq, self._doubts.result(seq, call) or left(call, effects.get(seq), why))
            for seq, call in sorted(self._open.items())
        ]
        self._open.clear()
        if closed:
            await self._all_happened(closed)
