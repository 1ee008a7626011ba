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
from glassloop.tools.builtin.rooted_names import Refused, Root
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

    A call that would fail says so instead. Reads files, changes nothing, and is shown as it is: control
    characters are the screen's to escape. An edit is tried again when it runs, on the file as it is then.
    """
    show = _PREVIEWS.get(name)
    if show is None:
        return ""
    try:
        return show(root, **arguments)
    except (OSError, ValueError, LookupError, TypeError, Refused) as error:
        return f"It would fail: {error}"


def _maker(function: Callable[..., str], effect: Effect) -> _Make:
    """A tool of the function, over the root that the options name. What writes runs alone."""

    def make(options: Mapping[str, str]) -> Tool:
        root = root_from(options)
        asks: Any = (
            partial(files_read.asks_to_read, root, "path") if function is files_read.read_file else None
        )
        return tool(effect=effect, approve=asks, sequential=effect != "read")(partial(function, root))

    return make


read_file = _maker(files_read.read_file, "read")
list_files = _maker(files_read.list_files, "read")
find_files = _maker(files_search.find_files, "read")
search_files = _maker(files_search.search_files, "read")
write_file = _maker(files_write.write_file, "idempotent")
# Where the new text holds the old one, a second edit adds more.
edit_file = _maker(files_write.edit_file, "once")
move_file = _maker(files_arrange.move_file, "once")
delete_file = _maker(files_arrange.delete_file, "once")
make_folder = _maker(files_arrange.make_folder, "idempotent")
