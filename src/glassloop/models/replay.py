"""`ReplayModel`: a recorded run, played offline through the code that asks real endpoints.

What is replayed is the line (`playback.py`). All that is above it (encoding, decoding, mends, retries, adaptations) is
`Endpoint`'s own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from glassloop.core.errors import SessionError
from glassloop.core.recording import Recorder
from glassloop.core.secrets import mask
from glassloop.core.setup import EndpointSetup
from glassloop.models.deadlines import Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.fallback import Fallback
from glassloop.models.http import Client
from glassloop.models.model import Model, ModelRequest, Said
from glassloop.models.playback import Line
from glassloop.models.profiles import Learnt, ProfileStore
from glassloop.models.providers import Provider
from glassloop.models.recorded import Recorded, read

HINT = (
    "Something that the model is given is not what it was: the task, the instructions, a tool, a setting or a tool's "
    "result. If that is meant, record the run again."
)


def masked_shapes(data: bytes) -> bytes:
    """The bytes with whatever looks like a key masked."""
    return mask(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class ReplayModel:
    """Plays recorded exchanges: each request is answered with the bytes that answered the same request then.

    Without a network, a key, or any waiting. A request that was not recorded so raises `ReplayMismatch`, which shows
    where it differs. Requests are compared by method, address and body, once `masked` has taken the secrets out of
    them, as it was done before they were recorded. Requests of runs that went on side by side may come in any order.

    `hint`: what a mismatch says is to be done.
    """

    def __init__(
        self,
        exchanges: Iterable[Recorded],
        *,
        masked: Callable[[bytes], bytes] = masked_shapes,
        hint: str = HINT,
    ) -> None:
        self._line = Line(list(exchanges), masked, hint)
        self._endpoints: dict[tuple[str, str, str], Endpoint] = {}
        self._names = list(dict.fromkeys(one.endpoint.name for one in self._line.unplayed))
        self._model = self._next_model()

    @classmethod
    def from_file(cls, path: str | Path, *, hint: str = HINT) -> ReplayModel:
        """The model of a recording, or of a session exported with `--wire`. Raises `SessionError`, naming the file."""
        try:
            with Path(path).open(encoding="utf-8", newline="\n") as file:
                return cls(read(file).exchanges, hint=hint)
        except (OSError, UnicodeDecodeError) as error:
            raise SessionError(f"{path} cannot be read: {error}") from error
        except SessionError as error:
            raise SessionError(f"{path}: {error}", error.kind) from error

    @property
    def name(self) -> str:
        return " | ".join(self._names)

    @property
    def unplayed(self) -> Sequence[Recorded]:
        """The exchanges that were not asked for yet, in order."""
        return tuple(self._line.unplayed)

    @property
    def context_window(self) -> int | None:
        """See `Model`."""
        return getattr(self._model, "context_window", None)

    def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        self._model = self._next_model() or self._model
        if self._model is None:
            raise self._line.over()
        return self._model.stream(request, recorder)

    async def close(self) -> None:
        """There is nothing to release."""

    def _next_model(self) -> Model | None:
        """Whoever was asked next; if that failed and another took over, so it is again. None at the end."""
        following: dict[tuple[str, str, str], Recorded] = {}
        for one in self._line.unplayed:
            following.setdefault(_identity(one.endpoint), one)
        endpoints = [self._endpoint(one) for one in following.values()]
        match endpoints:
            case []:
                return None
            case [endpoint]:
                return endpoint
        return Fallback(endpoints)

    def _endpoint(self, following: Recorded) -> Endpoint:
        """The endpoint as it was set up when this was recorded; others may have taught it something meanwhile."""
        setup = following.endpoint
        known = self._endpoints.get(_identity(setup))
        if known is not None and known.setup.to_json() == setup.to_json():
            return known
        made = self._endpoints[_identity(setup)] = _endpoint_of(setup, following.request_headers, self._line)
        return made


def _identity(setup: EndpointSetup) -> tuple[str, str, str]:
    return setup.name, setup.base_url, setup.model


def _endpoint_of(setup: EndpointSetup, headers: Mapping[str, str], line: Line) -> Endpoint:
    """A real endpoint at the end of a replayed line, which neither reads nor writes what was learned on disk."""
    learned = ProfileStore(None)
    learned.save(setup.base_url, setup.model, Learnt(setup.learnt, setup.moved_to, setup.no_terminal))
    provider = None
    if setup.provider is not None or setup.facts:
        provider = Provider(setup.provider or "", setup.base_url, profile=setup.facts)
    endpoint = Endpoint(
        setup.base_url,
        setup.model,
        headers=headers,
        profile=setup.told,
        proxy="",
        retries=_NoWaiting(setup.attempts, longest_wait=setup.longest_wait),
        name=setup.name,
        learned=learned,
        provider=provider,
        stream=setup.streamed,
    )
    endpoint.client = cast("Client", line)  # it has the same two methods, and the same is true of its answers
    return endpoint


class _NoWaiting(Retries):
    """The same patience, without the waits."""

    __slots__ = ()

    def pause(self, attempt: int, asked: float | None) -> float:
        return 0.0
