"""What a person has allowed for good in one folder: a file of the user's own, `approvals.json`, beside their settings.

It is not in the project's file, since a file that comes with a project may not widen rights.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from glassloop.core.errors import ConfigError
from glassloop.tools.rules import rule

FILE_NAME = "approvals.json"


def folder_of_project(folder: Path) -> Path:
    """The folder that rules are kept for: the repository around `folder`, else `folder` itself; without links."""
    real = folder.resolve()
    return next((one for one in (real, *real.parents) if (one / ".git").exists()), real)


def allowed_in(file: Path, folder: Path) -> tuple[str, ...]:
    """The rules that a person has allowed for good there. Raises `ConfigError` where the file cannot be understood."""
    rules = _read(file).get(str(folder_of_project(folder)), [])
    try:
        return tuple(rule(text).text for text in rules)
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigError(f"{file}: {error}. Correct it, or delete the file.") from error


def allow_always(file: Path, folder: Path, text: str) -> None:
    """Keep one more rule for the folder. Raises `ConfigError` for what is no rule, and `OSError`."""
    kept = _read(file)
    rules = kept.setdefault(str(folder_of_project(folder)), [])
    try:
        rules += [text] if rule(text).text not in rules else []
    except ValueError as error:
        raise ConfigError(str(error)) from error
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(prefix=f".{FILE_NAME}-", dir=file.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(kept, stream, ensure_ascii=False, indent=2)
    os.replace(temporary, file)


def _read(file: Path) -> dict[str, Any]:
    try:
        kept = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}. Correct it, or delete it.") from error
    if not isinstance(kept, dict) or not all(isinstance(one, list) for one in kept.values()):
        raise ConfigError(f"{file}: expected rules by folder. Correct it, or delete it.")
    return kept
