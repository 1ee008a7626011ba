"""Headers of an answer, found by their names in any case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class Headers(Mapping[str, str]):
    """Response headers by their name in any case; iterating gives the names as they were sent.

    Servers send thirty lines, of which hardly one is looked at: they are kept as they came until one is.
    """

    __slots__ = ("_lines", "_read")

    def __init__(self, lines: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """`lines`: name and value of each. Lines of one name are one list (RFC 9110, 5.3)."""
        self._lines = lines
        self._read: dict[str, tuple[str, str]] | None = None

    @staticmethod
    def of(headers: Mapping[str, str]) -> Headers:
        """As if these had come."""
        return Headers(
            [
                (name.encode("utf-8", "replace"), value.encode("utf-8", "replace"))
                for name, value in headers.items()
            ]
        )

    def raw(self, name: bytes) -> bytes:
        """What stands under a name, given in lower case; b"" if it is not there. All others are left unread."""
        return b", ".join([value for line, value in self._lines if line.lower() == name])

    def _by_name(self) -> dict[str, tuple[str, str]]:
        """The names in lower case → the name as it was sent, and the value."""
        if self._read is None:
            read: dict[str, tuple[str, str]] = {}
            for line in self._lines:
                name, value = line[0].decode("utf-8", "replace"), line[1].decode("utf-8", "replace")
                key = name.lower()
                before = read.get(key)
                read[key] = (name, value) if before is None else (before[0], f"{before[1]}, {value}")
            self._read = read
        return self._read

    def __getitem__(self, name: str) -> str:
        return self._by_name()[name.lower()][1]

    @overload
    def get(self, name: str, /) -> str | None: ...

    @overload
    def get(self, name: str, /, default: T) -> str | T: ...

    def get(self, name: str, /, default: object = None) -> object:
        """The value, without the exception on the way that `Mapping` would raise and catch for each that is missing."""
        found = self._by_name().get(name.lower())
        return found[1] if found is not None else default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._by_name()

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._by_name().values()])

    def __len__(self) -> int:
        return len(self._by_name())
