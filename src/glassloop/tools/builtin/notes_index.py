"""A full-text index of one folder of notes, in memory, brought up to date before each search.

SQLite's FTS5 ranks (BM25); its trigram tokenizer does not find words of two letters, as most Chinese words are,
so `notes_text.spelled` makes each letter of such a script a word, and a word is searched as a phrase.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.notes_text import FileState, NotReadable, passages, read, spelled, state, walk

_MAX_TERMS = 40
_SNIPPET = 240
_OPEN, _CLOSE = "\x02", "\x03"

_SCHEMA = """
CREATE VIRTUAL TABLE passages USING fts5(
    context, body, path UNINDEXED, first_line UNINDEXED, original UNINDEXED,
    tokenize = 'porter unicode61 remove_diacritics 2'
)
"""
_FIND = """
SELECT path, first_line, original, highlight(passages, 1, ?, ?) FROM passages
WHERE passages MATCH ? ORDER BY bm25(passages, 0.6, 1.0), path, first_line LIMIT ?
"""
_HEADROOM = 5
"""Rows fetched for each hit wanted, since several may fall on the same line or file name."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place found: the file relative to the folder, the line (from 1), and its text with what follows."""

    path: str
    line: int
    snippet: str


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, best first, and what was searched. `skipped` counts files by the reason."""

    hits: tuple[Hit, ...]
    files: int
    skipped: Mapping[str, int]


class NotesIndex:
    """The index of one folder. Safe to search from several threads.

    Raises `ConfigError` if this Python's SQLite has no FTS5.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._states: dict[str, FileState] = {}
        self._rows: dict[str, list[int]] = {}
        self._unreadable: dict[str, tuple[FileState, str]] = {}
        self._database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        try:
            self._database.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            raise ConfigError(
                f"search_notes needs SQLite with FTS5, which this Python lacks: {error}"
            ) from error

    def search(self, query: str, limit: int) -> Found:
        """The best `limit` hits: first passages with all of the query, then with parts of it."""
        with self._lock:
            skipped = self._refresh()
            hits: dict[tuple[str, int], Hit] = {}
            for expression in _expressions(query):
                for hit in self._matches(expression, limit * _HEADROOM, {path for path, _ in hits}):
                    if len(hits) < limit:
                        hits.setdefault((hit.path, hit.line), hit)
            return Found(tuple(hits.values()), len(self._states), skipped)

    def _matches(self, expression: str, rows: int, known: set[str]) -> Iterator[Hit]:
        known = set(known)
        for path, first_line, original, marked in self._database.execute(
            _FIND, (_OPEN, _CLOSE, expression, rows)
        ):
            # Where only the file's name or the heading matched, one hit for the file is enough.
            if _OPEN not in marked and path in known:
                continue
            known.add(path)
            yield _hit(path, first_line, original, marked)

    def _refresh(self) -> Mapping[str, int]:
        """Read what is new or changed, forget what is gone; the reasons why files are left out."""
        self._database.execute("BEGIN")  # one for all files: FTS5 merges its segments at each commit
        try:
            return self._read_all()
        finally:
            self._database.execute("COMMIT")

    def _read_all(self) -> Mapping[str, int]:
        skipped: Counter[str] = Counter()
        present: set[str] = set()
        for path, reason in walk(self.root):
            try:
                if reason:
                    raise NotReadable(reason)
                self._read_if_changed(path)
                present.add(path)
            except NotReadable as why:
                skipped[str(why)] += 1
        for path in self._states.keys() - present:
            self._forget(path)
        return skipped

    def _read_if_changed(self, path: str) -> None:
        now = state(self.root / path)
        if self._states.get(path) == now:
            return
        before, why = self._unreadable.get(path, (None, ""))
        if before == now:
            raise NotReadable(why)
        self._forget(path)
        try:
            text = read(self.root / path)
        except NotReadable as error:
            self._unreadable[path] = (now, str(error))
            raise
        self._add(path, text)
        self._states[path] = now

    def _add(self, path: str, text: str) -> None:
        shown = os.fsencode(path).decode("utf-8", "replace").replace(os.sep, "/")
        rows = self._rows[path] = []
        for passage in passages(text):
            context = spelled(f"{shown} {passage.heading}")
            values = (context, spelled(passage.text), shown, passage.first_line, passage.text)
            row = self._database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", values).lastrowid
            rows.append(row or 0)

    def _forget(self, path: str) -> None:
        self._states.pop(path, None)
        self._unreadable.pop(path, None)
        rows = [(row,) for row in self._rows.pop(path, ())]
        self._database.executemany("DELETE FROM passages WHERE rowid = ?", rows)


def _expressions(query: str) -> list[str]:
    """The query for FTS5, strict to loose. Everything is quoted, so nothing in it is syntax."""
    phrases = [spelled(word).split() for word in query.split()]
    phrases = [phrase for phrase in phrases if phrase][:_MAX_TERMS]
    if not phrases:
        return []
    together = " AND ".join(_quoted(phrase) for phrase in phrases)
    parts = [part for phrase in phrases for part in _parts(phrase)][:_MAX_TERMS]
    return [together, " OR ".join(dict.fromkeys(parts))]


def _quoted(words: list[str]) -> str:
    return '"' + " ".join(words) + '"'


def _parts(phrase: list[str]) -> Iterator[str]:
    """Pieces of a phrase that mean something alone: words, with any ending, and pairs of single letters."""
    if len(phrase) == 1:
        yield _quoted(phrase) + (" *" if len(phrase[0]) > 2 else "")
        return
    for one, next_one in pairwise(phrase):
        yield _quoted([one, next_one])
    yield from (_quoted([word]) for word in phrase if not _is_letter(word))


_LETTER = re.compile(r"u[0-9a-f]+u")


def _is_letter(word: str) -> bool:
    return _LETTER.fullmatch(word) is not None


def _hit(path: str, first_line: int, original: str, marked: str) -> Hit:
    """The line of the passage with the most matches, or its first with any text."""
    lines = original.split("\n")
    counts = [line.count(_OPEN) for line in marked.split("\n")]
    filled = next((number for number, line in enumerate(lines) if line.strip()), 0)
    best = max(range(len(counts)), key=lambda number: (counts[number], -number)) if any(counts) else filled
    place = marked.split("\n")[best].find(_OPEN) / max(1, len(marked.split("\n")[best]))
    return Hit(path, first_line + best, _snippet(lines, best, place))


def _snippet(lines: list[str], best: int, place: float) -> str:
    """The line and what follows it; of a very long line, what stands around the match (`place`: 0 to 1)."""
    text = lines[best].strip()
    if len(text) > _SNIPPET:
        start = max(0, int(len(text) * place) - _SNIPPET // 3)
        return ("… " if start else "") + text[start : start + _SNIPPET].strip() + " …"
    following = " / ".join(line.strip() for line in lines[best + 1 :] if line.strip())
    whole = f"{text} / {following}" if following else text
    return whole if len(whole) <= _SNIPPET else whole[:_SNIPPET].rstrip() + " …"
