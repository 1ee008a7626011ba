"""What was learned of endpoints, on disk: a small JSON file per base URL and model, for people to read and edit."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from glassloop.core.entries import JSON
from glassloop.folders import data_folder
from glassloop.wire.profile import Profile

_FORMAT = 1
_LARGEST_FILE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Lesson:
    """What taught a change: the rule's name, the change in words, the provider's own words (masked), the day."""

    code: str
    change: str
    words: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Learnt:
    """All that was learned of one base URL and model.

    `profile`: changes, as `Profile.merged` takes them. `url`: where a redirect sent the requests.
    `no_terminal`: its streams end without a finish reason and without `[DONE]`.
    """

    profile: Mapping[str, JSON] = field(default_factory=dict)
    url: str | None = None
    no_terminal: bool = False
    lessons: tuple[Lesson, ...] = ()

    def plus(self, other: Learnt) -> Learnt:
        """With what the `other` adds; a list or an object in a profile adds to what is there."""
        new = tuple(lesson for lesson in other.lessons if not _known(lesson, self.lessons))
        return Learnt(
            added(self.profile, other.profile),
            other.url or self.url,
            other.no_terminal or self.no_terminal,
            self.lessons + new,
        )


def lesson(code: str, change: str, words: str = "") -> Lesson:
    """A lesson of today."""
    return Lesson(code, change, words, datetime.now(UTC).date().isoformat())


class ProfileStore:
    """Learned profiles in `folder`, or only in memory with `folder=None`.

    A file that cannot be read or written never stops a run: `load` and `save` say what was wrong instead.
    Two processes that learn at the same moment may lose one lesson, which then costs one request more.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._memory: dict[tuple[str, str], Learnt] = {}

    @staticmethod
    def in_user_folder() -> ProfileStore:
        """The store that the library and the terminal share."""
        return ProfileStore(data_folder() / "profiles")

    def path(self, base_url: str, model: str) -> Path:
        """The file of one base URL and model. Its name is safe whatever the model is called."""
        assert self.folder is not None, "a store in memory has no files"
        digest = hashlib.sha256(f"{base_url}\n{model}".encode()).hexdigest()[:16]
        readable = re.sub(r"[^A-Za-z0-9]+", "-", model)[-40:].strip("-")
        return self.folder / f"{readable or 'model'}-{digest}.json"

    def load(self, base_url: str, model: str) -> tuple[Learnt, str]:
        """What is known of it, and what was wrong with the file ("" if nothing)."""
        if self.folder is None:
            return self._memory.get((base_url, model), Learnt()), ""
        path = self.path(base_url, model)
        try:
            return _parsed(_read(path)), ""
        except FileNotFoundError:
            return Learnt(), ""
        except (OSError, ValueError, RecursionError) as error:
            return Learnt(), f"The learned profile {path} was ignored: {error}. Mend it or delete it."

    def save(self, base_url: str, model: str, learnt: Learnt) -> str:
        """Keep it beside what another process may have learned meanwhile; says what was wrong ("" if nothing)."""
        if self.folder is None:
            self._memory[base_url, model] = learnt
            return ""
        whole = self.load(base_url, model)[0].plus(learnt)
        try:
            _replace(self.path(base_url, model), _text(base_url, model, whole))
        except OSError as error:
            return f"What was learned of {model} could not be kept: {error}"
        return ""

    def forget(self, base_url: str, model: str) -> bool:
        """Whether there was something to forget."""
        if self.folder is None:
            return self._memory.pop((base_url, model), None) is not None
        try:
            self.path(base_url, model).unlink()
        except FileNotFoundError:
            return False
        return True

    def known(self) -> list[tuple[str, str]]:
        """The (base URL, model) pairs of which something readable is kept."""
        if self.folder is None:
            return sorted(self._memory)
        found = []
        for path in sorted(self.folder.glob("*.json")):
            with suppress(OSError, ValueError, RecursionError):
                data = _read(path)
                found.append((str(data["base_url"]), str(data["model"])))
        return sorted(found)


def _read(path: Path) -> dict[str, JSON]:
    with path.open("rb") as file:
        text = file.read(_LARGEST_FILE + 1)
    if len(text) > _LARGEST_FILE:
        raise ValueError("it is larger than 1 MB")
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("base_url"), str) or "model" not in data:
        raise ValueError("it is no object with base_url, model and profile")
    return data


def _parsed(data: Mapping[str, JSON]) -> Learnt:
    profile = data.get("profile", {})
    Profile.from_json(profile)
    url, lessons = data.get("url"), data.get("lessons", [])
    return Learnt(
        profile,
        url if isinstance(url, str) else None,
        data.get("no_terminal") is True,
        tuple(_lesson(one) for one in lessons if isinstance(one, Mapping))
        if isinstance(lessons, list)
        else (),
    )


def _lesson(data: Mapping[str, JSON]) -> Lesson:
    return Lesson(*(str(data.get(name, "")) for name in ("code", "change", "words", "date")))


def _text(base_url: str, model: str, learnt: Learnt) -> str:
    data = {"format": _FORMAT, "base_url": base_url, "model": model, **asdict(learnt)}
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _replace(path: Path, text: str) -> None:
    """Write the file whole or not at all, for its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".profile-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def added(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> dict[str, JSON]:
    """Profile changes one after the other, as one set of changes."""
    both = dict(old)
    for name, value in new.items():
        before = both.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            both[name] = {**before, **value}
        elif isinstance(value, (list, tuple)) and isinstance(before, (list, tuple)):
            both[name] = list(dict.fromkeys((*before, *value)))
        else:
            both[name] = list(value) if isinstance(value, tuple) else value
    return both


def _known(one: Lesson, lessons: Iterable[Lesson]) -> bool:
    return any((one.code, one.change) == (other.code, other.change) for other in lessons)
