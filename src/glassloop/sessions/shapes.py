"""How each value that a journal may hold looks as JSON: a rule for each annotation, found from its class.

The tables here are the only way from a tag in stored text to a type. Whole records, secrets and errors are
`codec.py`'s business.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import types
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from glassloop.core.entries import (
    JSON,
    File,
    Image,
    Mend,
    Note,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from glassloop.core.journal import Cancelled, ModelFailed
from glassloop.core.resolving import Resolution
from glassloop.core.tools import Decision, Verdict
from glassloop.core.values import Value

RECORDS: Mapping[str, type[Any]] = {
    "system": System,
    "user": User,
    "reply": Reply,
    "tool_result": ToolResult,
    "note": Note,
    "summary": Summary,
    "verdict": Verdict,
    "decision": Decision,
    "resolution": Resolution,
    "model_failed": ModelFailed,
    "cancelled": Cancelled,
}
"""What a record may hold, by the tag under which it is stored."""

_PIECES: Mapping[str, type[Any]] = {
    "text": Text,
    "image": Image,
    "file": File,
    "tool_call": ToolCall,
    "mend": Mend,
    "usage": Usage,
}
TAGS = {kind: tag for tag, kind in {**RECORDS, **_PIECES}.items()}

BLOB_BYTES = 64 * 1024
_SHORT = BLOB_BYTES // 4  # characters that are never more bytes than that
"""A text or a file's bytes larger than this is put aside under its SHA-256, so that it is stored once."""

_NEVER_STORED = frozenset({"bound"})
"""Fields that live no longer than their process."""

_NEVER_MASKED = frozenset({"id", "call_id", "tool_hash"})
"""Fields by which things find each other: two of them masked would be one."""


_SURROGATES = re.compile("[\ud800-\udfff]")


class Unfit(Exception):
    """A value does not fit its field; the arguments are the path to it, innermost last."""


@dataclass(slots=True)
class Sink:
    """Where a value is written to: `clean` is applied to every text, `blobs` takes what is put `aside`."""

    clean: Callable[[str], str]
    aside: bool
    blobs: dict[str, bytes] = field(default_factory=dict)

    def takes(self, size: int) -> bool:
        return self.aside and size > BLOB_BYTES

    def unmasked(self) -> Sink:
        return Sink(as_it_is, self.aside, self.blobs)

    def put_aside(self, data: bytes) -> JSON:
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"blob": digest}


@dataclass(frozen=True, slots=True)
class Shape:
    """How one annotation is written and read."""

    write: Callable[[Any, Sink], JSON]
    read: Callable[[JSON, Callable[[str], bytes]], Any]


def as_it_is(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text)


# ── shapes of plain values ───────────────────────────────────────────────────────────────────────────


def _expect(value: Any, kinds: type | tuple[type, ...], what: str) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise Unfit(f"expected {what}, found {_shown(value)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _write_text(value: Any, sink: Sink) -> JSON:
    if type(value) is not str:
        _expect(value, str, "text")
    text = sink.clean(value)
    if len(text) > _SHORT and sink.takes(len(data := text.encode("utf-8", "replace"))):
        return sink.put_aside(data)
    return text


def _read_text(value: JSON, blob: Callable[[str], bytes]) -> str:
    if isinstance(value, dict):
        return _fetch(value, blob).decode("utf-8")
    _expect(value, str, "text")
    return str(value)


def _write_bytes(value: Any, sink: Sink) -> JSON:
    _expect(value, bytes, "bytes")
    return sink.put_aside(value) if sink.takes(len(value)) else base64.b64encode(value).decode("ascii")


def _read_bytes(value: JSON, blob: Callable[[str], bytes]) -> bytes:
    if isinstance(value, dict):
        return _fetch(value, blob)
    _expect(value, str, "base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unfit(f"not base64: {error}") from error


def _fetch(reference: dict[str, JSON], blob: Callable[[str], bytes]) -> bytes:
    digest = reference.get("blob")
    _expect(digest, str, "a blob's hash")
    return blob(str(digest))


def _write_number(value: Any, sink: Sink) -> JSON:
    _expect(value, (int, float), "a number")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_number(value: JSON, blob: Callable[[str], bytes]) -> int | float:
    _expect(value, (int, float), "a number")
    number: int | float = value
    return number


def _write_bool(value: Any, sink: Sink) -> JSON:
    _expect(value, bool, "true or false")
    return value


def _read_bool(value: JSON, blob: Callable[[str], bytes]) -> bool:
    _expect(value, bool, "true or false")
    return bool(value)


def _write_free(value: Any, sink: Sink) -> JSON:
    """Any JSON: what the other side sent, or arguments."""
    match value:
        case str():
            return sink.clean(value)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float():
            return value
        case MappingType():
            return {_key(name, sink): _write_free(one, sink) for name, one in value.items()}
        case list() | tuple():
            return [_write_free(one, sink) for one in value]
    raise Unfit(f"expected JSON, found {_shown(value)}")


def _key(name: Any, sink: Sink) -> str:
    _expect(name, str, "a text as a name")
    return sink.clean(name)


def _write_object(value: Any, sink: Sink) -> JSON:
    _expect(value, Mapping, "an object")
    return _write_free(value, sink)


def _read_object(value: JSON, blob: Callable[[str], bytes]) -> JSON:
    _expect(value, dict, "an object")
    return value


_PLAIN: Mapping[Any, Shape] = {
    str: Shape(_write_text, _read_text),
    bytes: Shape(_write_bytes, _read_bytes),
    int: Shape(_write_number, _read_number),
    float: Shape(_write_number, _read_number),
    bool: Shape(_write_bool, _read_bool),
    Any: Shape(_write_free, lambda value, blob: value),
}


# ── shapes made of shapes ────────────────────────────────────────────────────────────────────────────


def shape_of(hint: Any) -> Shape:
    """How values of an annotation are written and read; worked out once for each."""
    return _worked_out(hint)


@cache
def _worked_out(hint: Hashable) -> Shape:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if _is_value(hint):
        return _value(hint)
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return _choice(arguments)
        case origin if origin is tuple:
            return _sequence(shape_of(arguments[0]))
        case origin if origin in (Mapping, dict):
            return Shape(_write_object, _read_object)
        case origin if origin in (Union, types.UnionType):
            return _union(arguments)
    raise TypeError(f"no rule for {hint!r}: add one to sessions/codec.py")


def _choice(options: tuple[Any, ...]) -> Shape:
    def check(value: Any, _: Any) -> Any:
        if value not in options:
            raise Unfit(f"expected one of {', '.join(map(str, options))}, found {_shown(value)}")
        return value

    return Shape(check, check)


def _sequence(item: Shape) -> Shape:
    def write(value: Any, sink: Sink) -> JSON:
        return [item.write(one, sink) for one in value]

    def read(value: JSON, blob: Callable[[str], bytes]) -> Any:
        _expect(value, list, "a list")
        return tuple(item.read(one, blob) for one in value)

    return Shape(write, read)


def _union(hints: tuple[Any, ...]) -> Shape:
    """`X | None`, or several values told apart by their tag."""
    others = [hint for hint in hints if hint is not type(None)]
    inner = shape_of(others[0]) if len(others) == 1 else _tagged(others)
    if len(others) == len(hints):
        return inner
    return Shape(
        lambda value, sink: None if value is None else inner.write(value, sink),
        lambda value, blob: None if value is None else inner.read(value, blob),
    )


def _tagged(kinds: list[Any]) -> Shape:
    by_tag = {TAGS[kind]: kind for kind in kinds}

    def write(value: Any, sink: Sink) -> JSON:
        if type(value) not in kinds:
            raise Unfit(f"expected one of {', '.join(by_tag)}, found {_shown(value)}")
        return {"type": TAGS[type(value)], **shape_of(type(value)).write(value, sink)}

    def read(value: JSON, blob: Callable[[str], bytes]) -> Any:
        _expect(value, dict, "an object")
        tag = value.get("type")
        if not isinstance(tag, str) or tag not in by_tag:
            raise Unfit(f"unknown type {_shown(tag)}")
        return shape_of(by_tag[tag]).read({name: one for name, one in value.items() if name != "type"}, blob)

    return Shape(write, read)


def _stored_fields(kind: type[Any]) -> list[tuple[str, Any, Any]]:
    """Name, annotation and default of each field, but for those that are no part of the value.

    Fields that have their default value are left out: a default never changes without a migration.
    """
    return [(one.name, one.type, _default(one)) for one in fields(kind) if one.name not in _NEVER_STORED]


def _is_value(hint: Any) -> TypeGuard[type[Value]]:
    """Whether an annotation is one of our values, and not made of others."""
    return isinstance(hint, type) and issubclass(hint, Value)


def _value(kind: type[Any]) -> Shape:
    stored = _stored_fields(kind)
    quick = {name: hint for name, hint, _ in stored if hint in (str, int, bool)}
    writers = [(name, shape_of(hint).write, default) for name, hint, default in stored]
    readers = {name: shape_of(hint).read for name, hint, _ in stored}
    needed = {name for name, _, default in stored if default is NODEFAULT}

    def write(value: Any, sink: Sink) -> JSON:
        if not isinstance(value, kind):
            raise Unfit(f"expected a {TAGS.get(kind, kind.__name__)}, found {_shown(value)}")
        found, name = {}, ""
        try:
            for name, write_one, default in writers:
                one = getattr(value, name)
                if one is not default and one != default:
                    found[name] = write_one(one, sink.unmasked() if name in _NEVER_MASKED else sink)
        except Unfit as unfit:
            raise Unfit(name, *unfit.args) from unfit
        return found

    def read(value: JSON, blob: Callable[[str], bytes]) -> Any:
        if type(value) is not dict:
            _expect(value, dict, "an object")
        found, name = {}, ""
        try:
            for name, one in value.items():
                if type(one) is quick.get(name):  # what needs no reading: most fields of most entries
                    found[name] = one
                    continue
                read_one = readers.get(name)
                if read_one is None:
                    raise Unfit("this field is unknown here")
                found[name] = read_one(one, blob)
        except Unfit as unfit:
            raise Unfit(name, *unfit.args) from unfit
        if not needed <= found.keys():
            raise Unfit(f"field {min(needed - found.keys())!r} is missing")
        return kind(**found)

    return Shape(write, read)


def _default(one: FieldInfo) -> Any:
    return one.default if one.default_factory is NODEFAULT else one.default_factory()
