"""What a journal holds as JSON text, and back, without its secrets.

Nothing in stored text is ever looked up as a Python name: a tag that is not in the table of `shapes.py` is
refused. Files and rows are not this module's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from glassloop.core.errors import SessionError
from glassloop.core.journal import Journaled
from glassloop.core.secrets import mask, may_hold_a_secret
from glassloop.core.values import Value
from glassloop.sessions.plain import NotPlain, text_of, value_of
from glassloop.sessions.shapes import BLOB_BYTES, RECORDS, Sink, Unfit, as_it_is, shape_of


class Encoded(Value, frozen=True):
    """JSON text, what was put aside from it, and whether a secret was masked in it."""

    tag: str
    body: str
    blobs: Mapping[str, bytes]
    masked: bool


_TAGS = {kind: tag for tag, kind in RECORDS.items()}


# ── the two directions ───────────────────────────────────────────────────────────────────────────────


def encode(value: Journaled, secrets: Iterable[str] = (), *, aside: bool = True) -> Encoded:
    """The value as JSON text without secrets; large texts and files put aside, unless `aside` is False.

    Lone surrogates become U+FFFD; in free JSON, NaN becomes "NaN". Raises `SessionError` for what no JSON can hold.
    """
    tag = _TAGS.get(type(value))
    if tag is None:
        raise SessionError(f"a journal cannot hold a {type(value).__name__}: it keeps {', '.join(RECORDS)}")
    known = tuple(secrets)
    try:
        return _encode_plain(tag, value, known, aside) or _encode_cleaned(tag, value, known, aside)
    except (Unfit, TypeError, ValueError, OverflowError, RecursionError) as error:
        why = cleaned(_because(error), known)
        raise SessionError(f"a {tag} cannot be written down: {why}") from None


def _encode_plain(tag: str, value: Any, secrets: tuple[str, ...], aside: bool) -> Encoded | None:
    """The quick way, for a value with nothing in it to clean or to put aside; None if there is."""
    try:
        data = text_of(value)
    except NotPlain:
        return None
    if aside and len(data) > BLOB_BYTES:
        return None
    body = data.decode()
    if (secrets or may_hold_a_secret(data)) and mask(body, spellings(secrets)) != body:
        return None
    return Encoded(tag, body, {}, False)


def _encode_cleaned(tag: str, value: Any, secrets: tuple[str, ...], aside: bool) -> Encoded:
    masked = False

    def clean(text: str) -> str:
        nonlocal masked
        found = cleaned(text, secrets)
        masked = masked or found != as_it_is(text)
        return found

    sink = Sink(clean, aside)
    body = _dumps(shape_of(type(value)).write(value, sink))
    return Encoded(tag, body, sink.blobs, masked)


def cleaned(text: str, secrets: tuple[str, ...]) -> str:
    """Text as it may be stored: secrets masked, lone surrogates replaced."""
    return mask(as_it_is(text), spellings(secrets))


def decode(tag: str, body: str, blob: Callable[[str], bytes]) -> Any:
    """The value that was stored. `blob` fetches what was put aside. Raises `SessionError` for anything else."""
    kind = RECORDS.get(tag)
    if kind is None:
        raise SessionError(
            f"unknown type {tag!r}: written by a newer Glassloop, or not by Glassloop", "damaged"
        )
    try:
        return value_of(kind, body)
    except NotPlain:
        pass
    try:
        return shape_of(kind).read(_loads(body), blob)
    except (Unfit, TypeError, ValueError, RecursionError) as error:
        raise SessionError(f"a stored {tag} is damaged: {_because(error)}", "damaged") from error


_loads = json.JSONDecoder().decode
_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@lru_cache(maxsize=16)
def spellings(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """The secrets as they stand in text, in JSON of either kind, and in JSON within JSON, as arguments are."""
    plain = [as_it_is(secret) for secret in secrets]
    once = [dump(secret)[1:-1] for secret in plain for dump in (_dumps, json.dumps)]
    twice = [dump(secret)[1:-1] for secret in once for dump in (_dumps, json.dumps)]
    return tuple(dict.fromkeys([*plain, *once, *twice]))


def _because(error: Exception) -> str:
    match error:
        case Unfit(args=(*path, reason)):
            return ".".join(map(str, path)) + f": {reason}" if path else str(reason)
        case RecursionError():
            return "it is nested too deeply"
    return str(error)
