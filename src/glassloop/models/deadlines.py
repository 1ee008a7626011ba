"""How long each step of an answer may take, and how often a failed request is sent again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """All in seconds. They bound one request; a retried request starts anew.

    `connect`: name lookup, TCP and TLS together. `first_byte`: from a connection to the answer's head
    (None: 60, on loopback 300, since a local model may still be loading). `silence`: no bytes at all;
    keep-alives reset it. `content`: keep-alives arrive but no content. `whole`: from the start of the
    request to the last byte, streamed or not. Not bounded: how long the caller takes between two deltas.
    """

    connect: float = 10.0
    first_byte: float | None = None
    silence: float = 60.0
    content: float = 300.0
    whole: float = 600.0

    def until_first_byte(self, *, loopback: bool) -> float:
        """`first_byte`, or its default for where the endpoint is."""
        if self.first_byte is not None:
            return self.first_byte
        return 300.0 if loopback else 60.0


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and after how long the same request is sent again.

    `attempts`: beyond the first. `base` and `ceiling`: seconds of the exponential backoff, whose last
    third is drawn by chance (`draw` gives a number in [0, 1)): enough to part agents that failed together,
    and below the ceiling each wait is longer than the one before. `longest_wait`: an endpoint that asks for
    more seconds than this raises `RateLimited` at once.
    """

    attempts: int = 4
    base: float = 0.5
    ceiling: float = 20.0
    longest_wait: float = 60.0
    draw: Callable[[], float] = random.random

    def pause(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait before retry number `attempt` (from 1); never less than the endpoint `asked` for.

        What was asked for gets a little jitter on top, so that many agents do not come back at once.
        """
        if asked is not None:
            return asked + self.base * self.draw() * min(1.0, asked)
        return float(min(self.ceiling, self.base * 2**attempt) * (2 + self.draw()) / 3)
