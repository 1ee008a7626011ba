"""Configuration: files, `.env` and the environment become one frozen `Config`; each value knows its source.

Sources, strongest first: the command line, the environment, `.env` in the working folder, `glassloop.toml` in the
project, `glassloop.toml` in the user's config folder. `.env` and the project's file came with a folder and are not
trusted: they may narrow rights, never widen them (`merging.py`), and cannot send a key of another
source anywhere (`keys.py`). Nothing here alters `os.environ`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from glassloop import folders
from glassloop.config import allowed, merging
from glassloop.config.keys import (
    API_KEY,
    BASE_URL,
    COMMAND_LINE,
    GENERAL,
    MODEL,
    SESSION,
    Connection,
    Found,
    Slot,
    address_in,
    connect,
    find,
    secrets_in,
)
from glassloop.config.sources import (
    FILE_NAME,
    OWN_FIELDS,
    Source,
    find_project_file,
    read_dotenv,
    read_toml,
)
from glassloop.core.entries import JSON
from glassloop.core.errors import ConfigError
from glassloop.core.limits import Limits
from glassloop.core.window import Window
from glassloop.folders import CONFIG_DIR, config_folder
from glassloop.models.model import Model
from glassloop.models.providers import ALIASES, PROVIDERS
from glassloop.tools.rules import Rules

__all__ = ["COMMAND_LINE", "SESSION", "Config", "data_folder", "load", "local_addresses", "model_of"]


@dataclass(frozen=True, slots=True)
class Config:
    """What was set, from all sources together.

    `model` is its name at the endpoint; None if nothing was set. `provider` is the provider that it belongs
    to, if a known one. `base_url` is where it is asked if not at the provider's own address. `key` is the key that
    may go there. `approvals` are rules on tool calls, those that were allowed for good in this folder included.
    `files_root` is the folder that the file tools see; `accept_no_sandbox`: programs may run unconfined where nothing
    can confine them. `web_allow`, `web_proxy` and `web_secrets` are what the web tools may do beyond public pages, as
    `tools/builtin/web_options` reads it. `mcp_servers` are the `[mcp.servers]` of the user's files, by file.
    `sources` says for each value where it came from, and
    `warnings` what was left out and why. `keys` are the providers that a key was found for, and where. `secrets` are
    the values of all variables that hold keys, tokens and passwords: what nothing may ever write down.
    """

    model: str | None = None
    provider: str | None = None
    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False, compare=False)
    instructions: str | None = None
    tool_mode: str = "auto"
    tools: tuple[str, ...] = ()
    notes_folder: str = "notes"
    settings: Mapping[str, JSON] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    window: Window = field(default_factory=Window)
    approvals: Rules = field(default_factory=Rules)
    files_root: str = "."
    mcp_servers: Mapping[str, Mapping[str, JSON]] = field(default_factory=dict, repr=False)
    accept_no_sandbox: bool = False
    web_allow: str = ""
    web_proxy: str = field(default="", repr=False)
    web_secrets: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def load(
    *,
    model: str | None = None,
    base_url: str | None = None,
    tool_mode: str | None = None,
    said_by: str = COMMAND_LINE,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read all sources. `model`, `base_url` and `tool_mode` are what the strongest source says, by its name `said_by`.

    `folder` is the working folder and `environ` the environment; by default those of this process. Raises
    `ConfigError`, naming file and field, for what cannot be understood or may not be.
    """
    folder = folder or _working_folder()
    environ = os.environ if environ is None else environ
    strongest = Source(
        said_by,
        trusted=said_by != SESSION,
        variables={MODEL: model or "", BASE_URL: base_url or ""},
        labels={MODEL: "-m", BASE_URL: "--base-url"},
    )
    sources, slots = _read(folder, environ, strongest)
    connection = connect(sources, slots)
    _check_key(connection.key)
    tools, tool_warnings = merging.tools(sources)
    rules, rule_warnings = merging.rules(sources)
    rules["allow"] += allowed.allowed_in(config_folder(environ) / allowed.FILE_NAME, folder)
    root, root_warnings = merging.files_root(sources)
    own = merging.own(sources)
    servers, server_warnings = merging.mcp_servers(sources)
    return Config(
        model=connection.name,
        provider=connection.provider,
        base_url=_base_url(connection, slots),
        key=connection.key.value if connection.key else None,
        secrets=secrets_in(sources, _secret_variables(slots, own.get("web_secrets", ""))),
        instructions=merging.field_of(sources, "instructions"),
        tool_mode=tool_mode or merging.field_of(sources, "tool_mode") or "auto",
        tools=tools,
        notes_folder=merging.field_of(sources, "notes_folder") or "notes",
        settings=merging.merged(sources, "settings"),
        limits=merging.limits(sources),
        window=Window(**merging.merged(sources, "window")),
        approvals=Rules(**{name: tuple(dict.fromkeys(texts)) for name, texts in rules.items()}),
        files_root=root,
        mcp_servers=servers,
        **own,
        keys={name: str(key) for name, slot in slots.items() if (key := find(sources, slot.key_variables))},
        sources=_origins(sources, connection),
        warnings=(
            *_file_warnings(sources),
            *connection.warnings,
            *tool_warnings,
            *rule_warnings,
            *root_warnings,
            *merging.own_warnings(sources),
            *server_warnings,
        ),
    )


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise ConfigError("The working folder does not exist any more. Change into another one.") from error


def model_of(config: Config, **options: Any) -> Model:
    """The configured model, ready to be asked. `options` are further arguments of `Endpoint`, such as `deadlines`.

    With `key=""` it is asked without one.

    Raises `ConfigError` if there is no model, or no key for a provider that needs one.
    """
    from glassloop.models.choose import model_from

    if config.model is None:
        raise ConfigError(_no_model(config))
    options.setdefault("key", config.key)
    if options["key"] is None:
        _need_no_key(config)
    options["about_key"] = _about_key(config)
    if config.tool_mode != "auto":
        options["tool_mode"] = config.tool_mode
    spec = config.model
    if config.provider in PROVIDERS:
        spec = f"{config.provider}:{spec}"
    elif config.provider:
        options["name"] = f"{config.provider}:{spec}"
    if config.base_url:
        options["base_url"] = config.base_url
    return model_from(spec, env={}, overrides=options)


def _no_model(config: Config) -> str:
    if config.base_url:
        return f"No model is named for {config.base_url}. Add -m NAME; `glassloop models {config.base_url}` lists them."
    return "No model is set. Name one with -m, or set GLASSLOOP_MODEL."


def _about_key(config: Config) -> str:
    """Where the key came from; without one, what to set."""
    if config.key:
        return f"The key came from {config.sources['key']}."
    provider = PROVIDERS.get(config.provider or "")
    names = provider.keys if provider and provider.keys else (API_KEY,)
    return f"No key was sent: set {' or '.join(names)} in the environment or in .env."


def _need_no_key(config: Config) -> None:
    """A known provider at its own address wants a key; elsewhere there may be a server that wants none."""
    provider = PROVIDERS.get(config.provider or "")
    if provider is None or provider.local or config.base_url:
        return
    names = " or ".join(provider.keys)
    raise ConfigError(
        f"No key for {provider.name}: set {names} in the environment or in .env. See {provider.docs}"
    )


def local_addresses(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The base URLs where servers on one's own machine are looked for, by provider (OLLAMA_HOST moves Ollama's)."""
    source = Source("the environment", trusted=True, variables=os.environ if environ is None else environ)
    addresses = {}
    for name, provider in PROVIDERS.items():
        if provider.local:
            moved = find([source], provider.address)
            addresses[name] = address_in(moved) if moved else provider.base_url
    return addresses


def data_folder() -> Path:
    """Where histories are kept; made if missing, readable by its owner alone."""
    folder = folders.data_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────────


def _read(
    folder: Path, environ: Mapping[str, str], strongest: Source
) -> tuple[list[Source], dict[str, Slot]]:
    """All sources, strongest first, and where base URLs and keys may be set."""
    slots = _slots()

    def variables_of(provider: str) -> tuple[str, str]:
        name = provider.lower()
        slot = slots.setdefault(ALIASES.get(name, name), Slot(*_own_variables(name)))
        return slot.url_variables[0], slot.key_variables[0]

    sources = [
        strongest,
        Source("the environment", trusted=True, variables=environ),
        read_dotenv(folder / ".env"),
    ]
    user_file = config_folder(environ) / FILE_NAME
    project_file = find_project_file(folder)
    if project_file and not _same(project_file, user_file):
        sources.append(read_toml(project_file, trusted=False, variables_of=variables_of))
    if user_file.is_file():
        sources.append(read_toml(user_file, trusted=True, variables_of=variables_of))
    return sources, slots


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)


def _slots() -> dict[str, Slot]:
    """Where base URLs and keys of the known providers may be set."""
    slots = {}
    for name, provider in PROVIDERS.items():
        url_variables, key_variables = _own_variables(name)
        slots[name] = Slot(
            provider.address or url_variables, provider.keys or key_variables, provider.base_url
        )
    return slots


def _own_variables(provider: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables of a provider that has no others: MY_GATE_BASE_URL and MY_GATE_API_KEY for `my-gate`."""
    prefix = "".join(one if one.isascii() and one.isalnum() else "_" for one in provider).upper()
    return (f"{prefix}_BASE_URL",), (f"{prefix}_API_KEY",)


def _file_warnings(sources: Sequence[Source]) -> list[str]:
    moved = [source.name for source in sources if not source.trusted and CONFIG_DIR in source.variables]
    return [
        *(warning for source in sources for warning in source.warnings),
        *(f"{CONFIG_DIR} in {name} is left out: only the environment may set it." for name in moved),
    ]


# ── The connection ───────────────────────────────────────────────────────────────────────────────────


def _base_url(connection: Connection, slots: Mapping[str, Slot]) -> str | None:
    if connection.url:
        return address_in(connection.url)
    slot = slots.get(connection.provider or "", GENERAL)
    if connection.provider and slot.home is None:
        raise ConfigError(
            f"{connection.model}: the provider {connection.provider!r} has no base URL: "
            f"set base_url in [providers.{connection.provider}], or {slot.url_variables[0]}."
        )
    return None


def _check_key(key: Found | None) -> None:
    """A key with a space, a quote of a word processor or a line break in it was copied wrongly, and says so late."""
    odd = next((one for one in key.value if not "\x21" <= one <= "\x7e"), None) if key else None
    if odd is not None:
        raise ConfigError(
            f"The key in {key} holds the character {odd!r}, which no key has. Copy the key again."
        )


# ── Everything else ──────────────────────────────────────────────────────────────────────────────────


def _secret_variables(slots: Mapping[str, Slot], web_secrets: str) -> list[str]:
    """Variables whose values nothing may ever write down, whatever their names look like."""
    named = [entry.partition("=")[0].strip() for entry in web_secrets.split(",")]
    return [*named, *(variable for slot in slots.values() for variable in slot.key_variables)]


def _origins(sources: Sequence[Source], connection: Connection) -> dict[str, str]:
    """Where each value came from, in words, by the names of `Config`'s fields."""
    found = {"model": connection.model, "base_url": connection.url, "key": connection.key}
    origins = {name: str(one) for name, one in found.items() if one}
    for one in fields(Config):
        named = [
            source.name
            for source in sources
            if one.name in source.fields and (source.trusted or one.name not in OWN_FIELDS)
        ]
        if named:
            origins[one.name] = ", ".join(named)
    return origins
