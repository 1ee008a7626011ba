"""Base URLs: their one spelling, their origin, and whether they point into one's own network."""

from __future__ import annotations

import ipaddress
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from glassloop.core.errors import ConfigError

_CHAT = "/chat/completions"
_PRIVATE_SUFFIXES = (".localhost", ".local", ".lan", ".internal", ".home.arpa", ".test")
_KEYS = frozenset(("key", "api_key", "api-key", "apikey", "token", "access_token"))
_DEFAULT_PORTS = {"http": 80, "https": 443}


def normal_base_url(text: str) -> str:
    """The base URL in its one spelling: no trailing slash, no `/chat/completions`, `/v1` where no path is given.

    A missing scheme becomes `http` for one's own network and `https` elsewhere. Raises `ConfigError` for what
    is no http(s) URL or carries a password or key.
    """
    text = text.strip()
    if "://" not in text:
        text = f"{'http' if is_private_host(urlsplit('//' + text).hostname or '') else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  (raises for a port that is no number)
    except ValueError as error:
        raise ConfigError(f"The base URL {text!r} cannot be read: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise ConfigError(f"The base URL {text!r} is no http or https URL, such as http://localhost:11434/v1")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("The base URL holds a user name or password; pass it in `headers` instead")
    if _KEYS & {name.lower() for name, _ in parse_qsl(parts.query)}:
        raise ConfigError(
            "The base URL holds a key, and URLs end up in logs; pass it as `key` or in `headers`"
        )
    path = parts.path.rstrip("/")
    if path.endswith(_CHAT):
        path = path.removesuffix(_CHAT).rstrip("/")
    elif not path:
        path = "/v1"
    host = parts.netloc.lower()
    return urlunsplit((parts.scheme.lower(), host, path, parts.query, ""))


def endpoint_url(base_url: str, path: str) -> str:
    """The URL of `path` (such as `/models`) under a normal base URL; a query of the base URL is kept."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path + path, parts.query, ""))


def root_url(base_url: str, path: str) -> str:
    """The URL of `path` on the base URL's server, outside its API."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def host_of(url: str) -> str:
    """The URL's host in lower case, "" if it has none."""
    return urlsplit(url).hostname or ""


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port: what a key is bound to."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)


def may_follow(old: str, new: str) -> bool:
    """Whether a request with its key may be sent again to `new`: same origin, or the same host now with TLS."""
    was, becomes = origin(old), origin(new)
    if was == becomes:
        return True
    return was[0] == "http" and becomes[0] == "https" and was[1] == becomes[1] and becomes[2] in (443, was[2])


def is_loopback_host(host: str) -> bool:
    """Whether the host is this machine, judged by its text alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


def is_private_host(host: str) -> bool:
    """Whether the host is in one's own network, judged by its text alone: a bare name, a local suffix or address."""
    host = host.lower().rstrip(".")
    address = _address(host)
    if address is not None:
        return address.is_private or address.is_loopback or address.is_link_local
    return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
