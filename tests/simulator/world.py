"""Simulated processes that run real agents on one session, and the outside: what really happened, as only it can know.

Each wait of a process is a point at which it may be killed, stopped like by SIGSTOP, or delayed. The real `Agent`,
`Driver` and `Loop` run; the model, the tools, the clock, the person and (mostly) the disk are simulated.
"""

import asyncio
import contextvars
import random
from dataclasses import dataclass, field
from functools import cache

from tests.simulator.sendable import problems
from tests.simulator.stores import Disk

from glassloop import Agent
from glassloop.core.entries import Reply, ToolCall, ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.core.events import TextDelta
from glassloop.core.journal import SUSPENDED, Session
from glassloop.core.resolving import Done, GiveUp, Retry
from glassloop.tools.context import ToolContext
from glassloop.tools.tool import tool

TASK = "Do it all."


class Killed(BaseException):
    """The process is no more: whatever it still tries has no effect."""


@dataclass(frozen=True)
class Planned:
    """One call of the plan."""

    effect: str
    asks: bool = False


def name_of(planned):
    return f"{planned.effect}{'_asking' if planned.asks else ''}"


@dataclass
class Outside:
    """What happened, in order, as `(what, process, ...)`; the effects by key; and what a person was told."""

    log: list = field(default_factory=list)
    applied: dict = field(default_factory=dict)

    def note(self, *what):
        self.log.append(what)

    def of(self, kind):
        return [(place, *one[1:]) for place, one in enumerate(self.log) if one[0] == kind]


class Process:
    """One simulated process. `schedule` says at each point what befalls it: None, "kill", "stop" or seconds."""

    def __init__(self, world, name, *, faults=True, take_over=False):
        self.world, self.name, self.faults = world, name, faults
        self.alive = True
        self.taken_over = False
        self._go = None
        self.run = None
        self.journal = Fragile(self, world.store.journal(self, take_over=take_over))

    async def point(self, what):
        """Whoever passes here may not come out on the other side."""
        self._check()
        befalls = self.world.befalls(self, what) if self.faults else None
        if befalls == "kill":
            self.kill()
        elif befalls == "stop" and self._go is None:
            self.world.outside.note("stopped", self.name)
            self._go = asyncio.Event()
        elif befalls == "cancel" and self.run is not None:
            self.world.outside.note("cancelled", self.name)
            self.run.cancel()
        elif isinstance(befalls, float):
            await self.world.wait(befalls)
        while self._go is not None:  # whatever it was doing stands still
            await self._go.wait()
        self._check()

    def kill(self):
        self.alive = False
        self.world.outside.note("killed", self.name)
        self.journal.inner.abandon()
        self.wake()

    def wake(self):
        if self._go is not None:
            self._go.set()
            self._go = None

    @property
    def stopped(self):
        return self._go is not None

    def _check(self):
        if not self.alive:
            raise Killed

    async def work(self, task):
        """Run the agent once. Gives its result; None if the process died, or did not get the session."""
        _acting.set(self)
        agent = Agent(
            Model(self),
            tools=[_tool(name) for name in self.world.names],
            journal=self.journal,
            approve=self.world.person_allows,
            review=self.world.person_reviews,
            name="worker",
        )
        try:
            self.run = agent.stream(task, session=Session("session1", self.journal))
            self.run.unheard()
            async with self.run as run:
                result = await run.wait()
        except Killed:
            return None
        except SessionError as error:
            if self.alive:
                self.world.outside.note("refused", self.name, error.kind)
            return None
        finally:
            died, self.alive = not self.alive, False
        if died:
            return None
        self.world.outside.note("told", self.name, result.stop_reason, result.run_id)
        return result


_acting = contextvars.ContextVar("the process that acts")


@cache
def _tool(name):
    """Made once: reading signatures would take most of a simulation's time."""
    effect, _, asks = name.partition("_")

    async def act(step: int, number: int, context: ToolContext) -> str:
        """Act on the outside."""
        process = _acting.get()
        outside = process.world.outside
        await process.point("tool starts")
        outside.note("started", process.name, effect, context.key, process.taken_over)
        await process.point("tool runs")
        if effect == "once" or context.key not in outside.applied:
            outside.note("applied", process.name, effect, context.key)
            outside.applied[context.key] = outside.applied.get(context.key, 0) + 1
        await process.point("tool ends")
        return f"{name} {step}.{number}"

    return tool(name=name, effect=effect, approve=bool(asks), timeout=None)(act)


class Fragile:
    """A journal with a point before and after everything that it does."""

    def __init__(self, process, inner):
        self._process, self.inner = process, inner

    async def open(self, start):
        await self._process.point("before open")
        opened = await self.inner.open(start)
        self._process.world.claimed_by(self._process)
        await self._process.point("after open")
        return opened

    async def intend(self, run_id, intents):
        await self._process.point("before intend")
        await self.inner.intend(run_id, intents)
        self._note("intended", [one.key for one in intents])
        await self._process.point("after intend")

    async def commit(self, run_id, records):
        await self._process.point("before commit")
        await self.inner.commit(run_id, records)
        if self._process.world.chance.random() < 0.3:
            self.inner.flush()  # whoever writes may be quicker than it must
        urgent = [one for one in records if isinstance(one.value, (User, ToolResult))]
        if urgent:
            self._note("acknowledged", [(run_id, one.seq, type(one.value).__name__) for one in urgent])
        await self._process.point("after commit")

    async def decide(self, run_id, records):
        await self._process.point("before decide")
        await self.inner.decide(run_id, records)
        self._note("decided", [(run_id, one.seq, one.value) for one in records])
        await self._process.point("after decide")

    async def finish(self, end):
        await self._process.point("before finish")
        await self.inner.finish(end)
        await self._process.point("after finish")

    def _note(self, kind, what):
        self._process.world.outside.note(kind, self._process.name, what)


class Model:
    """Plays the plan: its next step is the number of its replies since the task. What it says differs each time."""

    name = "simulated"

    def __init__(self, process):
        self._process = process

    async def stream(self, request, recorder):
        world = self._process.world
        since = [one for one in request.entries if isinstance(one, (User, Reply))]
        step = (
            0
            if isinstance(since[-1], User)
            else len(since) - 1 - max(place for place, one in enumerate(since) if isinstance(one, User))
        )
        world.outside.note("asked", self._process.name, step, self._process.taken_over)
        wrong = problems(request.entries, request.tools)
        assert not wrong, f"sendable: {wrong}"
        yield TextDelta(f"Half of step {step}")
        await self._process.point("model answers")
        world.said += 1
        text = f"Step {step}, said for the {world.said}. time."
        if step >= len(world.plan):
            yield Reply(f"All done. {text}", finish_reason="stop")
            return
        turn = len([one for one in request.entries if isinstance(one, User)])
        made = tuple(
            ToolCall(f"call-{turn}-{step}-{number}", name_of(one), {"step": step, "number": number}, "{}")
            for number, one in enumerate(world.plan[step])
        )
        yield Reply(text, tool_calls=made, finish_reason="tool_calls")

    async def close(self):
        """Nothing to close."""


class World:
    """The plan, the outside, the disk, a person, and chance. `second`: how long one lasts on the loop's clock."""

    def __init__(self, seed, plan, *, store=None, second=1.0):
        self.chance = random.Random(seed)
        self.plan = plan
        self.names = sorted({name_of(one) for step in plan for one in step})
        self.store = store or Disk()
        self.outside = Outside()
        self.processes = []
        self.said = 0
        self.points = 0
        self.patient = False
        self._second = second

    # ── chance ───────────────────────────────────────────────────────────

    def befalls(self, process, what):
        """Overridden by what an experiment wants."""
        self.points += 1

    async def wait(self, seconds):
        await asyncio.sleep(seconds * self._second)

    # ── people ───────────────────────────────────────────────────────────

    def person_allows(self, verdict):
        """Sometimes nobody is there; sometimes the answer is no."""
        if not self.patient and self.chance.random() < 0.3:
            return None
        return self.chance.random() < 0.8

    def person_reviews(self, unknown):
        """An honest person looks before answering, and does not say that something will not happen while it may."""
        if not self.patient and self.chance.random() < 0.4:
            return None
        if unknown.key in self.outside.applied:
            name, (step, number) = unknown.call.name, unknown.arguments.values()
            return self.chance.choice([Done(f"{name} {step}.{number}", "person"), GiveUp("person")])
        if any(one.alive and one.taken_over for one in self.processes):
            return GiveUp("person")
        return self.chance.choice([Retry("person"), GiveUp("person")])

    # ── processes ────────────────────────────────────────────────────────

    def process(self, **options):
        process = Process(self, f"p{len(self.processes)}", **options)
        self.processes.append(process)
        return process

    def claimed_by(self, process):
        for other in self.processes:
            if other is not process:
                other.taken_over = True

    def task(self):
        """What a person types: the task, or nothing where an unfinished run has it already."""
        run = self.store.open_run
        records = self.store.all_records()[run] if run else ()
        return None if any(isinstance(one.value, User) for one in records) else TASK

    async def to_the_end(self, most=60):
        """Without further faults: resume until the run is over. Gives why it stopped; None if it never does."""
        self.patient = True
        for other in self.processes:
            other.wake()
        await asyncio.sleep(0)
        for _ in range(most):
            result = await self.process(faults=False, take_over=True).work(self.task())
            if result is not None and result.stop_reason not in SUSPENDED:
                return result.stop_reason
        return None
