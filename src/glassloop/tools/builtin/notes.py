"""The `search_notes` tool: full-text search in a folder of Markdown and text files. The index is in `notes_index`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.notes_index import Found, NotesIndex
from glassloop.tools.tool import Tool, tool

DEFAULT_FOLDER = "notes"
OPTION = "notes_folder"
MAX_HITS = 50
MAX_QUERY = 500


def notes_tool(folder: Path) -> Tool:
    """The `search_notes` tool over `folder` and what is below it. Files are read when it is first used.

    Raises `ConfigError` if there is no such folder.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(
            f"search_notes: {folder.absolute()} {what}. Make it, or set {OPTION} to your folder of notes."
        )
    index = NotesIndex(folder)

    @tool(effect="read", timeout=120)
    def search_notes(query: str, limit: int = 5) -> str:
        """Search the user's notes for words; the best passages come with file and line.

        Use it for anything that the user may have written down, before saying that you do not know.

        Args:
            query: Words to look for, in any language, such as "project budget" or "会议". Passages with all of
                them come first.
            limit: How many passages to return, 1 to 50.
        """
        wanted = query.strip()
        if not wanted:
            raise ValueError("the query is empty; give one or more words to look for")
        if len(wanted) > MAX_QUERY:
            raise ValueError(f"the query has {len(wanted)} characters, at most {MAX_QUERY}; give a few words")
        if not 1 <= limit <= MAX_HITS:
            raise ValueError(f"limit is {limit}; it must be 1 to {MAX_HITS}")
        return _answer(wanted, index.search(wanted, limit))

    return search_notes


def from_options(options: Mapping[str, str]) -> Tool:
    """The tool over the folder that `notes_folder` names, else ./notes. Raises `ConfigError` if it is missing."""
    return notes_tool(Path(options.get(OPTION) or DEFAULT_FOLDER).expanduser())


def _answer(query: str, found: Found) -> str:
    files = f"{found.files} file" + ("s" if found.files != 1 else "")
    lines = [f"{hit.path}:{hit.line}: {hit.snippet}" for hit in found.hits]
    if lines:
        head = f"{len(lines)} passage{'s' if len(lines) != 1 else ''} for {query!r} in {files}:"
    else:
        head = f"Nothing for {query!r} in {files}; try fewer or other words."
    skipped = ", ".join(f"{count} ({reason})" for reason, count in sorted(found.skipped.items()))
    tail = [f"Files not searched: {skipped}."] if skipped else []
    return "\n".join([head, *lines, *tail])
