"""Regular expressions by ripgrep, in a child with a time limit that sees only files which were opened for it.

The child gets descriptors, not paths, so it can read nothing else. Its engine is linear in the text's length.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

from glassloop.tools.builtin.files_query import SHOWN_LINE, Found, Query
from glassloop.tools.builtin.files_text import SNIFFED, around, binary_kind
from glassloop.tools.builtin.rooted import open_file
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root
from glassloop.tools.builtin.rooted_walk import Entry

_BATCH = 48
_BATCH_BYTES = 16_000_000
"""What one child searches: few enough descriptors for what macOS allows a program, and all of it may come back."""

_SIZE_LIMIT = "2M"
"""For the compiled expression. Nested counts reach it, and would otherwise take minutes."""

_FAILED = 2


def ripgrep(root: Root) -> str | None:
    """The program, if it is installed. One inside the root is not it: it may have been put there."""
    found = shutil.which("rg")
    if found is None or Path(found).resolve().is_relative_to(root.folder):
        return None
    return str(Path(found).resolve())


def search_by_ripgrep(
    program: str, root: Root, files: Iterable[Entry], query: Query
) -> Iterator[Found | None]:
    """What each file has; None for one that is no text or cannot be read.

    Raises `ValueError` for an expression that ripgrep refuses, `TimeoutError` at the deadline.
    """
    command = [program, "--json", "--no-config", "--no-messages", f"--regex-size-limit={_SIZE_LIMIT}"]
    command += [f"--context={query.context}", f"--max-count={query.limit}"]
    command += ["--ignore-case"] if query.ignore_case else []
    command += ["--regexp", query.text, "--"]
    for batch in _batches(files):
        with ExitStack() as open_files:
            handles = _opened(root, batch, open_files)
            lines = _run(command, list(handles), query.deadline) if handles else []
        yield from _found(lines, handles)
        yield from [None] * (len(batch) - len(handles))


def _batches(files: Iterable[Entry]) -> Iterator[list[Parts]]:
    batch: list[Parts] = []
    room = _BATCH_BYTES
    for entry in files:
        room -= entry.size
        if batch and (room < 0 or len(batch) == _BATCH):
            yield batch
            batch, room = [], _BATCH_BYTES - entry.size
        batch.append(entry.parts)
    if batch:
        yield batch


def _opened(root: Root, batch: list[Parts], open_files: ExitStack) -> dict[int, Parts]:
    """Descriptors of those that are text."""
    handles: dict[int, Parts] = {}
    for parts in batch:
        try:
            handle, _ = open_files.enter_context(open_file(root, parts))
        except (OSError, Refused):
            continue
        if not binary_kind(os.pread(handle, SNIFFED, 0)):
            handles[handle] = parts
    return handles


def _run(command: list[str], handles: list[int], deadline: float) -> list[str]:
    try:
        done = subprocess.run(
            [*command, *(f"/dev/fd/{handle}" for handle in handles)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=handles,
            env={},
            cwd="/",
            timeout=max(0.1, deadline - monotonic()),
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(
            "the search took too long; use a simpler expression or a smaller folder"
        ) from error
    if done.returncode == _FAILED and not done.stdout:
        reason = done.stderr.decode("utf-8", "replace").strip() or "it gave no reason"
        raise ValueError(f"ripgrep could not search: {reason}")
    return done.stdout.decode("utf-8", "replace").split("\n")


def _found(lines: list[str], handles: dict[int, Parts]) -> Iterator[Found]:
    shown: dict[int, dict[int, str]] = {handle: {} for handle in handles}
    matching: dict[int, set[int]] = {handle: set() for handle in handles}
    for event in (json.loads(line) for line in lines if line):
        if event["type"] not in ("match", "context"):
            continue
        data = event["data"]
        handle, at = int(_text(data["path"]).rpartition("/")[2]), data["line_number"] - 1
        shown[handle][at] = _shown(data)
        if event["type"] == "match":
            matching[handle].add(at)
    for handle, parts in handles.items():
        yield Found(parts, dict(sorted(shown[handle].items())), frozenset(matching[handle]))


def _shown(data: Any) -> str:
    """The line, around its match if it is long."""
    line = _text(data["lines"]).rstrip("\r\n")
    start = data["submatches"][0]["start"] if data["submatches"] else 0  # in bytes
    return around(line, len(line.encode()[:start].decode("utf-8", "replace")), SHOWN_LINE)


def _text(value: Any) -> str:
    """What ripgrep says as text, or as base64 where it is not UTF-8."""
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "replace")
