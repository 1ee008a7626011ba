"""How MCP servers are reached: the common `mcpServers` shape → settings. Pure; nothing is started here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from glassloop.core.errors import ConfigError

TIMEOUT = 60.0
_LONGEST_TIMEOUT = 3600.0
_HTTP_KINDS = ("http", "streamable-http", "streamable_http", "streamableHttp")
# Variables by which an interpreter, a loader or a package manager is told to run something else.
_STEERS = re.compile(
    r"PATH$|LD_|DYLD_|NODE_|NPM_|PYTHON|PIP_|UV_|RUBY|GEM_|BUNDLE_|PERL|JAVA_|_JAVA|JDK_|CLASSPATH|LUA_|PHP|DENO_|BUN_"
    r"|HTTPS?_PROXY$|ALL_PROXY$|SSL_|CURL_|BASH_|ENV$|SHELL|IFS$|GIT_|EDITOR|VISUAL|PAGER|DOCKER_|XDG_|HOME$|TMPDIR$",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One server. Either a `command` with its `args`, `env` and `cwd`, or a `url` with its `headers`.

    `timeout`: seconds that one call may take. `disabled`: named, but never started. `trusted`: what it says of its
    own tools (that one only reads, say) is believed. Values may hold `${VAR}` and `${VAR:-default}`.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = TIMEOUT
    disabled: bool = False
    trusted: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that its values ask for, in order."""
        found = (name for text in self._texts() for name, _ in _VARIABLE.findall(text))
        return tuple(dict.fromkeys(found))

    def expanded(
        self, variables: Mapping[str, str], data_variables: Mapping[str, str] | None = None
    ) -> ServerSettings:
        """With the variables put in. Raises `ConfigError` for one that is not set and has no default.

        `data_variables`: further ones, which count in headers and in what is only handed to the program. They never
        say which program runs, with what words, where, or what it loads.
        """
        data = {**(data_variables or {}), **variables}

        def put(text: str) -> str:
            return _expanded(text, variables, self.name)

        def put_data(text: str) -> str:
            return _expanded(text, data, self.name)

        return replace(
            self,
            command=put(self.command),
            args=tuple(map(put, self.args)),
            env={name: (put if _STEERS.match(name) else put_data)(text) for name, text in self.env.items()},
            cwd=put(self.cwd),
            url=put(self.url),
            headers={name: put_data(text) for name, text in self.headers.items()},
        )

    def _texts(self) -> list[str]:
        named = [*self.env.values(), *self.headers.values()]
        return [self.command, *self.args, self.cwd, self.url, *named]


def read_servers(document: Any, where: str) -> tuple[ServerSettings, ...]:
    """The servers of a document: `{"mcpServers": {name: {...}}}`, or what stands under that key.

    Keys that other programs use are passed over. Raises `ConfigError` naming `where`, the server and the field.
    """
    servers = document.get("mcpServers", document) if isinstance(document, Mapping) else document
    if not isinstance(servers, Mapping):
        raise ConfigError(f'{where}: write {{"mcpServers": {{"name": {{"command": "..."}}}}}}.')
    return tuple(_read_one(str(name), entry, where) for name, entry in servers.items())


def _read_one(name: str, entry: Any, where: str) -> ServerSettings:
    at = f"{where}: the MCP server {name!r}"
    if not name.strip():
        raise ConfigError(f"{where}: an MCP server needs a name.")
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{at} must be an object, such as {{'command': 'npx', 'args': ['...']}}.")
    fields = {key: read(entry[key], f"{at}: `{key}`") for key, read in _FIELDS.items() if key in entry}
    made = ServerSettings(name, **fields)
    if bool(made.command) == bool(made.url):
        raise ConfigError(f"{at} needs either a `command` or a `url`.")
    if made.url:
        _check_url(made.url, entry.get("type", "http"), at)
    return made


def _check_url(url: str, kind: Any, at: str) -> None:
    if not re.match(r"https?://|\$\{", url):
        raise ConfigError(f"{at}: `url` must begin with http:// or https://.")
    if kind == "sse":
        raise ConfigError(f'{at} speaks the old "sse" transport. Use its streamable HTTP address ("http").')
    if kind not in _HTTP_KINDS:
        raise ConfigError(f'{at}: `type` must be "http" beside a `url`, or "stdio" beside a `command`.')


# ── fields ───────────────────────────────────────────────────────────────────────────────────────────


def _text(value: Any, at: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"{at} must be text.")
    return value


def _list_of_text(value: Any, at: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ConfigError(f"{at} must be a list of words.")
    return tuple(_text(one, at) for one in value)


def _texts_by_name(value: Any, at: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{at} must be names with texts.")
    return {_text(name, at): _scalar(one, f"{at} ({name})") for name, one in value.items()}


def _scalar(value: Any, at: str) -> str:
    """A number or a switch in `env` is meant as its text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else _text(value, at)


def _switch(value: Any, at: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{at} must be true or false.")
    return value


def _seconds(value: Any, at: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _LONGEST_TIMEOUT:
        raise ConfigError(f"{at} must be seconds, more than 0 and at most {_LONGEST_TIMEOUT:g}.")
    return float(value)


_FIELDS: Mapping[str, Callable[[Any, str], Any]] = {
    "command": _text,
    "args": _list_of_text,
    "env": _texts_by_name,
    "cwd": _text,
    "url": _text,
    "headers": _texts_by_name,
    "timeout": _seconds,
    "disabled": _switch,
    "trusted": _switch,
}


def _expanded(text: str, variables: Mapping[str, str], server: str) -> str:
    def value(found: re.Match[str]) -> str:
        name, default = found.groups()
        if default is not None:
            return variables.get(name) or default  # as in a shell, `:-` also stands in for an empty value
        if name not in variables:
            raise ConfigError(f"the MCP server {server!r} needs the variable {name}, which is not set.")
        return variables[name]

    return _VARIABLE.sub(value, text)
