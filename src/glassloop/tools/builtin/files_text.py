"""Bytes as text and back without loss: which encoding, which line ends, and what is no text at all."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass

SNIFFED = 8_192
"""Bytes from a file's start by which it is told whether it is text."""

# Byte order mark → the encoding behind it, and what people call it.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NAMES: Mapping[str, str] = {"utf-8": "UTF-8", "gb18030": "GB 18030", "cp1252": "Windows-1252"}

# How some kinds of file begin → what they are, and what to do about them.
_KINDS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF file"),
    (b"SQLite format 3\0", "an SQLite database; query_sqlite reads it"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive, as Office files are too"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"MZ", "a program"),
    (b"RIFF", "a sound, image or film"),
    (b"ID3", "a sound"),
    (b"\0asm", "a WebAssembly module"),
)
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_LINE_ENDS = {"\r\n": "CRLF", "\r": "CR", "\n": "LF"}


class NotText(Exception):
    """The bytes are no text that is known here. The message says what they seem to be."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text file: its text with the line ends as they are, and what is needed to write it as it was."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def line_end(self) -> str:
        """The line end that most lines have; a newline where there is none."""
        windows = self.text.count("\r\n")
        others = {
            "\r\n": windows,
            "\n": self.text.count("\n") - windows,
            "\r": self.text.count("\r") - windows,
        }
        return max(others, key=lambda end: (others[end], end == "\n"))

    @property
    def described(self) -> str:
        """Encoding and line ends for people, only what is not usual: "" for UTF-8 with newlines."""
        name = _NAMES.get(self.encoding, self.encoding.upper())
        unusual = (
            [name] if self.encoding != "utf-8" else ["UTF-8 with a byte order mark"] if self.mark else []
        )
        unusual += [_LINE_ENDS[self.line_end] + " line ends"] if self.line_end != "\n" else []
        return ", ".join(unusual)

    def encoded(self, text: str) -> bytes:
        """Other text for this file, as bytes. Raises `ValueError` for a character that the encoding lacks."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            name = _NAMES.get(self.encoding, self.encoding)
            raise ValueError(
                f"the file is in {name}, which cannot hold {text[error.start]!r}; leave it out, or write the whole "
                "file under a new name, in UTF-8"
            ) from error


def decode(data: bytes) -> Document:
    """Text by its byte order mark, else UTF-8, else GB 18030 or Windows-1252, whichever it looks like.

    Only what comes back as the same bytes counts. Raises `NotText`.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark) and (document := _exactly(data, encoding, mark)):
            return document
    if kind := binary_kind(data):
        raise NotText(kind)
    encodings = ("utf-8", "gb18030", "cp1252") if _looks_chinese(data) else ("utf-8", "cp1252", "gb18030")
    for encoding in encodings:
        if document := _exactly(data, encoding, b""):
            return document
    raise NotText("text in an encoding that is not known here")


def binary_kind(data: bytes) -> str:
    """What a file that is no text seems to be, by its first bytes or a control character; "" for text."""
    if any(data.startswith(mark) for mark, _ in _MARKS):
        return ""
    known = next((kind for start, kind in _KINDS if data.startswith(start)), "")
    if known and (known.startswith("a PDF") or _CONTROLS.search(data)):
        return known
    return "binary" if _CONTROLS.search(data) else ""


def _exactly(data: bytes, encoding: str, mark: bytes) -> Document | None:
    try:
        text = data[len(mark) :].decode(encoding)
        same = mark + text.encode(encoding) == data
    except UnicodeError:
        return None
    return Document(text, encoding, mark) if same else None


def _looks_chinese(data: bytes) -> bool:
    """Whether most bytes above ASCII stand in pairs: in Western text, accented letters stand alone."""
    high = re.findall(rb"[\x80-\xff]+", data[: 50 * SNIFFED])
    paired = sum(len(run) for run in high if len(run) > 1)
    return paired > sum(len(run) for run in high) / 2


# ── line ends ────────────────────────────────────────────────────────────────────────────────────────


def lines_of(text: str) -> list[str]:
    """The lines without their ends: CRLF, newline and, where it is the only one, CR."""
    return plain_ends(text).split("\n")


def plain_ends(text: str) -> str:
    """The text with newlines for whatever ends its lines."""
    text = text.replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n")


def with_ends(text: str, end: str) -> str:
    """The text with every line ending in `end`."""
    plain = text.replace("\r\n", "\n")
    return plain if end == "\n" else plain.replace("\n", end)


def around(line: str, place: int, width: int) -> str:
    """The line; of one longer than `width`, what stands around the place."""
    if len(line) <= width:
        return line
    start = max(0, min(place - width // 3, len(line) - width))
    return ("… " if start else "") + line[start : start + width] + (" …" if start + width < len(line) else "")
