"""The ready-made tools by name, loaded when asked for. A new tool or set is one line in `TOOL_SETS`."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glassloop.core.errors import ConfigError

if TYPE_CHECKING:
    from glassloop.tools.tool import Tool

# Name → "module:attribute" in this package. The attribute is a `Tool`, or a function that makes one of the options.
TOOL_SETS: Mapping[str, tuple[str, ...]] = {
    "calculator": ("calculator:calculator",),
    "current_time": ("clock:current_time",),
    "weather": ("weather:weather",),
    "search_notes": ("notes:from_options",),
    "files": (
        "files:read_file",
        "files:list_files",
        "files:find_files",
        "files:search_files",
        "files:write_file",
        "files:edit_file",
        "files:move_file",
        "files:delete_file",
        "files:make_folder",
    ),
    "sql": ("sql:query", "sql:describe"),
    "sql_write": ("sql:change",),
    "todo": ("todo:from_options",),
    "ask_user": ("ask:from_options",),
    "shell": ("shell:from_options",),
    "python": ("python:from_options",),
    "basics": ("calculator:calculator", "clock:current_time", "weather:weather"),
}


def names() -> list[str]:
    """Everything that `load` takes."""
    return list(TOOL_SETS)


def load(name: str, options: Mapping[str, str] | None = None) -> list[Tool]:
    """The tools of that name. `options`: settings of tools that need one (`notes_folder`: default ./notes).

    Raises `ConfigError` for an unknown name or a setting that cannot work.
    """
    if name not in TOOL_SETS:
        close = difflib.get_close_matches(name, TOOL_SETS, n=1, cutoff=0.5)
        nearest = f"Did you mean {close[0]}? " if close else ""
        raise ConfigError(
            f"There is no ready-made tool {name!r}. {nearest}There are: {', '.join(TOOL_SETS)}."
        )
    return [_load_one(reference, options or {}) for reference in TOOL_SETS[name]]


def _load_one(reference: str, options: Mapping[str, str]) -> Tool:
    from glassloop.tools.tool import Tool

    module, attribute = reference.split(":")
    found = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    made = found if isinstance(found, Tool) else found(options)
    return dataclasses.replace(made, origin="builtin")
