"""Secrets of `http_request`: a model writes `${NAME}` in a header, and only the request itself gets the value.

A secret goes to the origin that it was given for and to no other, and is masked in what comes back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.web_address import AddressRefused, checked_url, origin_of

if TYPE_CHECKING:
    from yarl import URL

MIN_LENGTH = 8
"""Shorter values occur in ordinary text, where masking them would do harm and tell them."""

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that may be sent to one origin, such as `https://api.github.com`. Raises `ConfigError`."""

    origin: str
    value: str = field(repr=False)

    def __post_init__(self) -> None:
        try:
            url = checked_url(self.origin)
        except AddressRefused as error:
            raise ConfigError(f"The origin of a secret cannot be used: {error}") from error
        if url.path not in ("", "/") or url.query_string:
            raise ConfigError(
                f"{self.origin!r} is more than an origin. Write scheme and host: {url.origin()}"
            )
        if len(self.value) < MIN_LENGTH or not self.value.isprintable() or not self.value.isascii():
            raise ConfigError(
                f"The secret for {self.origin} is no line of at least {MIN_LENGTH} ASCII characters"
            )


def filled(text: str, url: URL, secrets: Mapping[str, Secret]) -> str:
    """A header's value with its references resolved for this URL. Raises `ValueError`, naming no value."""

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        secret = secrets.get(name)
        if secret is None:
            known = ", ".join(f"${{{each}}}" for each in secrets) or "none"
            raise ValueError(
                f"there is no secret {found.group()!r}; there are: {known}. Only the user can add one"
            )
        if origin_of(checked_url(secret.origin)) != origin_of(url):
            raise ValueError(
                f"{found.group()} is for {secret.origin} and not for {url.origin()}; nothing was sent"
            )
        return secret.value

    return _REFERENCE.sub(value, text)


def names_in(text: str, secrets: Mapping[str, Secret]) -> list[str]:
    """Which secrets the text refers to."""
    return [name for name in _REFERENCE.findall(text) if name in secrets]
