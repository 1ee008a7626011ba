"""Whatever is done to a session, what is sent of it afterwards is a history that every server takes."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.sendable import problems

from glassloop import Agent, tool
from glassloop.core.entries import Reply, ToolCall
from glassloop.core.errors import ContextOverflow, EmptyReply, GlassloopError, SessionError
from glassloop.core.journal import Session
from glassloop.core.limits import Limits
from glassloop.core.window import Window
from glassloop.sessions import owner as owners
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store


class Killed(BaseException):
    """The process is no more."""


@tool(effect="once")
def act(what: str) -> str:
    """Act."""
    if what == "fail":
        raise ValueError(what)
    return what * 50


@tool(effect="read", approve=True)
def ask_first(what: str) -> str:
    """Act, if a person allows it."""
    return what


class Mortal(SqliteJournal):
    """A journal whose process dies at its `dies_at`th write."""

    dies_at = 10**6

    async def _write(self, *arguments, **options):
        self.dies_at -= 1
        if self.dies_at <= 0:
            raise Killed
        await super()._write(*arguments, **options)


class Actor:
    """A model that says what it is told to, and looks at everything that it is sent."""

    name = "actor"
    context_window = None

    def __init__(self, lines, sent):
        self._lines, self._sent = list(lines), sent
        self._said = 0

    async def stream(self, request, recorder):
        self._sent.append(problems(request.entries, request.tools))
        line = self._lines.pop(0) if self._lines and request.purpose != "summary" else "answer"
        self._said += 1
        match line:
            case "overflow":
                raise ContextOverflow("too long", status=400)
            case "break":
                error = EmptyReply("it broke off")
                error.partial = Reply("Half an ans")
                raise error
            case "empty":
                yield Reply("")
            case "answer":
                yield Reply(f"Answer {self._said}.", finish_reason="stop")
            case _:
                yield Reply("Calling.", tool_calls=tuple(map(self._call, range(len(line)), line)))

    def _call(self, number, kind):
        made = f"call-{id(self)}-{self._said}-{number}"
        match kind:
            case "unknown":
                return ToolCall(made, "no_such_tool", {}, "{}")
            case "broken":
                return ToolCall(made, "act", None, '{"what": ', problem="cut off")
            case "asks":
                return ToolCall(made, "ask_first", {"what": "x"}, '{"what": "x"}')
        return ToolCall(made, "act", {"what": kind}, "{}")

    async def close(self):
        """Nothing to close."""


LINES = st.one_of(
    st.sampled_from(["answer", "overflow", "break", "empty"]),
    st.lists(st.sampled_from(["fine", "fail", "unknown", "broken", "asks"]), min_size=1, max_size=3),
)
SCRIPTS = st.lists(LINES, max_size=4)
PLACE = st.integers(0, 40)
ACTS = st.one_of(
    st.tuples(st.just("run"), SCRIPTS, st.sampled_from([None, True, False])),
    st.tuples(st.just("crash"), SCRIPTS, st.integers(1, 12)),
    st.tuples(st.just("cancel"), SCRIPTS, st.integers(0, 6)),
    st.tuples(st.just("go on"), SCRIPTS, st.sampled_from([None, True])),
    st.tuples(st.just("fork"), PLACE),
    st.tuples(st.just("rewind"), PLACE),
    st.tuples(st.just("undo"), st.integers(1, 2)),
    st.tuples(st.just("compact"), st.sampled_from(["", "the numbers"])),
    st.tuples(st.just("over cost"), SCRIPTS, st.sampled_from([None, True])),
    st.tuples(st.just("import"), st.just(0)),
)


class Stage:
    """A file with sessions, on which one act after the other is played; `sent` is what was wrong with any request."""

    def __init__(self, path):
        self.store, self.path = Store(path), path
        self.sessions, self.sent = ["s0"], []

    def agent(self, lines, approve=True, journal=None, limits=None):
        return Agent(
            Actor(lines, self.sent),
            tools=[act, ask_first],
            journal=journal or SqliteJournal(self.path),
            approve=lambda verdict: approve,
            window=Window(size=600, keep_last=1),
            limits=limits,
        )

    def play(self, kind, *arguments):
        session = self.sessions[-1]
        with suppress(SessionError):
            match kind, arguments:
                case "run", (lines, approve):
                    self.run(self.agent(lines, approve), "Do it.", session)
                case "over cost", (lines, approve):
                    self.run(self.agent(lines, approve, limits=Limits(cost=1.0)), "Do it cheaply.", session)
                case "go on", (lines, approve):
                    self.run(self.agent(lines, approve), None, session)
                case "crash", (lines, at):
                    self.crash(lines, at, session)
                case "cancel", (lines, at):
                    asyncio.run(self.cancel(lines, at, session))
                case "fork", (place,):
                    self.sessions.append(self.store.fork(session, self.entry(session, place)))
                case "rewind", (place,):
                    self.store.rewind(session, self.entry(session, place))
                case "undo", (turns,):
                    self.store.undo(session, turns)
                case "compact", (hint,):
                    asyncio.run(self.compact(session, hint))
                case "import", _:
                    self.sessions.append(
                        self.store.import_jsonl(self.store.export_jsonl(session).splitlines())
                    )

    def run(self, agent, task, session):
        with suppress(GlassloopError):
            agent.run_sync(task, session=session)

    def crash(self, lines, at, session):
        journal = Mortal(self.path)
        journal.dies_at = at
        with suppress(Killed, GlassloopError):
            self.agent(lines, journal=journal).run_sync("Do it, and die.", session=session)
        for claim in journal._claims.values():
            owners.release(claim.claimed.owner)
        journal.close()

    async def cancel(self, lines, at, session):
        agent = self.agent(lines)
        with suppress(GlassloopError):
            async with agent.stream("Do it, no, stop.", session=Session(session, agent.journal)) as run:
                async for _ in run:
                    at -= 1
                    if at <= 0:
                        run.cancel()

    async def compact(self, session, hint):
        agent = self.agent([])
        with suppress(GlassloopError):
            async with agent.compact(session, hint) as run:
                await run.wait()

    def entry(self, session, place):
        steps = self.store.timeline(session).steps
        return steps[place % len(steps)].entry_id if steps else 0


@settings(max_examples=12)
@given(st.lists(ACTS, min_size=1, max_size=4))
def test_after_any_cut_crash_cancel_fork_rewind_or_compaction_a_session_can_be_sent(tmp_path_factory, acts):
    check(acts, tmp_path_factory.mktemp("stage") / "s.db")


@pytest.mark.torture
@pytest.mark.parametrize("part", range(4))
@settings(max_examples=100)
@given(st.lists(ACTS, min_size=1, max_size=8))
def test_four_hundred_sessions_can_be_sent_whatever_was_done_to_them(tmp_path_factory, part, acts):
    check(acts, tmp_path_factory.mktemp("stage") / "s.db")


@pytest.mark.parametrize("acts", [
    [("crash", [["fine"]], 3), ("import", 0)],
    [("crash", [["fine", "asks"]], 4), ("import", 0), ("go on", [], True)],
    [("run", [["asks"]], None), ("import", 0), ("import", 0)],
    [("over cost", [["fine", "asks"]], True)],
    [("run", ["overflow", ["fine"]], True), ("compact", ""), ("rewind", 3), ("compact", ""), ("fork", 4)],
])  # fmt: skip
def test_what_once_could_not_be_sent_can(tmp_path, acts):
    check(acts, tmp_path / "s.db")


def check(acts, path):
    stage = Stage(path)
    for each in acts:
        stage.play(*each)
    for session in stage.sessions:
        stage.run(stage.agent(["answer"]), "And now?", session)
        assert problems(stage.store.entries(session)) == []
    assert [wrong for wrong in stage.sent if wrong] == []
