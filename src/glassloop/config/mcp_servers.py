"""Which MCP servers are configured: in the project's `.mcp.json`, and in the user's `mcp.json` and `glassloop.toml`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from glassloop.config.project_texts import folders_above
from glassloop.config.sources import read_dotenv
from glassloop.core.errors import ConfigError
from glassloop.tools.mcp.settings import ServerSettings, read_servers

PROJECT_FILE = ".mcp.json"
USER_FILE = "mcp.json"
_LARGEST_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class Configured:
    """One server, and where it is configured. `key` names it for good; `file` is the project's file, if it is one's."""

    settings: ServerSettings
    where: str
    file: Path | None = None

    @property
    def key(self) -> str:
        """The same as long as it is configured under this name in this place."""
        return f"{self.file.resolve() if self.file else 'user'}#{self.settings.name}"


@dataclass(frozen=True, slots=True)
class McpFile:
    """A project's `.mcp.json` as it is at this moment: its text, and the servers in it."""

    path: Path
    text: str
    servers: tuple[ServerSettings, ...]


@dataclass(frozen=True, slots=True)
class Servers:
    """The user's own servers, the project's file (trusted or not), and what `${VAR}` stands for in them.

    `data_variables` are those of `.env`: it came with the folder, and nobody is asked when it changes.
    """

    own: tuple[Configured, ...] = ()
    file: McpFile | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    data_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()

    def of_project(self) -> tuple[Configured, ...]:
        """The project's servers; one whose name the user's own servers have too is left out."""
        if self.file is None:
            return ()
        own = {one.settings.name for one in self.own}
        return tuple(
            Configured(one, str(self.file.path), self.file.path)
            for one in self.file.servers
            if one.name not in own
        )


def find_servers(
    folder: Path,
    user_folder: Path,
    tables: Mapping[str, Mapping[str, object]],
    environ: Mapping[str, str] | None = None,
) -> Servers:
    """All that is configured. `tables` are the `[mcp.servers]` of the user's files, by the file's name.

    Variables come from the environment; those of `.env` in the folder are only data. Raises `ConfigError` naming
    file and field.
    """
    own = [
        *(Configured(one, where) for where, table in tables.items() for one in read_servers(table, where)),
        *_own_file(user_folder / USER_FILE),
    ]
    by_name = {one.settings.name: one for one in reversed(own)}
    dotenv = read_dotenv(folder / ".env")
    environ = os.environ if environ is None else environ
    file, warnings = _project_file(folder)
    shadowed = [one.name for one in (file.servers if file else ()) if one.name in by_name]
    return Servers(
        tuple(by_name.values()),
        file,
        environ,
        dotenv.variables,
        (
            *warnings,
            *(f"the project's MCP server {one!r} is left out: you have your own." for one in shadowed),
        ),
    )


def _own_file(path: Path) -> list[Configured]:
    text = _text_of(path)
    return [] if text is None else [Configured(one, str(path)) for one in _servers_in(text, path)]


def _project_file(folder: Path) -> tuple[McpFile | None, tuple[str, ...]]:
    """The one that is nearest to the folder; one that cannot be read is only said to be so: it is not the user's."""
    for one in reversed(folders_above(folder)):
        path = one / PROJECT_FILE
        try:
            text = _text_of(path)
            if text is not None:
                servers = (_in_folder(each, one) for each in _servers_in(text, path))
                return McpFile(path, text, tuple(servers)), ()
        except ConfigError as error:
            return None, (f"{error} The file is left out.",)
    return None, ()


def _in_folder(settings: ServerSettings, folder: Path) -> ServerSettings:
    """A project's server runs in the project's own folder, and cannot call itself trusted."""
    cwd = "" if settings.url else str(folder / settings.cwd) if "${" not in settings.cwd else settings.cwd
    return replace(settings, cwd=cwd, trusted=False)


def _servers_in(text: str, path: Path) -> tuple[ServerSettings, ...]:
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from error
    return read_servers(document, str(path))


def _text_of(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > _LARGEST_FILE:
            raise ConfigError(f"{path} is too large for a list of MCP servers.")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text. Save the file as UTF-8.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
