"""An event loop in which no time passes: where all wait, the clock jumps to whoever waits the shortest."""

import asyncio
import selectors


class _Jumping(selectors.SelectSelector):
    """A selector that moves the clock instead of sleeping."""

    def __init__(self):
        super().__init__()
        self.now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing will ever happen again")
        self.now += max(0.0, timeout)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Everything in one thread, in an order that depends on nothing but the program."""

    def __init__(self):
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self):
        return self._jumping.now


def run(work):
    """Run a coroutine to its end in simulated time."""
    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
