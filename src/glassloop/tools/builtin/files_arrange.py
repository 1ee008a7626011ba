"""What `move_file`, `delete_file` and `make_folder` do, and what a person is shown before."""

from __future__ import annotations

import stat

from glassloop.tools.builtin.rooted import existing, make_folders
from glassloop.tools.builtin.rooted_changes import delete, move
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root, new_parts_of, protected_below, shown


def move_file(root: Root, source: str, target: str) -> str:
    """Move or rename a file or a folder. Use it instead of writing a copy. Nothing is ever overwritten.

    Missing folders of the target are made.

    Args:
        source: The file or folder, from the root folder down.
        target: Its new path, also from the root folder down, with its name: "old/a.txt", not "old/".
    """
    here, there = _moved(root, source, target)
    make_folders(root, there[:-1])
    move(root, here, there)
    return f"Moved {shown(here)} to {shown(there)}."


def preview_move(root: Root, source: str, target: str) -> str:
    """What `move_file` would do, in one line. Raises what the call would raise."""
    here, there = _moved(root, source, target)
    return f"{_what(root, here)} {shown(here)} → {shown(there)}"


def delete_file(root: Root, path: str) -> str:
    """Delete one file or one empty folder, for good. Use it only for what the user wants gone.

    Args:
        path: The file or empty folder, from the root folder down.
    """
    parts = new_parts_of(root, path)
    delete(root, parts)
    return f"Deleted {shown(parts)}."


def preview_delete(root: Root, path: str) -> str:
    """What `delete_file` would delete, with its size. Raises what the call would raise."""
    parts = new_parts_of(root, path)
    return f"{_what(root, parts)} {shown(parts)} would be deleted for good."


def make_folder(root: Root, path: str) -> str:
    """Make a folder and those above it. Use it only for an empty folder: write_file makes the folders it needs.

    Args:
        path: The folder, from the root folder down, such as "docs/images".
    """
    parts = new_parts_of(root, path)
    made = make_folders(root, parts)
    return f"Made the folder {shown(parts)}." if made else f"The folder {shown(parts)} is there already."


def _moved(root: Root, source: str, target: str) -> tuple[Parts, Parts]:
    here, there = new_parts_of(root, source), new_parts_of(root, target)
    if stat.S_ISDIR(existing(root, here).st_mode):
        if there[: len(here)] == here:
            raise Refused(f"{shown(here)} cannot be moved into itself")
        for parts in (here, there):
            if why := protected_below(root, parts):
                raise Refused(
                    f"{shown(parts)} is protected as a folder, since it is {why}. Move files one by one"
                )
    return here, there


def _what(root: Root, parts: Parts) -> str:
    found = existing(root, parts)
    if stat.S_ISDIR(found.st_mode):
        return "The folder"
    return "The link" if stat.S_ISLNK(found.st_mode) else f"The file of {found.st_size:,} bytes"
