"""Changes to files below one folder: put in place in one step, moved, deleted, and always by descriptors."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress

from glassloop.tools.builtin.rooted import check_file, missing, open_folder, status_in
from glassloop.tools.builtin.rooted_names import Parts, Refused, Root, shown

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_writable(parts: Parts, found: os.stat_result) -> None:
    """Refuse a file that other names share or that is marked read-only: a replacement would get past both."""
    if found.st_nlink > 1:
        raise Refused(
            f"{shown(parts)} has {found.st_nlink} names (hard links), so it may also be a file outside the root. "
            "Write a new file instead"
        )
    if not found.st_mode & 0o222:
        raise Refused(f"{shown(parts)} is read-only (mode {stat.S_IMODE(found.st_mode):04o})")


def replace(root: Root, parts: Parts, data: bytes, before: os.stat_result | None) -> None:
    """Put `data` there in one step: whoever reads sees the old content or the new. The mode is kept.

    `before` is the file as it was read, None where there was none. Raises `Refused` if it has changed since.
    """
    with open_folder(root, parts[:-1]) as handle:
        temporary = f".{secrets.token_hex(8)}.glassloop"
        file = os.open(temporary, _CREATE, 0o600 if before else 0o666, dir_fd=handle)
        try:
            with open(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                _keep_owner_and_mode(file, before, parts)
                os.fsync(file)
            _check_unchanged(parts, before, status_in(handle, parts[-1]))
            os.replace(temporary, parts[-1], src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=handle)
            raise
        os.fsync(handle)


def _keep_owner_and_mode(file: int, before: os.stat_result | None, parts: Parts) -> None:
    if before is None:
        return
    now = os.fstat(file)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(file, before.st_uid, before.st_gid)
        except PermissionError as error:
            raise Refused(f"{shown(parts)} belongs to another user or group, which cannot be kept") from error
    os.fchmod(file, before.st_mode & 0o777)


def _check_unchanged(parts: Parts, before: os.stat_result | None, now: os.stat_result | None) -> None:
    if _identity(before) != _identity(now):
        raise Refused(
            f"{shown(parts)} was changed by someone else in the meantime. Read it again, then try again"
        )


def _identity(found: os.stat_result | None) -> tuple[int, ...]:
    return (
        () if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)
    )


def move(root: Root, source: Parts, target: Parts) -> None:
    """Give a file or folder another name. Raises `FileExistsError` if there is something; links are refused.

    Another program that makes the target in the same instant may still lose it: no call that both Linux and
    macOS know forbids that.
    """
    with open_folder(root, source[:-1]) as here, open_folder(root, target[:-1]) as there:
        found, taken = status_in(here, source[-1]), status_in(there, target[-1])
        if found is None:
            raise missing(here, source)
        if not stat.S_ISDIR(found.st_mode):
            check_file(source, found)
        if taken is not None and not os.path.samestat(
            found, taken
        ):  # the same: another case on such a file system
            raise FileExistsError(
                f"there is a {shown(target)} already. Choose another name, or delete it first"
            )
        os.rename(source[-1], target[-1], src_dir_fd=here, dst_dir_fd=there)
        os.fsync(there)
        os.fsync(here)


def delete(root: Root, parts: Parts) -> None:
    """Delete a file, a link (never what it leads to) or an empty folder. Raises `Refused` for anything else."""
    with open_folder(root, parts[:-1]) as handle:
        found = status_in(handle, parts[-1])
        if found is None:
            raise missing(handle, parts)
        if stat.S_ISDIR(found.st_mode):
            _delete_folder(handle, parts)
        elif stat.S_ISLNK(found.st_mode) or stat.S_ISREG(found.st_mode):
            os.unlink(parts[-1], dir_fd=handle)
        else:
            check_file(parts, found)
        os.fsync(handle)


def _delete_folder(handle: int, parts: Parts) -> None:
    try:
        os.rmdir(parts[-1], dir_fd=handle)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise Refused(f"{shown(parts)} is a folder and not empty. Delete what is in it first") from error
