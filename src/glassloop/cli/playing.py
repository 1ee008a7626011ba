"""Running an agent under a terminal: events to a screen, Ctrl-C to `run.cancel()`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from glassloop.agent import Agent
from glassloop.cli.asking import Asker
from glassloop.core.entries import User
from glassloop.core.errors import GlassloopError
from glassloop.core.events import Event, Finished
from glassloop.core.journal import Session
from glassloop.handles import Result, Run


async def play(
    agent: Agent[str],
    text: str | User | None,
    show: Callable[[Event], None],
    *,
    session: Session | None = None,
) -> tuple[Result[str], BaseException | None]:
    """Run to the end, showing each event. Gives the result and what the run failed with, if it did.

    `text` None takes up the session's unfinished run. Ctrl-C cancels the run, which then ends in order; a
    second Ctrl-C raises `KeyboardInterrupt`.
    """
    return await play_run(agent.stream(text, session=session), show)


async def ask_once(
    agent: Agent[str],
    text: str | None,
    show: Callable[[Event], None],
    asker: Asker,
    session: Session | None,
) -> tuple[Result[str], BaseException | None]:
    """The same for an agent that is asked nothing more, with a person who is asked about what has been shown."""

    def shown(event: Event) -> None:
        show(event)
        asker.saw(event)

    asker.show = show
    try:
        return await play(agent, text, shown, session=session)
    finally:
        await agent.model.close()


async def play_run(
    running: Run[str], show: Callable[[Event], None]
) -> tuple[Result[str], BaseException | None]:
    """The same for a run that has been made."""
    async with running as run:
        with on_interrupt(run.cancel):
            error: BaseException | None = None
            try:
                async for event in run:
                    if isinstance(event, Finished):
                        error = event.error
                    show(event)
            except (GlassloopError, asyncio.CancelledError):
                if error is None:
                    raise
            return run.result, error


@contextmanager
def on_interrupt(first: Callable[[], Any]) -> Iterator[None]:
    """The first Ctrl-C calls `first`; from the second on they are what they always are."""
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)

    def interrupted() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
        first()

    try:
        loop.add_signal_handler(signal.SIGINT, interrupted)
    except (NotImplementedError, ValueError):  # Windows, or not the main thread: Ctrl-C stays what it was
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
