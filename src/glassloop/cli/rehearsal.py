"""A recorded run, played again: the loop and the endpoint's code really run; the wire, the results of tools, what
people said and the clock come from the recording.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import NoReturn

from msgspec.structs import replace

from glassloop.agent import Agent
from glassloop.core.compacting import Compacting
from glassloop.core.entries import Entry, Note, Reply, Summary, ToolCall, ToolResult, User
from glassloop.core.errors import EndpointError, ReplayMismatch, SessionError
from glassloop.core.journal import ModelFailed, Record
from glassloop.core.limits import Limits, Spent
from glassloop.core.loop import Loop
from glassloop.core.recording import Recorder
from glassloop.core.setup import AgentSetup, EndpointSetup
from glassloop.core.steps import CallModel, Controller, Finish, Step
from glassloop.core.summary import settings_for
from glassloop.core.tools import Decision, ToolSpec, Verdict
from glassloop.core.words import not_allowed
from glassloop.handles import Result, Run
from glassloop.models.model import ModelRequest, Said
from glassloop.models.playback import INTERRUPTED
from glassloop.models.recorded import Recorded, recorded
from glassloop.models.replay import ReplayModel
from glassloop.sessions.replaying import RecordedRun
from glassloop.tools.context import ToolContext

_UNANSWERED = frozenset({"", "cancelled", "needs_review"})
"""How runs end in which somebody went away: what was going on then has no end in the recording."""


class Rehearsal:
    """One recorded run. `agent` plays it; `attach` it to its `Run` before it starts; `verify` its result."""

    def __init__(self, run: RecordedRun, masked: Callable[[bytes], bytes]) -> None:
        self.run = run
        self._model = _Model(run, masked)
        setup = run.agent
        self.agent: Agent[str] = Agent(
            self._model,
            tools=_Tools(run, self._model.interrupt),
            settings=setup.settings,
            limits=setup.limits,
            approve=_decisions(run.records),
            controller=partial(_Controller, run, self._model),
        )

    @property
    def history(self) -> tuple[Entry, ...]:
        """What stood before the run's first message."""
        brought = [one.value for one in self.run.records if one.seq < 1 and isinstance(one.value, Entry)]
        return (*self.run.agent.preface, *self.run.history, *brought)

    @property
    def task(self) -> User | None:
        """What the run began with; None where it went on from what was there."""
        first = next((one.value for one in self.run.records if one.seq >= 1), None)
        return first if isinstance(first, User) else None

    @property
    def has_no_end(self) -> bool:
        """Another run went on from within this one."""
        return not self.run.stop_reason

    @property
    def requests(self) -> int:
        """How many requests are recorded."""
        return len(self.run.exchanges)

    def attach(self, run: Run[str]) -> None:
        """What people said meanwhile is said to this run."""
        self._model.attach(run)

    def verify(self, result: Result[str]) -> None:
        """Raise `ReplayMismatch` unless everything was asked again, and the run ended as it did."""
        unplayed = self._model.unplayed
        left = [one for one in unplayed if one.error not in INTERRUPTED]
        if left and not (self.run.stop_reason in _UNANSWERED and self._model.plays_last(unplayed)):
            raise ReplayMismatch(
                f"The recording goes on: {len(left)} of its {self.requests} requests were not sent again."
            )
        if self.run.stop_reason in _UNANSWERED:
            return
        if (result.stop_reason, result.text) != (self.run.stop_reason, self.run.text):
            raise ReplayMismatch(
                f"The same requests led to another end.\n"
                f"    recorded: {self.run.stop_reason}: {self.run.text[:200]}\n"
                f"    now:      {result.stop_reason}: {result.text[:200]}"
            )


class _Model:
    """A `ReplayModel` that delivers, with each answer, what people said before the next one was asked for."""

    def __init__(self, run: RecordedRun, masked: Callable[[bytes], bytes]) -> None:
        self._agent = run.agent
        self._exchanges = _exchanges(run)
        self._askers = {id(one): asker for one, asker in zip(self._exchanges, run.askers, strict=True)}
        self._replay = ReplayModel(self._exchanges, masked=masked) if self._exchanges else None
        self._messages = _messages(run.records)
        self._answers = [one.value for one in run.records if _is_answer(one)]
        self._asked = 0
        self._run: Run[str] | None = None

    @property
    def name(self) -> str:
        return self._replay.name if self._replay else "nobody"

    @property
    def unplayed(self) -> Sequence[Recorded]:
        return self._replay.unplayed if self._replay else ()

    @property
    def asker(self) -> AgentSetup | None:
        """Who asked what is due; None at the end."""
        return self._askers[id(self.unplayed[0])] if self.unplayed else None

    def plays_last(self, some: Sequence[Recorded]) -> bool:
        """Are these the last exchanges? Of what was asked when somebody went away nobody wrote down the answer."""
        return list(map(id, some)) == list(map(id, self._exchanges[len(self._exchanges) - len(some) :]))

    def attach(self, run: Run[str]) -> None:
        self._run = run
        self._deliver(self._messages[0][1:] if self._messages[0][:1] else ())

    async def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        self._asked += 1
        if self._asked > len(self._answers) or self._replay is None:
            await self.interrupt()
        try:
            async with aclosing(self._replay.stream(self._as_asked(request), recorder)) as said:
                async for one in said:
                    if isinstance(one, Reply):
                        self._deliver(self._messages[self._asked])
                        one = _as_known_then(one, self._answers[self._asked - 1])
                    yield one
        except EndpointError:
            self._deliver(self._messages[self._asked])
            raise

    def _as_asked(self, request: ModelRequest) -> ModelRequest:
        """With the tools and settings of the agent that had taken the run up; the loop did the rest."""
        asker = self.asker
        if asker is None or asker is self._agent:
            return request
        dropped = self._agent.settings.keys() - request.settings.keys()
        settings = {name: value for name, value in asker.settings.items() if name not in dropped}
        tools = tuple(asker.tools) if request.purpose == "turn" else ()
        return replace(request, tools=tools, settings=settings_for(request.purpose, settings))

    async def close(self) -> None:
        """There is nothing to release."""

    async def interrupt(self) -> NoReturn:
        """Here somebody went away: the run is told to stop, and nothing more comes of this."""
        if self._run is not None:
            self._run.cancel()
        await asyncio.Event().wait()
        raise asyncio.CancelledError

    def _deliver(self, messages: Sequence[User]) -> None:
        if self._run is not None:
            self._run.inbox.extend(one for one in messages if one.kind != "follow_up")
            self._run.follow_ups.extend(one for one in messages if one.kind == "follow_up")


def _exchanges(run: RecordedRun) -> list[Recorded]:
    """What went over the wire in the run. Raises `SessionError` for what a replay cannot use."""
    try:
        return [
            recorded(
                EndpointSetup.from_json(json.loads(one.endpoint)) if one.endpoint else None,
                method=one.method,
                url=one.url,
                request_headers=one.request_headers,
                request=one.request,
                status=one.status,
                response_headers=one.response_headers,
                response=one.response,
                sizes=[size for _, size in one.chunks],
                error=one.error,
                at_ms=one.ended_ms,
            )
            for one in run.exchanges
        ]
    except ValueError as error:
        raise SessionError(f"an exchange of run {run.run_id} cannot be replayed: {error}") from error


def _messages(records: Sequence[Record]) -> list[list[User]]:
    """What people said before the first answer of a model, before the second, and so on, and after the last."""
    messages: list[list[User]] = [[]]
    for one in records:
        if _is_answer(one):
            messages.append([])
        elif isinstance(one.value, User) and one.seq >= 1:
            messages[-1].append(one.value)
    return messages


def _is_answer(one: Record) -> bool:
    """Did a model call lead to this?"""
    return one.seq >= 1 and isinstance(one.value, Reply | ModelFailed | Summary)


def _as_known_then(reply: Reply, recorded: object) -> Reply:
    """With the price and the window's size that were known when it was recorded: neither is in the answer itself."""
    if not isinstance(recorded, Reply):
        return reply
    return replace(reply, price=recorded.price, context_window=recorded.context_window)


class _Tools:
    """The `Tools` of the recording: verdicts and results as they were. Nothing runs."""

    def __init__(self, run: RecordedRun, interrupt: Callable[[], Awaitable[NoReturn]]) -> None:
        values = [one.value for one in run.records]
        self._specs = tuple(run.agent.tools)
        self._results = {one.call_id: one for one in values if isinstance(one, ToolResult)}
        decided = {one.call_id: one for one in values if isinstance(one, Decision)}
        self._verdicts = {
            one.call.id: _as_it_went(one, decided.get(one.call.id), self._results.get(one.call.id))
            for one in values
            if isinstance(one, Verdict)
        }
        self._interrupt = interrupt

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    def prepare(self, call: ToolCall) -> Verdict:
        if verdict := self._verdicts.get(call.id):
            return verdict
        if call.id in self._results:  # killed before there was a verdict, and left
            return Verdict(call, "ready")
        return Verdict(call, "problem", text="This call is not in the recording.")

    async def execute(self, verdict: Verdict, context: ToolContext) -> ToolResult:
        result = self._results.get(verdict.call.id)
        return result if result is not None else await self._interrupt()

    def is_sequential(self, name: str) -> bool:
        return False


def _as_it_went(verdict: Verdict, decision: Decision | None, result: ToolResult | None) -> Verdict:
    """The verdict; or one that lets the call have its recorded result, where the loop would give it another one.

    So it is with a turn that was left: the run was suspended or killed in it, and went on with a new task.
    """
    match verdict.outcome:
        case "problem":
            left = result is not None and result.text != verdict.text
        case "ask":
            left = result is not None and (decision is None or _was_overruled(decision, result))
        case _:
            left = False
    return replace(verdict, outcome="ready", text="") if left else verdict


def _was_overruled(decision: Decision, result: ToolResult) -> bool:
    return not decision.allowed and result.text != not_allowed(decision.reason)


def _decisions(records: Sequence[Record]) -> Callable[[Verdict], Decision | None]:
    """What people decided about calls; None where nobody had."""
    made = {one.value.call_id: one.value for one in records if isinstance(one.value, Decision)}
    return lambda verdict: made.get(verdict.call.id)


class _Controller:
    """The loop, with the clock of the recording, and with what was wrong then with an answer of a wrong shape.

    Where another agent took the run up, its loop goes on: made of all that had happened, as it was then.
    """

    def __init__(
        self, run: RecordedRun, model: _Model, history: Sequence[Entry], limits: Limits, accept: object
    ) -> None:
        self._run = run
        self._model = model
        self._agent = run.agent
        self._said_before = history[len(run.agent.preface) :]
        self._fed: list[Record] = []
        self._seconds = {(one.seq, type(one.value)): one.seconds for one in run.records}
        self._notes = {one.seq: one.value for one in run.records if isinstance(one.value, Note)}
        self._said = {one.seq for one in run.records if isinstance(one.value, User)}
        self._last_reply = max((one.seq for one in run.records if isinstance(one.value, Reply)), default=0)
        self._seq = 0
        self._loop = self._made()

    def _made(self) -> Controller:
        """What says what happens next, as the agent at hand had it."""
        agent, history = self._agent, (*self._agent.preface, *self._said_before)
        if agent.hint is not None:
            return Compacting(history, agent.window, agent.size, agent.hint)
        return Loop(history, agent.limits, self._problem, agent.window, agent.size)

    def next(self) -> Step:
        """What is due; where the run was killed at its end and went on with another task, room for that."""
        step = self._loop.next()
        asker = self._model.asker or self._agent
        if isinstance(step, CallModel) and asker is not self._agent:
            self._agent = asker
            self._loop = self._made()
            for record in self._fed:
                self._loop.feed(record)
            step = self._loop.next()
        if isinstance(step, Finish) and step.stop_reason != "answered" and step.seq in self._said:
            return CallModel(step.seq, "turn", ())
        return step

    def feed(self, record: Record) -> None:
        self._seq = record.seq
        seconds = self._seconds.get((record.seq, type(record.value)), record.seconds)
        self._fed.append(replace(record, seconds=seconds))
        self._loop.feed(self._fed[-1])

    @property
    def spent(self) -> Spent:
        return self._loop.spent

    @property
    def entries(self) -> Sequence[Entry]:
        return self._loop.entries

    def _problem(self, text: str) -> str | None:
        """What the agent's output type had to say of the answer that is being fed."""
        note = self._notes.get(self._seq + 1)
        if note is not None and note.reason == "output":
            return note.text
        failed = self._seq == self._last_reply and self._run.stop_reason == "failed"
        return self._run.error or None if failed else None
