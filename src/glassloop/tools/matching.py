"""Whether what a call is aimed at is what a rule names: files by folder, commands by words, addresses by host."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from glassloop.tools.builtin.rooted_names import folded
from glassloop.tools.builtin.simple_command import CommandRule, allows, mentions, simple_words
from glassloop.tools.targets import Address, Command, Target

_ANY_BELOW = "**"


def within(on: str, command: CommandRule | None, aim: Target, base: Path) -> bool:
    """Whether all of it is covered: a simple command, and names as they are spelled. Relative paths begin at `base`.

    A rule on a path that leads through a link below `base` covers nothing: whoever may write there could turn it.
    """
    match aim:
        case Command(text):
            words = simple_words(text)
            return command is not None and words is not None and allows(command, words)
        case Address(url):
            return _is_address(on, url)
    return not _is_by_link(on, base) and _is_path(_pattern(on, base), aim.parts, str)


def touches(on: str, command: CommandRule | None, aim: Target, base: Path) -> bool:
    """Whether anything in it is meant, however it is spelled."""
    match aim:
        case Command(text):
            return command is not None and mentions(command, text)
        case Address(url):
            return _is_address(on, url)
    return _is_path(tuple(map(_folded_pattern, _pattern(on, base))), aim.parts, folded)


def holds(on: str, aim: Target, base: Path) -> bool:
    """Whether what is meant lies below this folder, so that whoever moves or deletes the folder does it too."""
    if not isinstance(aim, Path):
        return False
    pattern, names = tuple(map(_folded_pattern, _pattern(on, base))), aim.parts
    return len(names) < len(pattern) and _is_path(pattern[: len(names)], names, folded)


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────


def _pattern(on: str, base: Path) -> tuple[str, ...]:
    """The names of an absolute path, links resolved up to the first that holds a `*`."""
    plain, globs = _split_at_glob(on, base)
    below = (_ANY_BELOW,) if on.endswith("/") else ()
    return (*plain.resolve().parts, *globs, *below)


def _split_at_glob(on: str, base: Path) -> tuple[Path, tuple[str, ...]]:
    names = (base / Path(on).expanduser()).parts
    plain = next((at for at, name in enumerate(names) if _is_glob(name)), len(names))
    return Path(*names[:plain]), names[plain:]


def _is_by_link(on: str, base: Path) -> bool:
    """Whether the rule's path goes through a link below `base`. Above it, links are the system's or the user's own."""
    plain, _ = _split_at_glob(on, base)
    top = next((one for one in (plain, *plain.parents) if one.resolve() == base), None)
    return top is not None and plain.resolve() != base / plain.relative_to(top)


def _is_path(pattern: Sequence[str], names: Sequence[str], spell: Callable[[str], str]) -> bool:
    if pattern[-1] == _ANY_BELOW:
        pattern = pattern[:-1]
        names = names[: len(pattern)]
    return len(pattern) == len(names) and all(
        fnmatch.fnmatchcase(spell(name), wanted) if _is_glob(wanted) else wanted == spell(name)
        for wanted, name in zip(pattern, names, strict=True)
    )


def _is_glob(name: str) -> bool:
    return not {"*", "?", "["}.isdisjoint(name)


def _folded_pattern(name: str) -> str:
    return name.casefold() if _is_glob(name) else folded(name)


# ── addresses ────────────────────────────────────────────────────────────────────────────────────────


def host_of(url: str) -> str | None:
    """The URL's host, in small letters; None for what is no URL of the web."""
    parts = _split(url)
    return None if parts is None else str(parts.hostname).rstrip(".")


def _split(url: str) -> SplitResult | None:
    """A plain URL's parts; None for one that two readers might read differently."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    odd = "@" in parts.netloc or "\\" in url or any(char.isspace() or not char.isprintable() for char in url)
    if odd or port == 0 or not parts.hostname or parts.scheme not in ("http", "https"):
        return None
    return parts


def _is_address(on: str, url: str) -> bool:
    """Whether the URL is of the host, or of the part of a site, that the rule names."""
    given = _split(url)
    if given is None:
        return False
    if "://" not in on:
        host, wanted = str(given.hostname).rstrip("."), on.casefold().rstrip("/.")
        return host.endswith(wanted[1:]) if wanted.startswith("*.") else host == wanted
    whole = _split(on)
    if whole is None or (whole.scheme, whole.netloc.casefold()) != (given.scheme, given.netloc.casefold()):
        return False
    if not whole.path.strip("/"):
        return True
    plain = "%" not in given.path and not {"..", "."} & set(given.path.split("/"))
    return plain and _is_path(_names(whole.path), _names(given.path), str)


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.strip("/").split("/"))
