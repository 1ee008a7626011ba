"""`Agent`, `Run` and the driver with a scripted model: real tools, real journal, no network."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from glassloop import (
    Agent,
    ConfigError,
    ConnectionLost,
    EmptyReply,
    Limits,
    MemoryJournal,
    Reply,
    ScriptedModel,
    ToolContext,
    ToolDefinitionError,
    Usage,
    tool,
)
from glassloop.core.entries import Note, ToolResult, User
from glassloop.core.events import (
    Event,
    Finished,
    ModelFinished,
    ModelStarted,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from glassloop.core.journal import Intent, Record, RunEnd, RunStart
from glassloop.models.scripted import Wait, call, calls


@tool(effect="read")
def weather(city: str) -> str:
    """The weather in a city. Use it for any question about weather."""
    if city == "Atlantis":
        raise LookupError("no such city: Atlantis")
    return f"{city}: 20 °C"


@tool(effect="read")
def add(a: int, b: int) -> int:
    """The sum of two integers."""
    return a + b


def results(entries: Sequence[object]) -> list[tuple[str, str]]:
    return [(entry.state, entry.text) for entry in entries if isinstance(entry, ToolResult)]


def test_the_tutorials_story_parallel_calls_then_a_failing_tool_then_the_answer() -> None:
    model = ScriptedModel(
        [
            calls(call("weather", city="Tokyo"), call("add", a=15, b=27)),
            calls(call("weather", city="Atlantis")),
            "Tokyo has 20 °C, the sum is 42, and Atlantis is not on the map.",
        ]
    )
    result = Agent(model, tools=[weather, add]).run_sync("Weather in Tokyo and Atlantis, and 15 + 27?")
    assert result.text == result.output == "Tokyo has 20 °C, the sum is 42, and Atlantis is not on the map."
    assert (result.stop_reason, result.rounds) == ("answered", 3)
    assert results(result.entries) == [
        ("ok", "Tokyo: 20 °C"),
        ("ok", "42"),
        ("error", "LookupError: no such city: Atlantis"),
    ]
    assert [message["role"] for message in result.messages] == [
        "user", "assistant", "tool", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip


def test_events_have_ends_and_come_in_order() -> None:
    async def story() -> list[Event]:
        model = ScriptedModel([calls(call("weather", city="Oslo")), "It is 20 °C."])
        async with Agent(model, tools=[weather]).stream("Oslo?") as run:
            return [event async for event in run]

    events = asyncio.run(story())
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert kinds == [
        RunStarted, ModelStarted, ModelFinished, ToolStarted, ToolFinished, ModelStarted, ModelFinished, Finished,
    ]  # fmt: skip
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "It is 20 °C."


class WatchedJournal(MemoryJournal):
    """Keeps the order of calls, with what each was about."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    async def open(self, start: RunStart) -> Any:
        self.calls.append("open")
        return await super().open(start)

    async def intend(self, run_id: str, intents: Sequence[Intent]) -> None:
        self.calls.append("intend " + " ".join(one.call.name for one in intents))
        await super().intend(run_id, intents)

    async def commit(self, run_id: str, records: Sequence[Record]) -> None:
        self.calls.append("commit " + " ".join(type(one.value).__name__ for one in records))
        await super().commit(run_id, records)

    async def decide(self, run_id: str, records: Sequence[Record]) -> None:
        self.calls.append("decide " + " ".join(type(one.value).__name__ for one in records))
        await super().decide(run_id, records)

    async def finish(self, end: RunEnd) -> None:
        self.calls.append(f"finish {end.stop_reason}")
        await super().finish(end)


def test_the_driver_writes_things_down_in_the_kill_safe_order() -> None:
    journal = WatchedJournal()

    @tool(effect="once", approve=True)
    def send(to: str) -> str:
        """Send a letter."""
        journal.calls.append(f"run send {to}")
        return "sent"

    @tool(effect="idempotent")
    def put(key: str) -> str:
        """Put something."""
        journal.calls.append("run put")
        return "put"

    model = ScriptedModel([calls(call("send", to="Ann"), call("put", key="k"), call("nope")), "Done."])
    agent = Agent(model, tools=[send, put], approve=lambda verdict: True, journal=journal)
    agent.run_sync("Send it")
    before, after = journal.calls[:7], journal.calls[7:]
    assert before == [
        "open",
        "commit User",
        "commit Reply",
        "commit Verdict Verdict Verdict",
        "decide Decision",
        "intend send put",
        "commit ToolResult",
    ]
    assert {"run send Ann", "run put"} <= set(after)
    assert after[-2:] == ["commit Reply", "finish answered"]
    written = [line for line in after if line.startswith("commit ToolResult")]
    assert sum(line.count("ToolResult") for line in written) == 2


def test_a_call_that_needs_approval_is_refused_with_a_reason_where_nobody_can_be_asked() -> None:
    ran = []

    @tool(approve=True)
    def wipe(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return "gone"

    model = ScriptedModel([calls(call("wipe", path="a")), "I may not."])
    result = Agent(model, tools=[wipe]).run_sync("Wipe a")
    assert ran == []
    [(state, text)] = results(result.entries)
    assert state == "refused"
    assert "nobody can be asked" in text


def test_a_session_continues_and_history_can_be_brought_along() -> None:
    model = ScriptedModel(["Hello Ann.", "You are Ann.", "Bob."])
    agent = Agent(model, instructions="Be brief.")
    first = agent.run_sync("I am Ann")
    second = agent.run_sync("Who am I?", session=first.session)
    assert [entry.text for entry in model.requests[1].entries] == [
        "Be brief.",
        "I am Ann",
        "Hello Ann.",
        "Who am I?",
    ]
    assert len(second.messages) == 4
    brought = [{"role": "user", "content": "I am Bob"}, {"role": "assistant", "content": "Hello Bob."}]
    third = agent.run_sync("Who am I?", history=brought)
    assert [entry.text for entry in model.requests[2].entries][1:3] == ["I am Bob", "Hello Bob."]
    assert agent.run_sync.__self__ is agent
    assert third.text == "Bob."


def test_a_session_keeps_the_history_that_was_brought_along() -> None:
    model = ScriptedModel(["one", "two"])
    agent = Agent(model)
    first = agent.run_sync(
        "b", history=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}]
    )
    agent.run_sync("c", session=first.session)
    assert [entry.text for entry in model.requests[1].entries] == ["a", "A", "b", "one", "c"]


def test_steering_reaches_the_model_before_its_next_call_and_a_follow_up_when_it_would_have_ended() -> None:
    async def story() -> tuple[list[User], str]:
        gate = asyncio.Event()

        @tool(effect="read")
        async def slow() -> str:
            """Takes its time."""
            await gate.wait()
            return "ready"

        model = ScriptedModel([calls(call("slow")), "First answer.", "Second answer."])
        async with Agent(model, tools=[slow]).stream("Go") as run:
            async for event in run:
                if isinstance(event, ToolStarted):
                    run.steer("Hurry")
                    run.follow_up("And then?")
                    gate.set()
        assert model.requests[1].entries[-1].text == "Hurry"
        return [one for one in run.result.entries if isinstance(one, User)], run.result.text

    users, text = asyncio.run(story())
    assert [(one.kind, one.text) for one in users] == [
        ("task", "Go"),
        ("steer", "Hurry"),
        ("follow_up", "And then?"),
    ]
    assert text == "Second answer."


def test_cancelling_in_a_tool_closes_every_call_truthfully_and_the_session_goes_on() -> None:
    async def story() -> None:
        started = asyncio.Event()

        @tool(effect="once")
        async def launch() -> str:
            """Launch it."""
            started.set()
            await asyncio.sleep(60)
            return "never"

        @tool(effect="read")
        async def look() -> str:
            """Look."""
            await asyncio.sleep(60)
            return "never"

        model = ScriptedModel([calls(call("launch"), call("look")), "Back again."])
        agent = Agent(model, tools=[launch, look])
        async with agent.stream("Go") as run:
            await started.wait()
            run.cancel()
            result = await run.wait()
        assert result.stop_reason == "cancelled"
        assert [state for state, _ in results(result.entries)] == ["unknown", "refused"]
        assert all(one.seconds > 0 for one in result.entries if isinstance(one, ToolResult))
        again = await agent.run("Still there?", session=result.session)
        assert again.text == "Back again."
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(story())


def test_cancelling_while_the_model_streams_ends_the_run() -> None:
    async def story() -> None:
        model = ScriptedModel([Wait(60), "never"])
        async with Agent(model).stream("Go") as run:
            async for event in run:
                if isinstance(event, ModelStarted):
                    run.cancel()
        assert run.result.stop_reason == "cancelled"

    asyncio.run(story())


def test_cancelling_before_anything_happened_and_leaving_the_block_early_are_clean() -> None:
    async def story() -> None:
        agent = Agent(ScriptedModel([Wait(60), "never", Wait(60), "never"]))
        async with agent.stream("Go") as run:
            run.cancel()
            assert (await run.wait()).stop_reason == "cancelled"
        async with agent.stream("Go") as run:
            pass
        assert run.result.stop_reason == "cancelled"
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(story())


def test_a_timeout_around_a_run_cancels_it_and_leaves_the_session_free() -> None:
    async def story() -> None:
        agent = Agent(ScriptedModel(["hello", Wait(60), "never", "fine"]))
        session = (await agent.run("Hi")).session
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await agent.run("Go", session=session)
        assert (await agent.run("And now?", session=session)).text == "fine"

    asyncio.run(story())


def test_an_exception_from_a_run_carries_the_partial_result() -> None:
    model = ScriptedModel([calls(call("weather", city="Oslo"), text="Looking."), ConnectionLost("gone")])
    with pytest.raises(ConnectionLost) as caught:
        Agent(model, tools=[weather]).run_sync("Oslo?")
    assert caught.value.result.text == "Looking."
    assert results(caught.value.result.entries) == [("ok", "Oslo: 20 °C")]


def test_a_model_that_never_says_anything_raises_empty_reply_after_three_requests() -> None:
    model = ScriptedModel([Reply(), Reply(), Reply()])
    with pytest.raises(EmptyReply):
        Agent(model).run_sync("Hi")
    assert len(model.requests) == 3
    assert isinstance(model.requests[2].entries[-1], Note)


def test_the_last_answer_at_a_limit_is_asked_without_tools() -> None:
    model = ScriptedModel([calls(call("add", a=1, b=2)), "So far 3."])
    result = Agent(model, tools=[add], limits=Limits(rounds=1)).run_sync("Count")
    assert (result.stop_reason, result.text) == ("rounds", "So far 3.")
    assert len(model.requests[0].tools) == 1
    assert model.requests[1].tools == ()


def test_a_forced_tool_choice_is_reset_after_the_first_reply_with_calls() -> None:
    model = ScriptedModel([calls(call("add", a=1, b=2)), "3"])
    agent = Agent(model, tools=[add], settings={"tool_choice": "required", "temperature": 0})
    agent.run_sync("1 + 2")
    assert [dict(request.settings) for request in model.requests] == [
        {"tool_choice": "required", "temperature": 0},
        {"temperature": 0},
    ]
    assert agent.settings == {"tool_choice": "required", "temperature": 0}


def test_usage_and_cost_are_summed_and_unknown_cost_stays_unknown() -> None:
    replies = [
        Reply(tool_calls=(call("add", a=1, b=2),), usage=Usage(10, 5, 15), cost=0.01),
        Reply(text="3", usage=Usage(20, 1, 21), cost=0.02),
        Reply(text="x", usage=Usage(1, 1, 2)),
    ]
    agent = Agent(ScriptedModel(replies), tools=[add])
    result = agent.run_sync("1 + 2")
    assert result.usage == Usage(30, 6, 36)
    assert result.cost == pytest.approx(0.03)
    assert agent.run_sync("x").cost is None


class Forecast(BaseModel):
    city: str
    degrees: float


def test_a_structured_answer_is_checked_sent_back_once_and_returned_as_a_value() -> None:
    model = ScriptedModel(['{"city": "Oslo"}', 'Here it is:\n```json\n{"city": "Oslo", "degrees": 20}\n```'])
    result = Agent(model, output=Forecast).run_sync("Oslo?")
    assert result.output == Forecast(city="Oslo", degrees=20)
    assert "degrees" in model.requests[1].entries[-1].text


def test_fifty_parallel_calls_keep_their_order_and_sequential_tools_never_overlap() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def enter(change: int) -> None:
        nonlocal running, most
        with lock:
            running += change
            most = max(most, running)

    @tool(effect="read", sequential=True)
    def alone(number: int) -> int:
        """Runs alone."""
        enter(1)
        enter(-1)
        return number

    model = ScriptedModel(
        [
            calls(*(call("add", a=i, b=0) for i in range(50))),
            calls(*(call("alone", number=i) for i in range(20))),
            "Done.",
        ]
    )
    result = Agent(model, tools=[add, alone]).run_sync("Go")
    assert [text for _, text in results(result.entries)] == [str(i) for i in (*range(50), *range(20))]
    assert most == 1


def test_a_tool_may_use_its_context() -> None:
    seen: list[ToolContext] = []

    @tool(effect="idempotent")
    def record(what: str, context: ToolContext) -> str:
        """Record something."""
        seen.append(context)
        context.progress("half way")
        return "ok"

    async def story() -> list[Event]:
        model = ScriptedModel([calls(call("record", what="x")), "Done."])
        async with Agent(model, tools=[record], name="clerk").stream("Go") as run:
            return [event async for event in run]

    events = asyncio.run(story())
    assert [event.text for event in events if isinstance(event, ToolProgress)] == ["half way"]
    assert (seen[0].agent, seen[0].seq, len(seen[0].key)) == ("clerk", 3, 64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "  "}, "the task is empty"),
        ({"task": None}, "nothing to do"),
        ({"task": "x", "session": "s", "history": [{"role": "user", "content": "x"}]}, "either session"),
    ],
)
def test_a_run_that_cannot_make_sense_is_refused_before_it_starts(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Agent(ScriptedModel([])).run_sync(**arguments)


def test_mistakes_in_a_definition_raise_when_the_agent_is_defined() -> None:
    with pytest.raises(ToolDefinitionError, match="add"):
        Agent(ScriptedModel([]), tools=[add, add])


def test_sync_calls_work_inside_a_running_loop_and_from_many_threads_on_one_background_thread() -> None:
    agent = Agent(ScriptedModel([Reply(text="ok")] * 41), tools=[add])

    async def notebook() -> str:
        return agent.run_sync("from inside a loop").text

    assert asyncio.run(notebook()) == "ok"
    texts: list[str] = []

    def work() -> None:
        texts.extend(agent.run_sync("from a thread").text for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["ok"] * 40
    assert sum(thread.name == "glassloop" for thread in threading.enumerate()) == 1


def test_run_sync_inside_an_async_tool_on_the_background_loop_is_refused() -> None:
    inner = Agent(ScriptedModel(["inner"]))

    @tool(effect="read")
    async def nested() -> str:
        """Ask another agent, the wrong way."""
        return inner.run_sync("hi").text

    result = Agent(ScriptedModel([calls(call("nested")), "done"]), tools=[nested]).run_sync("go")
    [(state, text)] = results(result.entries)
    assert state == "error"
    assert "await agent.run" in text


def test_stream_sync_gives_the_events_and_the_result() -> None:
    agent = Agent(
        ScriptedModel([calls(call("add", a=1, b=2)), "It is 3.", ConnectionLost("gone")]), tools=[add]
    )
    with agent.stream_sync("1 + 2?") as run:
        text = "".join(event.text for event in run if isinstance(event, TextDelta))
    assert text == run.result.text == "It is 3."
    with agent.stream_sync("again") as run, pytest.raises(ConnectionLost):
        list(run)


def test_context_variables_of_the_caller_reach_its_tools() -> None:
    from contextvars import ContextVar

    who: ContextVar[str] = ContextVar("who", default="nobody")

    @tool(effect="read")
    def whoami() -> str:
        """Who asks."""
        return who.get()

    who.set("Ann")
    result = Agent(ScriptedModel([calls(call("whoami")), "done"]), tools=[whoami]).run_sync("go")
    assert results(result.entries) == [("ok", "Ann")]


def test_a_run_that_nobody_can_approve_now_is_suspended_and_goes_on_when_its_session_is_run_again() -> None:
    ran = []

    @tool(approve=True)
    def wipe(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return "gone"

    answers = iter([None, True])
    model = ScriptedModel([calls(call("wipe", path="a")), "Done."])
    agent = Agent(model, tools=[wipe], approve=lambda verdict: next(answers))
    waiting = agent.run_sync("Wipe a")
    assert (waiting.stop_reason, ran) == ("waiting_approval", [])
    done = agent.run_sync(None, session=waiting.session)
    assert (done.text, done.run_id, ran) == ("Done.", waiting.run_id, ["a"])
    assert len(model.requests) == 2


def test_a_new_task_on_a_suspended_session_closes_what_was_waiting() -> None:
    @tool(approve=True)
    def wipe(path: str) -> str:
        """Delete a file."""
        raise AssertionError("must not run")

    model = ScriptedModel([calls(call("wipe", path="a")), "As you like."])
    agent = Agent(model, tools=[wipe], approve=lambda verdict: None)
    waiting = agent.run_sync("Wipe a")
    result = agent.run_sync("Never mind", session=waiting.session)
    assert result.text == "As you like."
    assert [state for state, _ in results(result.entries)] == ["refused"]


@pytest.mark.parametrize(("effect", "outcome"), [("read", 2), ("idempotent", 2), ("once", 1)])
def test_after_a_crash_in_a_tool_its_effect_decides_whether_it_runs_again(effect: Any, outcome: int) -> None:
    """The process is killed between the intents and the results: the journal is left as it then was."""
    journal = MemoryJournal()
    keys: list[str] = []

    @tool(effect=effect)
    def act(context: ToolContext) -> str:
        """Do it."""
        keys.append(context.key)
        return "done"

    model = ScriptedModel([calls(call("act")), "Fine."])
    agent = Agent(model, tools=[act], journal=journal)
    first = agent.run_sync("Go")
    [run_id] = journal.records
    journal.records[run_id] = [
        one for one in journal.records[run_id] if not isinstance(one.value, ToolResult) and one.seq < 4
    ]
    journal._suspended[first.session.id] = run_id
    model.script = ["After the crash."]
    model.__post_init__()
    again = agent.run_sync(None, session=first.session)
    assert len(keys) == outcome
    assert len(set(keys)) == 1
    if effect == "once":
        assert again.stop_reason == "needs_review"
        closed = agent.run_sync("Go on", session=first.session)
        assert [state for state, _ in results(closed.entries)] == ["unknown"]
    else:
        assert again.text == "After the crash."


def test_a_conversation_in_memory_lives_as_long_as_its_session_is_held() -> None:
    agent = Agent(ScriptedModel(["one", "two"] * 2))
    held = agent.run_sync("x").session
    gc.collect()
    before = sum(isinstance(one, MemoryJournal) for one in gc.get_objects())
    del held
    gc.collect()
    assert sum(isinstance(one, MemoryJournal) for one in gc.get_objects()) == before - 1
    agent.run_sync("a", session="named")
    assert len(agent.run_sync("b", session="named").messages) == 4


def test_the_name_of_a_tool_is_no_tool_and_the_error_says_how_it_is_loaded() -> None:
    for tools in (["calculator"], "calculator"):
        with pytest.raises(ToolDefinitionError, match=r"tools=load\('calculator'\)"):
            Agent(ScriptedModel(["Hi"]), tools=tools)  # type: ignore[arg-type]


@pytest.mark.parametrize("line", [[call("add", a=1, b=2)], call("add", a=1, b=2), 3])
def test_a_line_that_no_script_can_have_is_said_with_its_number(line: object) -> None:
    with pytest.raises(ConfigError, match="line 2 of the script is of the type"):
        ScriptedModel(["Hi", line])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="a function of the script gave"):
        Agent(ScriptedModel([lambda request: line])).run_sync("Hi")  # type: ignore[arg-type, return-value]
