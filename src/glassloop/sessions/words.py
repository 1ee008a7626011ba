"""Full-text search over everything said. Scripts without spaces between words are indexed letter by letter, so
that a Chinese word of two letters is found, and a word is searched as a phrase of its letters.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from glassloop.core.entries import Note, Reply, Summary, ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.sessions import branch
from glassloop.sessions.branch import Row

_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u303f\u3040-\u30ff\u3100-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff])"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, Hangul, kana, bopomofo and all Han letters."""

_INDEXED = ("user", "reply", "tool_result", "note", "summary")
_MOST_OF_ONE_ENTRY = 50_000
_MOST_TERMS = 20
_SNIPPET = 160

_NEW = """
SELECT entry_id, parent_id, run_id, seq, type, body, masked, seconds, cost, at_ms FROM entry
WHERE entry_id > (SELECT CAST(v AS INTEGER) FROM meta WHERE k = 'indexed_to') ORDER BY entry_id LIMIT ?
"""
_UNINDEXED = """
SELECT count(*) FROM entry
WHERE entry_id > coalesce((SELECT CAST(v AS INTEGER) FROM meta WHERE k = 'indexed_to'), 0)
"""
# The best are chosen by the index alone; only those are then looked up.
_FIND = """
SELECT entry.entry_id, parent_id, entry.run_id, seq, type, entry.body, masked, seconds, cost, at_ms,
       run.session_id, coalesce(session.name, ''), session.title
FROM (SELECT rowid AS id, rank AS place FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?)
JOIN entry ON entry_id = id JOIN run USING(run_id) JOIN session USING(session_id)
ORDER BY place, id DESC
"""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found: where it is, and its text around the first word that was looked for."""

    session_id: str
    name: str
    title: str
    run_id: str
    entry_id: int
    kind: str
    at_ms: int
    snippet: str


def unindexed(connection: sqlite3.Connection) -> int:
    """How many entries no search has seen yet. They are indexed before the next one: most runs are never searched."""
    (count,) = connection.execute(_UNINDEXED).fetchone()
    return int(count)


def index_some(connection: sqlite3.Connection, most: int = 2000) -> bool:
    """Index the next entries that are not yet, inside a transaction. False when there is nothing left."""
    connection.execute("INSERT INTO meta VALUES ('indexed_to', '0') ON CONFLICT DO NOTHING")
    rows = [Row(*row) for row in connection.execute(_NEW, (most,))]
    if not rows:
        return False
    for row in rows:
        if row.type in _INDEXED:
            text = spelled(_text_of_row(connection, row)[:_MOST_OF_ONE_ENTRY])
            connection.execute("INSERT INTO words(rowid, body) VALUES (?, ?)", (row.entry_id, text))
    connection.execute("UPDATE meta SET v = ? WHERE k = 'indexed_to'", (str(rows[-1].entry_id),))
    return len(rows) == most


def search(connection: sqlite3.Connection, query: str, limit: int) -> list[Hit]:
    """The best entries that hold all the words, in any spelling of width or case."""
    expression = " AND ".join(_phrases(query))
    if not expression:
        return []
    found = connection.execute(_FIND, (expression, limit)).fetchall()
    return [_hit(connection, Row(*one[:10]), one[10:], query) for one in found]


def _hit(connection: sqlite3.Connection, row: Row, session: Sequence[Any], query: str) -> Hit:
    session_id, name, title = session
    snippet = _snippet(_text_of_row(connection, row), query)
    return Hit(session_id, name, title, row.run_id, row.entry_id, row.type, row.at_ms, snippet)


def _text_of_row(connection: sqlite3.Connection, row: Row) -> str:
    try:
        (stored,) = branch.read(connection, [row])
    except SessionError as error:
        return f"(damaged: {error})"
    return text_of(stored.record.value)


def text_of(value: Any) -> str:
    """What people would look for in an entry."""
    match value:
        case Reply() as reply:
            calls = [f"{call.name} {_arguments(call.arguments, call.text)}" for call in reply.tool_calls]
            return "\n".join(one for one in (reply.text, reply.reasoning, *calls) if one)
        case User() | ToolResult() | Note() | Summary():
            return value.text
    return ""


def _arguments(arguments: Any, text: str) -> str:
    return text if arguments is None else json.dumps(arguments, ensure_ascii=False)


def spelled(text: str) -> str:
    """The text as the index takes it: compatibility forms folded, letters of unspaced scripts apart."""
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFKC", text))


def _phrases(query: str) -> Iterator[str]:
    """Each word quoted, so that nothing in it is syntax; a word of an alphabet may go on."""
    for word in query.split()[:_MOST_TERMS]:
        letters = re.findall(r"\w+", spelled(word))
        if letters:
            goes_on = len(letters) == 1 and len(letters[0]) > 2
            yield '"' + " ".join(letters) + '"' + (" *" if goes_on else "")


def _snippet(text: str, query: str) -> str:
    folded = text.casefold()
    places = [place for word in query.casefold().split() if (place := folded.find(word)) >= 0]
    start = max(0, min(places, default=0) - _SNIPPET // 3)
    piece = " ".join(text[start : start + _SNIPPET].split())
    return ("… " if start else "") + piece + (" …" if start + _SNIPPET < len(text) else "")
