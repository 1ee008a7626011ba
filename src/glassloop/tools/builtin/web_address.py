"""Where a request may go: which URLs are taken, and which addresses may be connected to. Nothing is looked up here.

A URL's text says nothing of where it leads: `127.1`, `2130706433` and any name may be this machine. So only its shape
is judged by the text, and the rest by the address that it was resolved to, which is then the one connected to.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TYPE_CHECKING

from glassloop.core.errors import ConfigError
from glassloop.core.visible import exact

if TYPE_CHECKING:
    from yarl import URL

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

WEB_PORTS = frozenset((80, 443))
MAX_URL = 4_096
_LAST_PORT = 65_535
_LOCAL_SUFFIXES = (".localhost", ".local", ".lan", ".internal", ".home.arpa", ".test")

# What `is_global` lets through although it leads, or may lead, to somebody's own network.
_NOT_PUBLIC_V4 = (
    ip_network("192.0.0.0/24"),  # protocol assignments, RFC 6890; older Pythons know only a part
    ip_network("192.88.99.0/24"),  # 6to4 relays, RFC 7526
)
# All public IPv6 addresses are in here (RFC 4291 §2.4). Outside are those that carry an IPv4 address (`::/96`,
# `64:ff9b::/96`, `64:ff9b:1::/48`), site-local ones, segment identifiers and multicast.
_UNICAST = ip_network("2000::/3")
_NOT_PUBLIC_V6 = (
    ip_network("2001::/32"),  # Teredo: carries an IPv4 address, RFC 4380
    ip_network("2002::/16"),  # 6to4: the same, RFC 3056
    ip_network("3fff::/20"),  # documentation, RFC 9637; unknown to older Pythons
)

# White space and control characters, which parsers drop or turn into others; the backslash, which some read as `/`.
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]")
_SHAPE = re.compile(r"(https?)://([^/?#]+)", re.IGNORECASE)
_ENTRY = re.compile(r"(?P<host>\[[^\]]+\]|[^\[\]:]*)(?::(?P<port>\d{1,5}))?")
_SHOWN = 200


class AddressRefused(Exception):
    """A URL, or what it resolves to, is not one to be asked. The text says why and who could allow it."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """One exception: a host by its name, or the addresses of a network. `port` None: every port.

    Without host and network it opens the port for public addresses.
    """

    host: str = ""
    network: Network | None = None
    port: int | None = None

    def covers(self, host: str, port: int, address: Address | None) -> bool:
        """Whether it allows what no general rule would."""
        if self.port not in (None, port):
            return False
        if self.network is not None:
            return address is not None and address in self.network
        return bool(self.host) and self.host == host

    def opens(self, port: int) -> bool:
        """Whether public hosts may be asked at this port."""
        return not self.host and self.network is None and self.port == port


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Public addresses at the ports 80 and 443, and what is `allowed` beyond."""

    allowed: tuple[Allowed, ...] = ()

    @classmethod
    def from_text(cls, text: str) -> AddressRule:
        """The rule with exceptions as a user writes them, between commas: `localhost:8080`, `10.0.0.5`,
        `10.1.0.0/16`, `[::1]:3000`, or `:8443` for this port of every public host.

        Without a port every port of that host is meant. Raises `ConfigError`.
        """
        return cls(tuple(_entry(each.strip()) for each in text.split(",") if each.strip()))

    def why_not(self, host: str, port: int, address: Address | None) -> str:
        """Why the host must not be asked at this address; "" if it may. None: somebody else will resolve it."""
        address = unwrapped(address) if address else None
        if any(entry.covers(host, port, address) for entry in self.allowed):
            return ""
        if address is None and _is_local_name(host):
            return "it is a name of a local network"
        if address is not None and not is_public(address):
            return f"{address} is no public address"
        if port not in WEB_PORTS and not any(entry.opens(port) for entry in self.allowed):
            return f"port {port} is neither 80 nor 443"
        return ""

    def permitted(self, url: URL, addresses: Iterable[str]) -> tuple[Address, ...]:
        """Of the addresses that the URL's host has, those that may be connected to, in their order.

        Raises `AddressRefused` if there is none.
        """
        host, port = host_of(url), url.port or 0
        given = tuple(dict.fromkeys(map(_address, addresses)))
        reasons = {address: self.why_not(host, port, address) for address in given}
        fine = tuple(unwrapped(address) for address, reason in reasons.items() if not reason)
        if not fine:
            raise _refused(host, next(iter(reasons.values()), "it has no address"))
        return fine

    def check_unresolved(self, url: URL) -> None:
        """All that can be judged of a URL whose host somebody else will resolve. Raises `AddressRefused`."""
        host = host_of(url)
        if reason := self.why_not(host, url.port or 0, _literal(host)):
            raise _refused(host, reason)


def is_public(address: Address) -> bool:
    """Whether the address belongs to the public internet and leads nowhere else.

    The special-purpose registries of IANA, as far as `ipaddress` knows them, and what it leaves open.
    """
    address = unwrapped(address)
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    return address in _UNICAST and not any(address in network for network in _NOT_PUBLIC_V6)


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one only wraps (`::ffff:0:0/96`); any other as it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def checked_url(text: str) -> URL:
    """The URL, if its text is one to work with: http or https, a host, no credentials, nothing that is read in two
    ways. A fragment is dropped. Raises `AddressRefused`.
    """
    from yarl import URL

    text = text.strip(" ")
    if len(text) > MAX_URL:
        raise AddressRefused(f"the URL has {len(text):,} characters, at most {MAX_URL:,}")
    if found := _NOT_IN_A_URL.search(text):
        raise AddressRefused(
            f"the URL {_shown(text)} has the character {found.group()!r}; write it percent-encoded"
        )
    shape = _SHAPE.match(text)
    if shape is None:
        raise AddressRefused(
            f"the URL {_shown(text)} is not taken: it must begin with http:// or https:// and a host"
        )
    if "@" in shape.group(2):
        raise AddressRefused(
            "the URL holds a user name or password (there is an @ before its path); leave it out"
        )
    try:
        url = URL(text).with_fragment(None)
        if not url.host or not url.port:
            raise ValueError("it has no host, or the port 0")
    except ValueError as error:
        raise AddressRefused(f"the URL {_shown(text)} cannot be read: {error}") from error
    return url


def host_of(url: URL) -> str:
    """The URL's host as it is looked up: lower case, names in other scripts as `xn--`, no dot at the end."""
    return (url.raw_host or "").lower().rstrip(".")


def origin_of(url: URL) -> tuple[str, str, int]:
    """Scheme, host and port: what a secret is bound to."""
    return url.scheme, host_of(url), url.port or 0


def is_literal(host: str) -> bool:
    """Whether the host is an address and no name."""
    return _literal(host) is not None


def _literal(host: str) -> Address | None:
    """The address that the host is, in any of the spellings that resolvers take for one (`127.1`, `0x7f.1`)."""
    try:
        return _address(host) if ":" in host else IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _is_local_name(host: str) -> bool:
    return "." not in host or host.endswith(_LOCAL_SUFFIXES)


def _refused(host: str, reason: str) -> AddressRefused:
    return AddressRefused(
        f"{exact(host)} is not asked: {reason}. Only the user can allow it (web_allow); use another address."
    )


def _address(text: str) -> Address:
    return ip_address(text.partition("%")[0])


def _entry(text: str) -> Allowed:
    host, port = text, None
    if text.count(":") < 2 or text.startswith("["):
        parts = _ENTRY.fullmatch(text)
        if parts is None or int(parts["port"] or 0) > _LAST_PORT:
            raise _no_entry(text)
        host, port = parts["host"].strip("[]"), int(parts["port"]) if parts["port"] else None
    if not host:
        return Allowed(port=port)
    try:
        return Allowed(network=ip_network(host), port=port)
    except ValueError:
        pass
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", host):
        raise _no_entry(text)
    from yarl import URL

    return Allowed(host=host_of(URL.build(scheme="http", host=host)), port=port)


def _no_entry(text: str) -> ConfigError:
    return ConfigError(
        f"web_allow: {text!r} is no host. Write a name or an address, with a port if need be: localhost:8080, "
        "10.0.0.5, 10.1.0.0/16, [::1]:3000, or :8443 for a port of every public host."
    )


def _shown(text: str) -> str:
    return exact(repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…"))
