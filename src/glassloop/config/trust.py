"""What a person has trusted: contents of files by their path, and what MCP servers say of their tools.

A file that came with a folder may start programs or instruct the model, so it is used only as it was when somebody
looked at it. Kept in the data folder, for its owner alone. Nothing here asks anybody.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from glassloop.models import profiles
from glassloop.tools.mcp.definitions import Definition

FILE_NAME = "trust.json"
_FORMAT = 1
_LARGEST_FILE = 20_000_000

Standing = Literal["trusted", "changed", "new"]


@dataclass(frozen=True, slots=True)
class Trusted:
    """One file as it was trusted: the hash of its text, the text, and the day."""

    sha256: str
    text: str
    date: str


class TrustStore:
    """The trust of one user, in `path`. A file that cannot be read counts as empty; `trouble` says why."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble = ""

    @staticmethod
    def in_user_folder() -> TrustStore:
        """The one that all commands share."""
        return TrustStore(profiles.data_folder() / FILE_NAME)

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
        data = self._read()
        kept = {"sha256": _sha256(text), "text": text, "date": datetime.now(UTC).date().isoformat()}
        data["files"][str(_key(path))] = kept
        self._write(data)

    def forget(self, path: Path) -> bool:
        """Trust neither the file nor the servers in it any more. Whether there was something to forget."""
        data = self._read()
        key = str(_key(path))
        gone = data["files"].pop(key, None) is not None
        servers = [one for one in data["tools"] if one.rpartition("#")[0] == key]
        for one in servers:
            del data["tools"][one]
        if gone or servers:
            self._write(data)
        return gone or bool(servers)

    # ── what servers say of their tools ──────────────────────────────────

    def pinned(self, server: str) -> Mapping[str, str] | None:
        """The accepted definitions of a server's tools, as text by the tool's name; None for an unknown server."""
        kept = self._read()["tools"].get(server)
        if not isinstance(kept, dict):
            return None
        return {str(name): str(text) for name, text in kept.items()}

    def pin(self, server: str, definitions: Iterable[Definition]) -> None:
        """Accept these definitions, in place of others of the same names. Raises `OSError`."""
        data = self._read()
        kept = data["tools"].get(server)
        new = {one.name: one.text for one in definitions}
        data["tools"][server] = {**(kept if isinstance(kept, dict) else {}), **new}
        self._write(data)

    # ── the file ─────────────────────────────────────────────────────────

    def _read(self) -> dict[str, Any]:
        try:
            if self.path.stat().st_size > _LARGEST_FILE:
                raise ValueError("it is too large")
            data = json.loads(self.path.read_text("utf-8"))
            if not isinstance(data, dict) or data.get("format") != _FORMAT:
                raise ValueError("it is of an unknown format")
        except FileNotFoundError:
            data = {}
        except (OSError, ValueError, RecursionError) as error:
            self.trouble = f"{self.path} is left out ({error}): nothing is trusted."
            data = {}
        files, tools = data.get("files"), data.get("tools")
        return {
            "format": _FORMAT,
            "files": files if isinstance(files, dict) else {},
            "tools": tools if isinstance(tools, dict) else {},
        }

    def _write(self, data: Mapping[str, Any]) -> None:
        """Whole or not at all, for its owner alone."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".trust-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, indent=1, ensure_ascii=True)
            os.replace(temporary, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def _key(path: Path) -> Path:
    """Where the file really is: a link that points elsewhere tomorrow is another file then."""
    return path.resolve()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
