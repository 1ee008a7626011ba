"""Where the sessions' file is, and whether it may be used: private, a regular file, on a disk of this machine."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from glassloop.core.errors import SessionError
from glassloop.folders import data_folder

_NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs afs ncpfs ceph glusterfs lustre beegfs gpfs ocfs2 gfs2 davfs "
    "fuse.sshfs fuse.glusterfs fuse.rclone fuse.s3fs fuse.gcsfuse fuse.davfs2 fuse.ceph".split()
)
"""Where several machines share a file. SQLite's log needs memory shared by all who write, so they would damage it."""

_BESIDE = ("-wal", "-shm", "-journal")
"""SQLite's own files beside the database."""


def default_path() -> Path:
    """`sessions.db` in the user's data folder."""
    return data_folder() / "sessions.db"


def prepare(path: Path) -> None:
    """Make the file if it is missing (0600, its folder 0700), and check it. Raises `SessionError`."""
    try:
        _make_folder(path.parent)
        refuse_network(path)
        _make_file(path)
        for beside in _BESIDE:
            check(f"{path}{beside}")
    except OSError as error:
        raise SessionError(
            f"{path}: sessions cannot be kept here: {error.strerror}. "
            "Make the folder writable, or name another file"
        ) from error


def _make_folder(folder: Path) -> None:
    """Missing folders up to this one, private, and on disk before anything in them is."""
    if folder.exists():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync(folder.parent)


def _make_file(path: Path) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        os.close(os.open(path, flags, 0o600))
        _sync(path.parent)
    except FileExistsError:
        check(path)


def _sync(folder: Path) -> None:
    """A new name in a folder survives a power cut only when the folder has been written too."""
    with suppress(OSError):  # some file systems cannot, and need not
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check(path: Path | str) -> None:
    """Refuse what is no private regular file. Nothing there is fine. Raises `SessionError`, `OSError`."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a regular file"
        raise SessionError(f"{path} is {what}, so no session is kept in it: name the file itself")
    if not hasattr(os, "getuid"):
        return
    if found.st_uid != os.getuid():
        raise SessionError(f"{path} belongs to another user (uid {found.st_uid}): name a file of your own")
    if found.st_mode & 0o077:
        raise SessionError(
            f"{path} can be read by other users (mode {stat.S_IMODE(found.st_mode):04o}), and sessions are "
            f"private: run `chmod 600 {path}`, then try again"
        )


def refuse_network(path: Path) -> None:
    """Refuse a file that several machines may share. Looked up on Linux only. Raises `SessionError`."""
    if sys.platform != "linux":
        return
    with suppress(OSError):
        kind = _mounted_at(path.parent, os.stat(path.parent).st_dev)
        if kind in _NETWORK:
            raise SessionError(
                f"{path} is on a network file system ({kind}), where SQLite cannot keep sessions safe: "
                "name a file on a local disk"
            )


@lru_cache(maxsize=64)
def _mounted_at(folder: Path, device: int) -> str:
    """Another `device` at the same place is another file system: then the table has to be read again."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    return filesystem(folder.resolve(), mounts)


def filesystem(folder: Path, mounts: str) -> str:
    """The type of the file system that holds a folder, by a table in the format of Linux's /proc/mounts."""
    best, kind, inside = -1, "", f"{folder}/"
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = words[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\").rstrip("/")
        if inside.startswith(f"{point}/") and len(point) >= best:
            best, kind = len(point), words[2]
    return kind
