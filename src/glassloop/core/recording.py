"""The `Recorder` protocol: the wire as it went by. A model reports to it; sessions and `--wire` keep it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Recorder(Protocol):
    """Told of each HTTP exchange, in order. Implementations must not raise and must mask secrets before storing."""

    def sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """A request went out, with all transforms applied."""

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The status line and headers of its answer arrived."""

    def received(self, data: bytes) -> None:
        """Bytes of the answer's body arrived (decompressed, otherwise untouched)."""

    def ended(self, error: str | None = None) -> None:
        """The exchange is over; `error` says what broke it, if anything did."""


class NoRecorder:
    """Keeps nothing."""

    def sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None: ...

    def answered(self, status: int, headers: Mapping[str, str]) -> None: ...

    def received(self, data: bytes) -> None: ...

    def ended(self, error: str | None = None) -> None: ...
