"""A client that keeps every exchange as it went by, and stops at a budget. What bytes mean is not known here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from glassloop.core.recording import Recorder
from glassloop.models.answer import Answer
from glassloop.models.http import Client, masked_headers

MOST_KEPT = 2 * 1024 * 1024
"""Bytes of one answer that are kept."""


class OutOfBudget(Exception):
    """The next request would be one too many; the text says of what."""


@dataclass(slots=True)
class Exchange:
    """One request and what came back. `headers` have their keys masked; times are seconds since it was sent.

    `at` is when, in seconds since 1970. `status` is None where no answer began. `error` says what broke it.
    `first_byte` is when the answer's head came, `arrivals` when its bytes came, and how many.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    sent: bytes = field(repr=False)
    started: float = field(default_factory=time.monotonic, repr=False)
    at: float = field(default_factory=time.time, repr=False)
    status: int | None = None
    answered: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    error: str | None = None
    first_byte: float | None = None
    arrivals: list[tuple[float, int]] = field(default_factory=list, repr=False)

    @property
    def is_question(self) -> bool:
        """Whether a model was asked, and not the server about itself."""
        return self.method == "POST" and b'"messages"' in self.sent

    def hide(self, masked: Callable[[str], str]) -> None:
        """Take secrets out of what came back, after it was read."""
        text = self.body.decode("utf-8", "surrogateescape")
        if (hidden := masked(text)) != text:
            self.body = hidden.encode("utf-8", "surrogateescape")
        self.answered = {name: masked(value) for name, value in masked_headers(self.answered).items()}

    @property
    def seconds(self) -> float:
        """Until the last byte."""
        return self.arrivals[-1][0] if self.arrivals else self.first_byte or 0.0


class _Taping:
    """A `Recorder` for one exchange."""

    def __init__(self, tape: list[Exchange]) -> None:
        self._tape = tape
        self._exchange: Exchange

    def sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self._exchange = Exchange(method, url, dict(headers), body)
        self._tape.append(self._exchange)

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        exchange = self._exchange
        exchange.status, exchange.answered = status, {name.lower(): value for name, value in headers.items()}
        exchange.first_byte = time.monotonic() - exchange.started

    def received(self, data: bytes) -> None:
        exchange = self._exchange
        exchange.arrivals.append((time.monotonic() - exchange.started, len(data)))
        if len(exchange.body) < MOST_KEPT:
            exchange.body += data

    def ended(self, error: str | None = None) -> None:
        self._exchange.error = error


_TAPE: ContextVar[list[Exchange]] = ContextVar("doctor_tape")


def taping() -> list[Exchange]:
    """From now on, exchanges of this task are kept in the list that is returned."""
    tape: list[Exchange] = []
    _TAPE.set(tape)
    return tape


class TapedClient:
    """Stands in for an endpoint's client: sends through it, tapes, and counts requests against `most`."""

    def __init__(self, client: Client, most: int | None) -> None:
        self._client = client
        self._most = most
        self.requests = 0

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, recorder: Recorder
    ) -> Answer:
        """As `Client.send`. Raises `OutOfBudget` in place of the request that would be one too many."""
        if self._most is not None and self.requests >= self._most:
            raise OutOfBudget(f"the limit of {self._most} requests is reached")
        self.requests += 1
        return await self._client.send(method, url, headers, body, _Taping(_TAPE.get()))

    async def close(self) -> None:
        await self._client.close()
