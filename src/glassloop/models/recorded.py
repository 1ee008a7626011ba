"""What went over the wire, as a replay needs it: values, and the two files that hold them.

A recording (`glassloop-recording`) has one event a line, so that people can read it and see what changed in it. An
exported session (`glassloop-session`, written by `sessions/jsonl.py`) has one exchange a line among its other lines.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.errors import SessionError
from glassloop.core.heard import heard
from glassloop.core.jsonlines import objects_in
from glassloop.core.setup import EndpointSetup
from glassloop.wire.compact import encoded

FORMAT = "glassloop-recording"
VERSION = 1
_EXPORT = "glassloop-session"
_BAD_LINE = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
_NO_WIRE = (
    "there is nothing in it that went over the wire, so it cannot be replayed. Export it again with it: "
    "glassloop sessions export --wire"
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request and its answer, without their secrets.

    `status` is None if no answer began. `chunks` are the pieces in which the body was read. `error`: what broke it.
    `at_ms`: when the answer was there, in milliseconds since 1970; 0 where that was not kept.
    """

    endpoint: EndpointSetup
    method: str
    url: str
    request_headers: Mapping[str, str]
    request: bytes
    status: int | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    error: str | None = None
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Recording:
    """The exchanges of a recording, and of which `model` it is, as the person wrote it who made it."""

    exchanges: tuple[Recorded, ...]
    model: str = ""


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────


def read(lines: Iterable[str]) -> Recording:
    """A recording, or an exported session, of which only the exchanges are read. Raises `SessionError`."""
    objects = objects_in(lines, "recording")
    _, head = next(objects, (1, {}))
    kind, version = head.get("format"), head.get("version")
    reader = _READERS.get(str(kind))
    if reader is None:
        raise SessionError(f"this is no recording: its first line should say {FORMAT!r} or {_EXPORT!r}")
    if version != VERSION:
        raise SessionError(f"this recording has version {version!r}; this Glassloop reads version {VERSION}")
    exchanges = tuple(reader(objects))
    if not exchanges and kind == _EXPORT:
        raise SessionError(_NO_WIRE)
    return Recording(exchanges, str(head.get("model", "")))


def _from_events(objects: Iterator[tuple[int, Mapping[str, Any]]]) -> Iterator[Recorded]:
    endpoint: EndpointSetup | None = None
    one: Recorded | None = None
    chunks: list[bytes] = []
    for number, event in objects:
        try:
            match event:
                case {"endpoint": setup}:
                    endpoint = EndpointSetup.from_json(setup)
                case {"request": str(line)} if endpoint is not None:
                    method, _, url = line.partition(" ")
                    one = Recorded(endpoint, method, url, _headers(event), _bytes(event))
                case {"response": int(status)} if one is not None:
                    one = replace(one, status=status, response_headers=_headers(event))
                case {"end": error} if one is not None:
                    yield replace(one, chunks=tuple(chunks), error=None if error is None else str(error))
                    one, chunks = None, []
                case {"text": _} | {"base64": _} if one is not None:
                    chunks.append(_bytes(event))
                case _:
                    raise ValueError(f"nothing here may look like {', '.join(map(str, event)) or 'this'}")
        except _BAD_LINE as error:
            raise SessionError(f"line {number} of the recording cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class _Asked:
    """An exchange in its run; see `core/heard.py`."""

    after: int
    epoch: int
    exchange: Recorded


_ENDS = frozenset({"reply", "summary", "model_failed", "cancelled"})
"""The types of entry that end a model call."""


def _from_export(objects: Iterator[tuple[int, Mapping[str, Any]]]) -> Iterator[Recorded]:
    endpoint: EndpointSetup | None = None
    asked: dict[str, list[_Asked]] = {}
    ends: dict[str, list[int]] = {}
    for number, line in objects:
        try:
            match line:
                case {"entry": kind, "run": str(run), "seq": int(seq)} if kind in _ENDS and seq >= 1:
                    ends.setdefault(run, []).append(seq)
                case {"exchange": _, "run": str(run)}:
                    endpoint = EndpointSetup.from_json(line["endpoint"]) if line.get("endpoint") else endpoint
                    one = _Asked(int(line["after"]), int(line["epoch"]), _exchange(line, endpoint))
                    asked.setdefault(run, []).append(one)
        except _BAD_LINE as error:
            raise SessionError(f"line {number} of the recording cannot be read: {error}") from error
    for run, exchanges in asked.items():
        yield from (one.exchange for one in heard(exchanges, ends.get(run, ())))


def _exchange(line: Mapping[str, Any], endpoint: EndpointSetup | None) -> Recorded:
    body = _bytes_of(line["response"])
    return recorded(
        endpoint,
        method=str(line["method"]),
        url=str(line["url"]),
        request_headers=line["request_headers"],
        request=_bytes_of(line["request"]),
        status=line["status"],
        response_headers=line["response_headers"],
        response=body,
        sizes=[int(size) for _, size in line["chunks"]],
        error=line["error"],
        at_ms=int(line["ended_ms"]),
    )


_READERS: Mapping[str, Callable[[Iterator[tuple[int, Mapping[str, Any]]]], Iterator[Recorded]]] = {
    FORMAT: _from_events,
    _EXPORT: _from_export,
}


def recorded(
    endpoint: EndpointSetup | None,
    *,
    method: str,
    url: str,
    request_headers: Mapping[str, str],
    request: bytes,
    status: int | None,
    response_headers: Mapping[str, str],
    response: bytes,
    sizes: Sequence[int],
    error: str | None,
    at_ms: int,
) -> Recorded:
    """An exchange whose body is stored in one piece, and the `sizes` of its chunks beside it.

    Raises ValueError for sizes that do not add up to the body, and if nothing is known of the endpoint.
    """
    if endpoint is None:
        raise ValueError("it does not say how its endpoint was set up: an older Glassloop recorded it")
    if sum(sizes) != len(response) or min(sizes, default=0) < 0:
        raise ValueError("its chunks do not add up to its body")
    chunks = tuple(response[start:end] for start, end in pairwise(accumulate(sizes, initial=0)))
    return Recorded(
        endpoint,
        method,
        url,
        dict(request_headers),
        request,
        status,
        dict(response_headers),
        chunks,
        error,
        at_ms,
    )


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in event["headers"].items()}


def _bytes(event: Mapping[str, Any]) -> bytes:
    if "json" in event:
        return encoded(event["json"])
    if "text" in event:
        return str(event["text"]).encode("utf-8")
    return _decoded(event["base64"])


def _bytes_of(value: JSON) -> bytes:
    """A body in an exported session."""
    return _decoded(value["base64"]) if isinstance(value, Mapping) else str(value).encode("utf-8")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────

_CHANGING = frozenset({"date", "age"})
"""Headers of an answer that differ from one time to the next, and matter only where one is told to wait."""


def written(recording: Recording) -> Iterator[str]:
    """The lines of a recording. The same exchanges always give the same lines."""
    yield _line({"format": FORMAT, "version": VERSION, "model": recording.model})
    endpoint: EndpointSetup | None = None
    for one in recording.exchanges:
        if one.endpoint != endpoint:
            endpoint = one.endpoint
            yield _line({"endpoint": endpoint.to_json()})
        yield _line(
            {
                "request": f"{one.method} {one.url}",
                "headers": dict(one.request_headers),
                **_body(one.request),
            }
        )
        if one.status is not None:
            yield _line({"response": one.status, "headers": _kept_headers(one)})
        yield from (_line(_piece(chunk)) for chunk in one.chunks)
        yield _line({"end": one.error})


def _line(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _kept_headers(one: Recorded) -> dict[str, str]:
    refused = one.status is None or one.status >= 400
    return {
        name: value
        for name, value in one.response_headers.items()
        if refused or name.lower() not in _CHANGING
    }


def _body(data: bytes) -> dict[str, JSON]:
    """JSON as JSON where that gives the same bytes again, so that people can read it."""
    try:
        value = json.loads(data)
        if encoded(value) == data:
            return {"json": value}
    except (ValueError, RecursionError):
        pass
    return _piece(data)


def _piece(data: bytes) -> dict[str, JSON]:
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
