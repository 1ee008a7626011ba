"""AGENTS.md files and skills: found and read, each as it is now. Whether they are trusted is the matter of `trust`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from glassloop.tools.cleaning import cleaned

AGENTS_FILE = "AGENTS.md"
SKILL_FILE = "SKILL.md"
LONGEST_AGENTS_FILE = 32_000
"""Characters of one AGENTS.md that are sent, in every request."""

_SKILL_FOLDERS = (".glassloop/skills", ".agents/skills", ".claude/skills")
_MOST_SKILLS = 100
_MOST_FILES = 100
_MOST_LOOKED_AT = 5_000
_LARGEST_FILE = 500_000
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1_024
_FRONT = re.compile(r"\A\ufeff?---\r?\n(.*?)\r?\n---\r?\n?(.*)\Z", re.DOTALL)
_FIELD = re.compile(r"^(name|description):[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProjectText:
    """A text that is sent to the model as instructions. `own`: it is the user's, and did not come with a folder."""

    path: Path
    text: str
    own: bool = False


@dataclass(frozen=True, slots=True)
class Skill:
    """What a SKILL.md offers: its name, when to use it, its body, and the other text files of its folder."""

    path: Path
    name: str
    description: str
    body: str
    files: Mapping[str, str] = field(default_factory=dict)
    own: bool = False

    @property
    def text(self) -> str:
        """All that is trusted with it: the SKILL.md, and the hash of every other file."""
        sums = (f"{name} {hashlib.sha256(text.encode()).hexdigest()}" for name, text in self.files.items())
        return "\n".join([f"name: {self.name}", f"description: {self.description}", "", self.body, *sums])


def folders_above(folder: Path, home: Path | None = None) -> list[Path]:
    """`folder` and those above it that belong to the same project, the outermost first.

    Up to the root of the repository around it; without one, up to below the user's home; elsewhere `folder` alone,
    since a folder above may be anybody's.
    """
    folder = folder.resolve()
    upward = [folder, *folder.parents]
    root = next((at for at, one in enumerate(upward) if (one / ".git").exists()), None)
    if root is None:
        home = (home or Path.home()).resolve()
        root = max(upward.index(home) - 1, 0) if home in upward else 0
    return upward[root::-1]


def agents_files(folder: Path, user_folder: Path) -> list[ProjectText]:
    """The AGENTS.md of the user, then those from the project's root down to the folder."""
    own = _read_text(user_folder / AGENTS_FILE)
    found = [ProjectText(user_folder / AGENTS_FILE, own, own=True)] if own else []
    for one in folders_above(folder):
        text = _read_text(one / AGENTS_FILE)
        if text:
            found.append(ProjectText(one / AGENTS_FILE, text))
    return found


def instructions_of(texts: Sequence[ProjectText]) -> str:
    """The texts as instructions: each under its path, cut where it is too long."""
    return "\n\n".join(f"From {one.path}:\n\n{_cut(cleaned(one.text).strip())}" for one in texts)


def _cut(text: str) -> str:
    if len(text) <= LONGEST_AGENTS_FILE:
        return text
    return f"{text[:LONGEST_AGENTS_FILE]}\n[{len(text) - LONGEST_AGENTS_FILE} characters left out here]"


# ── skills ───────────────────────────────────────────────────────────────────────────────────────────


def find_skills(folder: Path, user_folder: Path, home: Path | None = None) -> tuple[list[Skill], list[str]]:
    """The skills of the project and of the user, by name, and what was left out and why.

    Of two with one name the project's counts, and the one nearest to the folder.
    """
    home = home or Path.home()
    places = [
        (one / place, False) for one in reversed(folders_above(folder, home)) for place in _SKILL_FOLDERS
    ]
    places += [(user_folder / "skills", True), *((home / place, True) for place in _SKILL_FOLDERS)]
    found: dict[str, Skill] = {}
    warnings = []
    for path, own in islice(_skill_files(places), 2 * _MOST_SKILLS):
        skill = _read_skill(path, own=own)
        if isinstance(skill, str):
            warnings.append(f"{path} is left out: {skill}")
        elif len(found) < _MOST_SKILLS:
            found.setdefault(skill.name, skill)
    return list(found.values()), warnings


def _skill_files(places: Sequence[tuple[Path, bool]]) -> Iterator[tuple[Path, bool]]:
    seen = set()
    for place, own in places:
        with suppress(OSError):
            for each in sorted(place.iterdir()):
                path = each / SKILL_FILE
                if path.is_file() and (own or not each.is_symlink()) and path.resolve() not in seen:
                    seen.add(path.resolve())
                    yield path, own


def _read_skill(path: Path, *, own: bool) -> Skill | str:
    text = _read_text(path)
    front = _FRONT.match(text or "")
    if not front:
        return "it does not begin with `---`, name and description, `---`"
    fields = {name: _plain(value) for name, value in _FIELD.findall(front[1])}
    name, description = fields.get("name", "") or path.parent.name, fields.get("description", "")
    if not re.fullmatch(r"[\w.-]+", name) or len(name) > _LONGEST_NAME:
        return f"its name {name[:80]!r} is not one of letters, digits and hyphens"
    if not description:
        return "it has no description"
    return Skill(
        path, name, description[:_LONGEST_DESCRIPTION], front[2].strip(), _files_of(path.parent), own
    )


def _plain(value: str) -> str:
    """A YAML text in one of its simple forms: bare, quoted, or folded over lines."""
    value = " ".join(value.split())
    value = re.sub(r"^[>|][+-]?\s", "", value)
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return value


def _files_of(folder: Path) -> dict[str, str]:
    """The other text files of a skill, by their path below its folder. Nothing behind a link."""
    files: dict[str, str] = {}
    with suppress(OSError):
        for path in sorted(islice(folder.rglob("*"), _MOST_LOOKED_AT)):
            if len(files) == _MOST_FILES:
                break
            inside = path.resolve().is_relative_to(folder.resolve()) and not path.is_symlink()
            if inside and path.is_file() and path != folder / SKILL_FILE:
                text = _read_text(path)
                if text is not None:
                    files[path.relative_to(folder).as_posix()] = text
    return files


def _read_text(path: Path) -> str | None:
    """A file's text; None where there is none, or what is there is no text of a reasonable size."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            return None
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError):
        return None


def listed(skills: Sequence[Skill]) -> str:
    """The skills as the model is told of them: name and description, until one is read."""
    if not skills:
        return ""
    lines = [f"- {one.name}: {cleaned(one.description)}" for one in skills]
    head = "Skills, each a page of instructions. Read one with read_skill before you do what it is about:"
    return "\n".join([head, *lines])
