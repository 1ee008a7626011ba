"""What `write_file` and `edit_file` do, and what a person is shown before. An edit never touches a byte outside it."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from glassloop.core.entries import JSON
from glassloop.tools.builtin.files_diff import near_miss, unified
from glassloop.tools.builtin.files_read import MAX_BYTES, document_of
from glassloop.tools.builtin.files_text import Document, lines_of, with_ends
from glassloop.tools.builtin.rooted import make_folders, read_bytes, status
from glassloop.tools.builtin.rooted_changes import check_writable, replace
from glassloop.tools.builtin.rooted_names import Parts, Root, new_parts_of, shown

MAX_WRITTEN = 5_000_000
MAX_DIFF = 12_000


@dataclass(frozen=True, slots=True)
class _Change:
    """What a call would do to one file: the new bytes, and the file and text as they were (None: no file)."""

    parts: Parts
    data: bytes
    text: str
    before: os.stat_result | None
    old: Document | None

    @property
    def diff(self) -> str:
        old = _compared(self.old.text if self.old else "")
        return unified(old, _compared(self.text), shown(self.parts))


def _compared(text: str) -> list[str]:
    """The lines as a diff has them: a line end ends the last one, and begins none; where it lacks, that is said."""
    *lines, last = lines_of(text)
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


# ── write ────────────────────────────────────────────────────────────────────────────────────────────


def write_file(root: Root, path: str, content: str) -> str:
    """Write a whole text file: make it, or replace what is in it. Use it for new files; to change a part, edit_file.

    Missing folders are made. A file that is there keeps its encoding, its kind of line ends and its mode.

    Args:
        path: The file, from the root folder down, such as "docs/plan.md".
        content: All that shall be in the file.
    """
    change = _written(root, path, content)
    if change.old is not None and change.data == change.old.encoded(change.old.text):
        return f"{shown(change.parts)} has this content already."
    if change.before is None:
        make_folders(root, change.parts[:-1])
    replace(root, change.parts, change.data, change.before)
    if change.old is None:
        return f"Made {shown(change.parts)}: {len(change.data):,} bytes."
    return f"Replaced {shown(change.parts)}.\n{_cut(change.diff)}"


def preview_write(root: Root, path: str, content: str) -> str:
    """What `write_file` would do: the diff, or the whole new file. Raises what the call would raise."""
    change = _written(root, path, content)
    if change.old is None:
        return f"new file {shown(change.parts)}\n{change.diff or '(empty)'}"
    return change.diff or f"{shown(change.parts)} would stay as it is."


def replaces(root: Root, arguments: Mapping[str, JSON]) -> str:
    """What `write_file` would replace, as a hash; "none" for no file, and "" where it would change nothing."""
    change = _written(root, **arguments)
    if change.old is None:
        return "none"
    old = change.old.encoded(change.old.text)
    return "" if change.data == old else hashlib.sha256(old).hexdigest()


def _written(root: Root, path: str, content: str) -> _Change:
    parts = new_parts_of(root, path)
    if len(content) > MAX_WRITTEN:
        raise ValueError(f"the content has {len(content):,} characters, at most {MAX_WRITTEN:,} are written")
    before, old = _present(root, parts)
    if old is None:
        return _Change(parts, Document("").encoded(content), content, before, None)
    text = with_ends(content, old.line_end) if old.text else content
    return _Change(parts, old.encoded(text), text, before, old)


def _present(root: Root, parts: Parts) -> tuple[os.stat_result | None, Document | None]:
    """The file as it is, checked for writing; (None, None) where there is none."""
    try:
        if status(root, parts) is None:
            return None, None
    except FileNotFoundError:  # not even its folder
        return None, None
    return _writable_text(root, parts)


def _writable_text(root: Root, parts: Parts) -> tuple[os.stat_result, Document]:
    data, before = read_bytes(root, parts, MAX_BYTES)
    check_writable(parts, before)
    return before, document_of(parts, data)


# ── edit ─────────────────────────────────────────────────────────────────────────────────────────────


def edit_file(root: Root, path: str, old_text: str, new_text: str, occurrences: int = 1) -> str:
    """Replace an exact piece of a text file. Use it to change files; read the file first. Answers with the diff.

    All other bytes of the file stay as they are, its encoding and line ends too.

    Args:
        path: The file, from the root folder down, such as "src/main.py".
        old_text: What to replace: exactly as in the file, without line numbers, with enough lines around it to
            stand there only once.
        new_text: What to put in its place. Empty to delete it.
        occurrences: How often old_text stands in the file; all of them are replaced. If the count is wrong,
            nothing is changed.
    """
    change = _edited(root, path, old_text, new_text, occurrences)
    replace(root, change.parts, change.data, change.before)
    return f"Edited {shown(change.parts)}.\n{_cut(change.diff)}"


def preview_edit(root: Root, path: str, old_text: str, new_text: str, occurrences: int = 1) -> str:
    """The diff that `edit_file` would make. Raises what the call would raise."""
    return _edited(root, path, old_text, new_text, occurrences).diff


def _edited(root: Root, path: str, old_text: str, new_text: str, occurrences: int) -> _Change:
    parts = new_parts_of(root, path)
    if not old_text:
        raise ValueError("old_text is empty; give the text to replace, or use write_file for a new file")
    before, old = _writable_text(root, parts)
    new = replaced(old, old_text, new_text, occurrences, shown(parts))
    if new == old.text:
        raise ValueError("old_text and new_text are the same, so nothing would change")
    if len(new) > MAX_BYTES:
        raise ValueError(f"the file would have more than {MAX_BYTES:,} characters")
    return _Change(parts, old.encoded(new), new, before, old)


def replaced(document: Document, old_text: str, new_text: str, occurrences: int, name: str) -> str:
    """The document's text with the replacement made. Line ends are compared as equal and written as the file's.

    Raises `LookupError` if `old_text` does not stand there so often: how often and where it does, or what is near.
    """
    plain, sought = document.text.replace("\r\n", "\n"), old_text.replace("\r\n", "\n")
    end = document.line_end
    if end == "\r":
        plain, sought = plain.replace("\r", "\n"), sought.replace("\r", "\n")
    places = _places(plain, sought)
    if len(places) != max(1, occurrences):
        raise LookupError(_wrong_count(plain, sought, places, max(1, occurrences), name))
    dropped = _dropped(document.text)
    pieces, done = [], 0
    for place in places:
        start, stop = _original(dropped, place), _original(dropped, place + len(sought))
        pieces += [document.text[done:start], with_ends(new_text, end)]
        done = stop
    return "".join([*pieces, document.text[done:]])


def _places(text: str, sought: str) -> list[int]:
    found: list[int] = []
    at = text.find(sought)
    while at >= 0:
        found.append(at)
        at = text.find(sought, at + len(sought))
    return found


def _dropped(text: str) -> list[int]:
    """For each CR that goes when CRLF becomes a newline: the place in the shorter text where its newline is."""
    found: list[int] = []
    at = text.find("\r\n")
    while at >= 0:
        found.append(at - len(found))
        at = text.find("\r\n", at + 2)
    return found


def _original(dropped: list[int], place: int) -> int:
    """A place in the text with newlines only → the same place in the text as it is."""
    return place + bisect_left(dropped, place)


def _wrong_count(text: str, sought: str, places: list[int], wanted: int, name: str) -> str:
    if not places:
        near = near_miss(sought, text)
        return f"old_text is not in {name}, so nothing was changed. {near or 'Read the file again.'}"
    lines = [str(text.count("\n", 0, place) + 1) for place in places[:10]]
    more = ", …" if len(places) > 10 else ""
    where = f"{len(places)} times in {name} (line{'s' if len(places) > 1 else ''} {', '.join(lines)}{more})"
    how = (
        "Add lines around it until it is the only one, or set occurrences to that number to replace them all."
    )
    return f"old_text stands {where}, not {wanted}, so nothing was changed. {how}"


def _cut(diff: str) -> str:
    left = len(diff) - MAX_DIFF
    return diff if left <= 0 else f"{diff[:MAX_DIFF]}\n[{left} more characters of the diff]"
