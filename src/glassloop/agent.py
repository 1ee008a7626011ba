"""`Agent`: a definition, immutable and shared. A run of it is a `Run` (`handles.py`), driven by `run.py`."""

from __future__ import annotations

import hashlib
import secrets
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, cast

from msgspec.structs import replace
from typing_extensions import TypeVar

from glassloop import background
from glassloop.core.compacting import Compacting
from glassloop.core.entries import JSON, Content, Entry, System, Text, User, parts_of
from glassloop.core.errors import ConfigError, SessionError, ToolDefinitionError
from glassloop.core.examples import Example
from glassloop.core.journal import (
    Journal,
    MemoryJournal,
    Opened,
    Record,
    RunEnd,
    RunStart,
    Session,
    StopReason,
)
from glassloop.core.limits import Limits
from glassloop.core.loop import Loop
from glassloop.core.recording import NoRecorder, Recorder
from glassloop.core.setup import AgentSetup, tell_began
from glassloop.core.steps import Controller
from glassloop.core.window import Window
from glassloop.handles import Result, Run, SyncRun
from glassloop.hands import Approve, Review, told
from glassloop.models.model import Model
from glassloop.output import Shape
from glassloop.run import Driver
from glassloop.tools.toolbox import Toolbox, Tools

T = TypeVar("T", default=str)

_TEXT: Any = str

History = Iterable[Mapping[str, JSON]] | Sequence[Entry]
"""Where a conversation starts: messages in Chat Completions shape, or entries."""

MakeController = Callable[[Sequence[Entry], Limits, Callable[[str], str | None] | None], Controller]

Task = Content | User | None
"""What is to be done: text or parts; a `User` entry, which may be pinned; None to go on from the history."""


class Agent(Generic[T]):
    """A model, tools and a loop. Immutable: safe to share between tasks and threads.

    `model`: "provider:model", "http://host:port/v1#model", or a `Model`. `instructions`: the system
    message. `tools`: functions, `Tool`s, or one object with the `Tools` protocol. `examples`: how
    questions are to be handled, for models that need to be shown. `settings`: request fields, sent as
    given. `limits`: see `Limits`. `window`: what is done when history outgrows the model's context, see
    `Window`. `output`: the type that answers must have. `approve`: asked about calls that need a person's
    word; without it such calls are refused with a reason. `review`: asked what became of a call that a crash
    left in doubt; without it such a run stops as `needs_review`. `journal`: where runs are written down
    (memory by default). `controller`: makes the loop controller from history, limits and the output check.
    `recorder`: gives, for a run's id, who is shown the wire as it goes by.

    Raises `ToolDefinitionError` and `ConfigError` for mistakes in the definition.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        instructions: str = "",
        tools: Iterable[Any] | Tools = (),
        examples: Sequence[Example] = (),
        settings: Mapping[str, JSON] | None = None,
        limits: Limits | None = None,
        window: Window | None = None,
        output: type[T] = _TEXT,
        approve: Approve | None = None,
        review: Review | None = None,
        journal: Journal | None = None,
        controller: MakeController | None = None,
        recorder: Callable[[str], Recorder] | None = None,
        name: str = "agent",
    ) -> None:
        self.name = name
        self.model = _model(model)
        self.tools = _tools(tools)
        self.instructions = instructions
        self.examples = _checked(examples, self.tools)
        self.settings = _settings(settings)
        self.limits = limits or Limits()
        self.window = window or Window()
        self._journal = journal
        self._approve = approve
        self._review = review
        self._controller = controller
        self._recorder = recorder
        self._shape: Shape[T] | None = None if output is str else Shape.of(output)

    def __repr__(self) -> str:
        names = ", ".join(spec.name for spec in self.tools.specs)
        return f"Agent({self.name!r}, model={self.model.name!r}, tools=[{names}])"

    # ── running ──────────────────────────────────────────────────────────

    def stream(
        self,
        task: Task,
        *,
        session: Session | str | None = None,
        history: History | None = None,
    ) -> Run[T]:
        """A `Run` of this task, to be used as `async with … as run` and iterated for its events.

        `session`: continue this conversation. `history`: start from these messages (Chat Completions
        shape, from anywhere) or entries. `task=None` asks the model to go on from the history.
        """
        if session is not None and history is not None:
            raise ConfigError(
                "give either session= (continue a conversation) or history= (start from messages)"
            )
        if task is None and session is None and history is None:
            raise ConfigError("there is nothing to do: give a task, a session or a history")
        message = None if task is None else _message(task)
        brought = _entries(history)
        return Run(self._session(session), message, lambda run: self._driver(run, brought), self._value)

    async def run(
        self,
        task: Task,
        *,
        session: Session | str | None = None,
        history: History | None = None,
    ) -> Result[T]:
        """Do a task and give its `Result`. Raises a `GlassloopError` that carries the partial `result`."""
        return await _to_the_end(self.stream(task, session=session, history=history))

    def run_sync(
        self,
        task: Task,
        *,
        session: Session | str | None = None,
        history: History | None = None,
    ) -> Result[T]:
        """`run` for code that is not async, a notebook included. Ctrl-C cancels the run, waits, and is raised again."""
        run = self.stream(task, session=session, history=history)
        return background.wait(_to_the_end(run), on_interrupt=run.cancel)

    def stream_sync(
        self,
        task: Task,
        *,
        session: Session | str | None = None,
        history: History | None = None,
    ) -> SyncRun[T]:
        """`stream` for code that is not async: `with … as run`, then iterate."""
        return SyncRun(self.stream(task, session=session, history=history))

    def compact(self, session: Session | str, hint: str = "") -> Run[T]:
        """A `Run` that has the model sum up the conversation now, all but its last turns; nothing of it is lost.

        `hint`: what is to be kept above all. Its result's text is the summary, "" if there was nothing to sum up.
        The session's last run must be over. Raises as `stream` does.
        """
        return Run(self._session(session), None, lambda run: self._driver(run, (), hint), self._value)

    # ── parts of a run ───────────────────────────────────────────────────

    def _session(self, session: Session | str | None) -> Session:
        if isinstance(session, Session):
            return session
        if session is None:  # a conversation in memory lives as long as its `Session` is held
            return Session(new_id(), self._journal or MemoryJournal())
        return Session(session, self.journal)

    @cached_property
    def journal(self) -> Journal:
        """Where sessions that are named, and not handed over, are kept."""
        return self._journal or MemoryJournal()

    def _preface(self) -> tuple[Entry, ...]:
        """What every conversation starts with: the instructions, then the examples."""
        shown = (entry for number, each in enumerate(self.examples) for entry in each.entries(number))
        return (*self._system(), *shown)

    def _system(self) -> tuple[System, ...]:
        texts = [self.instructions, self._shape.instructions() if self._shape else ""]
        text = "\n\n".join(one for one in texts if one)
        return (System(text),) if text else ()

    @cached_property
    def definition(self) -> str:
        """All that makes it this agent, one fact a line: a session notices when it is continued by another."""
        specs = ((spec.name, spec.description, spec.parameters, spec.effect) for spec in self.tools.specs)
        facts = [
            *(f"instructions: {entry.text!r}" for entry in self._system()),
            *(f"example: {each!r}" for each in self.examples),
            f"model: {self.model.name}",
            *(f"tool {name}: {text!r} {parameters!r} {effect}" for name, text, parameters, effect in specs),
        ]
        return "\n".join(facts)

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.definition.encode("utf-8", "replace")).hexdigest()

    def _made(self, history: Sequence[Entry], hint: str | None) -> Controller:
        """What says what happens next: one of your own, the loop, or with a `hint` a summary and no more."""
        size = getattr(self.model, "context_window", None)
        if hint is not None:
            return Compacting(history, self.window, size, hint)
        accept = self._shape.problem if self._shape else None
        if self._controller is not None:
            return self._controller(history, self.limits, accept)
        return Loop(history, self.limits, accept, self.window, size)

    def _setup(self, preface: tuple[Entry, ...], hint: str | None) -> AgentSetup:
        size = getattr(self.model, "context_window", None)
        specs, settings = self.tools.specs, self.settings
        return AgentSetup(preface, specs, settings, self.limits, self.window, size, hint)

    def _value(self, text: str, reason: StopReason) -> T:
        if self._shape is None:
            return cast("T", text)
        if reason == "failed" or self._shape.problem(text):
            return cast("T", None)
        return self._shape.value(text)

    async def _driver(self, run: Run[T], brought: tuple[Entry, ...], hint: str | None = None) -> Driver:
        start = RunStart(new_id(), run.session.id, self.name, self._digest, self.definition)
        journal = run.session.journal
        opened = await journal.open(start)
        try:
            return await self._driver_of(run, replace(start, run_id=opened.run_id), opened, brought, hint)
        except BaseException as error:  # nothing has begun: let the session go, as it was
            reason: StopReason = "needs_review" if opened.records else "failed"
            with suppress(Exception):
                await journal.finish(RunEnd(opened.run_id, reason, "", told(error)))
            raise

    async def _driver_of(
        self, run: Run[T], start: RunStart, opened: Opened, brought: tuple[Entry, ...], hint: str | None
    ) -> Driver:
        journal = run.session.journal
        if brought:
            records = [Record(i + 1 - len(brought), entry) for i, entry in enumerate(brought)]
            await journal.commit(start.run_id, records)
        if hint is not None and opened.records:
            raise SessionError("the last run here is not over: let it go on first, then compact the session")
        preface = self._preface()
        history = (*preface, *opened.history, *brought)
        controller = self._made(history, hint)
        for record in opened.records:
            controller.feed(record)
        recorder = self._recorder(start.run_id) if self._recorder else NoRecorder()
        tell_began(recorder, self._setup(preface, hint))
        return Driver(
            start=start,
            model=self.model,
            tools=self.tools,
            journal=journal,
            controller=controller,
            opened=opened,
            preface=len(preface),
            recorder=recorder,
            settings=dict(self.settings),
            approve=self._approve,
            review=self._review,
            emit=run.emit,
            inbox=run.inbox,
            follow_ups=run.follow_ups,
        )


async def _to_the_end(run: Run[T]) -> Result[T]:
    run.unheard()
    async with run:
        return await run.wait()


def _message(task: Content | User) -> User:
    try:
        message = task if isinstance(task, User) else User(parts_of(task))
    except TypeError as error:
        raise ConfigError(f"this is no task: {error}") from None
    if not any(not isinstance(part, Text) or part.text.strip() for part in message.parts):
        raise ConfigError("the task is empty: say what the agent is to do")
    return message


def new_id() -> str:
    """A fresh id for a run or a session: 12 letters and digits."""
    return secrets.token_hex(6)


def _model(model: str | Model) -> Model:
    if not isinstance(model, str):
        return model
    from glassloop import config

    found = config.load(model=model)
    for warning in found.warnings:
        warnings.warn(warning, stacklevel=3)
    return config.model_of(found)


def _checked(examples: Sequence[Example], tools: Tools) -> tuple[Example, ...]:
    """The examples, if every call in them could really be made. Raises `ToolDefinitionError`."""
    for number, example in enumerate(examples):
        for call in example.tool_calls(number):
            verdict = tools.prepare(call)
            if verdict.outcome == "problem":
                raise ToolDefinitionError(f"examples[{number}] calls {call.name} wrongly: {verdict.text}")
    return tuple(examples)


def _settings(settings: Mapping[str, JSON] | None) -> dict[str, JSON]:
    if settings is None:
        return {}
    given: object = settings
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError('settings= is a mapping of request fields, such as {"temperature": 0}')
    return dict(settings)


def _tools(tools: Iterable[Any] | Tools) -> Tools:
    if hasattr(tools, "prepare") and hasattr(tools, "execute"):
        return cast("Tools", tools)
    given: Iterable[Any] = [tools] if isinstance(tools, str) else tools  # a name is refused as one
    return Toolbox(given)


def _entries(history: History | None) -> tuple[Entry, ...]:
    if history is None:
        return ()
    kind: object = history
    if isinstance(kind, (str, bytes, Mapping)) or not isinstance(kind, Iterable):
        raise ConfigError(f"history= is a list of messages or of entries, not {type(history).__name__}")
    given = tuple(history)
    if all(isinstance(one, Entry) for one in given):
        return cast("tuple[Entry, ...]", given)
    if any(isinstance(one, Entry) for one in given):
        raise ConfigError("history= mixes messages and entries: give one kind")
    from glassloop.wire.history import entries_from_messages

    try:
        return entries_from_messages(cast("tuple[Mapping[str, JSON], ...]", given))
    except ValueError as error:
        raise ConfigError(f"history= cannot be read: {error}") from None
