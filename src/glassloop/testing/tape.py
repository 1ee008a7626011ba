"""A model whose exchanges are kept as they go by, to be written into a recording. Secrets are masked before that."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from glassloop.core.errors import ConfigError
from glassloop.core.recording import Recorder
from glassloop.core.secrets import SECRET_HEADERS, mask
from glassloop.core.setup import EndpointSetup
from glassloop.models.endpoint import Endpoint
from glassloop.models.fallback import Fallback
from glassloop.models.model import Model, ModelRequest, Said
from glassloop.models.recorded import Recorded, Recording, written
from glassloop.sessions import masking, setups


class TapedModel:
    """A model that is really asked. `save` writes what went over the wire. `secrets` must not be in it.

    `model` is an `Endpoint`, or several in a `Fallback`: whatever else there is has no wire.
    """

    def __init__(self, model: Model, spec: str, secrets: Iterable[str] = ()) -> None:
        self._model = model
        self._spec = spec
        self._secrets = (*secrets, *(key for each in _endpoints(model) for key in _keys(each.headers)))
        self._exchanges: list[Recorded | None] = []

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def context_window(self) -> int | None:
        """See `Model`."""
        return getattr(self._model, "context_window", None)

    def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        return self._model.stream(request, _Tape(self._exchanges, self._secrets, recorder))

    async def close(self) -> None:
        await self._model.close()

    def save(self, path: Path) -> None:
        """Write the recording: all exchanges that are over, in the order in which they began."""
        exchanges = tuple(one for one in self._exchanges if one is not None)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = written(Recording(exchanges, self._spec))
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _endpoints(model: Model) -> list[Endpoint]:
    match model:
        case Endpoint():
            return [model]
        case Fallback(models=models):
            return [each for one in models for each in _endpoints(one)]
    raise ConfigError(f"{model.name} speaks to no endpoint over HTTP: there is nothing to record of it")


def _keys(headers: Mapping[str, str]) -> list[str]:
    """What a header carries that nobody may see, with and without the word before it."""
    values = [value for name, value in headers.items() if name.lower() in SECRET_HEADERS]
    return [*values, *(value.partition(" ")[2] for value in values)]


class _Tape:
    """Records the exchanges of one question, and passes on to `also` what it is told."""

    def __init__(self, exchanges: list[Recorded | None], secrets: tuple[str, ...], also: Recorder) -> None:
        self._exchanges = exchanges
        self._secrets = secrets
        self._also = also
        self._endpoint: EndpointSetup | None = None
        self._place = 0
        self._open: Recorded | None = None
        self._received: list[bytes] = []

    def asking(self, endpoint: EndpointSetup) -> None:
        self._endpoint = endpoint
        if (asking := getattr(self._also, "asking", None)) is not None:
            asking(endpoint)

    def sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self._also.sent(method, url, headers, body)
        if self._endpoint is not None:
            self._place = len(self._exchanges)
            self._exchanges.append(None)
            self._open = Recorded(self._endpoint, method, url, dict(headers), bytes(body))
            self._received = []

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        self._also.answered(status, headers)
        if self._open is not None:
            self._open = replace(self._open, status=status, response_headers=dict(headers))

    def received(self, data: bytes) -> None:
        self._also.received(data)
        self._received.append(bytes(data))

    def ended(self, error: str | None = None) -> None:
        self._also.ended(error)
        if self._open is not None:
            whole = replace(self._open, chunks=tuple(self._received), error=error)
            self._exchanges[self._place] = _masked(whole, self._secrets)
            self._open = None


def _masked(one: Recorded, secrets: tuple[str, ...]) -> Recorded:
    """Without its secrets. A body in which one stood is kept in one piece: it may have been cut within it."""
    received = b"".join(one.chunks)
    response = masking.body(received, secrets)
    return replace(
        one,
        url=masking.address(one.url, secrets),
        request_headers=masking.headers(one.request_headers, secrets),
        request=masking.body(one.request, secrets),
        response_headers=masking.headers(one.response_headers, secrets),
        chunks=one.chunks if response == received else (response,),
        error=None if one.error is None else mask(one.error, secrets),
        endpoint=EndpointSetup.from_json(json.loads(setups.endpoint_text(one.endpoint, secrets))),
    )
