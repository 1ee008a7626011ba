"""What a person has trusted: contents of files by their path, and what MCP servers say of their tools.

A file that came with a folder may start programs or instruct the model, so it is used only as it was when somebody
looked at it. Kept in the data folder, for its owner alone. Nothing here asks anybody.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from glassloop.folders import data_folder
from glassloop.tools.mcp.definitions import Definition

FILE_NAME = "trust.json"
_FORMAT = 1
_LARGEST_FILE = 50_000_000
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

Standing = Literal["trusted", "changed", "new"]


@dataclass(frozen=True, slots=True)
class Trusted:
    """One file as it was trusted: the hash of its text, the text, and the day."""

    sha256: str
    text: str
    date: str


class TrustStore:
    """The trust of one user, in `path`. In a file that cannot be read, or that others can write, nothing is trusted and
    nothing can be kept; `trouble` says why.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble = ""

    @staticmethod
    def in_user_folder() -> TrustStore:
        """The one that all commands share."""
        return TrustStore(data_folder() / FILE_NAME)

    # ── files ────────────────────────────────────────────────────────────

    def files(self) -> dict[Path, Trusted]:
        """Every trusted file."""
        found = {}
        for path, kept in self._read()["files"].items():
            with suppress(KeyError, TypeError):
                found[Path(path)] = Trusted(str(kept["sha256"]), str(kept["text"]), str(kept["date"]))
        return found

    def standing(self, path: Path, text: str) -> Standing:
        """Whether this text of the file was trusted, another one was, or none."""
        kept = self.files().get(_key(path))
        if kept is None:
            return "new"
        return "trusted" if kept.sha256 == _sha256(text) else "changed"

    def trusted_text(self, path: Path) -> str | None:
        """The text that was trusted last."""
        kept = self.files().get(_key(path))
        return kept.text if kept else None

    def trust(self, path: Path, text: str) -> None:
        """From now on this text of the file is trusted. Raises `OSError`."""
        kept = {"sha256": _sha256(text), "text": text, "date": datetime.now(UTC).date().isoformat()}
        with self._changing() as data:
            data["files"][str(_key(path))] = kept

    def forget(self, path: Path) -> bool:
        """Trust neither the file nor the servers in it any more. Whether there was something to forget. Raises
        `OSError`.
        """
        key = str(_key(path))
        with self._changing() as data:
            gone = data["files"].pop(key, None) is not None
            servers = [one for one in data["tools"] if one.rpartition("#")[0] == key]
            for one in servers:
                del data["tools"][one]
        return gone or bool(servers)

    # ── what servers say of their tools ──────────────────────────────────

    def pinned(self, server: str) -> Mapping[str, str] | None:
        """The accepted definitions of a server's tools, as text by the tool's name; None for an unknown server.

        Where that cannot be told, none was accepted: whoever spoils the file must not be met for the first time again.
        """
        tools = self._read()["tools"]
        if server not in tools:
            return {} if self.trouble else None
        kept = tools[server]
        return {str(name): str(text) for name, text in kept.items()} if isinstance(kept, dict) else {}

    def pin(self, server: str, definitions: Iterable[Definition]) -> None:
        """Accept these definitions, in place of others of the same names. Raises `OSError`."""
        new = {one.name: one.text for one in definitions}
        with self._changing() as data:
            kept = data["tools"].get(server)
            data["tools"][server] = {**(kept if isinstance(kept, dict) else {}), **new}

    # ── the file ─────────────────────────────────────────────────────────

    def _read(self) -> dict[str, Any]:
        try:
            _check(self.path.stat())
            data = json.loads(self.path.read_text("utf-8"))
            if not isinstance(data, dict) or data.get("format") != _FORMAT:
                raise ValueError("it is of an unknown format")
        except FileNotFoundError:
            data = {}
        except (OSError, ValueError, RecursionError) as error:
            self.trouble = f"{self.path} is left out ({error}): nothing is trusted. Delete it to begin anew."
            data = {}
        files, tools = data.get("files"), data.get("tools")
        return {
            "format": _FORMAT,
            "files": files if isinstance(files, dict) else {},
            "tools": tools if isinstance(tools, dict) else {},
        }

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """What is kept, to be changed in the block and then written; one process at a time. Raises `OSError`."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(self.path.parent):
            data = self._read()
            if self.trouble:
                raise OSError(errno.EINVAL, self.trouble)
            yield data
            self._write(data)

    def _write(self, data: Mapping[str, Any]) -> None:
        """Whole or not at all, for its owner alone."""
        if len(json.dumps(data, indent=1)) > _LARGEST_FILE:
            raise OSError(errno.EFBIG, "it would become too large")
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".trust-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, indent=1, ensure_ascii=True)
            os.replace(temporary, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def _check(found: os.stat_result) -> None:
    """Raises `ValueError` for a file that is not its owner's own, or not one to read."""
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_FILE:
        raise ValueError("it is no file, or too large")
    if hasattr(os, "geteuid") and (
        found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS_MAY_WRITE
    ):
        raise ValueError("others than you can write it")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Alone among all processes, where locks are known: what two write at once would else be lost."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _key(path: Path) -> Path:
    """Where the file really is: a link that points elsewhere tomorrow is another file then."""
    return path.resolve()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
