"""Text for a terminal: safe text in pieces, and how many columns it takes. What is safe is said in `core/visible`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from glassloop.core.visible import INVISIBLE, JOINERS, one_line, visible

__all__ = ["INVISIBLE", "SafeStream", "laid_out", "one_line", "shortened", "visible", "width_of", "wrapped"]


class SafeStream:
    """`visible` for text that comes in pieces: a piece's end waits until it is known what follows it."""

    def __init__(self) -> None:
        self._held = ""
        self._last = ""

    def feed(self, piece: str) -> str:
        """The part that can be shown now."""
        text = self._held + piece
        keep = 1 if text and (text[-1] in JOINERS or text[-1] == "\r") else 0
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


_HEAD = re.compile(r"\s*(?:[^\w\s] (?=\S)|\S+ {2,}(?=\S))?")
"""What the further lines of a line stay clear of: its margin, and a mark (`! `) or a label (`/help   `) behind it."""


def laid_out(text: str, columns: int) -> list[str]:
    """`wrapped`, with the further lines of each line below its words: they hang under a mark, a label or a margin."""
    return [line for paragraph in text.split("\n") for line in _hanging(paragraph.expandtabs(4), columns)]


def _hanging(text: str, columns: int) -> list[str]:
    found = _HEAD.match(text)
    head = found.group() if found else ""
    margin = width_of(head)
    if width_of(text) <= columns or not head or margin > columns // 2:
        return wrapped(text, columns)
    first, *others = wrapped(text[len(head) :], columns - margin)
    return [head + first, *(" " * margin + line for line in others)]


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
