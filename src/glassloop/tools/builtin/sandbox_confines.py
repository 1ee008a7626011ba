"""What a confined program may see and do, and which places in the project are kept from it even so.

The guards stand at the top of the project: version control's hooks and settings, files of keys, what programs read
when they start, and the configuration of agents. A repository or a key deeper in the tree is not guarded. A place
that does not exist yet is held by an empty folder while programs run; a folder, since one can be removed only while
it is empty, so that nothing of anybody's can be lost. One that was left by a crash is taken over by the next run.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.rooted_names import Refused, Root, is_secret, protected, shown

_HELD = (".env", "glassloop.toml", ".mcp.json", ".git")
"""Guarded also where they do not exist yet."""

_GIT_HELD = ("hooks",)
_GIT_FIXED = ("hooks", "config", "config.worktree", "modules", "commondir")
"""What makes git run programs, or read its settings elsewhere."""
_GIT_STRAYS = ("commondir", "config.worktree")
"""Would do so too, and cannot be held by a folder, since git would stop at it: removed where a run made one."""


@dataclass(frozen=True, slots=True)
class Confines:
    """What a program may do: write below `root`, read `readable` and the system's programs, and use the network."""

    root: Root
    network: bool = False
    readable: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Guards:
    """Places below the root: `fixed` can be read only, `hidden` not even that, `pinned` cannot be moved away."""

    fixed: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()


def check_root(root: Root) -> None:
    """Raises `ConfigError` for a root with a home in it: a program would see, and could change, everything there."""
    home = Path.home().resolve()
    if home.is_relative_to(root.folder):
        raise ConfigError(
            f"Programs would be given the whole home folder: the root is {root.given}."
            " Start in the folder of your work, or set files_root."
        )


@contextmanager
def unguarded(root: Root) -> Iterator[Guards]:
    """No guards: outside a sandbox there is nothing that could keep them."""
    yield Guards()


@contextmanager
def guarded(root: Root) -> Iterator[Guards]:
    """The guards, valid while the block runs. Raises `Refused` where one could not be kept."""
    with ExitStack() as held:
        for name in _HELD:
            held.enter_context(_held(root.folder / name))
        git = root.folder / ".git"
        is_repository = _is_folder(git) and any(git.iterdir())
        if is_repository:
            for name in _GIT_HELD:
                held.enter_context(_held(git / name))
            held.enter_context(_no_strays(git))
        yield _guards(root, git if is_repository else None)


def _guards(root: Root, git: Path | None) -> Guards:
    fixed, hidden = [], []
    for name in os.listdir(root.folder):
        place = root.folder / name
        if place == git:
            fixed += [
                _no_link(git / inner, f".git/{inner}") for inner in _GIT_FIXED if os.path.lexists(git / inner)
            ]
        elif is_secret(root, (name,)) and not place.is_symlink() and not _is_held(place):
            hidden.append(place)
        elif protected(root, (name,)):
            fixed.append(_no_link(place, shown((name,))))
    return Guards(tuple(fixed), tuple(hidden), (git,) if git else ())


def _no_link(place: Path, name: str) -> Path:
    if place.is_symlink():
        raise Refused(
            f"{name} is a symbolic link, and a sandbox cannot guard one."
            " Let the user put the file itself there. Nothing ran"
        )
    return place


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def _is_held(path: Path) -> bool:
    return _is_folder(path) and not any(path.iterdir())


# ── places that do not exist yet ─────────────────────────────────────────────────────────────────────


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the place with an empty folder, if nothing is there. The last of all who hold it removes it.

    Every holder, in whatever process, has a shared lock on the folder; who gets it exclusively is the last.
    """
    handle = _hold(path)
    if handle is None:
        yield
        return
    try:
        yield
    finally:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody else holds it still, and will remove it
        else:
            with suppress(OSError):  # no longer empty, or gone
                path.rmdir()
        finally:
            os.close(handle)


def _hold(path: Path) -> int | None:
    """A descriptor of the empty folder, locked; None if something else is there."""
    while True:
        with suppress(FileExistsError):
            path.mkdir(mode=0o755)
        if not _is_held(path):
            return None
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        fcntl.flock(handle, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        os.close(handle)  # its last holder removed it just before we had the lock


@contextmanager
def _no_strays(git: Path) -> Iterator[None]:
    missing = [git / name for name in _GIT_STRAYS if not os.path.lexists(git / name)]
    try:
        yield
    finally:
        for path in missing:
            with suppress(OSError):
                path.unlink()
