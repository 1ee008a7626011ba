"""What `find_files` and `search_files` do. A model's regular expression is never run in this process."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from time import monotonic

from glassloop.core.visible import exact
from glassloop.tools.builtin.files_glob import MAX_PATTERN, expanded, matches
from glassloop.tools.builtin.files_query import MAX_FILE, Found, Query, search_plainly
from glassloop.tools.builtin.files_ripgrep import ripgrep, search_by_ripgrep
from glassloop.tools.builtin.rooted import check_file, existing
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root, is_secret, parts_of, shown
from glassloop.tools.builtin.rooted_walk import MAX_ENTRIES, Entry, walk

MAX_FOUND = 1_000
MAX_MATCHES = 200
MAX_CONTEXT = 10
MAX_SECONDS = 20.0


def find_files(root: Root, pattern: str, path: str = ".", limit: int = 200) -> str:
    """Find files by name. Use it when you know a part of a name or an ending; search_files looks inside files.

    What .gitignore names is left out; links are never followed.

    Args:
        pattern: A glob: `*.py` takes names in any folder, `src/**/*.{ts,tsx}` whole paths below `path`.
        path: The folder to look in, from the root folder down. Leave it out for all.
        limit: How many to show, 1 to 1000.
    """
    if not 1 <= limit <= MAX_FOUND:
        raise ValueError(f"limit is {limit}; it must be 1 to {MAX_FOUND}")
    patterns = _patterns(pattern)
    start = parts_of(root, path)
    found: list[str] = []
    looked = left = 0
    for entry in walk(root, start):
        looked += 1
        if not any(matches(each, entry.parts[len(start) :]) for each in patterns):
            continue
        if len(found) < limit:
            found.append(shown(entry.parts) + _MARKS.get(entry.kind, ""))
        else:
            left += 1
    if not found:
        where = f"{looked} files and folders looked at"
        found = [f"Nothing in {shown(start)} is named {exact(pattern)} ({where})."]
    more = [f"[{left} more; use a narrower pattern]"] if left else []
    return "\n".join([*found, *more, *_too_much(looked)])


def _too_much(looked: int) -> list[str]:
    """A word on what was not looked at, if there was more than is ever looked at."""
    word = f"[only the first {MAX_ENTRIES:,} files and folders were looked at]"
    return [word] if looked >= MAX_ENTRIES else []


_MARKS = {"folder": "/", "link": " (a link, not followed)"}


def _patterns(pattern: str) -> list[Parts]:
    """The pattern's variants as names; without a slash it is meant for any folder. Raises `Refused`."""
    if not pattern.strip() or len(pattern) > MAX_PATTERN:
        raise ValueError(f"the pattern has {len(pattern)} characters; give 1 to {MAX_PATTERN}")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise Refused(
            "a pattern begins at `path` and has no `..`: write `src/**/*.py`, not `/src` or `../src`"
        )
    variants = [
        tuple(name for name in each.split("/") if name not in ("", ".")) for each in expanded(pattern)
    ]
    return [variant if len(variant) > 1 else ("**", *variant) for variant in variants if variant]


# ── in files ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Search:
    """A search as far as it went: blocks to show, and files counted by why they were not searched."""

    blocks: list[str] = field(default_factory=list)
    matches: int = 0
    looked: int = 0
    files: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    late: bool = False


def search_files(
    root: Root,
    text: str,
    path: str = ".",
    files: str = "*",
    *,
    ignore_case: bool = False,
    regex: bool = False,
    context: int = 0,
    limit: int = 50,
) -> str:
    """Search inside files for a text, in any language. Use it to find where something is before you read a file.

    What .gitignore names, binary files and files that hold keys are left out.

    Args:
        text: What to look for, in one line, exactly as it stands there.
        path: The folder or file to search, from the root folder down. Leave it out for all.
        files: Only files whose name or path takes this glob, such as "*.py".
        ignore_case: Upper and lower case are the same.
        regex: `text` is a regular expression, in ripgrep's syntax.
        context: Lines to show before and after each match, 0 to 10.
        limit: How many matches to show, 1 to 200.
    """
    query = Query(text, ignore_case, context, limit, monotonic() + MAX_SECONDS)
    _check(query)
    start, patterns = parts_of(root, path), _patterns(files)
    program = ripgrep(root) if regex else None
    search = _Search()
    candidates = _candidates(root, start, patterns, search)
    if program:
        _collect(search_by_ripgrep(program, root, candidates, query), search, query)
    else:
        _collect(search_plainly(root, candidates, query), search, query)
    notes = [_NO_RIPGREP] if regex and not program else []
    return "\n\n".join([*search.blocks, *notes, *_notes(search, query, start)])


_NO_RIPGREP = "[ripgrep (rg) is not installed, so this was searched as plain text]"


def _check(query: Query) -> None:
    if not query.text or "\n" in query.text or len(query.text) > MAX_PATTERN:
        raise ValueError(f"text must be one line of 1 to {MAX_PATTERN} characters")
    if not 0 <= query.context <= MAX_CONTEXT:
        raise ValueError(f"context is {query.context}; it must be 0 to {MAX_CONTEXT}")
    if not 1 <= query.limit <= MAX_MATCHES:
        raise ValueError(f"limit is {query.limit}; it must be 1 to {MAX_MATCHES}")


def _candidates(root: Root, start: Parts, patterns: list[Parts], search: _Search) -> Iterator[Entry]:
    """The files to search. A file's name, or its path below `start`, must take one of the patterns."""
    for entry in _entries(root, start):
        search.looked += 1
        relative = entry.parts[len(start) :] or entry.parts[-1:]
        if entry.kind != "file" or not any(matches(pattern, relative) for pattern in patterns):
            continue
        if is_secret(root, entry.parts):
            search.skipped["may hold keys"] += 1
        elif entry.size > MAX_FILE:
            search.skipped[f"larger than {MAX_FILE:,} bytes"] += 1
        else:
            search.files += 1
            yield entry


def _entries(root: Root, start: Parts) -> Iterable[Entry]:
    """What is below a folder, or the one file that the path names."""
    found = existing(root, start)
    if stat.S_ISDIR(found.st_mode):
        return walk(root, start)
    check_file(start, found)
    return [Entry(start, "file", found.st_size)]


def _collect(found: Iterator[Found | None], search: _Search, query: Query) -> None:
    """Take what is found until it is enough, or time is out."""
    for each in found:
        if each is None:
            search.skipped["not text, or unreadable"] += 1
        elif each.matching:
            search.blocks.append(_block(each))
            search.matches += len(each.matching)
        search.late = monotonic() > query.deadline
        if search.late or search.matches >= query.limit:
            return


def _block(found: Found) -> str:
    """A file's lines as `12:match` and `13-context`, with `--` where some are left out."""
    rows = [shown(found.parts)]
    before = None
    has_context = len(found.lines) > len(found.matching)
    for at, line in found.lines.items():
        if has_context and before is not None and at > before + 1:
            rows.append("--")
        rows.append(f"{at + 1}{':' if at in found.matching else '-'}{line}")
        before = at
    return "\n".join(rows)


def _notes(search: _Search, query: Query, start: Parts) -> Iterator[str]:
    if not search.blocks:
        yield f"Nothing in {shown(start)} has {exact(query.text)} ({search.files} files searched)."
    if search.matches >= query.limit:
        yield f"[stopped at {search.matches} matches; narrow the search, or set a higher limit]"
    if search.late:
        yield f"[stopped after {MAX_SECONDS:g} seconds; search a smaller folder]"
    yield from _too_much(search.looked)
    if search.skipped:
        reasons = (f"{count} ({reason})" for reason, count in sorted(search.skipped.items()))
        yield f"[files not searched: {', '.join(reasons)}]"
