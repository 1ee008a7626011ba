"""Parts of one's own that fail: the run ends with that error and its result, nothing hangs, the session is free."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from glassloop import (
    Agent,
    ConfigError,
    Limits,
    MemoryJournal,
    Reply,
    Run,
    ScriptedModel,
    Toolbox,
    ToolContext,
    background,
    tool,
)
from glassloop.core.entries import Text, ToolCall, ToolResult
from glassloop.core.events import Finished
from glassloop.core.journal import Record, RunStart, Session
from glassloop.core.loop import Loop
from glassloop.core.tools import Verdict
from glassloop.models.scripted import Wait, call, calls


@tool(effect="once", approve=True)
def mail() -> str:
    """Send a mail. Use it when asked to."""
    return "sent"


@tool(effect="read")
async def slow() -> str:
    """Take long. Use it when asked to."""
    await asyncio.sleep(60)
    return "late"


@tool(effect="read")
def quick() -> str:
    """Take no time. Use it when asked to."""
    return "done"


def fail(*_: object) -> Any:
    raise ValueError("it broke")


async def fail_later(*_: object) -> Any:
    raise ValueError("it broke")


class Model:
    """Says half a word, then raises."""

    name = "mine"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def stream(self, *_: object) -> AsyncGenerator[Any, None]:
        raise self.error
        yield

    async def close(self) -> None:
        """There is nothing to release."""


def a_journal_that_fails_in(method: str) -> MemoryJournal:
    journal = MemoryJournal()
    return type("Failing", (MemoryJournal,), {method: fail_later})(journal.records, journal.intents)


def a_controller_that_fails_in(method: str) -> type[Loop]:
    made: Any = property(fail, fail_quietly) if method == "spent" else fail
    return type("Failing", (Loop,), {method: made})


def fail_quietly(*_: object) -> None:
    """A setter: the loop sets what it has spent."""


def agent(**parts: Any) -> Agent[str]:
    given = {"model": ScriptedModel([calls(call("mail"), call("quick")), "ok"]), "approve": lambda _: True}
    return Agent(**{**given, "tools": [mail, quick], **parts})


def sync_tasks() -> set[asyncio.Task[Any]]:
    async def look() -> set[asyncio.Task[Any]]:
        return asyncio.all_tasks() - {asyncio.current_task()}

    return background.submit(look()).result(10)


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_whatever_a_model_or_a_callback_raises_reaches_the_caller_with_the_result(
    kind: type[BaseException],
) -> None:
    def approve(_: object) -> bool:
        raise kind("it broke")

    for broken in (agent(model=Model(kind("it broke"))), agent(approve=approve)):
        with pytest.raises(kind) as caught:
            broken.run_sync("Go.", session=Session("s", broken.journal))
        assert caught.value.result.stop_reason == "failed"  # type: ignore[attr-defined]
        again = Agent(ScriptedModel(["still here"])).run_sync("More.", session=Session("s", broken.journal))
        assert again.text == "still here"
        assert not sync_tasks()


@pytest.mark.parametrize("method", ["next", "feed", "spent", "entries"])
def test_a_failing_controller_ends_the_run_and_its_events(method: str) -> None:
    made = a_controller_that_fails_in(method)
    if method == "entries":
        made = type("Failing", (Loop,), {"entries": property(fail, fail_quietly)})
    broken = agent(controller=made)
    seen: list[object] = []
    with (
        pytest.raises((ValueError, TypeError)),
        broken.stream_sync("Go.", session=Session("s", broken.journal)) as run,
    ):
        seen.extend(event for event in run if isinstance(event, Finished))
    free = Agent(ScriptedModel(["free"]), journal=broken.journal).run_sync("More.", session="s")
    assert free.text == "free"


def test_a_controller_that_cannot_be_made_leaves_the_session_as_it_was() -> None:
    broken = agent(controller=fail)
    with pytest.raises(ValueError, match="it broke"):
        broken.run_sync("Go.", session="s")
    assert (
        Agent(ScriptedModel(["free"]), journal=broken.journal).run_sync("More.", session="s").text == "free"
    )


def test_a_step_that_is_none_is_an_error_and_no_endless_loop() -> None:
    class Lost(Loop):
        def next(self) -> Any:
            step = super().next()
            return "what now?" if self.entries else step

    with pytest.raises((TypeError, AttributeError)):
        agent(controller=Lost).run_sync("Go.")


@pytest.mark.parametrize("method", ["open", "commit", "intend", "decide", "finish"])
def test_a_failing_journal_ends_the_run_with_its_error(method: str) -> None:
    with pytest.raises(ValueError, match="it broke"):
        agent(journal=a_journal_that_fails_in(method)).run_sync("Go.")
    assert not sync_tasks()


def test_calls_that_run_when_a_result_cannot_be_written_down_are_stopped() -> None:
    class Full(MemoryJournal):
        async def commit(self, run_id: str, records: Sequence[Record]) -> None:
            if any(isinstance(record.value, ToolResult) for record in records):
                raise OSError("disk full")
            await MemoryJournal.commit(self, run_id, records)

    broken = Agent(ScriptedModel([calls(call("slow"), call("quick"))]), tools=[slow, quick], journal=Full())
    with pytest.raises(OSError, match="disk full"):
        broken.run_sync("Go.")
    assert not sync_tasks()


def test_a_run_that_breaks_off_leaves_a_true_result_for_each_call() -> None:
    broken = agent(approve=fail)
    with pytest.raises(ValueError, match="it broke") as caught:
        broken.run_sync("Go.")
    entries = caught.value.result.entries  # type: ignore[attr-defined]
    assert [entry.state for entry in entries if isinstance(entry, ToolResult)] == ["refused", "refused"]


@pytest.mark.parametrize("given", ["no", 1, "yes", [False]])
def test_only_true_is_a_yes(given: Any) -> None:
    result = agent(approve=lambda _: given).run_sync("Go.")
    first = next(entry for entry in result.entries if isinstance(entry, ToolResult))
    assert (first.state, "no clear yes" in first.text) == ("refused", True)


class Wrapper(Toolbox):
    """Tools wrapped by somebody: each method may be replaced."""


@pytest.mark.parametrize(
    ("method", "made", "told"),
    [
        ("prepare", lambda *_: None, "prepare() of the tools gave NoneType"),
        ("prepare", fail, "ValueError: it broke"),
        ("execute", fail_later, "ValueError: it broke"),
    ],
)
def test_what_a_wrapper_of_tools_does_wrong_is_that_calls_failure(
    method: str, made: Callable[..., Any], told: str
) -> None:
    wrapper = type("Wrong", (Wrapper,), {method: made})([quick])
    result = Agent(ScriptedModel([calls(call("quick")), "ok"]), tools=wrapper).run_sync("Go.")
    answered = [entry for entry in result.entries if isinstance(entry, ToolResult)]
    assert len(answered) == 1
    assert told in answered[0].text


def test_who_prints_a_tools_context_prints_nothing_of_the_conversation() -> None:
    class Curious(Toolbox):
        async def execute(self, verdict: Verdict, context: ToolContext) -> ToolResult:
            raise LookupError(f"nothing known of {context}")

    journal = MemoryJournal()
    Agent(ScriptedModel(["Noted."]), journal=journal).run_sync("The word is xyzzy.")
    curious = Agent(ScriptedModel([calls(call("quick")), "Done."]), tools=Curious([quick]), journal=journal)
    result = next(one for one in curious.run_sync("Go").entries if isinstance(one, ToolResult))
    assert result.text.startswith("LookupError: nothing known of ToolContext(")
    assert "xyzzy" not in result.text
    assert len(result.text) < 400


def test_a_wrapper_that_forgets_to_return_runs_its_call_once_and_a_foreign_result_is_made_this_calls() -> (
    None
):
    ran: list[str] = []

    class Wrong(Toolbox):
        async def execute(self, verdict: Verdict, context: Any) -> Any:
            ran.append(verdict.call.name)
            return None if len(ran) == 1 else ToolResult("other", "other", (Text("x"),))

    wrong = Wrong([quick])
    model = ScriptedModel([calls(call("quick")), calls(call("quick")), "ok"])
    result = Agent(model, tools=wrong).run_sync("Go.")
    replies = [entry for entry in result.entries if isinstance(entry, Reply) and entry.tool_calls]
    answered = [entry for entry in result.entries if isinstance(entry, ToolResult)]
    assert len(ran) == 2
    assert [one.call_id for one in answered] == [reply.tool_calls[0].id for reply in replies]
    assert "not a ToolResult" in answered[0].text


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("is_async", [True, False])
def test_nothing_that_a_tool_raises_can_end_the_background_loop(
    kind: type[BaseException], is_async: bool
) -> None:
    def bad() -> str:
        """Fail. Use it when asked to."""
        raise kind("stop")

    async def bad_async() -> str:
        raise kind("stop")

    bad_async.__doc__ = bad.__doc__
    chosen = bad_async if is_async else bad
    broken = Agent(ScriptedModel([calls(call(chosen.__name__)), "ok"]), tools=[chosen])
    assert broken.run_sync("Go.").text == "ok"


# ── what people hold ─────────────────────────────────────────────────────────────────────────────────


def test_iterating_once_more_ends_at_once_and_two_readers_both_end() -> None:
    async def read() -> None:
        async with agent().stream("Go.") as run:
            first, second = await asyncio.gather(*[count(run), count(run)])
            assert first + second > 1
            assert [event async for event in run] == []

    async def count(run: Any) -> int:
        return len([event async for event in run])

    asyncio.run(asyncio.wait_for(read(), 10))
    with agent().stream_sync("Go.") as run:
        assert len(list(run)) > 1
        assert list(run) == []


def test_a_run_that_was_not_started_or_is_started_twice_says_so() -> None:
    run = agent().stream_sync("Go.")
    for look in (lambda: list(run), lambda: run.result):
        with pytest.raises(ConfigError, match="has not started"):
            look()
    with run, pytest.raises(ConfigError, match="started already"), run:
        pass


def test_a_run_that_is_over_gives_its_result_at_once_and_in_any_event_loop() -> None:
    async def over() -> Run:
        async with Agent(ScriptedModel(["Hi."])).stream("Go") as run:
            await run.wait()
        async with asyncio.timeout(0):
            assert (await run.wait()).text == "Hi."
        return run

    assert asyncio.run(asyncio.run(over()).wait()).text == "Hi."


def test_a_cancel_that_comes_while_the_session_is_opened_is_not_lost() -> None:
    class Slow(MemoryJournal):
        async def open(self, start: RunStart) -> Any:
            await asyncio.sleep(0.05)
            return await MemoryJournal.open(self, start)

    async def cancelled_early() -> str:
        run = agent(journal=Slow()).stream("Go.")
        asyncio.get_running_loop().call_later(0.01, run.cancel)
        async with run:
            return (await run.wait()).stop_reason

    assert asyncio.run(cancelled_early()) == "cancelled"


def test_a_cancel_from_within_the_model_does_not_tear_what_is_written_down() -> None:
    torn: list[BaseException] = []

    class Suspending(MemoryJournal):
        async def commit(self, run_id: str, records: Sequence[Record]) -> None:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:
                torn.append(error)
                raise
            await MemoryJournal.commit(self, run_id, records)

    async def go() -> str:
        held: list[Any] = []

        def answer(_: object) -> str:
            held[0].cancel()
            return "said all the same"

        async with agent(model=ScriptedModel([answer]), journal=Suspending()).stream("Go.") as run:
            held.append(run)
            return (await run.wait()).stop_reason

    assert asyncio.run(go()) == "cancelled"
    assert not torn


@pytest.mark.parametrize("task", [5, b"x", [], "", " ", [""], Text(""), [5], {}])
def test_what_is_no_task_is_refused(task: Any) -> None:
    with pytest.raises(ConfigError, match="task"):
        agent().stream(task)


@pytest.mark.parametrize("history", ["hello", 5, {"role": "user"}, [None], ["x"], [{"role": 5}], [object()]])
def test_what_is_no_history_is_refused(history: Any) -> None:
    with pytest.raises(ConfigError, match="history="):
        agent().stream("Go.", history=history)


@pytest.mark.parametrize("settings", [[1], "abc", {5: 1}])
def test_what_are_no_settings_is_refused(settings: Any) -> None:
    with pytest.raises(ConfigError, match="settings="):
        agent(settings=settings)


@pytest.mark.parametrize("value", ["3", [], float("nan"), True, -1])
@pytest.mark.parametrize("name", ["rounds", "calls", "tokens", "cost", "seconds", "repeats"])
def test_what_is_no_limit_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        Limits(**{name: value})


def test_no_limit_on_repeats_is_no_limit() -> None:
    model = ScriptedModel([*[calls(call("quick"))] * 8, "ok"])
    assert agent(model=model, limits=Limits(repeats=None)).run_sync("Go.").stop_reason == "answered"


# ── structured answers ───────────────────────────────────────────────────────────────────────────────


class Snippet(BaseModel):
    code: str


def test_a_code_fence_inside_a_json_answer_is_part_of_it() -> None:
    text = '{"code": "```py\\nprint()\\n```"}'
    result = Agent(ScriptedModel([text]), output=Snippet).run_sync("Write it.")
    assert result.output == Snippet(code="```py\nprint()\n```")


@pytest.mark.parametrize("output", [5, asyncio.Task, Callable, type])
def test_an_output_that_json_cannot_be_read_as_is_refused_when_the_agent_is_defined(output: Any) -> None:
    with pytest.raises(ConfigError, match="output="):
        Agent(ScriptedModel([]), output=output)


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reply_with_thousands_of_calls_costs_no_square() -> None:
    made = 0

    class Counting(Loop):
        def _call_tools(self) -> Any:
            nonlocal made
            step = super()._call_tools()
            made += len(step.operations)
            return step

    many = tuple(ToolCall(f"c{i}", "quick", {}, "{}") for i in range(3000))
    model = ScriptedModel([Reply(tool_calls=many), "ok"])
    assert agent(model=model, controller=Counting).run_sync("Go.").text == "ok"
    assert made <= 2 * len(many)


def test_a_run_that_is_entered_and_forgotten_is_not_torn_apart(capfd: pytest.CaptureFixture[str]) -> None:
    async def forget() -> None:
        for _ in range(5):
            run = agent(model=ScriptedModel([Wait(asyncio.Event()), "never"])).stream("Go.")
            await run.__aenter__()
            await anext(aiter(run))
            del run
            gc.collect()
        await asyncio.sleep(0.01)

    asyncio.run(forget())
    gc.collect()
    assert capfd.readouterr().err == ""


def test_a_program_that_ran_something_ends_without_a_warning() -> None:
    program = (
        "from glassloop import Agent, ScriptedModel\nprint(Agent(ScriptedModel(['ok'])).run_sync('Go.').text)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("ok\n", "")
