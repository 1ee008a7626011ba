"""The `files` set: tools for reading, finding, writing and moving files inside one root folder (`files_root`).

What each does is in the other `files_*` modules, and how the root is kept in `rooted*`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.tools import Effect
from glassloop.tools.builtin import files_arrange, files_read, files_search, files_write
from glassloop.tools.builtin.rooted import root_at
from glassloop.tools.builtin.rooted_names import Refused, Root, parts_of
from glassloop.tools.tool import Tool, tool

OPTION = "files_root"

_Make = Callable[[Mapping[str, str]], Tool]

_PREVIEWS: Mapping[str, Callable[..., str]] = {
    "write_file": files_write.preview_write,
    "edit_file": files_write.preview_edit,
    "move_file": files_arrange.preview_move,
    "delete_file": files_arrange.preview_delete,
}


def root_from(options: Mapping[str, str]) -> Root:
    """The folder that `files_root` names, else the working folder. Raises `ConfigError`."""
    return root_at(Path(options.get(OPTION) or ".").expanduser())


def preview(root: Root, name: str, arguments: Mapping[str, JSON]) -> str:
    """What a call would do, for the person who is asked: a diff, or a line. "" for tools that have none.

    A call that would fail says so instead. Reads files and changes nothing. An edit is tried again when it runs, on
    the file as it is then.
    """
    show = _PREVIEWS.get(name)
    if show is None:
        return ""
    try:
        return show(root, **arguments)
    except (OSError, ValueError, LookupError, TypeError, Refused) as error:
        return f"It would fail: {error}"


def aimed_at(root: Root, names: tuple[str, ...], arguments: Mapping[str, JSON]) -> tuple[Path, ...]:
    """The files that a call is about, for rules; none where a path leads out of the root, and the call will fail."""
    try:
        below = [parts_of(root, str(arguments.get(name, "."))) for name in names]
    except Refused:
        return ()
    return tuple(root.folder.joinpath(*parts).resolve() for parts in below)


def _maker(function: Callable[..., str], effect: Effect, *paths: str) -> _Make:
    """A tool of the function, over the root that the options name. `paths` are its arguments that name files.
    What writes runs alone."""

    def make(options: Mapping[str, str]) -> Tool:
        root = root_from(options)
        name = function.__name__
        asks: Any = partial(files_read.asks_to_read, root, "path") if name == "read_file" else None
        return tool(
            effect=effect,
            approve=asks,
            sequential=effect != "read",
            preview=partial(preview, root, name) if name in _PREVIEWS else None,
            targets=partial(aimed_at, root, paths),
            basis=partial(files_write.replaces, root) if name == "write_file" else None,
        )(partial(function, root))

    return make


read_file = _maker(files_read.read_file, "read", "path")
list_files = _maker(files_read.list_files, "read", "path")
find_files = _maker(files_search.find_files, "read", "path")
search_files = _maker(files_search.search_files, "read", "path")
write_file = _maker(files_write.write_file, "idempotent", "path")
# Where the new text holds the old one, a second edit adds more.
edit_file = _maker(files_write.edit_file, "once", "path")
move_file = _maker(files_arrange.move_file, "once", "source", "target")
delete_file = _maker(files_arrange.delete_file, "once", "path")
make_folder = _maker(files_arrange.make_folder, "idempotent", "path")
