"""Headers of an answer, found by their names in any case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

T = TypeVar("T")


class Headers(Mapping[str, str]):
    """Response headers by their name in any case; iterating gives the names as they were sent."""

    __slots__ = ("_by_name", "_names")

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self._by_name: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for name, value in (headers or {}).items():
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """One header line. Lines of one name are one list (RFC 9110, 5.3)."""
        key = name.lower()
        before = self._by_name.get(key)
        self._by_name[key] = value if before is None else f"{before}, {value}"
        self._names.setdefault(key, name)

    def __getitem__(self, name: str) -> str:
        return self._by_name[name.lower()]

    @overload
    def get(self, name: str, /) -> str | None: ...

    @overload
    def get(self, name: str, /, default: T) -> str | T: ...

    def get(self, name: str, /, default: object = None) -> object:
        """The value, without the exception on the way that `Mapping` would raise and catch for each that is missing."""
        return self._by_name.get(name.lower(), default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.values())

    def __len__(self) -> int:
        return len(self._by_name)
