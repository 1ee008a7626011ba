"""Secrets out of what went over the wire, before it is stored: headers, addresses, bodies, and streams in which a
secret arrived in pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.secrets import MASK, SECRET_HEADERS, mask
from glassloop.sessions.codec import spellings

_SECRET_PARAMETER = re.compile(
    r"([?&](?:api[-_]?key|key|token|access[-_]?token|auth|secret|sig|signature|password)=)[^&#\s]+",
    re.IGNORECASE,
)
_DATA_LINE = re.compile(r"^(data: ?)(\{.*\})[ \r]*$", re.MULTILINE)


def headers(found: Mapping[str, str], secrets: Sequence[str]) -> dict[str, str]:
    """What carries a key is masked whole, whatever the key looks like."""
    return {
        name: MASK if name.lower() in SECRET_HEADERS else mask(value, secrets)
        for name, value in found.items()
    }


def address(url: str, secrets: Sequence[str]) -> str:
    """The URL without passwords, and without parameters that carry keys."""
    return _SECRET_PARAMETER.sub(rf"\1{MASK}", mask(url, secrets))


def body(data: bytes, secrets: Sequence[str]) -> bytes:
    """The same bytes, or with `***` where a secret stood. Bytes that are no UTF-8 stay as they are."""
    text = data.decode("utf-8", "surrogateescape")
    masked = mask(text, spellings(tuple(secrets)))
    if "data:" in masked:
        masked = _pieces(masked, secrets)
    return data if masked == text else masked.encode("utf-8", "surrogateescape")


def _pieces(text: str, secrets: Sequence[str]) -> str:
    """A stream's text in which no secret can be put together from its events.

    The pieces of one field are joined; if that shows a secret, all of it stands masked in the first event.
    """
    events = [
        (match, event) for match in _DATA_LINE.finditer(text) if (event := _object(match[2])) is not None
    ]
    fields: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
    for _, event in events:
        for path, holder, key in _texts(event, ()):
            fields.setdefault(path, []).append((holder, key))
    told = {path: "".join(holder[key] for holder, key in places) for path, places in fields.items()}
    secret_ones = {path: masked for path, whole in told.items() if (masked := mask(whole, secrets)) != whole}
    if not secret_ones:
        return text
    for path, masked in secret_ones.items():
        for number, (holder, key) in enumerate(fields[path]):
            holder[key] = "" if number else masked
    rewritten = iter([json.dumps(event, ensure_ascii=False) for _, event in events])
    return _DATA_LINE.sub(
        lambda match: match[0] if _object(match[2]) is None else match[1] + next(rewritten), text
    )


def _object(text: str) -> JSON:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _texts(value: JSON, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Every text in an event: where it stands, and what holds it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        if isinstance(one, str):
            yield (*path, key), value, key
        else:
            yield from _texts(one, (*path, key))
