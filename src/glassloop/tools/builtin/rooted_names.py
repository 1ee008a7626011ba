"""Paths that a model writes, judged by their spelling alone: inside the root or not, protected, secret.

No file is touched here. What is really there is checked in `rooted.py`, on what was opened.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from glassloop.core.visible import exact
from glassloop.folders import CONFIG_DIR, DATA_DIR

MAX_PATH = 4_000
MAX_NAME = 255
"""Bytes. What file systems take for a path and for one name in it."""

Parts = tuple[str, ...]
"""The names from the root down to a file or folder; the root itself is ()."""


class Refused(Exception):
    """A path, or what is there, is not for these tools. The message says why, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Root:
    """The one folder that the file tools see: `folder` without links, and `given` as people write it."""

    folder: Path
    given: Path


def shown(parts: Parts) -> str:
    """A path for people and models, with nothing invisible in it."""
    return exact(os.fsencode("/".join(parts)).decode("utf-8", "backslashreplace")) or "."


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────


def parts_of(root: Root, path: str) -> Parts:
    """The path as names below the root. Raises `Refused` for one that leads, or may lead, out of it."""
    _check_bytes(path)
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        raise Refused(f"`..` is not allowed in a path: {_cut(path)}. Write it from the root folder down")
    if path.startswith("/"):
        names = _below(root, names, path)
    elif names[:1] == ["~"]:
        raise Refused(f"`~` is not allowed: {_cut(path)}. Paths begin at the root folder, {root.given}")
    for name in names:
        if len(os.fsencode(name)) > MAX_NAME:
            raise Refused(f"a name in the path is longer than {MAX_NAME} bytes: {_cut(name)}")
    return tuple(names)


def new_parts_of(root: Root, path: str) -> Parts:
    """`parts_of` for something that is to be written there. Raises `Refused` also for protected and odd names."""
    parts = parts_of(root, path)
    if not parts:
        raise Refused("the root folder itself cannot be written, moved or deleted. Name something in it")
    if "\\" in path or any(unicodedata.category(char) in ("Cc", "Cs") for char in path):
        raise Refused(f"a name has a backslash or a control character: {_cut(path)}. Use `/` between folders")
    if why := protected(root, parts):
        raise Refused(f"{shown(parts)} is protected, since it is {why}. Let the user change it by hand")
    return parts


def _check_bytes(path: str) -> None:
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError as error:
        raise Refused("the path has characters that no file name can have. Write it again") from error
    if "\0" in path:
        raise Refused(f"the path has a NUL character: {_cut(path)}. Write it without")
    if size > MAX_PATH:
        raise Refused(f"the path has {size} bytes, and at most {MAX_PATH} are allowed: {_cut(path)}")


def _below(root: Root, names: list[str], path: str) -> list[str]:
    """An absolute path's names below the root. Whole names are compared: /work-evil is not in /work."""
    for base in (root.given.parts[1:], root.folder.parts[1:]):
        if tuple(names[: len(base)]) == base:
            return names[len(base) :]
    raise Refused(f"{_cut(path)} is outside the root folder, {root.given}. Give a path inside it")


def _cut(path: str) -> str:
    return exact(path if len(path) <= 100 else path[:100] + "…")


# ── protected ────────────────────────────────────────────────────────────────────────────────────────

# Reason → names that are protected wherever they stand in a path, whether or not they exist yet.
_PROTECTED: Mapping[str, frozenset[str]] = {
    "version control's own": frozenset(
        ".git git~1 .hg .svn .bzr .jj .husky .gitmodules .gitconfig .hgrc .git-credentials".split()
    ),
    "read by a program when it starts": frozenset(
        ".profile .login .logout .inputrc .pam_environment .envrc .direnv .vimrc .gvimrc .exrc .nvimrc .nvim.lua"
        " .emacs .emacs.d .vim .tmux.conf .screenrc .gdbinit .lldbinit .pdbrc .pythonrc .pythonrc.py .pythonstartup"
        " sitecustomize.py usercustomize.py .ripgreprc .curlrc .wgetrc .condarc .npmrc .yarnrc .yarnrc.yml .pypirc"
        " pip.conf .lesskey .lessfilter .rprofile .irbrc .psqlrc .sqliterc .devcontainer .vscode .idea".split()
    ),
    "where keys and passwords are kept": frozenset(
        ".env .netrc .pgpass .ssh .gnupg .aws .azure .kube .docker .vault-token .password-store".split()
    ),
    "an agent's configuration": frozenset(
        "glassloop.toml .glassloop .mcp.json mcp.json .claude .codex .cursor .gemini .aider.conf.yml".split()
    ),
}

_ENV = (".env.", ".env-", ".env_")

_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "read by a shell when it starts": (
        ".bash",
        ".zsh",
        ".zlog",
        ".zprofile",
        ".ksh",
        ".mksh",
        ".csh",
        ".tcsh",
    ),
    "read by the desktop when it starts": (".xinit", ".xsession", ".xprofile", ".xserver"),
    "where keys and passwords are kept": _ENV,
}

_SAMPLES = frozenset(".env.example .env.sample .env.template .env.dist .env.defaults".split())
"""Made to be shared: without secrets, and loaded by nothing."""

# Folders below which lies what starts by itself.
_RUNS: tuple[Parts, ...] = (
    (".config", "fish"),
    (".config", "autostart"),
    (".config", "systemd"),
    (".config", "git"),
    (".config", "nvim"),
    (".config", "environment.d"),
    (".local", "bin"),
    ("library", "launchagents"),
    ("library", "launchdaemons"),
)


def protected(root: Root, parts: Parts) -> str:
    """What makes this a place where nothing is written, moved or deleted; "" if nothing does."""
    names = tuple(map(folded, parts))
    for name in names:
        if why := _why(name):
            return why
    if any(names[at : at + len(run)] == run for run in _RUNS for at in range(len(names))):
        return "where programs that start by themselves are kept"
    here = _absolute(root, names)
    return "Glassloop's own" if any(here[: len(own)] == own for own in _own_folders()) else ""


def protected_below(root: Root, parts: Parts) -> str:
    """`protected`, for a folder that moves with all that is in it: also where something protected belongs in it."""
    names = tuple(map(folded, parts))
    here = _absolute(root, names)
    if any(own[: len(here)] == here for own in _own_folders()):
        return "around Glassloop's own folder"
    if any(names[-size:] == run[:size] for run in _RUNS for size in range(1, len(run))):
        return "around what starts by itself"
    return protected(root, parts)


def folded(name: str) -> str:
    """The name as the laxest file system may see it: case, accents, invisible and compatible forms are one.

    Also without what NTFS drops: a stream's name after a colon, and dots and spaces at the end.
    """
    letters = unicodedata.normalize("NFKD", name.partition(":")[0].casefold())
    kept = "".join(char for char in letters if unicodedata.category(char) not in ("Mn", "Me", "Cf", "Cc"))
    return kept.casefold().replace("ı", "i").rstrip(". ")


def _why(name: str) -> str:
    if name in _SAMPLES:
        return ""
    by_name = (why for why, names in _PROTECTED.items() if name in names)
    by_prefix = (why for why, prefixes in _PREFIXES.items() if name.startswith(prefixes))
    return next(by_name, None) or next(by_prefix, "")


def _absolute(root: Root, names: Parts) -> Parts:
    return (*map(folded, root.folder.parts), *names)


def _own_folders() -> tuple[Parts, ...]:
    """Where our configuration, sessions and caches are, or would be."""
    return _folders_of(tuple(os.environ.get(name, "") for name in (CONFIG_DIR, DATA_DIR)))


@cache
def _folders_of(moved: tuple[str, ...]) -> tuple[Parts, ...]:
    import platformdirs

    kinds = (
        platformdirs.user_config_path,
        platformdirs.user_data_path,
        platformdirs.user_state_path,
        platformdirs.user_cache_path,
    )
    paths = {kind("glassloop", appauthor=False) for kind in kinds}
    paths |= {Path(folder).expanduser().absolute() for folder in moved if folder}
    return tuple(tuple(map(folded, each.parts)) for path in paths for each in {path, path.resolve()})


# ── secret ───────────────────────────────────────────────────────────────────────────────────────────

_SECRET_FOLDERS = frozenset(".ssh .gnupg .aws .azure .kube .docker .password-store".split())
_SECRET_FILES = frozenset(
    ".netrc .pgpass .npmrc .pypirc .git-credentials .vault-token .env credentials credentials.json"
    " secrets.json secrets.toml secrets.yml secrets.yaml".split()
)
_SECRET_STARTS = (*_ENV, "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa")
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".env")


def is_secret(root: Root, parts: Parts) -> bool:
    """Whether what is there usually holds keys or passwords. Reading it sends them to the model."""
    names = tuple(map(folded, parts))
    here = _absolute(root, names)
    if not _SECRET_FOLDERS.isdisjoint(names) or any(here[: len(own)] == own for own in _own_folders()):
        return True
    name = names[-1] if names else ""
    if name in _SAMPLES or name.endswith(".pub"):
        return False
    return name in _SECRET_FILES or name.startswith(_SECRET_STARTS) or name.endswith(_SECRET_ENDINGS)
