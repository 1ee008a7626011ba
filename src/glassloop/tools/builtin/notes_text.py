"""Note files as text: which files count, how bytes are decoded, where a file is cut into passages, and how text
is spelled for the full-text index. Nothing here knows of SQLite.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_FILE_BYTES = 5_000_000
MAX_FILES = 20_000

_SUFFIXES = frozenset({"", ".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".org", ".adoc"})

# Why a file is not searched, in the words of the answer.
LINK = "symbolic link"
TOO_LARGE = f"larger than {MAX_FILE_BYTES // 1_000_000} MB"
NOT_TEXT = "not Markdown or text"
UNREADABLE = "unreadable"
TOO_MANY = f"beyond the first {MAX_FILES}"

_BYTE_ORDER_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ENCODINGS = ("utf-8", "gb18030", "cp1252")
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")

_PASSAGE_LINES = 12
"""A passage ends at the first empty line after so many lines, and at twice as many in any case."""

_LONG_LINE = 2000
_OVERLAP = 50
"""A longer line is cut into passages of so many characters, which overlap so that no word is lost at the cut."""

_HEADING = re.compile(r"#{1,6}\s+(.*)")


class NotReadable(Exception):
    """This file is not searched; the message is one of the reasons above."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells whether a file has changed since it was read."""

    modified: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Passage:
    """Some lines of a file, the number of the first (from 1), and the heading under which they stand."""

    first_line: int
    heading: str
    text: str


def walk(root: Path) -> Iterator[tuple[str, str]]:
    """Every file under `root`, as (path relative to it, why it is skipped or ""), sorted; hidden ones left out.

    Links are never followed: they lead to what is found anyway, out of the folder, or nowhere.
    """
    kept = 0
    for folder, folders, files in os.walk(root):
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in linked)
        for name in sorted([*files, *linked]):
            if name.startswith("."):
                continue
            path = os.path.join(folder, name)
            reason = _reason_by_name(path)
            kept += not reason
            yield os.path.relpath(path, root), TOO_MANY if kept > MAX_FILES and not reason else reason


def _reason_by_name(path: str) -> str:
    if os.path.islink(path):
        return LINK
    return "" if os.path.splitext(path)[1].lower() in _SUFFIXES else NOT_TEXT


def state(path: Path) -> FileState:
    """The file's present state. Raises `NotReadable`."""
    try:
        return _checked(path.lstat())
    except OSError as error:
        raise NotReadable(UNREADABLE) from error


def _checked(found: os.stat_result) -> FileState:
    if not stat.S_ISREG(found.st_mode):
        raise NotReadable(LINK if stat.S_ISLNK(found.st_mode) else NOT_TEXT)
    if found.st_size > MAX_FILE_BYTES:
        raise NotReadable(TOO_LARGE)
    return FileState(found.st_mtime_ns, found.st_size, found.st_ino)


def read(path: Path) -> str:
    """The file's text with plain line ends. What was opened is checked, not only its name. Raises `NotReadable`."""
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        with open(os.open(path, flags), "rb") as file:
            _checked(os.fstat(file.fileno()))
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise NotReadable(UNREADABLE) from error
    if len(data) > MAX_FILE_BYTES:
        raise NotReadable(TOO_LARGE)
    return decode(data).replace("\r\n", "\n").replace("\r", "\n")


def decode(data: bytes) -> str:
    """Text by its byte order mark, else UTF-8, else GB 18030, else Windows-1252. Raises `NotReadable` for binary."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if _CONTROLS.search(data):
        raise NotReadable(NOT_TEXT)
    for encoding in _ENCODINGS:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise NotReadable(NOT_TEXT)


def passages(text: str) -> Iterator[Passage]:
    """The text in pieces of a few paragraphs, cut before headings and at empty lines; a very long line in pieces."""
    first, heading = 1, ""
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        found = _HEADING.match(line)
        if lines and (found or len(line) > _LONG_LINE or _is_full(lines)):
            yield Passage(first, heading, "\n".join(lines))
            lines = []
        if found:
            heading = found.group(1).strip()[:_LONG_LINE]
        if len(line) > _LONG_LINE:
            for at in range(0, len(line), _LONG_LINE):
                yield Passage(number, heading, line[at : at + _LONG_LINE + _OVERLAP])
            continue
        if not lines:
            first = number
        lines.append(line)
    if lines:
        yield Passage(first, heading, "\n".join(lines))


def _is_full(lines: list[str]) -> bool:
    ends_a_paragraph = not lines[-1].strip()
    return len(lines) >= (_PASSAGE_LINES if ends_a_paragraph else 2 * _PASSAGE_LINES)


# ── spelling for the index ───────────────────────────────────────────────────────────────────────────

# Scripts that put no spaces between words: each letter is a word of its own, and a word is a phrase of them.
_UNSPACED = (
    "CJK ",
    "HIRAGANA ",
    "KATAKANA",
    "HANGUL ",
    "BOPOMOFO ",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
    "TIBETAN ",
)


class _Spelling(dict[int, str | int]):
    """What each character becomes, worked out once for each: `str.translate` asks here."""

    def __missing__(self, code: int) -> str | int:
        self[code] = spelled = _spelled(chr(code))
        return spelled


def _spelled(character: str) -> str | int:
    category = unicodedata.category(character)
    if character == "\n" or (character.isascii() and character.isalnum()):
        return ord(character)
    unspaced = category == "Lo" and unicodedata.name(character, "CJK ").startswith(_UNSPACED)
    if unspaced or category == "So":
        # Spelled in ASCII, so that the index need not know the character: its tables are older than many.
        return f" u{ord(character):x}u "
    return ord(character) if category[0] in "LMN" else " "


_SPELLING = _Spelling()


def spelled(text: str) -> str:
    """The text as the index takes it: compatibility forms folded, words apart, one symbol or CJK letter a word.

    Line ends stay where they are, so that a place in the result tells the line.
    """
    return unicodedata.normalize("NFKC", text).translate(_SPELLING)
