"""Glassloop, used as its README says."""

from __future__ import annotations

from collections.abc import Callable

from glassloop import Agent, Endpoint, Limits, TextDelta


async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


class Side:
    def __init__(self, base_url: str, *, stream: bool, journal: str | None = None) -> None:
        self._model = Endpoint(base_url, "bench", key="key", stream=stream)
        self._agent = Agent(
            self._model,
            instructions="You are a careful calculator.",
            tools=[add],
            limits=Limits(rounds=10_000),
            journal=_on_disk(journal) if journal else None,
        )

    async def run(self, task: str, heard: Callable[[], None] | None = None) -> str:
        if heard is None:
            return (await self._agent.run(task)).text
        async with self._agent.stream(task) as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    heard()
        return run.result.text

    async def close(self) -> None:
        await self._model.close()


def _on_disk(path: str) -> object:
    from glassloop.sessions.journal import SqliteJournal

    return SqliteJournal(path)
