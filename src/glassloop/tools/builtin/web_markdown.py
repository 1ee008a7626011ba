"""Markdown, written from what a page says piece by piece. HTML is not known here, and nothing nests without a bound.

What is opened may be closed in any order, twice or never: the text is kept all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Mark = Literal["strong", "emphasis", "code", "struck", "link"]

_MAX_MARKS = 8
_MAX_LISTS = 6
_MAX_QUOTES = 4
_MAX_SPAN = 20
_LONG_CELL = 2_000
"""Characters of a cell beyond which a table is a layout and not a table."""

_AROUND: Mapping[Mark, str] = {"strong": "**", "emphasis": "*", "struck": "~~"}
_SPACE = re.compile(r"\s+")
_CJK = "\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_BREAK_IN_CJK = re.compile(rf"(?<=[{_CJK}])[ \t\r]*+\n\s*+(?=[{_CJK}])")
_BLANK_LINES = re.compile(r"\n{3,}")
_TICKS = re.compile(r"`+")
DEFINITION = ": "
"""The lead of a block that explains the one before it."""

_ONLY_AN_ANCHOR = frozenset("¶#§🔗")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, item, table or piece of code. `part` is what the caller called this part of the page.

    `follows`: it belongs right under the block before it, without a blank line.
    """

    text: str
    part: str
    follows: bool


@dataclass(slots=True)
class _List:
    number: int | None
    """Of the next item; None in a list without numbers."""

    marker: str = ""
    """Of the item that has begun and has no text yet."""

    indent: str = ""


@dataclass(slots=True)
class _Table:
    rows: list[list[list[str]]] = field(default_factory=list)
    cell: list[str] | None = None


class Writer:
    """Takes text and structure in the order of the page, and keeps finished `blocks`."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.part = ""
        self._inline: list[str] = []
        self._marks: list[tuple[Mark, int, str]] = []
        self._lists: list[_List] = []
        self._quotes = 0
        self._after_item = False
        self._lead = ""
        self._code: list[str] | None = None
        self._language = ""
        self._table: _Table | None = None

    # ── within a block ──

    def text(self, text: str) -> None:
        """Some text; white space counts as in HTML."""
        if self._code is not None:
            self._code.append(text)
            return
        text = _SPACE.sub(" ", _BREAK_IN_CJK.sub("", text) if "\n" in text else text)
        if not self._inline or self._inline[-1].endswith((" ", "\n")):
            text = text.lstrip(" ")
        if text:
            self._inline.append(text)

    def line_break(self) -> None:
        """A new line in the same block."""
        if self._code is not None:
            self._code.append("\n")
        elif self._inline:
            self._inline.append("\n")

    def open(self, mark: Mark, target: str = "") -> None:
        """From here on text is marked so; `target` is a link's, "" for one that leads nowhere else."""
        if self._code is None and len(self._marks) < _MAX_MARKS:
            self._marks.append((mark, len(self._inline), target))

    def close(self, mark: Mark) -> None:
        """The innermost mark of that kind ends, and what was opened within it."""
        at = next((at for at in reversed(range(len(self._marks))) if self._marks[at][0] == mark), None)
        if at is None:
            return
        _, start, target = self._marks[at]
        del self._marks[at:]
        inner = "".join(self._inline[start:])
        words = inner.strip()
        if mark == "link" and not target and words in _ONLY_AN_ANCHOR:
            words = ""
        if not words:
            self._inline[start:] = [inner] if inner.isspace() else []
            return
        before, after = inner[: inner.index(words[0])], inner[len(inner.rstrip()) :]
        self._inline[start:] = [f"{before}{_marked(words, mark, target)}{after}"]

    # ── blocks ──

    def end_block(self) -> None:
        """What was written since the last block is one."""
        if self._code is not None:
            if self._code and not self._code[-1].endswith("\n"):
                self._code.append("\n")
            return
        lead, self._lead = self._lead, ""
        if not "".join(self._inline).strip():  # what is marked has yet to come
            self._inline.clear()
            self._marks = [(mark, 0, target) for mark, _, target in self._marks]
            return
        while self._marks:
            self.close(self._marks[-1][0])
        text = _BLANK_LINES.sub("\n\n", "".join(self._inline).strip())
        self._inline.clear()
        if not text:
            return
        if self._table is not None and self._table.cell is not None:
            self._table.cell.append(text)
        else:
            lines = [line.strip() for line in text.split("\n")]
            self._add([" ".join(lines)] if lead.startswith("#") else lines, lead)

    def start_block(self, lead: str = "") -> None:
        """A new block, led by this (`## `)."""
        if lead.startswith("#"):
            self._spill_table()
        self.end_block()
        self._lead = lead

    def start_list(self, number: int | None) -> None:
        """A list, numbered from `number` on or not at all (None)."""
        self.end_block()
        if len(self._lists) < _MAX_LISTS:
            self._lists.append(_List(number))

    def end_list(self) -> None:
        self.end_block()
        if self._lists:
            self._lists.pop()

    def start_item(self) -> None:
        self.end_block()
        if not self._lists:
            self._lists.append(_List(None))
        inner = self._lists[-1]
        inner.marker = "- " if inner.number is None else f"{inner.number}. "
        inner.indent = " " * len(inner.marker)
        if inner.number is not None:
            inner.number += 1

    def start_quote(self) -> None:
        self.end_block()
        self._quotes += 1

    def end_quote(self) -> None:
        self.end_block()
        self._quotes = max(self._quotes - 1, 0)

    def rule(self) -> None:
        """A line across."""
        self.end_block()
        self._add(["---"])

    # ── code ──

    @property
    def in_code(self) -> bool:
        return self._code is not None

    def start_code(self, language: str) -> None:
        """Text as it is, until `end_code`."""
        if self._code is None:
            self._spill_table()
            self.end_block()
            self._code = []
        self._language = self._language or language

    def end_code(self) -> None:
        if self._code is None:
            return
        code = "".join(self._code).removeprefix("\n").rstrip()
        language, self._language, self._code = self._language, "", None
        if code:
            fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(code)), default=0))
            self._add([f"{fence}{language}", *code.splitlines(), fence])

    # ── tables ──

    def start_table(self) -> None:
        """A table. One within a cell of another makes the other a layout."""
        self._spill_table()
        self.end_block()
        self._table = _Table()

    def start_row(self) -> None:
        self.end_block()
        if self._table is not None:
            self._table.rows.append([])
            self._table.cell = None

    def start_cell(self, span: int) -> None:
        """A cell, as wide as `span` columns."""
        self.end_block()
        if self._table is None:
            return
        if not self._table.rows:
            self._table.rows.append([])
        cells: list[list[str]] = [[] for _ in range(min(max(span, 1), _MAX_SPAN))]
        self._table.rows[-1] += cells
        self._table.cell = cells[0]

    def end_table(self) -> None:
        self.end_block()
        if self._table is None:
            return
        rows = [[" ".join(cell).replace("\n", " ") for cell in row] for row in self._table.rows]
        rows = [row for row in rows if any(row)]
        wide = max(map(len, rows), default=0) > 1
        if not wide or any(len(cell) > _LONG_CELL for row in rows for cell in row):
            self._spill_table()
            return
        self._table = None
        lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
        self._add([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])

    def _spill_table(self) -> None:
        """The table that is open was a layout: its cells are blocks."""
        self.end_block()
        table, self._table = self._table, None
        for row in table.rows if table else ():
            for cell in filter(None, row):
                self._add(cell)

    # ── out ──

    def _add(self, lines: list[str], lead: str = "") -> None:
        quote = "> " * min(self._quotes, _MAX_QUOTES)
        inner = self._lists[-1] if self._lists else _List(None)
        margin = quote + "".join(each.indent for each in self._lists[:-1])
        first, others = margin + (inner.marker or inner.indent), margin + inner.indent
        follows = bool(self._after_item and inner.marker) or lead == DEFINITION
        self._after_item = bool(self._lists)
        inner.marker = ""
        text = "\n".join(
            ((others if number else first + lead) + line).rstrip() for number, line in enumerate(lines)
        )
        self.blocks.append(Block(text, self.part, follows))


def joined(blocks: list[Block]) -> str:
    """The blocks as one text."""
    pieces = []
    for block in blocks:
        pieces += ["\n" if block.follows else "\n\n", block.text]
    return "".join(pieces[1:])


def _marked(words: str, mark: Mark, target: str) -> str:
    if mark == "link":
        words = " ".join(words.split("\n"))
        return words if not target or words == target else f"[{words}]({target})"
    if mark == "code":
        ticks = "`" * (1 + max(map(len, _TICKS.findall(words)), default=0))
        pad = " " if len(ticks) > 1 else ""
        return f"{ticks}{pad}{words}{pad}{ticks}"
    return f"{_AROUND[mark]}{words}{_AROUND[mark]}"
