"""Runs the calls of one turn, side by side or one after the other where a tool asks for that, and finds out
what became of those that an earlier process had started.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from glassloop.core.entries import Entry, Text, ToolCall, ToolResult, refused, unknown
from glassloop.core.events import Event, ReviewAsked, ToolProgress, ToolStarted
from glassloop.core.journal import Intent, Opened
from glassloop.core.resolving import Answer, Done, GiveUp, Resolution, Retry, Unknown, resolution_of
from glassloop.core.steps import Operation
from glassloop.core.tools import Decision, Effect, Verdict
from glassloop.tools.context import ToolContext
from glassloop.tools.output import parts_from
from glassloop.tools.toolbox import Heeds, Resolves, Toolbox, Tools

T = TypeVar("T")

Results = Sequence[tuple[Operation, ToolResult]]

Review = Callable[[Unknown], "Awaitable[Answer | None] | Answer | None"]
"""Asked what became of a call that was started before a crash. May be a coroutine function. None: nobody can
say now; the run is suspended as `needs_review`, and running its session again asks anew."""

Approve = Callable[[Verdict], "Awaitable[Decision | bool | None] | Decision | bool | None"]
"""Asked about a call that needs a person's word. May be a coroutine function. None: nobody can say
now; the run is suspended as `waiting_approval`, and running its session again asks anew."""

INTERRUPTED = "Interrupted by the user."


@dataclass(slots=True)
class Waits:
    """Surrounds what may be interrupted, one wait at a time: for a model, a tool or a person."""

    cancelled: bool = False
    _task: asyncio.Task[object] | None = None  # always the same: that of the run
    _waiting: bool = False

    def cancel(self) -> None:
        """Interrupt the wait that is going on, or else the next one."""
        if not self.cancelled:
            self.cancelled = True
            if self._task is not None and self._waiting:
                self._task.cancel()

    async def bound(self, wait: Awaitable[T]) -> T:
        """What it gives. Raises `CancelledError` where a cancel comes before, while or, from within, as it ends."""
        before = self.cancelled
        if before:
            if isinstance(wait, Coroutine):
                wait.close()
            raise asyncio.CancelledError
        self._task = self._task or asyncio.current_task()
        self._waiting = True
        try:
            given = await wait
        finally:
            self._waiting = False
        if self.cancelled:
            await asyncio.sleep(0)  # told from within: it is felt here, and not by what is written down next
        return given


@dataclass(slots=True)
class Hands:
    """`begun`: calls that an earlier process had started; they keep their keys. `waits` surrounds every wait that a
    cancel may cut short; `deliver` takes results as they come.
    """

    tools: Tools
    run_id: str
    agent: str
    begun: Mapping[int, Intent]
    emit: Callable[[Event], None]
    waits: Waits
    deliver: Callable[[Results], Awaitable[None]]
    _started: dict[int, float] = field(default_factory=dict)

    async def run(self, operations: Sequence[Operation]) -> None:
        """Run all to their end. When cancelled: stop them, deliver what is true of each, and raise again."""
        if len(operations) == 1 or any(self.tools.is_sequential(one.call.name) for one in operations):
            for one in operations:
                await self._run_alone(one)
        elif operations:
            await self._run_side_by_side(operations)

    async def _run_alone(self, one: Operation) -> None:
        """The ordinary case, a turn of one call: no task of its own is needed to wait for it."""
        try:
            result = await self.waits.bound(self._execute(one))
        except asyncio.CancelledError:
            await self.deliver([(one, self._interrupted(one))])
            raise
        await self.deliver([(one, result)])

    async def _run_side_by_side(self, operations: Sequence[Operation]) -> None:
        running = {asyncio.create_task(self._execute(one)): one for one in operations}
        try:
            await self._collect(running)
        except asyncio.CancelledError:
            await self._stop(running)
            await self._deliver_stopped(running)
            raise
        except BaseException:  # what is done cannot be written down: nothing more is to be done
            await self._stop(running)
            raise

    def intent(self, one: Operation, attempt: int) -> Intent:
        """What is written down before the call starts for the `attempt`th time."""
        arguments = _verdict(one).arguments
        return Intent(one.seq, one.call, arguments, effect_of(one), self._key(one.seq), attempt)

    async def _collect(self, running: dict[asyncio.Task[ToolResult], Operation]) -> None:
        pending = set(running)
        while pending:
            done, pending = await self.waits.bound(asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED))
            results = [(running.pop(task), task.result()) for task in done]
            await self.deliver(sorted(results, key=lambda pair: pair[0].seq))

    async def _stop(self, running: dict[asyncio.Task[ToolResult], Operation]) -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _deliver_stopped(self, running: dict[asyncio.Task[ToolResult], Operation]) -> None:
        if running:
            await self.deliver([(one, self._outcome(task, one)) for task, one in running.items()])

    async def _execute(self, one: Operation) -> ToolResult:
        verdict = _verdict(one)
        self._started[one.seq] = asyncio.get_running_loop().time()
        self.emit(ToolStarted(one.seq, one.call, verdict.arguments))
        try:
            return _result_of(one, await self.tools.execute(verdict, self.context(one)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # a wrapper around Tools may raise: that is this call's failure
            return ToolResult(one.call.id, one.call.name, (Text(told(error)),), "error")

    def _outcome(self, task: asyncio.Task[ToolResult], one: Operation) -> ToolResult:
        """What is true of a call that was told to stop: it had finished, or may have taken effect, or did nothing."""
        if not task.cancelled() and task.exception() is None:
            return task.result()
        return self._interrupted(one)

    def _interrupted(self, one: Operation) -> ToolResult:
        now = asyncio.get_running_loop().time()
        took = now - self._started.get(one.seq, now)
        return replace(left(one.call, effect_of(one), INTERRUPTED), seconds=took)

    def context(self, one: Operation) -> ToolContext:
        """What the call may know of itself."""
        return ToolContext(
            run_id=self.run_id,
            seq=one.seq,
            call_id=one.call.id,
            key=self._key(one.seq),
            agent=self.agent,
            # No partial of a method: whoever prints the context would print the run with it.
            progress=lambda text: self.emit(ToolProgress(one.seq, text)),
        )

    def _key(self, seq: int) -> str:
        """The same whenever the call is started, also by a Glassloop that makes keys otherwise."""
        before = self.begun.get(seq)
        return before.key if before else key_of(self.run_id, seq)


def key_of(run_id: str, seq: int) -> str:
    """A call's idempotency key, and no other call's."""
    return f"{_digest(run_id)}{seq:016x}"


@lru_cache(maxsize=256)
def _digest(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()[:48]


@dataclass(slots=True)
class Doubts:
    """The calls that an earlier process had started, and what has been decided of those that may not run again."""

    intents: Mapping[int, Intent]
    resolutions: dict[int, Resolution] = field(default_factory=dict)

    @classmethod
    def of(cls, opened: Opened) -> Doubts:
        """As the journal tells. A resolution counts for the attempt that it was made about, and for no later one."""
        doubts = cls({intent.seq: intent for intent in opened.intents})
        for record in opened.records:
            intent = doubts.intents.get(record.seq)
            if isinstance(record.value, Resolution) and intent and intent.attempt == record.value.attempt:
                doubts.resolutions[record.seq] = record.value
        return doubts

    def attempt(self, seq: int) -> int:
        """The number of the start that comes next, from 1."""
        return self.intents[seq].attempt + 1 if seq in self.intents else 1

    def open(self, operations: Sequence[Operation]) -> list[Operation]:
        """Those that may have taken effect, must not be repeated, and about which nothing has been decided."""
        return [
            one
            for one in operations
            if one.seq in self.intents and effect_of(one) == "once" and one.seq not in self.resolutions
        ]

    async def look_into(self, one: Operation, hands: Hands, review: Review | None) -> Resolution | None:
        """Ask the tools, then a person. None: nobody can say now."""
        intent = self.intents[one.seq]
        call = Unknown(one.call, intent.arguments, intent.key, intent.attempt, not intent.masked)
        call, answer = await hands.waits.bound(self._asked(one, call, hands, review))
        return self._resolution(call, answer)

    async def _asked(
        self, one: Operation, call: Unknown, hands: Hands, review: Review | None
    ) -> tuple[Unknown, object]:
        answer: object = None
        if isinstance(hands.tools, Resolves):
            answer = await hands.tools.resolve_unknown(_verdict(one), call, hands.context(one))
        if isinstance(answer, str):
            call, answer = replace(call, why=answer), None
        if answer is None and review is not None:
            hands.emit(ReviewAsked(one.seq, call))
            answer = review(call)
            if isinstance(answer, Awaitable):
                answer = await answer
        return call, answer

    def _resolution(self, call: Unknown, answer: object) -> Resolution | None:
        match answer:
            case None:
                return None
            case Retry(by=by) if not call.repeatable:  # its arguments are not known any more
                answer = GiveUp(by)
            case Done(result=result, by=by):
                answer = Done(parts_from(result), by)
            case Retry() | GiveUp():
                pass
            case other:
                raise TypeError(
                    f"{other!r:.80} is no answer about {call.call.name}: give Done(…), Retry(), GiveUp() or None"
                )
        resolution = resolution_of(call.call.id, call.attempt, answer)
        return resolution if resolution.by else replace(resolution, by="review")

    def divided(
        self, operations: Sequence[Operation]
    ) -> tuple[list[tuple[Operation, ToolResult]], list[Operation]]:
        """Those whose results have been decided, and those that are to run."""
        decided: list[tuple[Operation, ToolResult]] = []
        to_run: list[Operation] = []
        for one in operations:
            result = one.result or self.result(one.seq, one.call)
            if result is None:
                to_run.append(one)
            else:
                decided.append((one, result))
        return decided, to_run

    def result(self, seq: int, call: ToolCall) -> ToolResult | None:
        """The result of a call that is not to run, if that has been decided."""
        match self.resolutions.get(seq):
            case Resolution(outcome="done", parts=parts):
                return ToolResult(call.id, call.name, parts)
            case Resolution(outcome="give_up"):
                return unknown(call)
        return None


def decision_of(verdict: Verdict, answer: object) -> Decision | None:
    """What an `Approve` answered. Only a clear yes is one."""
    if answer is None or isinstance(answer, Decision):
        return answer
    reason = "" if isinstance(answer, bool) else f"approve answered {answer!r:.80}, which is no clear yes"
    return Decision(verdict.call.id, answer is True, reason, by="approve")


def effect_of(one: Operation) -> Effect:
    """The effect that its verdict names."""
    return _verdict(one).effect


def after(tools: Tools, history: Sequence[Entry]) -> Tools:
    """The tools as they judge after this conversation, where they heed it."""
    # Our own first: to ask a protocol costs more than the answer, and this is asked twice a round.
    return tools.after(history) if isinstance(tools, (Toolbox, Heeds)) else tools


def judged(tools: Tools, call: ToolCall) -> Verdict:
    """What the tools say of a call. A wrapper around them may fail here too: that is this call's failure."""
    try:
        verdict: object = tools.prepare(call)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"prepare() of the tools gave {type(verdict).__name__} and not a Verdict")
    except Exception as error:
        return Verdict(call, "problem", text=told(error))
    return verdict


def told(error: BaseException) -> str:
    """What the model is told of an exception in a part that somebody else wrote."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own text fails
        return type(error).__name__


def _result_of(one: Operation, result: object) -> ToolResult:
    """What `Tools.execute` gave, as the result of this call and of no other."""
    if not isinstance(result, ToolResult):
        raise TypeError(f"execute() of the tools gave {type(result).__name__} and not a ToolResult")
    if (result.call_id, result.name) == (one.call.id, one.call.name):
        return result
    return replace(result, call_id=one.call.id, name=one.call.name)


def _verdict(one: Operation) -> Verdict:
    if one.verdict is None:
        raise ValueError(f"call {one.call.id} was not prepared")
    return one.verdict


def left(call: ToolCall, effect: Effect | None, why: str) -> ToolResult:
    """The result of a call that nobody will run to its end. `effect` is None if it was not started."""
    return unknown(call) if effect == "once" else refused(call, why)
