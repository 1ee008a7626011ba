"""Files below one folder, reached name by name from its descriptor, so that no link and no race leads out of it.

Each name is opened relative to the folder before it with O_NOFOLLOW, and what was opened is checked, not its path.
Hard links cannot be told from files: one is read, but not written. A path's spelling is judged in `rooted_names`,
changes are in `rooted_changes`.
For Linux and macOS: both open relative to a descriptor, and both stop at a link in the last name only.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root, shown

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a FIFO must not block

_PSEUDO = tuple(map(Path, ("/proc", "/sys", "/dev")))
_MAX_NAMES = 1_000
"""Names of a folder that are looked through for one like a name that is not there."""


def root_at(folder: Path) -> Root:
    """The folder as a root. Raises `ConfigError` if there is none, or if it is far too much."""
    given = folder.absolute()
    real = given.resolve()
    if not real.is_dir():
        what = "is not a folder" if real.exists() else "does not exist"
        raise ConfigError(f"The root folder of the file tools, {given}, {what}. Make it, or set files_root.")
    if real == Path(real.anchor) or any(real.is_relative_to(pseudo) for pseudo in _PSEUDO):
        raise ConfigError(
            f"The file tools would see the system itself in {real}. Set files_root to the folder of your work."
        )
    return Root(real, given)


# ── folders ──────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def open_folder(root: Root, parts: Parts) -> Iterator[int]:
    """A descriptor of the folder. Raises `Refused` at a link, `FileNotFoundError`, `NotADirectoryError`."""
    handle = _descend(root, parts, _enter)
    try:
        yield handle
    finally:
        os.close(handle)


def make_folders(root: Root, parts: Parts) -> int:
    """Make the folder and those above it where missing, and return how many were. Raises as `open_folder`."""
    made = 0

    def enter_or_make(handle: int, name: str) -> int:
        nonlocal made
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=handle)
            made += 1
        return _enter(handle, name)

    os.close(_descend(root, parts, enter_or_make))
    return made


def _enter(handle: int, name: str) -> int:
    return os.open(name, FOLDER_FLAGS, dir_fd=handle)


def _descend(root: Root, parts: Parts, step: Callable[[int, str], int]) -> int:
    handle = os.open(root.folder, FOLDER_FLAGS)
    try:
        for depth, name in enumerate(parts, 1):
            try:
                below = step(handle, name)
            except OSError as error:
                _explain(error, handle, parts[:depth])
            os.close(handle)
            handle = below
    except BaseException:
        os.close(handle)
        raise
    return handle


def _explain(error: OSError, handle: int, parts: Parts) -> NoReturn:
    """Say what stands in the way, by what is there now."""
    if error.errno == errno.ENOENT:
        raise missing(handle, parts) from error
    found = status_in(handle, parts[-1])
    if found is not None and stat.S_ISLNK(found.st_mode):
        raise _is_link(parts, handle) from error
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{shown(parts)} is a file, not a folder") from error
    raise OSError(error.errno, error.strerror, shown(parts)) from error


def missing(handle: int, parts: Parts) -> FileNotFoundError:
    """The error for what is not in its folder, open as `handle`, with what has a similar name."""
    with os.scandir(handle) as entries:
        names = [entry.name for entry, _ in zip(entries, range(_MAX_NAMES), strict=False)]
    close = difflib.get_close_matches(parts[-1], names, n=3)
    hint = f". Near it: {', '.join(_spelled((*parts[:-1], name)) for name in close)}" if close else ""
    return FileNotFoundError(f"there is no {shown(parts)}{hint}")


def _spelled(parts: Parts) -> str:
    """A path that can be copied: decomposed letters as escapes, since models write composed ones."""
    path = shown(parts)
    return path if unicodedata.is_normalized("NFC", path) else ascii(path)[1:-1]


def _is_link(parts: Parts, handle: int | None = None) -> Refused:
    """The refusal of a link, with what it says where its folder's descriptor is at hand."""
    target = ""
    with suppress(OSError):
        target = f" to {shown((os.readlink(parts[-1], dir_fd=handle),))}" if handle is not None else ""
    return Refused(
        f"{shown(parts)} is a symbolic link{target}, and links are not followed. Name the file itself"
    )


# ── files ────────────────────────────────────────────────────────────────────────────────────────────


def status(root: Root, parts: Parts) -> os.stat_result | None:
    """What is there, a link as a link; None for nothing. Raises as `open_folder` for the folders above it."""
    if not parts:
        return root.folder.lstat()
    with open_folder(root, parts[:-1]) as handle:
        return status_in(handle, parts[-1])


def existing(root: Root, parts: Parts) -> os.stat_result:
    """`status` of what must be there. Raises `FileNotFoundError` with what has a similar name."""
    if not parts:
        return root.folder.lstat()
    with open_folder(root, parts[:-1]) as handle:
        found = status_in(handle, parts[-1])
        if found is None:
            raise missing(handle, parts)
        return found


def status_in(handle: int, name: str) -> os.stat_result | None:
    """What has this name in the folder that is open as `handle`; None for nothing."""
    try:
        return os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def open_file(root: Root, parts: Parts) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file, opened for reading, and its status. Raises `Refused` for anything else, `OSError`."""
    with open_folder(root, parts[:-1]) as handle:
        name = parts[-1] if parts else "."
        found = status_in(handle, name)
        if found is None:
            raise missing(handle, parts)
        if stat.S_ISLNK(found.st_mode):
            raise _is_link(parts, handle)
        # Before opening too: to open a device or a FIFO can be felt at its other end.
        check_file(parts, found)
        try:
            file = os.open(name, _READ, dir_fd=handle)
        except OSError as error:
            _explain(error, handle, parts)
    try:
        found = os.fstat(file)
        check_file(parts, found)
        yield file, found
    finally:
        os.close(file)


def check_file(parts: Parts, found: os.stat_result) -> None:
    """Refuse what is no regular file."""
    if stat.S_ISLNK(found.st_mode):
        raise _is_link(parts)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{shown(parts)} is a folder. list_files shows what is in it")
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{shown(parts)} is no regular file, but a device, a socket or a pipe")


def read_bytes(root: Root, parts: Parts, limit: int) -> tuple[bytes, os.stat_result]:
    """A file's content and status. Raises `Refused` if it has more than `limit` bytes, before they are read."""
    with open_file(root, parts) as (file, found):
        data = b"" if found.st_size > limit else _read(file, limit + 1)
    if max(found.st_size, len(data)) > limit:
        raise Refused(f"{shown(parts)} has {found.st_size:,} bytes, and at most {limit:,} are read")
    return data, found


def _read(file: int, limit: int) -> bytes:
    with open(file, "rb", closefd=False) as stream:
        return stream.read(limit)
