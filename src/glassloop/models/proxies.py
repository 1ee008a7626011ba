"""Which proxy a URL is asked through: from the environment, but never for one's own network."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit, urlunsplit

from glassloop.core.errors import ConfigError
from glassloop.core.values import Value
from glassloop.models.urls import is_private_host


class Proxy(Value, frozen=True):
    """An HTTP proxy, its credentials apart from its URL."""

    url: str
    user: str | None = None
    password: str = ""


def proxy_for(url: str, told: str | None) -> Proxy | None:
    """The proxy that `told` names, else the environment's for this URL, else None.

    `told` is used for every host; the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, in either case,
    and the system's settings) never for loopback, private addresses and local names, nor where `NO_PROXY`
    says so. Raises `ConfigError` for a SOCKS proxy, which is not supported.
    """
    if told is not None:
        return _proxy(told, "proxy=") if told else None
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_private_host(host):
        return None
    from urllib.request import getproxies, proxy_bypass  # here: it takes a twentieth of a cold start

    found: Mapping[str, str] = getproxies()
    address = found.get(parts.scheme) or found.get("all")
    if not address or proxy_bypass(parts.netloc):
        return None
    return _proxy(address, f"the environment ({parts.scheme.upper()}_PROXY or ALL_PROXY)")


def _proxy(address: str, source: str) -> Proxy:
    if "://" not in address:
        address = "http://" + address
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"A {parts.scheme.upper()} proxy is set by {source}, but only http:// and https:// proxies are supported. "
            "Set one of those, or add the endpoint's host to NO_PROXY."
        )
    netloc = parts.netloc.rpartition("@")[2]
    user = unquote(parts.username) if parts.username is not None else None
    return Proxy(urlunsplit((parts.scheme, netloc, "", "", "")), user, unquote(parts.password or ""))
