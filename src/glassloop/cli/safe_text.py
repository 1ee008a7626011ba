"""Text from models, tools and endpoints, made safe to show: what could move the cursor or hide is spelled out."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1: escape sequences begin here; newline and tab stay
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # soft hyphen, fillers, invisible marks
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"  # zero width, line separators, bidi
    "\ufe00-\ufe0f"  # variation selectors
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # format controls, tags, more selectors
    "\ud800-\udfff"  # half of a surrogate pair: no terminal can show it
    "]"
)
_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    """The text with every control, bidi and invisible character as an escape such as `\\x1b` or `\\u202e`.

    Newlines and tabs stay, and so do the joiners and variation selectors that emoji, Persian, Indic and Han
    writing need, where they stand between such characters.
    """
    text = text.replace("\r\n", "\n")
    return INVISIBLE.sub(_escaped, text)


def one_line(text: str) -> str:
    """`visible`, with every run of white space as a single space."""
    return visible(" ".join(text.split()))


def _escaped(found: re.Match[str]) -> str:
    character, text, at = found.group(), found.string, found.start()
    if _belongs(character, text[at - 1 : at], text[at + 1 : at + 2]):
        return character
    return escape(character)


def escape(character: str) -> str:
    """The spelling of one character as in a Python string."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _belongs(character: str, before: str, after: str) -> bool:
    """Whether an invisible character is part of how its neighbours are written."""
    if character in _JOINERS:
        return _takes_marks(before) and _takes_marks(after)
    if "\ufe00" <= character <= "\ufe0f":
        return _takes_marks(before) or (before != "" and before in "0123456789#*" and character == "\ufe0f")
    if "\U000e0100" <= character <= "\U000e01ef":
        return before != "" and "CJK" in unicodedata.name(before, "")
    return False


def _takes_marks(character: str) -> bool:
    """A letter, mark or symbol outside ASCII; one variation selector may stand between it and a joiner."""
    if not character or character < "\x80":
        return False
    return character == "\ufe0f" or (
        not INVISIBLE.match(character) and unicodedata.category(character)[0] in "LMS"
    )


class SafeStream:
    """`visible` for text that comes in pieces: a piece's end waits until it is known what follows it."""

    def __init__(self) -> None:
        self._held = ""
        self._last = ""

    def feed(self, piece: str) -> str:
        """The part that can be shown now."""
        text = self._held + piece
        keep = 1 if text and (text[-1] in _JOINERS or text[-1] == "\r") else 0
        self._held = text[len(text) - keep :]
        return self._shown(text[: len(text) - keep])

    def end(self) -> str:
        """What was still held back; the stream can then be used for the next text."""
        rest = self._shown(self._held)
        self._held = self._last = ""
        return rest

    def _shown(self, text: str) -> str:
        if not text:
            return ""
        before, self._last = self._last, text[-1]
        shown = visible(before + text)
        return shown[len(visible(before)) :]


# ── Width: how many columns text takes on a terminal ─────────────────────────────────────────────────


@lru_cache(maxsize=1)
def _cells() -> Any:
    from rich.cells import cell_len, chop_cells

    return cell_len, chop_cells


def width_of(text: str) -> int:
    """Terminal columns of one line of text; wide characters count two."""
    if text.isascii():
        return len(text)
    return int(_cells()[0](text))


def shortened(text: str, columns: int) -> str:
    """One line cut to at most `columns`, ending in `…` if something was left out."""
    head = text[: 4 * columns + 4]  # marks without width come after letters, so this much always suffices
    if len(head) == len(text) and width_of(text) <= columns:
        return text
    if columns <= 1:
        return "…"[:columns]
    return _head(head, columns - 1).rstrip() + "…"


def _head(text: str, columns: int) -> str:
    if text.isascii():
        return text[:columns]
    # A character takes at most two columns, so that a long line need not be measured as a whole.
    pieces = _cells()[1](text[: columns + 1], columns)
    return pieces[0] if pieces else ""


_OPENING = "（《〈【「『〔“"
_CLOSING = "，。、；：？！）》〉】」』〕”…—～·"
_WIDE = "\u2e80-\u3000\u3003-\u3007\u3012-\u303f\u3040-\ua4cf\uf900-\ufaff\uff10-\uffef\U00020000-\U0003fffd"
_UNIT = re.compile(
    rf"[{_OPENING}]*(?:[{_WIDE}][{_CLOSING},.;:!?)\]\ufe0f]*|[^\s{_WIDE}{_OPENING}{_CLOSING}]*[{_CLOSING}]*)\s*"
)
"""What is kept on one line: a word, or one character of a writing without spaces, with the marks that belong to it."""


def wrapped(text: str, columns: int) -> list[str]:
    """The text's lines, to fit into so many columns, at least 2.

    They are broken at spaces and between Chinese or Japanese characters, but not before a closing mark or after
    an opening one; what is longer than a line is cut anywhere.
    """
    columns = max(2, columns)
    return [line for paragraph in text.split("\n") for line in _filled(paragraph.expandtabs(4), columns)]


def _filled(text: str, columns: int) -> list[str]:
    lines, line, used = [], "", 0
    for unit in (piece for found in _UNIT.finditer(text) for piece in _pieces(found.group(), columns)):
        if line and used + width_of(unit.rstrip()) > columns:
            lines.append(line.rstrip())
            line, used = "", 0
        line += unit
        used += width_of(unit)
    return [*lines, line.rstrip()]


def _pieces(unit: str, columns: int) -> list[str]:
    if width_of(unit.rstrip()) <= columns:
        return [unit]
    return list(_cells()[1](unit.rstrip(), columns)) + ([" "] if unit[-1].isspace() else [])
