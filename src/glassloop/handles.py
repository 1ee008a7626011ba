"""What people hold of a run: `Run`, `SyncRun` for code that is not async, and the `Result`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic

from typing_extensions import TypeVar

from glassloop import background
from glassloop.core.entries import JSON, Content, Entry, Mend, Summary, Usage, User, parts_of
from glassloop.core.errors import ConfigError, GlassloopError
from glassloop.core.events import Event, Finished
from glassloop.core.journal import Session, StopReason
from glassloop.core.values import Value, repr_without
from glassloop.run import Driver

T = TypeVar("T", default=str)

_NOT_STARTED = "this run has not started: use `async with agent.stream(...) as run`"

_driving: set[asyncio.Task[None]] = set()
"""What is being driven. An event loop holds its tasks weakly: a run that nobody holds would be torn apart."""


class Result(Value, Generic[T], frozen=True, gc=True):
    """What came of a run, complete or not.

    `text`: the answer. `output`: the answer as the agent's output type (the text itself by default; None
    if there is no valid answer). `stop_reason`: "answered", or the limit or event that ended the run.
    `rounds`: model calls. `usage`: tokens, summed. `cost`: US dollars, None if any call's cost is unknown.
    `mends`: every deviation that was mended. `entries`: the conversation as Glassloop keeps it, and
    `messages` the same as Chat Completions messages, both without the agent's own instructions and
    examples. `session`: pass it on to continue. `undelivered`: messages (`steer`, `follow_up`) that the run
    ended before, at a limit or because it was cancelled or failed.
    """

    text: str
    output: T
    stop_reason: StopReason
    rounds: int
    usage: Usage
    cost: float | None
    mends: tuple[Mend, ...]
    entries: tuple[Entry, ...]
    session: Session
    run_id: str = ""
    seconds: float = 0.0
    undelivered: tuple[User, ...] = ()

    def __repr__(self) -> str:
        return repr_without(self, "entries", "session")

    @property
    def messages(self) -> list[dict[str, JSON]]:
        """The whole conversation in Chat Completions shape, without summaries; `history=` takes it back."""
        from glassloop.wire.history import messages_from_entries

        return messages_from_entries([one for one in self.entries if not isinstance(one, Summary)])


class Run(Generic[T]):
    """One run. Enter it to start it; iterate it for events; leaving the block cancels what still runs.

    Iteration ends with `Finished`, and then raises the run's error if it has one.
    """

    def __init__(
        self,
        session: Session,
        task: User | None,
        make_driver: Callable[[Run[T]], Awaitable[Driver]],
        read_output: Callable[[str, StopReason], T],
    ) -> None:
        self.session = session
        self.inbox: list[User] = []
        self.follow_ups: list[User] = []
        self._task_message = task
        # None from when the run is entered on: what it holds is not needed any more.
        self._make_driver: Callable[[Run[T]], Awaitable[Driver]] | None = make_driver
        self._read_output = read_output
        self._events: deque[Event] | None = deque()  # None: nobody listens
        self._news: asyncio.Event | None = None  # made for the first who has to wait for it
        self._cancelled = False
        self._driver: Driver | None = None
        self._task: asyncio.Task[None] | None = None
        self._result: Result[T] | None = None
        self._error: BaseException | None = None

    async def __aenter__(self) -> Run[T]:
        if self._make_driver is None:
            raise ConfigError("this run has been started already: make another with agent.stream(...)")
        make_driver, self._make_driver = self._make_driver, None
        self._driver = await make_driver(self)
        if self._cancelled:
            self._driver.cancel()
        self._task = asyncio.create_task(self._drive(self._driver))
        _driving.add(self._task)
        self._task.add_done_callback(_driving.discard)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        if self._task is not None:
            await _settled(self._task)

    async def _drive(self, driver: Driver) -> None:
        try:
            await driver.drive(self._task_message)
            self._error = driver.error
        except BaseException as error:
            self._error = error  # for whoever waits; raised from a task, some would end the whole event loop
        finally:
            self._result = self._last_outcome(driver)
            if self._error is not None:
                with suppress(Exception):  # an exception of somebody else's may refuse an attribute
                    self._error.result = self._result  # type: ignore[attr-defined]
            self._driver = None  # it knows this run: the two would be left to the garbage collector
            self.emit(Finished(self._result, self._error))

    def unheard(self) -> None:
        """Nobody will iterate this run: keep no events."""
        self._events = None

    def emit(self, event: Event) -> None:
        """Where the driver's events arrive."""
        if self._events is not None:
            self._events.append(event)
        if self._news is not None:
            self._news.set()

    def _last_outcome(self, driver: Driver) -> Result[T]:
        """The outcome, even where a controller of one's own or a type's validator cannot say how it stands."""
        try:
            return self._outcome(driver)
        except BaseException as error:
            self._error = self._error or error
            nothing: Any = None
            mends = tuple(driver.mends)
            return Result(
                "", nothing, "failed", driver.rounds, Usage(), None, mends, (), self.session, driver.run_id
            )

    def _outcome(self, driver: Driver) -> Result[T]:
        finish, spent = driver.finish, driver.controller.spent
        reason: StopReason = finish.stop_reason if finish else "failed"
        text = finish.text if finish else ""
        return Result(
            text=text,
            output=self._read_output(text, reason),
            stop_reason=reason,
            rounds=driver.rounds,
            usage=spent.usage,
            cost=spent.cost,
            mends=tuple(driver.mends),
            entries=tuple(driver.controller.entries[driver.preface :]),
            session=self.session,
            run_id=driver.run_id,
            seconds=spent.seconds,
            undelivered=(*self.inbox, *self.follow_ups) if finish else (),
        )

    # ── what people do with it ───────────────────────────────────────────

    @property
    def result(self) -> Result[T]:
        """The outcome; while the run goes on, how it stands now."""
        if self._result is not None:
            return self._result
        if self._driver is None:
            raise ConfigError(_NOT_STARTED)
        return self._outcome(self._driver)

    async def wait(self) -> Result[T]:
        """Let the run end and give its result. Raises its error. If the waiting is cancelled, so is the run."""
        if self._task is None:
            raise ConfigError(_NOT_STARTED)
        try:
            await _end_of(self._task)
        except asyncio.CancelledError:
            self.cancel()
            await _settled(self._task)
            raise
        if self._error is not None:
            raise self._error
        return self.result

    def cancel(self) -> None:
        """Stop the stream and the tools, close every open call, and keep the session in a state to go on from."""
        self._cancelled = True
        if self._driver is not None:
            self._driver.cancel()

    def steer(self, text: Content) -> None:
        """Say something to the model before its next call. What the run ends before is in `Result.undelivered`."""
        self.inbox.append(User(parts_of(text), "steer"))

    def follow_up(self, text: Content) -> None:
        """Say something when the run would have ended with an answer; it goes on with that. Else as in `steer`."""
        self.follow_ups.append(User(parts_of(text), "follow_up"))

    async def __aiter__(self) -> AsyncIterator[Event]:
        if self._task is None:
            raise ConfigError(_NOT_STARTED)
        news = self._news = self._news or asyncio.Event()
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if isinstance(event, Finished):
                    if event.error is not None:
                        raise event.error
                    return
            if self._result is not None:  # another reader, or an earlier loop, has taken the end
                return
            news.clear()
            await news.wait()


class SyncRun(Generic[T]):
    """A `Run` for code that is not async. Use it as `with agent.stream_sync(...) as run`."""

    def __init__(self, run: Run[T]) -> None:
        self._run = run
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._pump: concurrent.futures.Future[Result[T]] | None = None

    def __enter__(self) -> SyncRun[T]:
        if self._pump is not None:
            raise ConfigError("this run has been started already: make another with agent.stream_sync(...)")
        self._pump = background.submit(self._drain())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        with suppress(Exception):
            self._started().result()

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
        pump = self._started()
        try:
            while (event := self._queue.get()) is not None:
                yield event
        except KeyboardInterrupt:
            self.cancel()
            raise
        self._queue.put(None)  # for whoever iterates once more
        pump.result()

    @property
    def result(self) -> Result[T]:
        """The outcome; waits for the run to end, and raises its error."""
        return self._started().result()

    def _started(self) -> concurrent.futures.Future[Result[T]]:
        if self._pump is None:
            raise ConfigError("this run has not started: use `with agent.stream_sync(...) as run`")
        return self._pump

    def cancel(self) -> None:
        """See `Run.cancel`."""
        background.loop().call_soon_threadsafe(self._run.cancel)

    def steer(self, text: Content) -> None:
        """See `Run.steer`."""
        self._run.steer(text)

    def follow_up(self, text: Content) -> None:
        """See `Run.follow_up`."""
        self._run.follow_up(text)


def _end_of(task: asyncio.Task[None]) -> asyncio.Future[None]:
    """Done when the task is, which goes on if the waiting is cancelled: `asyncio.shield` in a third of the objects."""
    if task.done():  # its event loop may be over too
        return task
    end = task.get_loop().create_future()

    def over(task: asyncio.Task[None]) -> None:
        if task.cancelled():
            end.cancel()
        elif not end.done():
            end.set_result(None)

    task.add_done_callback(over)
    return end


async def _settled(task: asyncio.Task[None]) -> None:
    """Wait until a task is over, whatever it ended with, even if we are cancelled again meanwhile."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
