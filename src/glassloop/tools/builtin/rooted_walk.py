"""What is below a folder of the root, in order, without following links; what `.gitignore` files name is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from glassloop.tools.builtin.files_glob import Rule, is_ignored, rules_of
from glassloop.tools.builtin.rooted import FOLDER_FLAGS, open_folder, read_bytes
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root, folded

MAX_DEPTH = 64
MAX_ENTRIES = 100_000
_MAX_RULES_BYTES = 100_000
_REPOSITORY = frozenset((".git", ".hg", ".svn", ".jj"))

Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder. `size` in bytes, 0 for all but files."""

    parts: Parts
    kind: Kind
    size: int = 0


def listed(root: Root, parts: Parts) -> list[Entry]:
    """All that is in one folder, by name, ignored or not. Raises as `open_folder`."""
    with open_folder(root, parts) as handle:
        return _entries(handle, parts)


def walk(root: Root, start: Parts, depth: int = MAX_DEPTH) -> Iterator[Entry]:
    """Everything below `start` down to `depth` levels, each folder before what is in it.

    Left out: what `.gitignore` files from the root down name, and what is inside a repository's own folder.
    Ends early after `MAX_ENTRIES`. Raises as `open_folder` for `start`; what cannot be entered is passed over.
    """
    above = tuple(rule for depth in range(len(start)) for rule in _rules(root, start[:depth]))
    with open_folder(root, start) as handle:
        for _, entry in zip(range(MAX_ENTRIES), _below(root, handle, start, above, depth), strict=False):
            yield entry


def _below(root: Root, handle: int, parts: Parts, rules: tuple[Rule, ...], depth: int) -> Iterator[Entry]:
    entries = _entries(handle, parts)
    if any(entry.parts[-1] == ".gitignore" for entry in entries):
        rules += _rules(root, parts)
    for entry in entries:
        if is_ignored(rules, entry.parts, entry.kind == "folder"):
            continue
        yield entry
        if entry.kind != "folder" or depth <= 1 or folded(entry.parts[-1]) in _REPOSITORY:
            continue
        try:
            below = os.open(entry.parts[-1], FOLDER_FLAGS, dir_fd=handle)
        except OSError:  # unreadable, or no longer the folder that was seen
            continue
        try:
            yield from _below(root, below, entry.parts, rules, depth - 1)
        finally:
            os.close(below)


def _entries(handle: int, parts: Parts) -> list[Entry]:
    with os.scandir(handle) as found:
        return [_entry(each, parts) for each in sorted(found, key=lambda each: each.name)]


def _entry(found: os.DirEntry[str], parts: Parts) -> Entry:
    here = (*parts, found.name)
    try:
        if found.is_symlink():
            return Entry(here, "link")
        if found.is_dir(follow_symlinks=False):
            return Entry(here, "folder")
        if found.is_file(follow_symlinks=False):
            return Entry(here, "file", found.stat(follow_symlinks=False).st_size)
    except OSError:  # gone between the listing and the look
        return Entry(here, "other")
    return Entry(here, "other")


def _rules(root: Root, parts: Parts) -> tuple[Rule, ...]:
    try:
        data, _ = read_bytes(root, (*parts, ".gitignore"), _MAX_RULES_BYTES)
    except (OSError, Refused):
        return ()
    return rules_of(data.decode("utf-8", "replace"), parts)
