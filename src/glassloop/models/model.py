"""The `Model` protocol: one of the four replaceable parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from msgspec import field

from glassloop.core.entries import JSON, Entry, Mend, Reply
from glassloop.core.events import Delta, Learned, Purpose, Retrying, Switched, Warned
from glassloop.core.recording import Recorder
from glassloop.core.tools import ToolSpec
from glassloop.core.values import Value


class ModelRequest(Value, frozen=True):
    """What a model is asked. `settings` are request fields, sent as given (temperature, max_tokens, …)."""

    entries: tuple[Entry, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: Mapping[str, JSON] = field(default_factory=dict)
    purpose: Purpose = "turn"


Said = Delta | Mend | Retrying | Learned | Switched | Warned | Reply
"""What a model may say while it answers. The last thing is always the `Reply`."""


class Model(Protocol):
    """Anything that answers. Raises `EndpointError` when no reply can be had.

    A model may also have a `context_window`: its size in tokens, or None. It is looked at when a run begins, and
    `Reply.context_window` afterwards; without either, a run learns it from the first overflow.
    """

    @property
    def name(self) -> str:
        """How people know it, such as "openrouter:openai/gpt-oss-120b"."""

    def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        """Answer, saying deltas as they come and the complete `Reply` last."""

    async def close(self) -> None:
        """Release connections. The model can be used again afterwards."""
