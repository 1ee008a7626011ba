"""What a tool returned or raised → parts that a model can be shown, within a limit. Never raises."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from glassloop.core.entries import File, Image, Part, Text
from glassloop.tools.values import without_surrogates

_MAX_ITEMS = 10_000
_LINE_SLACK = 200
_MAX_EXCEPTIONS = 5


def parts_from(value: Any) -> tuple[Part, ...]:
    """Any result as parts: text as it is, None as empty text, everything else as JSON where it can be."""
    if isinstance(value, (Text, Image, File)):
        return (value,)
    if isinstance(value, (list, tuple)) and any(isinstance(item, (Text, Image, File)) for item in value):
        return tuple(part for item in value for part in parts_from(item))
    return (Text(without_surrogates(_text(value))),)


def text_of_error(error: BaseException) -> str:
    """`TypeName: message`, without a traceback. A group of errors is told by its members."""
    if isinstance(error, BaseExceptionGroup):
        inner = [text_of_error(each) for each in error.exceptions[:_MAX_EXCEPTIONS]]
        return "; ".join(inner)
    name = type(error).__name__
    message = without_surrogates(_safely(str, error)).strip()
    return f"{name}: {message}" if message else name


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _decoded(bytes(value))
    if isinstance(value, BaseException):
        return text_of_error(value)
    try:
        return _json(list(islice(value, _MAX_ITEMS)) if isinstance(value, Iterator) else value)
    except Exception:  # circular, too deep, or a type that breaks when read: what it prints is next best
        return _safely(repr, value)


def _json(value: Any) -> str:
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(value, fallback=_fallback, inf_nan_mode="constants", bytes_mode="utf8")
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _fallback(value: Any) -> Any:
    """Types that JSON does not know: what has fields or items is those, the rest is what it prints."""
    if isinstance(value, Struct):
        return asdict(value)
    if isinstance(value, range):
        return list(value[:_MAX_ITEMS])
    return _safely(str, value)


def _safely(describe: Any, value: Any) -> str:
    try:
        return str(describe(value))
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are not text)"


# ── the limit ──────────────────────────────────────────────────────────────────────────────────────


class Spill:
    """Where the whole of a long output is kept: `folder`, or a private one that goes with this object."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def keep(self, text: str, name: str) -> Path:
        """Write the text into a new file that only this user can read. Raises `OSError`."""
        safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]
        handle, path = tempfile.mkstemp(prefix=f"{safe}-", suffix=".txt", dir=self._private_folder())
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return Path(path)

    def _private_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="glassloop-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder


def capped(parts: tuple[Part, ...], limit: int, spill: Spill, name: str) -> tuple[Part, ...]:
    """The parts with at most `limit` characters of text: head, tail, and a word on where the whole is kept."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if sum(map(len, texts)) <= limit:
        return parts
    text = texts[0] if len(texts) == 1 else "\n".join(texts)
    head, tail = _head(text, limit * 2 // 3), _tail(text, limit // 3)
    try:
        kept = f"the whole output is in {spill.keep(text, name)}"
    except OSError as error:
        kept = f"the whole output could not be saved: {error.strerror or error}"
    left_out = len(text) - len(head) - len(tail)
    note = f"\n\n[… {left_out} of {len(text)} characters left out; {kept} …]\n\n"
    return (Text(head + note + tail), *(part for part in parts if not isinstance(part, Text)))


def _head(text: str, size: int) -> str:
    """The first `size` characters, ending at a line's end where one is near."""
    end = text.rfind("\n", max(size - _LINE_SLACK, 1), size)
    return text[: end if end > 0 else size]


def _tail(text: str, size: int) -> str:
    start = len(text) - size
    line = text.find("\n", start, start + min(_LINE_SLACK, size // 2))
    return text[line + 1 if line >= 0 else start :]
