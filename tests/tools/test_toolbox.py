"""Running a prepared call: results, failures, time limits, cancelling, threads, context."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from glassloop.core.entries import Text, ToolCall, ToolResult
from glassloop.core.errors import ToolDefinitionError
from glassloop.core.tools import Verdict
from glassloop.tools.tool import Tool, ToolContext, tool
from glassloop.tools.toolbox import Toolbox, Tools

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def made(function: Callable[..., Any], **options: Any) -> Tool:
    return Tool("work", "Work.", NOTHING, function, **options)


def call(name: str = "work", **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, arguments)


async def executed(box: Tools, asked: ToolCall, context: ToolContext | None = None) -> ToolResult:
    verdict = box.prepare(asked)
    assert verdict.outcome == "ready", verdict.text
    return await box.execute(verdict, context or ToolContext())


def run(function: Callable[..., Any], **options: Any) -> ToolResult:
    return asyncio.run(executed(Toolbox([made(function, **options)]), call()))


def in_both_kinds(function: Callable[[], Any]) -> list[Callable[[], Any]]:
    async def as_async() -> Any:
        return function()

    return [function, as_async]


def raising(error: BaseException) -> Callable[[], Any]:
    def work() -> Any:
        raise error

    return work


@pytest.mark.parametrize("kind", [0, 1], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such city: 北京"), "ValueError: no such city: 北京"),
        (KeyError("city"), "KeyError: 'city'"),
        (ValueError(), "ValueError"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration("done"), "StopIteration"),
        (MemoryError(), "MemoryError"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (ExceptionGroup("many", [ValueError("a"), OSError("b")]), "ValueError: a; OSError: b"),
        (
            type("Odd", (Exception,), {"__str__": lambda self: 1 / 0})(),
            "Odd: <Odd that cannot be shown: ZeroDivisionError>",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_tool_raises_is_a_short_error_result(kind: int, error: BaseException, text: str) -> None:
    result = run(in_both_kinds(raising(error))[kind])
    assert result.state == "error"
    assert text in result.text
    assert "Traceback" not in result.text


def test_a_tool_that_cancels_itself_fails_and_does_not_cancel_the_run() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    result = run(work)
    assert (result.state, "CancelledError" in result.text) == ("error", True)


def test_a_tool_that_told_itself_to_stop_and_returned_all_the_same_has_returned() -> None:
    async def work() -> str:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        return "paid"

    result = run(work)
    assert (result.state, result.text) == ("ok", "paid")


def test_sync_tools_run_in_threads_of_their_own_and_async_ones_on_the_loop() -> None:
    async def both() -> tuple[str, str]:
        async def here() -> str:
            return threading.current_thread().name

        box = Toolbox(
            [
                Tool("there", "x", NOTHING, lambda: threading.current_thread().name),
                Tool("here", "x", NOTHING, here),
            ]
        )
        return (await executed(box, call("there"))).text, (await executed(box, call("here"))).text

    there, here = asyncio.run(both())
    assert here == threading.current_thread().name
    assert there != here


def test_a_plain_function_that_hands_out_a_coroutine_gets_it_awaited() -> None:
    async def inner() -> str:
        return "inner"

    assert run(lambda: inner()).text == "inner"  # noqa: PLW0108 (a plain function, on purpose)


def test_context_variables_are_seen_in_threads() -> None:
    who = contextvars.ContextVar("who", default="nobody")

    async def main() -> str:
        who.set("Ada")
        return (await executed(Toolbox([made(who.get)]), call())).text

    assert asyncio.run(main()) == "Ada"


def test_the_context_reaches_the_tool_and_its_progress_comes_back_on_the_loop() -> None:
    heard: list[tuple[str, str]] = []

    @tool
    def note(text: str, context: ToolContext) -> str:
        """Note it."""
        context.progress("half way")
        return f"{text} {context.key} {context.seq}"

    context = ToolContext(
        "r", 7, "c1", "key-7", "main", lambda text: heard.append((text, threading.current_thread().name))
    )
    result = asyncio.run(executed(Toolbox([note]), call("note", text="hi"), context))
    assert result.text == "hi key-7 7"
    assert heard == [("half way", threading.current_thread().name)]


def test_a_raw_tool_may_ask_for_the_context_too() -> None:
    def work(context: ToolContext, **values: Any) -> str:
        return context.call_id + str(values)

    raw = Tool("work", "Work.", {"type": "object", "properties": {"a": {"type": "integer"}}}, work)
    assert asyncio.run(executed(Toolbox([raw]), call(a="1"), ToolContext(call_id="c9"))).text == "c9{'a': 1}"


# ── time ───────────────────────────────────────────────────────────────────────────────────────────


async def sleep_long() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("effect", "state", "words"),
    [
        ("once", "unknown", "outcome unknown, check"),
        ("read", "error", "given up"),
        ("idempotent", "error", "given up"),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_out_of_time_is_unknown_for_what_may_have_happened_and_an_error_for_the_rest(
    kind: str, effect: Any, state: str, words: str
) -> None:
    gate = threading.Event()
    result = run(gate.wait if kind == "sync" else sleep_long, effect=effect, timeout=0.05)
    gate.set()
    assert (result.state, words in result.text, "0.05 seconds" in result.text) == (state, True, True)
    assert result.seconds > 0


def test_without_a_limit_a_tool_takes_the_time_that_it_needs() -> None:
    assert run(lambda: time.sleep(0.05) or "done", timeout=None).text == "done"


def test_an_async_tool_that_refuses_to_be_cancelled_is_let_go() -> None:
    async def main() -> str:
        release = asyncio.Event()

        async def stubborn() -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        result = await executed(Toolbox([made(stubborn, timeout=0.05)]), call())
        release.set()
        await asyncio.sleep(0)
        return result.state

    assert asyncio.run(main()) == "unknown"


def test_an_async_tool_may_answer_with_what_it_has_when_its_time_is_over() -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "half of it"
        return "all of it"

    result = run(work, timeout=0.05)
    assert (result.state, result.text) == ("ok", "half of it")


def test_cancelling_stops_an_async_tool_and_lets_it_clean_up() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")

    async def main() -> None:
        box = Toolbox([made(work)])
        task = asyncio.create_task(executed(box, call()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert cleaned == ["yes"]


def test_a_hung_sync_tool_neither_starves_others_nor_keeps_the_program_from_ending() -> None:
    script = """
        import asyncio, threading, time
        from glassloop.core.entries import ToolCall
        from glassloop.tools.tool import Tool, ToolContext
        from glassloop.tools.toolbox import Toolbox
        nothing = {"type": "object", "properties": {}}
        box = Toolbox([
            Tool("hang", "x", nothing, threading.Event().wait, timeout=0.1),
            Tool("quick", "x", nothing, lambda: "quick"),
        ])
        async def one(name):
            return (await box.execute(box.prepare(ToolCall("c", name, {})), ToolContext())).state
        async def main():
            print(await asyncio.gather(*map(one, ["hang"] * 40 + ["quick"] * 2)))
        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("'unknown'") == 40
    assert done.stdout.count("'ok'") == 2


def test_three_hundred_calls_leave_no_task_and_no_thread_behind() -> None:
    async def main() -> int:
        box = Toolbox([made(lambda: "ok")])
        results = await asyncio.gather(*(executed(box, call()) for _ in range(300)))
        assert {result.text for result in results} == {"ok"}
        return len(asyncio.all_tasks())

    before = threading.active_count()
    assert asyncio.run(main()) == 1
    for thread in threading.enumerate():
        if thread.name == "glassloop tool":
            thread.join(10)
    assert threading.active_count() == before
    gc.collect()


def test_a_sync_tool_that_ends_after_its_loop_is_closed_harms_nobody() -> None:
    gate = threading.Event()
    run(gate.wait, timeout=0.01)
    gate.set()
    for thread in threading.enumerate():
        if thread.name == "glassloop tool":
            thread.join(10)
            assert not thread.is_alive()


# ── what does not run ──────────────────────────────────────────────────────────────────────────────


@tool
def get_weather(city: str) -> str:
    """Current weather in a city."""
    return city


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "get_weather_forecast",
            "no tool `get_weather_forecast`, so nothing ran. Did you mean `get_weather`? Available: get_weather.",
        ),
        ("", "names no tool, so nothing ran. Available: get_weather."),
        (" \n", "names no tool"),
        ("../../etc\n\x1b[2J", "`../../etc\\x0a\\x1b[2J`"),
        ("x" * 10_000, "x…`"),
    ],
    ids=lambda value: value[:20],
)
def test_an_unknown_tool_is_told_and_never_guessed(name: str, words: str) -> None:
    verdict = Toolbox([get_weather]).prepare(call(name, city="Oslo"))
    assert verdict.outcome == "problem"
    assert words in verdict.text
    assert len(verdict.text) < 400


def test_a_call_with_a_problem_stays_a_problem_even_if_its_arguments_fit() -> None:
    cut_off = ToolCall("c1", "get_weather", {"city": "Oslo"}, problem="It was cut off.")
    box = Toolbox([get_weather])
    verdict = box.prepare(cut_off)
    assert (verdict.outcome, verdict.text) == ("problem", "It was cut off.")
    assert asyncio.run(box.execute(verdict, ToolContext())) == ToolResult(
        "c1", "get_weather", (Text("It was cut off."),), "error", pytest.approx(0, abs=1)
    )


def test_preparing_has_no_effect_and_gives_the_same_verdict_again() -> None:
    ran: list[int] = []
    box = Toolbox([made(lambda: ran.append(1))])
    assert box.prepare(call()) == box.prepare(call())
    assert ran == []


def test_two_tools_of_one_name_are_refused_with_both_places() -> None:
    def other(city: str) -> str:
        """Weather, again."""
        return city

    with pytest.raises(ToolDefinitionError, match="Two tools are named `get_weather`") as caught:
        Toolbox([get_weather, tool(name="get_weather")(other)])
    assert str(caught.value).count(__file__) == 2


# ── verdicts that come back from a journal ─────────────────────────────────────────────────────────


def stored(verdict: Verdict) -> Verdict:
    return Verdict(
        verdict.call, verdict.outcome, verdict.arguments, verdict.effect, verdict.text, verdict.tool_hash
    )


def test_a_stored_verdict_runs_with_the_values_that_were_approved() -> None:
    box = Toolbox([get_weather])
    verdict = stored(box.prepare(call("get_weather", city="Oslo")))
    assert asyncio.run(box.execute(verdict, ToolContext())).text == "Oslo"


def test_a_stored_verdict_of_a_tool_that_has_changed_does_not_run() -> None:
    verdict = stored(Toolbox([get_weather]).prepare(call("get_weather", city="Oslo")))
    changed = tool(name="get_weather", description="Send a mail.")(get_weather.function)
    for box in (Toolbox([changed]), Toolbox([])):
        assert asyncio.run(box.execute(verdict, ToolContext())).state == "refused"


def test_a_toolbox_is_a_tools_and_can_be_wrapped() -> None:
    class Quota:
        def __init__(self, inner: Tools, left: int) -> None:
            self.inner, self.left = inner, left
            self.specs = inner.specs
            self.prepare, self.is_sequential = inner.prepare, inner.is_sequential

        async def execute(self, verdict: Verdict, context: ToolContext) -> ToolResult:
            if self.left == 0:
                return ToolResult(verdict.call.id, verdict.call.name, (Text("quota used up"),), "refused")
            self.left -= 1
            return await self.inner.execute(verdict, context)

    async def main() -> list[str]:
        box: Tools = Quota(Toolbox([get_weather]), 1)
        calls: list[Awaitable[ToolResult]] = [
            executed(box, call("get_weather", city="Oslo")) for _ in range(2)
        ]
        return [(await each).text for each in calls]

    assert asyncio.run(main()) == ["Oslo", "quota used up"]


def test_sequential_is_the_tools_own_word() -> None:
    box = Toolbox([made(lambda: 1, sequential=True), get_weather])
    assert [box.is_sequential(name) for name in ("work", "get_weather", "unknown")] == [True, False, False]
