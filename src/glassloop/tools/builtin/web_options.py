"""The settings of the web tools, as a user writes them. They are never taken from a project's file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.web_address import AddressRule
from glassloop.tools.builtin.web_client import Client
from glassloop.tools.builtin.web_secrets import Secret


def client_from(options: Mapping[str, str]) -> Client:
    """A client by `web_allow` (see `AddressRule.from_text`) and `web_proxy`. Raises `ConfigError`."""
    return Client(AddressRule.from_text(options.get("web_allow", "")), proxy=proxy_from(options))


def proxy_from(options: Mapping[str, str]) -> str | None:
    """`web_proxy`: the URL of an HTTP proxy, None if it is not set. Raises `ConfigError`."""
    text = options.get("web_proxy", "").strip()
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("web_proxy is no http:// or https:// URL. Write it as http://proxy.example:3128")
    return text


def secrets_from(options: Mapping[str, str]) -> Mapping[str, Secret]:
    """`web_secrets`: variables of the environment and the origin that each may be sent to, between commas:
    `GITHUB_TOKEN=https://api.github.com`. Raises `ConfigError`.
    """
    secrets = {}
    for entry in filter(None, map(str.strip, options.get("web_secrets", "").split(","))):
        name, _, origin = map(str.strip, entry.partition("="))
        if not os.environ.get(name):
            raise ConfigError(
                f"web_secrets: there is no {name!r} in the environment. Set it, or leave it out."
            )
        secrets[name] = Secret(origin, os.environ[name])
    return secrets
