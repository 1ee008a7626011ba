"""`Agent`, `Run` and `Result`: what people hold. An agent is a definition; a run is one task done with it."""

from __future__ import annotations

import asyncio
import hashlib
import queue
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from glassloop import background
from glassloop.core.entries import JSON, Entry, Mend, Part, System, Usage, User, parts_of
from glassloop.core.errors import ConfigError, GlassloopError
from glassloop.core.events import Event, Finished
from glassloop.core.journal import Journal, MemoryJournal, Record, RunStart, Session, StopReason
from glassloop.core.limits import Limits
from glassloop.core.loop import Controller, Loop
from glassloop.core.recording import NoRecorder, Recorder
from glassloop.models.model import Model
from glassloop.output import Shape
from glassloop.run import Approve, Driver
from glassloop.tools.toolbox import Toolbox, Tools

T = TypeVar("T")

MakeController = Callable[[Sequence[Entry], Limits, Callable[[str], str | None] | None], Controller]


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """What came of a run, complete or not.

    `text`: the answer. `output`: the answer as the agent's output type (the text itself by default; None
    if there is no valid answer). `stop_reason`: "answered", or the limit or event that ended the run.
    `rounds`: model calls. `usage`: tokens, summed. `cost`: US dollars, None if any call's cost is unknown.
    `mends`: every deviation that was mended. `entries`: the conversation as Glassloop keeps it, and
    `messages` the same as Chat Completions messages. `session`: pass it on to continue.
    """

    text: str
    output: T
    stop_reason: StopReason
    rounds: int
    usage: Usage
    cost: float | None
    mends: tuple[Mend, ...]
    entries: tuple[Entry, ...] = field(repr=False)
    session: Session = field(repr=False)
    run_id: str = ""
    seconds: float = 0.0

    @property
    def messages(self) -> list[dict[str, JSON]]:
        """The conversation in Chat Completions shape; `history=` takes it back."""
        from glassloop.wire.history import messages_from_entries

        return messages_from_entries(self.entries)


class Agent(Generic[T]):
    """A model, tools and a loop. Immutable: safe to share between tasks and threads.

    `model`: "provider:model", "http://host:port/v1#model", or a `Model`. `instructions`: the system
    message. `tools`: functions, `Tool`s, or one object with the `Tools` protocol. `settings`: request
    fields, sent as given. `limits`: see `Limits`. `output`: the type that answers must have.
    `approve`: asked about calls that need a person's word; without it such calls are refused with a
    reason. `journal`: where runs are written down (memory by default). `controller`: makes the loop
    controller from history, limits and the output check. `recorder`: is shown the wire as it goes by.

    Raises `ToolDefinitionError` and `ConfigError` for mistakes in the definition.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        instructions: str = "",
        tools: Iterable[Any] | Tools = (),
        settings: Mapping[str, JSON] | None = None,
        limits: Limits | None = None,
        output: type[T] = cast("type[T]", str),
        approve: Approve | None = None,
        journal: Journal | None = None,
        controller: MakeController = Loop,
        recorder: Recorder | None = None,
        name: str = "agent",
    ) -> None:
        self.name = name
        self.model = _model(model)
        self.tools: Tools = tools if _is_tools(tools) else Toolbox(cast("Iterable[Any]", tools))
        self.instructions = instructions
        self.settings = dict(settings or {})
        self.limits = limits or Limits()
        self.journal: Journal = journal or MemoryJournal()
        self._approve = approve
        self._controller = controller
        self._recorder = recorder or NoRecorder()
        self._shape: Shape[T] | None = None if output is str else Shape.of(output)

    # ── running ──────────────────────────────────────────────────────────

    def stream(
        self,
        task: str | Part | Sequence[Part] | None,
        *,
        session: Session | str | None = None,
        history: Iterable[Mapping[str, JSON]] | Sequence[Entry] | None = None,
    ) -> Run[T]:
        """A `Run` of this task, to be used as `async with … as run` and iterated for its events.

        `session`: continue this conversation. `history`: start from these messages (Chat Completions
        shape, from anywhere) or entries. `task=None` asks the model to go on from the history.
        """
        if session is not None and history is not None:
            raise ConfigError("give either session= (continue a conversation) or history= (start from messages)")
        if task is None and session is None and history is None:
            raise ConfigError("there is nothing to do: give a task, a session or a history")
        if isinstance(task, str) and not task.strip():
            raise ConfigError("the task is empty: say what the agent is to do")
        message = None if task is None else User(parts_of(task))
        return Run(self, message, self._session(session), _entries(history))

    async def run(
        self,
        task: str | Part | Sequence[Part] | None,
        *,
        session: Session | str | None = None,
        history: Iterable[Mapping[str, JSON]] | Sequence[Entry] | None = None,
    ) -> Result[T]:
        """Do a task and give its `Result`. Raises a `GlassloopError` that carries the partial `result`."""
        run = self.stream(task, session=session, history=history)
        run.unheard()
        async with run:
            return await run.wait()

    def run_sync(
        self,
        task: str | Part | Sequence[Part] | None,
        *,
        session: Session | str | None = None,
        history: Iterable[Mapping[str, JSON]] | Sequence[Entry] | None = None,
    ) -> Result[T]:
        """`run` for code that is not async, a notebook included. Ctrl-C cancels the run and is raised after clean-up."""
        run = self.stream(task, session=session, history=history)
        run.unheard()

        async def work() -> Result[T]:
            async with run:
                return await run.wait()

        return background.wait(work(), on_interrupt=run.cancel)

    def stream_sync(
        self,
        task: str | Part | Sequence[Part] | None,
        *,
        session: Session | str | None = None,
        history: Iterable[Mapping[str, JSON]] | Sequence[Entry] | None = None,
    ) -> SyncRun[T]:
        """`stream` for code that is not async: `with … as run`, then iterate."""
        return SyncRun(self.stream(task, session=session, history=history))

    # ── parts of a run ───────────────────────────────────────────────────

    def _session(self, session: Session | str | None) -> Session:
        if isinstance(session, Session):
            return session
        return Session(session or new_id(), self.journal)

    def _system(self) -> tuple[Entry, ...]:
        texts = [self.instructions, self._shape.instructions() if self._shape else ""]
        text = "\n\n".join(one for one in texts if one)
        return (System(text),) if text else ()

    def _hash(self) -> str:
        parts = [self.name, self.model.name, *(entry.text for entry in self._system() if isinstance(entry, System))]
        parts += [repr((spec.name, spec.description, spec.parameters, spec.effect)) for spec in self.tools.specs]
        return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()

    def _value(self, text: str, reason: StopReason) -> T:
        if self._shape is None:
            return cast("T", text)
        if reason == "failed" or self._shape.problem(text):
            return cast("T", None)
        return self._shape.value(text)

    async def _driver(self, run: Run[T]) -> Driver:
        start = RunStart(new_id(), run.session.id, self.name, self._hash())
        journal = run.session.journal
        earlier = await journal.open(start)
        if run.history:
            brought = [Record(i + 1 - len(run.history), entry) for i, entry in enumerate(run.history)]
            await journal.commit(start.run_id, brought)
        accept = self._shape.problem if self._shape else None
        history = (*self._system(), *earlier, *run.history)
        return Driver(
            start=start,
            model=self.model,
            tools=self.tools,
            journal=journal,
            controller=self._controller(history, self.limits, accept),
            recorder=self._recorder,
            settings=dict(self.settings),
            approve=self._approve,
            emit=run._emit,
            inbox=run._inbox,
            follow_ups=run._follow_ups,
        )


class Run(Generic[T]):
    """One run. Enter it to start it; iterate it for events; leaving the block cancels what still runs.

    Iteration ends with `Finished`, and then raises the run's error if it has one.
    """

    def __init__(self, agent: Agent[T], task: User | None, session: Session, history: tuple[Entry, ...]) -> None:
        self.session = session
        self.history = history
        self._agent = agent
        self._message = task
        self._inbox: deque[User] = deque()
        self._follow_ups: deque[User] = deque()
        self._events: deque[Event] = deque()
        self._listening = True
        self._news = asyncio.Event()
        self._driver: Driver | None = None
        self._task: asyncio.Task[None] | None = None
        self._result: Result[T] | None = None
        self._error: BaseException | None = None

    async def __aenter__(self) -> Run[T]:
        self._driver = await self._agent._driver(self)
        self._task = asyncio.create_task(self._drive(self._driver))
        await asyncio.sleep(0)  # a task that is cancelled before its first step would never clean up
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        if self._task is not None:
            await _settled(self._task)

    async def _drive(self, driver: Driver) -> None:
        try:
            await driver.drive(self._message)
            self._error = driver.error
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._result = self._outcome(driver)
            if isinstance(self._error, GlassloopError):
                self._error.result = self._result
            self._emit(Finished(self._result, self._error))

    def unheard(self) -> None:
        """Nobody will iterate this run: keep no events."""
        self._listening = False

    def _emit(self, event: Event) -> None:
        if self._listening:
            self._events.append(event)
            self._news.set()

    def _outcome(self, driver: Driver) -> Result[T]:
        finish, spent = driver.finish, driver.controller.spent
        reason: StopReason = finish.stop_reason if finish else "failed"
        text = finish.text if finish else ""
        return Result(
            text=text,
            output=self._agent._value(text, reason),
            stop_reason=reason,
            rounds=driver.rounds,
            usage=spent.usage,
            cost=spent.cost,
            mends=tuple(driver.mends),
            entries=tuple(driver.controller.entries),
            session=self.session,
            run_id=driver.run_id,
            seconds=spent.seconds,
        )

    # ── what people do with it ───────────────────────────────────────────

    @property
    def result(self) -> Result[T]:
        """The outcome; while the run goes on, how it stands now."""
        if self._result is not None:
            return self._result
        if self._driver is None:
            raise ConfigError("this run has not started: use `async with agent.stream(...) as run`")
        return self._outcome(self._driver)

    async def wait(self) -> Result[T]:
        """Let the run end and give its result. Raises its error. If the waiting is cancelled, so is the run."""
        if self._task is None:
            raise ConfigError("this run has not started: use `async with agent.stream(...) as run`")
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            self.cancel()
            await _settled(self._task)
            raise
        if self._error is not None:
            raise self._error
        return self.result

    def cancel(self) -> None:
        """Stop the stream and the tools, close every open call, and keep the session in a state to go on from."""
        if self._task is not None and not self._task.done():
            self._task.cancel()

    def steer(self, text: str | Part | Sequence[Part]) -> None:
        """Say something to the model before its next call."""
        self._inbox.append(User(parts_of(text), "steer"))

    def follow_up(self, text: str | Part | Sequence[Part]) -> None:
        """Say something when the run would have ended; it goes on with that."""
        self._follow_ups.append(User(parts_of(text), "follow_up"))

    async def __aiter__(self) -> AsyncIterator[Event]:
        if self._driver is None:
            raise ConfigError("this run has not started: use `async with agent.stream(...) as run`")
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if isinstance(event, Finished):
                    if event.error is not None:
                        raise event.error
                    return
            self._news.clear()
            await self._news.wait()


class SyncRun(Generic[T]):
    """A `Run` for code that is not async. Use it as `with agent.stream_sync(...) as run`."""

    def __init__(self, run: Run[T]) -> None:
        self._run = run
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._pump: Any = None

    def __enter__(self) -> SyncRun[T]:
        self._pump = background.submit(self._drain())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        with suppress(Exception):
            self._pump.result()

    async def _drain(self) -> Result[T]:
        try:
            async with self._run as run:
                with suppress(GlassloopError):
                    async for event in run:
                        self._queue.put(event)
                return await run.wait()
        finally:
            self._queue.put(None)

    def __iter__(self) -> Iterator[Event]:
        try:
            while (event := self._queue.get()) is not None:
                yield event
        except KeyboardInterrupt:
            self.cancel()
            raise
        self._pump.result()

    @property
    def result(self) -> Result[T]:
        """The outcome; waits for the run to end, and raises its error."""
        result: Result[T] = self._pump.result()
        return result

    def cancel(self) -> None:
        """See `Run.cancel`."""
        background.loop().call_soon_threadsafe(self._run.cancel)

    def steer(self, text: str | Part | Sequence[Part]) -> None:
        """See `Run.steer`."""
        self._run.steer(text)

    def follow_up(self, text: str | Part | Sequence[Part]) -> None:
        """See `Run.follow_up`."""
        self._run.follow_up(text)


def new_id() -> str:
    """A fresh id for a run or a session: 12 letters and digits."""
    return secrets.token_hex(6)


async def _settled(task: asyncio.Task[None]) -> None:
    """Wait until a task is over, whatever it ended with, even if we are cancelled again meanwhile."""
    await asyncio.wait([task])


def _model(model: str | Model) -> Model:
    if not isinstance(model, str):
        return model
    from glassloop.models.choose import model_from

    return model_from(model)


def _is_tools(tools: object) -> bool:
    return hasattr(tools, "prepare") and hasattr(tools, "execute")


def _entries(history: Iterable[Mapping[str, JSON]] | Sequence[Entry] | None) -> tuple[Entry, ...]:
    if history is None:
        return ()
    given = tuple(history)
    messages = [one for one in given if isinstance(one, Mapping)]
    if not messages:
        return cast("tuple[Entry, ...]", given)
    if len(messages) != len(given):
        raise ConfigError("history= mixes messages and entries: give one kind")
    from glassloop.wire.history import entries_from_messages

    return entries_from_messages(messages)
