"""Runs the calls of one turn: side by side, or one after the other where a tool asks for that."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from glassloop.core.entries import Text, ToolCall, ToolResult, refused, unknown
from glassloop.core.events import Event, ToolProgress, ToolStarted
from glassloop.core.journal import Intent
from glassloop.core.steps import Operation
from glassloop.core.tools import Effect, Verdict
from glassloop.tools.context import ToolContext
from glassloop.tools.toolbox import Tools

Results = Sequence[tuple[Operation, ToolResult]]

INTERRUPTED = "Interrupted by the user."


@dataclass(frozen=True, slots=True)
class Hands:
    """`interruptible` surrounds every wait that a cancel may cut short; `deliver` takes results as they come."""

    tools: Tools
    run_id: str
    agent: str
    emit: Callable[[Event], None]
    interruptible: Callable[[], AbstractAsyncContextManager[None]]
    deliver: Callable[[Results], Awaitable[None]]

    async def run(self, operations: Sequence[Operation]) -> None:
        """Run all to their end. When cancelled: stop them, deliver what is true of each, and raise again."""
        for batch in self._batches(operations):
            if len(batch) == 1:
                await self._run_alone(batch[0])
                continue
            running = {asyncio.create_task(self._execute(one)): one for one in batch}
            try:
                await self._collect(running)
            except asyncio.CancelledError:
                await self._stop(running)
                await self._deliver_stopped(running)
                raise
            except BaseException:  # what is done cannot be written down: nothing more is to be done
                await self._stop(running)
                raise

    async def _run_alone(self, one: Operation) -> None:
        """The ordinary case, a turn of one call: no task of its own is needed to wait for it."""
        try:
            async with self.interruptible():
                result = await self._execute(one)
        except asyncio.CancelledError:
            await self.deliver([(one, _interrupted(one))])
            raise
        await self.deliver([(one, result)])

    def intent(self, one: Operation) -> Intent:
        """What is written down before the call starts."""
        return Intent(one.seq, one.call, dict(_verdict(one).arguments), effect_of(one), self._key(one.seq))

    def _batches(self, operations: Sequence[Operation]) -> list[list[Operation]]:
        if any(self.tools.is_sequential(one.call.name) for one in operations):
            return [[one] for one in operations]
        return [list(operations)] if operations else []

    async def _collect(self, running: dict[asyncio.Task[ToolResult], Operation]) -> None:
        pending = set(running)
        while pending:
            async with self.interruptible():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            results = [(running.pop(task), task.result()) for task in done]
            await self.deliver(results)

    async def _stop(self, running: dict[asyncio.Task[ToolResult], Operation]) -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _deliver_stopped(self, running: dict[asyncio.Task[ToolResult], Operation]) -> None:
        if running:
            await self.deliver([(one, _outcome(task, one)) for task, one in running.items()])

    async def _execute(self, one: Operation) -> ToolResult:
        verdict = _verdict(one)
        self.emit(ToolStarted(one.seq, one.call, verdict.arguments))
        try:
            return _result_of(one, await self.tools.execute(verdict, self._context(one)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # a wrapper around Tools may raise: that is this call's failure
            return ToolResult(one.call.id, one.call.name, (Text(told(error)),), "error")

    def _context(self, one: Operation) -> ToolContext:
        return ToolContext(
            run_id=self.run_id,
            seq=one.seq,
            call_id=one.call.id,
            key=self._key(one.seq),
            agent=self.agent,
            progress=lambda text: self.emit(ToolProgress(one.seq, text)),
        )

    def _key(self, seq: int) -> str:
        return hashlib.sha256(f"{self.run_id}\x1f{seq}".encode()).hexdigest()


def effect_of(one: Operation) -> Effect:
    """The effect that its verdict names."""
    return _verdict(one).effect


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


def _outcome(task: asyncio.Task[ToolResult], one: Operation) -> ToolResult:
    """What is true of a call that was told to stop: it had finished, or may have taken effect, or did nothing."""
    if not task.cancelled() and task.exception() is None:
        return task.result()
    return _interrupted(one)


def _interrupted(one: Operation) -> ToolResult:
    return unknown(one.call) if effect_of(one) == "once" else refused(one.call, INTERRUPTED)
