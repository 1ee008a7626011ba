"""How a run was set up: its agent and its endpoints, as a replay elsewhere needs to know them. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import field

from glassloop.core.entries import JSON, Entry
from glassloop.core.limits import Limits
from glassloop.core.tools import ToolSpec
from glassloop.core.values import Value
from glassloop.core.window import Window


class AgentSetup(Value, frozen=True):
    """An agent as a run began: what stands before the conversation, its tools, request fields and bounds.

    `size`: the context window in tokens, as far as it was known then. `hint`: of a run that only summarises old
    turns, what it was told to keep in mind; None of any other.
    """

    preface: Sequence[Entry] = ()
    tools: Sequence[ToolSpec] = ()
    settings: Mapping[str, JSON] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    window: Window = field(default_factory=Window)
    size: int | None = None
    hint: str | None = None


class EndpointSetup(Value, frozen=True):
    """An endpoint as a question was put to it.

    Its profile is `told` (what the user says) over `learnt` over `facts` (what the provider table says), each as
    profile changes. `moved_to`: where a redirect led. `no_terminal`: its streams end without an end mark.
    `attempts` and `longest_wait` (seconds): its patience. The key is not part of it.
    """

    name: str
    base_url: str
    model: str
    provider: str | None = None
    streamed: bool = True
    attempts: int = 4
    longest_wait: float = 60.0
    facts: Mapping[str, JSON] = field(default_factory=dict)
    learnt: Mapping[str, JSON] = field(default_factory=dict)
    told: Mapping[str, JSON] = field(default_factory=dict)
    moved_to: str | None = None
    no_terminal: bool = False

    def to_json(self) -> dict[str, JSON]:
        """All fields, as plain JSON."""
        return {name: _plain(getattr(self, name)) for name in _FIELDS}

    @staticmethod
    def from_json(value: JSON) -> EndpointSetup:
        """What `to_json` wrote. Raises ValueError for anything else."""
        if not isinstance(value, Mapping):
            raise ValueError("an endpoint is an object")
        for name in value:
            if name not in _FIELDS:
                raise ValueError(f"an endpoint has no field {name!r}")
        for name in ("name", "base_url", "model"):
            if name not in value:
                raise ValueError(f"an endpoint needs the field {name!r}")
        for name, one in value.items():
            if not isinstance(one, _FIELDS[name]) or (isinstance(one, bool) and _FIELDS[name] is not bool):
                raise ValueError(f"the endpoint's field {name!r} cannot be {one!r:.60}")
        return EndpointSetup(**value)


_MAYBE_TEXT = (str, type(None))
_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "base_url": str,
    "model": str,
    "provider": _MAYBE_TEXT,
    "streamed": bool,
    "attempts": int,
    "longest_wait": (int, float),
    "facts": Mapping,
    "learnt": Mapping,
    "told": Mapping,
    "moved_to": _MAYBE_TEXT,
    "no_terminal": bool,
}


def _plain(value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


class SetupRecorder(Protocol):
    """What a `Recorder` may have besides, if what it keeps is to be replayed. It must not raise, as a `Recorder`."""

    def began(self, agent: AgentSetup) -> None:
        """A run begins, of this agent."""

    def asking(self, endpoint: EndpointSetup) -> None:
        """The requests from here on go to this endpoint, of which this is known."""


def tell_began(recorder: object, agent: AgentSetup) -> None:
    """Tell a recorder of the agent, if it wants to know."""
    if (began := getattr(recorder, "began", None)) is not None:
        began(agent)
