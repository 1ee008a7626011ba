"""The tools that a call in a text may name."""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.entries import JSON, Mend
from glassloop.core.tools import ToolSpec
from glassloop.wire.names import resolve_name


class Tools:
    """Looked up by the name as a model wrote it."""

    __slots__ = ("_specs", "names")

    def __init__(self, specs: Mapping[str, ToolSpec]) -> None:
        self._specs = specs
        self.names = frozenset(specs)

    def resolve(self, raw: str) -> tuple[str, Mend | None]:
        return resolve_name(raw, self.names)

    def knows(self, raw: str) -> bool:
        return self.resolve(raw)[0] in self.names

    def schema(self, raw: str) -> Mapping[str, JSON]:
        """The parameters of the tool that `raw` spells; empty if there is none."""
        spec = self._specs.get(self.resolve(raw)[0])
        return spec.parameters if spec else {}

    def keys(self, raw: str) -> frozenset[str]:
        """The names of its parameters."""
        return frozenset(self.schema(raw).get("properties") or ())

    def required(self, raw: str) -> frozenset[str]:
        """The names of those that a call cannot lack."""
        return frozenset(self.schema(raw).get("required") or ())
