"""The four replaceable parts, each replaced by one's own: Model, Tools, Journal and Controller.

Run it: `python examples/four_parts.py`. No key, no network.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from glassloop import (
    Agent,
    MemoryJournal,
    ModelRequest,
    Reply,
    Text,
    Toolbox,
    ToolCall,
    ToolContext,
    ToolResult,
    tool,
)
from glassloop.core.journal import Record
from glassloop.core.loop import Loop
from glassloop.core.recording import Recorder
from glassloop.core.steps import Finish, Step
from glassloop.core.tools import ToolSpec, Verdict
from glassloop.tools.builtin import load


@tool(effect="read")
def now() -> str:
    """The time of day. Use it when the user asks what time it is."""
    return f"It is {datetime.now().astimezone():%H:%M}."


class RuleModel:
    """A model without a mind: it calls a tool for what it recognises, then reads the results out."""

    name = "rules"

    async def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Reply, None]:
        results = [entry.text for entry in request.entries if isinstance(entry, ToolResult)]
        if results or not request.tools:
            yield Reply(text=" ".join(results) or "I have nothing to say.")
            return
        question = request.entries[-1].text
        sum_ = re.search(r"[\d(][\d+\-*/(). ]+[\d)]", question)
        calls = [ToolCall("calc", "calculator", {"expression": sum_.group()})] if sum_ else []
        if "time" in question:
            calls.append(ToolCall("time", "now", {}))
        yield Reply(tool_calls=tuple(calls))

    async def close(self) -> None:
        """Nothing to release."""


class Audited:
    """Tools with a quota and an audit line around every execution. Preparing is passed through untouched."""

    def __init__(self, inner: Toolbox, quota: int) -> None:
        self.inner, self.quota = inner, quota

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self.inner.specs

    def prepare(self, call: ToolCall) -> Verdict:
        return self.inner.prepare(call)

    def is_sequential(self, name: str) -> bool:
        return self.inner.is_sequential(name)

    async def execute(self, verdict: Verdict, context: ToolContext) -> ToolResult:
        call = verdict.call
        if self.quota == 0:
            return ToolResult(call.id, call.name, (Text("The quota of this month is used up."),), "refused")
        self.quota -= 1
        result = await self.inner.execute(verdict, context)
        print(f"audit: {call.name}({dict(verdict.arguments)}) -> {result.state}")
        return result


class PrintingJournal(MemoryJournal):
    """A journal that can be watched while it is written."""

    async def commit(self, run_id: str, records: Sequence[Record]) -> None:
        print("journal:", ", ".join(f"{one.seq} {type(one.value).__name__}" for one in records))
        await super().commit(run_id, records)


class PoliteLoop(Loop):
    """A controller with an opinion of its own about how a run ends."""

    def next(self) -> Step:
        step = super().next()
        if isinstance(step, Finish) and step.stop_reason == "answered":
            return Finish(step.seq, "answered", f"{step.text} You are welcome.", step.mends)
        return step


def main() -> None:
    tools = Audited(Toolbox([*load("calculator"), now]), quota=2)
    agent = Agent(RuleModel(), tools=tools, journal=PrintingJournal(), controller=PoliteLoop)
    print(agent.run_sync("What is (15 + 27) * 3, and what time is it?").text)
    print(agent.run_sync("And 1 + 1?").text)


if __name__ == "__main__":
    main()
