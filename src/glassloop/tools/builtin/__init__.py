"""The ready-made tools by name, loaded when asked for. A new tool is one line in `TOOLS`, a new set one in `SETS`."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glassloop.core.errors import ConfigError

if TYPE_CHECKING:
    from glassloop.tools.tool import Tool

# Tool → "module:attribute" in this package. The attribute is the `Tool`, or a function that makes it of the options.
TOOLS: Mapping[str, str] = {
    "calculator": "calculator:calculator",
    "current_time": "clock:current_time",
    "weather": "weather:weather",
    "search_notes": "notes:from_options",
    "read_file": "files:read_file",
    "list_files": "files:list_files",
    "find_files": "files:find_files",
    "search_files": "files:search_files",
    "write_file": "files:write_file",
    "edit_file": "files:edit_file",
    "move_file": "files:move_file",
    "delete_file": "files:delete_file",
    "make_folder": "files:make_folder",
    "query_sqlite": "sql:query",
    "describe_sqlite": "sql:describe",
    "change_sqlite": "sql:change",
    "update_plan": "todo:from_options",
    "ask_user": "ask:from_options",
    "run_command": "shell:from_options",
    "run_python": "python:from_options",
    "run_code": "python:code_from_options",
    "web_fetch": "web_fetch:from_options",
    "web_search": "web_search:from_options",
    "http_request": "web_request:from_options",
}

# Set → the tools in it.
SETS: Mapping[str, tuple[str, ...]] = {
    "basics": ("calculator", "current_time", "weather"),
    "files": tuple(name for name, reference in TOOLS.items() if reference.startswith("files:")),
    "sql": ("query_sqlite", "describe_sqlite"),
    "sql_write": ("change_sqlite",),
    "todo": ("update_plan",),
    "shell": ("run_command",),
    "python": ("run_python",),
    "code_mode": ("run_code",),
    "web": ("web_fetch", "web_search"),
}


def names() -> list[str]:
    """Everything that `load` takes: the tools, and the sets of them."""
    return [*TOOLS, *SETS]


def load(name: str, options: Mapping[str, str] | None = None) -> list[Tool]:
    """The tool of that name, or the tools of that set.

    `options`: settings of tools that need one (`notes_folder`: default ./notes). Raises `ConfigError` for an
    unknown name or a setting that cannot work.
    """
    tools = SETS.get(name) or ((name,) if name in TOOLS else ())
    if not tools:
        close = difflib.get_close_matches(name, names(), n=1, cutoff=0.5)
        nearest = f"Did you mean {close[0]}? " if close else ""
        raise ConfigError(
            f"There is no ready-made tool {name!r}. {nearest}There are: {', '.join(TOOLS)}; "
            f"and sets of them: {', '.join(SETS)}."
        )
    return [_load_one(TOOLS[each], options or {}) for each in tools]


def _load_one(reference: str, options: Mapping[str, str]) -> Tool:
    from glassloop.tools.tool import Tool

    module, attribute = reference.split(":")
    found = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    made = found if isinstance(found, Tool) else found(options)
    return dataclasses.replace(made, origin="builtin")
