"""Reading what a person has set: the environment, `.env` and `glassloop.toml`, each as one `Source`."""

from __future__ import annotations

import codecs
import difflib
import errno
import io
import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.errors import ConfigError
from glassloop.core.limits import Limits
from glassloop.core.window import Window
from glassloop.folders import CONFIG_DIR, DATA_DIR

FILE_NAME = "glassloop.toml"
TOOL_MODES = ("auto", "native", "text")
RULES = ("allow", "ask", "deny")
OWN_FIELDS = ("accept_no_sandbox", "web_allow", "web_proxy", "web_secrets")
"""What only the user's own file may set: it widens what tools reach, and a project's file came with a folder."""


@dataclass(frozen=True, slots=True)
class Source:
    """One place where things are set. `trusted`: it is the user's own, and did not come with a folder.

    `variables` are settings under the names of environment variables, and `labels` what they were called in
    the source if not so; `fields` are the fields of a TOML file that have no variable.
    """

    name: str
    trusted: bool
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    fields: Mapping[str, JSON] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


# ── .env ─────────────────────────────────────────────────────────────────────────────────────────────


def read_dotenv(path: Path) -> Source:
    """The variables of a `.env` file; an empty source if there is none.

    Quotes, `export`, comments, CRLF and a byte order mark are understood (as python-dotenv reads them). `${NAME}`
    is not replaced: a file that came with a folder could copy a key from the environment with it. Lines that
    cannot be read are named in `warnings`. Raises `ConfigError` if the file is no text.
    """
    try:
        data = _bytes_of(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return Source(str(path), trusted=False)
    except OSError as error:
        warning = f"{path} cannot be read ({error.strerror}); it is left out."
        return Source(str(path), trusted=False, warnings=(warning,))

    from dotenv.parser import parse_stream

    variables: dict[str, str] = {}
    warnings: list[str] = []
    for binding in parse_stream(io.StringIO(_decoded(data, path))):
        key, value = binding.key, binding.value
        wrong = "not NAME=value; the line is left out." if binding.error else _wrong_with(key or "", value)
        if wrong:
            warnings.append(f"{path}, line {binding.original.line}: {wrong}")
        if key is not None and value:
            variables[key] = value.strip()
    return Source(str(path), trusted=False, variables=variables, warnings=tuple(warnings))


def _wrong_with(key: str, value: str | None) -> str:
    """What is wrong with a line of Glassloop's own; what other programs make of theirs is their business."""
    if not key.startswith("GLASSLOOP_"):
        return ""
    if key not in _OWN_VARIABLES:
        return f"there is no `{key}`{_nearest(key, _OWN_VARIABLES, 0.85)}"  # they all begin alike
    return f"`{key}` has no value: write {key}=…" if value is None else ""


_LARGEST_FILE = 1_000_000


def _bytes_of(path: Path) -> bytes:
    """A file that came with a folder may be a link to a device or a pipe, which would never end. Raises `OSError`."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    with path.open("rb") as file:
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise OSError(errno.EFBIG, f"it has more than {_LARGEST_FILE:,} bytes")
    return data


_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def _decoded(data: bytes, path: Path) -> str:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: this is not UTF-8 text. Save the file as UTF-8.") from error


# ── glassloop.toml ───────────────────────────────────────────────────────────────────────────────────


def find_project_file(folder: Path) -> Path | None:
    """The project's `glassloop.toml`: in `folder` or above it, up to the root of the repository around it.

    Without a repository only `folder` itself counts, since a folder above may be anybody's (such as `/tmp`).
    """
    folders = [folder, *folder.parents]
    root = next((at for at, one in enumerate(folders) if (one / ".git").exists()), 0)
    return next((one / FILE_NAME for one in folders[: root + 1] if (one / FILE_NAME).is_file()), None)


def read_toml(path: Path, *, trusted: bool, variables_of: Callable[[str], tuple[str, str]]) -> Source:
    """A `glassloop.toml`. `variables_of` gives the names of a provider's base URL and key variables.

    Raises `ConfigError` naming file and field for what cannot be understood.
    """
    try:
        document = tomllib.loads(_decoded(_bytes_of(path), path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: this is not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    _check_table(document, _FIELDS, str(path), "")
    labels = {variable: name for name, variable in _VARIABLES.items() if name in document}
    variables = {variable: document[name] for variable, name in labels.items()}
    for provider, table in document.get("providers", {}).items():
        names = dict(zip(("base_url", "api_key"), variables_of(provider), strict=True))
        variables |= {names[name]: text for name, text in table.items()}
        labels |= {names[name]: f"providers.{provider}.{name}" for name in table}
    fields = {name: value for name, value in document.items() if name not in _VARIABLES}
    return Source(str(path), trusted, variables, fields, labels)


_VARIABLES = {"model": "GLASSLOOP_MODEL", "base_url": "GLASSLOOP_BASE_URL", "api_key": "GLASSLOOP_API_KEY"}
_OWN_VARIABLES = (*_VARIABLES.values(), CONFIG_DIR, DATA_DIR)

Check = Callable[[Any, str, str], None]
"""Looks at a value, given the file's name and the field's; raises `ConfigError` if it cannot be."""


def _is(kind: type | tuple[type, ...], words: str) -> Check:
    def check(value: Any, file: str, at: str) -> None:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"{file}: `{at}` must be {words}, not {_shown(value)}")

    return check


def _one_of(*allowed: str) -> Check:
    def check(value: Any, file: str, at: str) -> None:
        if value not in allowed:
            wanted = f"must be {_choice(allowed)}, not {_shown(value)}"
            raise ConfigError(f"{file}: `{at}` {wanted}{_nearest(value, allowed)}")

    return check


def _list_of_text(value: Any, file: str, at: str) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(
            f'{file}: `{at}` must be a list of names, such as ["calculator"], not {_shown(value)}'
        )


def _table(checks: Mapping[str, Check]) -> Check:
    """A table whose fields are known."""

    def check(value: Any, file: str, at: str) -> None:
        _is_table(value, file, at)
        _check_table(value, checks, file, at)

    return check


def _table_of(one: Check) -> Check:
    """A table with any names, whose values are all checked alike."""

    def check(value: Any, file: str, at: str) -> None:
        _is_table(value, file, at)
        for name, item in value.items():
            one(item, file, f"{at}.{name}")

    return check


def _limits(value: Any, file: str, at: str) -> None:
    _table(
        dict.fromkeys(("rounds", "calls", "tokens", "repeats"), _is(int, "a whole number"))
        | dict.fromkeys(("cost", "seconds"), _is((int, float), "a number"))
    )(value, file, at)
    try:
        Limits(**value)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


RULE_LISTS = ("allow", "ask", "deny", "allow_after_untrusted")


def _approvals(value: Any, file: str, at: str) -> None:
    """Lists of rules by what they say; and, shorter, `tool = "allow"`."""
    from glassloop.tools.rules import rule

    _is_table(value, file, at)
    for name, said in value.items():
        if name not in RULE_LISTS:
            _one_of(*RULES)(said, file, f"{at}.{name}")
        elif not isinstance(said, list) or not all(isinstance(one, str) for one in said):
            example = '["read_file", "shell: git status"]'
            raise ConfigError(
                f"{file}: `{at}.{name}` must be a list of rules, such as {example}, not {_shown(said)}"
            )
        for text in said if isinstance(said, list) else [name]:
            try:
                rule(text)
            except ValueError as error:
                raise ConfigError(f"{file}: `{at}.{name}`: {error}") from error


def _window(value: Any, file: str, at: str) -> None:
    _table(
        dict.fromkeys(("keep_last", "size"), _is(int, "a whole number"))
        | {"policy": _is(str, "text in quotes"), "share": _is((int, float), "a number")}
    )(value, file, at)
    try:
        Window(**value)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


_text = _is(str, "text in quotes")
_is_table = _is(dict, "a table")
_FIELDS: Mapping[str, Check] = {
    "model": _text,
    "base_url": _text,
    "api_key": _text,
    "instructions": _text,
    "tool_mode": _one_of(*TOOL_MODES),
    "tools": _list_of_text,
    "notes_folder": _text,
    "settings": _is_table,
    "limits": _limits,
    "window": _window,
    "approvals": _approvals,
    "files_root": _text,
    "mcp": _table({"servers": _table_of(_is_table)}),
    "accept_no_sandbox": _is(bool, "true or false"),
    "web_allow": _text,
    "web_proxy": _text,
    "web_secrets": _text,
    "providers": _table_of(_table({"base_url": _text, "api_key": _text})),
}


def _check_table(table: Mapping[str, Any], checks: Mapping[str, Check], file: str, at: str) -> None:
    for name, value in table.items():
        path = f"{at}.{name}" if at else name
        if name not in checks:
            raise ConfigError(
                f"{file}: there is no `{path}`{_nearest(name, checks)} Allowed: {', '.join(checks)}."
            )
        checks[name](value, file, path)


def _nearest(word: Any, known: Iterable[str], cutoff: float = 0.6) -> str:
    spelled = {name.lower(): name for name in known}
    found = difflib.get_close_matches(str(word).lower(), spelled, n=1, cutoff=cutoff)
    return f". Did you mean `{spelled[found[0]]}`?" if found else "."


def _choice(words: Iterable[str]) -> str:
    *most, last = [f'"{word}"' for word in words]
    return f"{', '.join(most)} or {last}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
