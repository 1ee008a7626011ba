"""The one driver: asks the loop what is due, does it, writes it down, and says so. All effects of a run are here.

The order never changes, so that a crash at any point loses and repeats nothing that matters: reply,
verdicts, decisions, intents of all calls in one transaction, execution, results.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from glassloop.core import errors
from glassloop.core.entries import Mend, Note, Reply, ToolCall, ToolResult, User, refused, unknown
from glassloop.core.errors import EndpointError, GlassloopError
from glassloop.core.events import (
    ApprovalAsked,
    ApprovalDecided,
    Event,
    Mended,
    ModelFinished,
    ModelGaveUp,
    ModelStarted,
    Noted,
    ReasoningDelta,
    Received,
    RunStarted,
    TextDelta,
    ToolFinished,
    still_shown,
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
from glassloop.core.tools import Decision, Effect, Verdict
from glassloop.hands import INTERRUPTED, Hands, effect_of, judged, told
from glassloop.models.model import Model, ModelRequest
from glassloop.tools.toolbox import Tools

Approve = Callable[[Verdict], "Awaitable[Decision | bool | None] | Decision | bool | None"]
"""Asked about a call that needs a person's word. May be a coroutine function. None: nobody can say
now; the run is suspended as `waiting_approval`, and running its session again asks anew."""

_NONE: Mapping[int, Effect] = {}
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
    emit: Callable[[Event], None]
    inbox: deque[User] = field(default_factory=deque)
    follow_ups: deque[User] = field(default_factory=deque)
    mends: list[Mend] = field(default_factory=list)
    finish: Finish | None = None
    error: GlassloopError | None = None
    rounds: int = 0
    _began: float = field(default_factory=time.monotonic)
    _open: dict[int, ToolCall] = field(default_factory=dict)
    _intended: dict[int, Effect] = field(default_factory=dict)
    _written: set[int] = field(default_factory=set)
    cancelled: bool = False
    interruptible: asyncio.Task[object] | None = None

    def __post_init__(self) -> None:
        """Take up where a run that is continued stood; its records have been fed to the controller."""
        for record in self.opened.records:
            match record.value:
                case Reply(mends=mends, tool_calls=tool_calls):
                    self.rounds += 1
                    self.mends.extend(mends)
                    self._open = {record.seq + 1 + i: call for i, call in enumerate(tool_calls)}
                case ToolResult():
                    self._open.pop(record.seq, None)
                case Note():
                    self._written.add(record.seq)

    @property
    def run_id(self) -> str:
        return self.start.run_id

    def cancel(self) -> None:
        """Stop the effect that is going on, or the next one. What is being written down is never interrupted."""
        if not self.cancelled:
            self.cancelled = True
            if self.interruptible is not None:
                self.interruptible.cancel()

    def _effect(self) -> _Effect:
        return _Effect(self)

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
        try:
            await self._write_end(broke)
        except Exception:
            if broke is None:
                raise
        if broke is not None:
            raise broke

    async def _until_ended(self, task: User | None) -> None:
        try:
            if task is not None:
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
                    if not await self._deliver_waiting(self.inbox):
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
                    if step.stop_reason == "answered" and await self._deliver_waiting(
                        self.inbox, self.follow_ups
                    ):
                        continue
                    self._finished(step)
                    return
                case other:
                    raise TypeError(f"next() of the controller gave {type(other).__name__} and not a step")

    def _finished(self, step: Finish) -> None:
        self.finish = step
        self.mends.extend(step.mends)
        for mend in step.mends:
            self.emit(Mended(mend))
        if step.failure and self.error is None:
            kind = getattr(errors, step.failure.kind, GlassloopError)
            self.error = kind(step.failure.message)

    # ── messages ─────────────────────────────────────────────────────────

    async def _deliver(self, message: User) -> None:
        await self._happened(self.controller.next().seq, message)
        if message.kind != "task":
            self.emit(Received(message))

    async def _deliver_waiting(self, *queues: deque[User]) -> bool:
        delivered = False
        for queue in queues:
            while queue:
                await self._deliver(queue.popleft())
                delivered = True
        return delivered

    async def _happened(self, seq: int, value: Journaled, cost: float | None = None) -> None:
        """Write one thing down, then let the loop see it."""
        record = self._record(seq, value, cost)
        await self.journal.commit(self.run_id, [record])
        self.controller.feed(record)

    def _record(self, seq: int, value: Journaled, cost: float | None = None) -> Record:
        return Record(seq, value, time.monotonic() - self._began, cost)

    # ── the model ────────────────────────────────────────────────────────

    async def _call_model(self, step: CallModel) -> None:
        new = [self._record(seq, note) for seq, note in step.notes if seq not in self._written]
        if new:
            await self.journal.commit(self.run_id, new)
            for _, note in step.notes:
                self.emit(Noted(note))
        self.rounds += 1
        self.emit(ModelStarted(step.seq, self.rounds, step.purpose))
        try:
            reply = await self._reply_to(step)
        except EndpointError as error:
            self.error = error
            failed = ModelFailed(
                type(error).__name__,
                str(error),
                error.partial,
                getattr(error, "window", None),
            )
            self.emit(ModelGaveUp(step.seq, str(error)))
            await self._happened(step.seq, failed)
            return
        self.error = None
        self.mends.extend(reply.mends)
        await self._happened(step.seq, reply, reply.cost)

    async def _reply_to(self, step: CallModel) -> Reply:
        specs = () if step.purpose == "final" else self.tools.specs
        request = ModelRequest(step.entries, specs, self.settings, step.purpose)
        began = time.monotonic()
        shown = False
        async with self._effect(), aclosing(self.model.stream(request, self.recorder)) as said:
            async for one in said:
                if isinstance(one, Reply):
                    self._relax_tool_choice(one)
                    if not shown:
                        self._show_whole(one)
                    for mend in one.mends:
                        self.emit(Mended(mend))
                    self.emit(ModelFinished(step.seq, one, time.monotonic() - began))
                    return one
                if isinstance(one, Mend):
                    self.mends.append(one)
                    self.emit(Mended(one))
                else:
                    shown = still_shown(one, shown)
                    self.emit(one)
        raise errors.EmptyReply(f"{self.model.name} ended without a reply: its stream() must say one last")

    def _show_whole(self, reply: Reply) -> None:
        """A reply that came in one piece is shown in one piece: a screen needs to know only deltas."""
        if reply.reasoning:
            self.emit(ReasoningDelta(reply.reasoning))
        if reply.text:
            self.emit(TextDelta(reply.text))

    def _relax_tool_choice(self, reply: Reply) -> None:
        """A forced call would be forced again in every round, and the run could never end."""
        choice = self.settings.get("tool_choice")
        if reply.tool_calls and choice not in (None, "auto", "none"):
            self.settings = {field: value for field, value in self.settings.items() if field != "tool_choice"}

    # ── tools ────────────────────────────────────────────────────────────

    async def _prepare(self, step: PrepareCalls) -> None:
        self._open = dict(step.calls)
        records = [self._record(seq, judged(self.tools, call)) for seq, call in step.calls]
        await self.journal.commit(self.run_id, records)
        for record in records:
            self._tell_coercions(record.value)
            self.controller.feed(record)

    def _tell_coercions(self, verdict: Journaled) -> None:
        if isinstance(verdict, Verdict) and verdict.outcome == "ready" and verdict.text:
            mend = Mend("arguments_coerced", f"{verdict.call.name}: {verdict.text}")
            self.mends.append(mend)
            self.emit(Mended(mend))

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
        answer: object = self.approve(verdict)
        if isinstance(answer, Awaitable):
            async with self._effect():
                answer = await answer
        if answer is None or isinstance(answer, Decision):
            return answer
        reason = "" if isinstance(answer, bool) else f"approve answered {answer!r:.80}, which is no clear yes"
        return Decision(verdict.call.id, answer is True, reason, by="approve")

    async def _call_tools(self, step: CallTools) -> bool:
        """Run what may run. False: a call was started before a crash and may have taken effect; a person must look."""
        to_run = [one for one in step.operations if one.result is None and one.verdict is not None]
        decided = [(one, one.result) for one in step.operations if one.result is not None]
        self._open = {one.seq: one.call for one in step.operations}
        started = {intent.seq for intent in self.opened.intents}
        if any(one.seq in started and effect_of(one) == "once" for one in to_run):
            self.finish = Finish(step.seq, "needs_review")
            return False
        hands = Hands(self.tools, self.run_id, self.start.agent, self.emit, self._effect, self._results)
        intents = [hands.intent(one) for one in to_run if effect_of(one) != "read"]
        if intents:
            await self.journal.intend(self.run_id, intents)
            self._intended.update({intent.seq: intent.effect for intent in intents})
        if decided:
            await self._results(decided)
        await hands.run(to_run)
        return True

    async def _results(self, results: Sequence[tuple[Operation, ToolResult]]) -> None:
        """Write down results that finished together in one commit, then let the loop see them."""
        results = sorted(results, key=lambda pair: pair[0].seq)
        records = [self._record(one.seq, result) for one, result in results]
        await self.journal.commit(self.run_id, records)
        for (one, result), record in zip(results, records, strict=True):
            self._open.pop(one.seq, None)
            self.controller.feed(record)
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

    async def _close_open_calls(self, why: str, also: Mapping[int, Effect] = _NONE) -> None:
        """Give every open call the result that is true of it, so that the history stays sendable."""
        effects = {**also, **{intent.seq: intent.effect for intent in self.opened.intents}}
        closed = [
            self._record(seq, unknown(call) if effects.get(seq) == "once" else refused(call, why))
            for seq, call in sorted(self._open.items())
        ]
        self._open.clear()
        if closed:
            await self.journal.commit(self.run_id, closed)
        for record in closed:
            self.controller.feed(record)


class _Effect:
    """What may be interrupted: waiting for a model, a tool or a person."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def __aenter__(self) -> None:
        if self._driver.cancelled:
            raise asyncio.CancelledError
        self._driver.interruptible = asyncio.current_task()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._driver.interruptible = None
        if error is None and self._driver.cancelled:
            await asyncio.sleep(0)  # told from within: it is felt here, and not by what is written down next
