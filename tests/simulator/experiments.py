"""The experiments: every crash point of a run, and random schedules by a seed."""

import asyncio
import random

from tests.simulator import clock
from tests.simulator.checker import check
from tests.simulator.world import Planned, World

EFFECTS = ("read", "idempotent", "once")


class StruckAt(World):
    """One process runs, and is struck at its `n`th point: killed or cancelled. The next ones run it to the end."""

    def __init__(self, n, plan, *, quick_disk, strikes="kill", **options):
        super().__init__(n * 2 + quick_disk, plan, **options)
        self._at, self._strikes = n, strikes
        if not quick_disk:  # nothing is written before it must be
            self.chance.random = lambda: 0.99

    def befalls(self, process, what):
        self.points += 1
        return self._strikes if self.points == self._at else None


async def struck(world):
    """Gives False when the run was over before it came to that point."""
    result = await world.process().work(world.task())
    if result is None:
        check(world, await world.to_the_end())
    else:
        check(world, result.stop_reason)
    return any(one[0] in ("killed", "cancelled") for one in world.outside.log)


def strike_everywhere(effect, *, quick_disk, steps=5, calls=1, **options):
    """A run of so many steps, struck at each point in turn. Gives how many there are."""
    plan = [[Planned(effect)] * calls for _ in range(steps)]
    n = 1
    while clock.run(struck(StruckAt(n, plan, quick_disk=quick_disk, **options))):
        n += 1
    return n - 1


class Chaos(World):
    """Three workers contend for the session while chance kills, stops, delays and cancels them."""

    def __init__(self, seed, **options):
        chance = random.Random(f"plan {seed}")
        plan = [
            [Planned(chance.choice(EFFECTS), chance.random() < 0.2) for _ in range(chance.randint(1, 3))]
            for _ in range(chance.randint(1, 4))
        ]
        super().__init__(seed, plan, **options)
        self._kills = self.chance.choice([0.01, 0.04, 0.1])
        self._stops = self.chance.choice([0.0, 0.02, 0.05])
        self._cancels = self.chance.choice([0.0, 0.0, 0.005])

    def befalls(self, process, what):
        self.points += 1
        dice = self.chance.random()
        for share, what_happens in ((self._kills, "kill"), (self._stops, "stop"), (self._cancels, "cancel")):
            if dice < share:
                return what_happens
            dice -= share
        return self.chance.random() if self.chance.random() < 0.5 else None

    async def play(self):
        """Gives why the last run stopped, as the disk has it in the end; None if it never ends."""
        waker = asyncio.create_task(self._waker())
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(self._worker())
        waker.cancel()
        if self.store.open_run is None and self.store.last_end is not None:
            return self.store.last_end
        return await self.to_the_end()

    async def _worker(self):
        """Somebody who tries a few times to get the work done."""
        for _ in range(self.chance.randint(1, 4)):
            await self.wait(self.chance.random() * 5)
            if self.store.open_run is None and self.store.last_end is not None:
                return
            task = self.task()
            if task is not None and any(one.alive for one in self.processes):
                continue  # somebody has typed it, and nobody knows yet what becomes of that
            await self.process(take_over=self.chance.random() < 0.3).work(task)

    async def _waker(self):
        """Whoever was stopped goes on after a while, or is killed where it stands."""
        while True:
            await self.wait(self.chance.random() * 2)
            for one in self.processes:
                if one.stopped and self.chance.random() < 0.5:
                    one.kill() if self.chance.random() < 0.3 else one.wake()


def chaos(seed, run=clock.run, **options):
    """One seed. Raises `AssertionError` that says how to play it again."""
    world = Chaos(seed, **options)
    try:
        check(world, run(world.play()))
    except BaseException as error:
        raise AssertionError(
            f"seed {seed}: {type(error).__name__}: {error}\nplay it again: python -m tests.simulator {seed}"
        ) from error
    return world
