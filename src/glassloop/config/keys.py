"""Which base URL a model is asked at, and which key may go there.

A key belongs to the base URL that its own source sets, or else to its provider's own address. A trusted source
(command line, environment, the user's own file) may send it elsewhere; a file that came with a folder may not:
that is refused, and both sources are named. So no folder that one happens to work in can collect keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from glassloop.config.sources import Source
from glassloop.core.errors import ConfigError
from glassloop.models.choose import ollama_address
from glassloop.models.providers import ALIASES
from glassloop.models.urls import normal_base_url, origin

MODEL, BASE_URL, API_KEY = "GLASSLOOP_MODEL", "GLASSLOOP_BASE_URL", "GLASSLOOP_API_KEY"


COMMAND_LINE, SESSION = "the command line", "the session"
"""Who may name a model before all other sources. What a session remembers is not trusted with another source's key."""


class Slot(NamedTuple):
    """Where a base URL and its key may be set: a provider's variables, or Glassloop's own (`home` None)."""

    url_variables: tuple[str, ...]
    key_variables: tuple[str, ...]
    home: str | None = None


GENERAL = Slot((BASE_URL,), (API_KEY,))


@dataclass(frozen=True, slots=True)
class Found:
    """A value, the variable that holds it and where that was set."""

    value: str = field(repr=False)
    variable: str
    source: Source

    def __str__(self) -> str:
        return f"{self.source.labels.get(self.variable, self.variable)} ({self.source.name})"


@dataclass(frozen=True, slots=True)
class Connection:
    """A model's endpoint. `name` is the model's name there, `model` where it was set. `url` is None where it is
    the provider's own, `key` where none may be sent."""

    name: str | None
    model: Found | None
    provider: str | None
    url: Found | None
    key: Found | None
    warnings: tuple[str, ...] = ()


def find(sources: Sequence[Source], variables: Sequence[str]) -> Found | None:
    """The strongest source's value of any of the variables."""
    for source in sources:
        for variable in variables:
            if value := source.variables.get(variable):
                return Found(value, variable, source)
    return None


_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)$", re.IGNORECASE
)
_SHORTEST_SECRET = 8


def secrets_in(sources: Iterable[Source], variables: Iterable[str]) -> tuple[str, ...]:
    """The values of these variables, and of all whose names say that they hold a secret, in every source.

    A value that is shorter than 8 characters is left out: it may be any word of a text.
    """
    named = {API_KEY, *variables}
    found = (
        value
        for source in sources
        for name, value in source.variables.items()
        if len(value) >= _SHORTEST_SECRET and (name in named or _SECRET_NAME.search(name))
    )
    return tuple(dict.fromkeys(found))


def address_in(url: Found) -> str:
    """The base URL in its one spelling. Raises `ConfigError` naming where it was set."""
    try:
        return normal_base_url(ollama_address(url.value) if url.variable == "OLLAMA_HOST" else url.value)
    except ConfigError as error:
        raise ConfigError(f"{url}: {error}") from error


def connect(sources: Sequence[Source], slots: Mapping[str, Slot]) -> Connection:
    """What the sources say about model, base URL and key. `slots` by provider name, strongest source first.

    Raises `ConfigError` if a project's file would send a key of another source somewhere.
    """
    sources = [_with_split_url(source) for source in sources]
    model = find(sources, (MODEL,))
    name, provider = _parts_of(model, slots)
    url = find(sources, (BASE_URL,))
    if provider and url and model and _weaker(url.source, model.source, sources):
        url = None  # a model that names its provider is not moved by a weaker source
    if not provider:
        provider = _provider_at(url, slots) if url else _compatible(sources, slots)
    slot = slots.get(provider or "", GENERAL)
    url = url or find(sources, slot.url_variables)
    key, warning = _key_for(url, model, slot, sources)
    return Connection(name, model, provider, url, key, (warning,) if warning else ())


def _with_split_url(source: Source) -> Source:
    """With a model given as `http://host/v1#name` set as base URL and name."""
    model = source.variables.get(MODEL, "").strip()
    if "://" not in model:
        return source
    url, _, name = model.partition("#")
    if not name:
        raise ConfigError(f"The model {model!r} ({source.name}) names no model: write URL#MODEL.")
    labels = {**source.labels, BASE_URL: source.labels.get(MODEL, MODEL)}
    return replace(source, variables={**source.variables, BASE_URL: url, MODEL: name}, labels=labels)


def _parts_of(model: Found | None, slots: Mapping[str, Slot]) -> tuple[str | None, str | None]:
    """The model's own name, and its provider if the prefix is one: a name may have a colon in it (`qwen3:8b`)."""
    if model is None:
        return None, None
    prefix, colon, name = model.value.partition(":")
    provider = ALIASES.get(prefix.lower(), prefix.lower())
    return (name, provider) if colon and name and provider in slots else (model.value, None)


def _provider_at(url: Found, slots: Mapping[str, Slot]) -> str | None:
    """The provider whose own address this base URL is."""
    asked = origin(address_in(url))
    return next((name for name, slot in slots.items() if slot.home and origin(slot.home) == asked), None)


def _compatible(sources: Sequence[Source], slots: Mapping[str, Slot]) -> str | None:
    """A bare model name belongs to the endpoint that OpenAI's variables describe, as in every other tool."""
    slot = slots.get("openai")
    return "openai" if slot and find(sources, (*slot.url_variables, *slot.key_variables)) else None


def _weaker(one: Source, other: Source, sources: Sequence[Source]) -> bool:
    return sources.index(one) > sources.index(other)


def _key_for(
    url: Found | None, model: Found | None, slot: Slot, sources: Sequence[Source]
) -> tuple[Found | None, str]:
    """The key to send, or None with the reason why there is one that is not sent."""
    if url is None:
        if slot is GENERAL or model is None:
            return None, ""  # there is nowhere to send one
        key = find(sources, slot.key_variables)
        return (key, "") if key else _general_key_at_home(model, slot, sources)
    beside = find([url.source], (*slot.key_variables, API_KEY))
    if beside is not None:
        return beside, ""
    names = (API_KEY, *slot.key_variables) if url.variable == BASE_URL else (*slot.key_variables, API_KEY)
    key = find(sources, names)
    if key is None:
        return None, ""
    return _if_it_may_go(key, url, slot)


def _if_it_may_go(key: Found, url: Found, slot: Slot) -> tuple[Found | None, str]:
    own_slot = slot if key.variable in slot.key_variables else GENERAL
    its_url = find([key.source], own_slot.url_variables)
    belongs = address_in(its_url) if its_url else own_slot.home
    if belongs and origin(belongs) == origin(address_in(url)):
        return key, ""
    if not url.source.trusted and not (its_url and url.source.name == SESSION):
        raise ConfigError(_redirected(url, key))
    if its_url:
        return None, f"The key {key} belongs to {its_url.value}; it is not sent to {url.value}."
    return key, ""


def _redirected(url: Found, key: Found) -> str:
    if url.source.name == SESSION:
        return (
            f"The session was asked at {url.value}, and the key {key} is not set for that address. To send it "
            f"there, name the model yourself: -m {url.value}#MODEL"
        )
    return (
        f"{url} would send the key {key} to {url.value}. A project's file may not redirect a key that is set "
        f"elsewhere. If you want this, set the key in {url.source.name} too (any text will do if that "
        "endpoint needs none); if not, remove the base URL there."
    )


def _general_key_at_home(model: Found, slot: Slot, sources: Sequence[Source]) -> tuple[Found | None, str]:
    """GLASSLOOP_API_KEY for a provider that has no key of its own name."""
    key = find(sources, (API_KEY,))
    if key is None:
        return None, ""
    its_url = find([key.source], (BASE_URL,))
    if its_url and slot.home and origin(address_in(its_url)) != origin(slot.home):
        return None, f"The key {key} belongs to {its_url.value}; it is not sent to {slot.home}."
    if model.source.trusted or model.source == key.source:
        return key, ""
    if model.source.name == SESSION:
        raise ConfigError(
            f"The session was asked with {model.value}, and the key {key} is not set for that provider. To send "
            f"it there, name the model yourself: -m {model.value}"
        )
    wanted = slot.key_variables[0] if slot.key_variables else API_KEY
    raise ConfigError(
        f"{model} would send the key {key} to {slot.home or model.value}. A project's file may not redirect a key "
        f"that is set elsewhere. If you want this, set {wanted} instead of {API_KEY}."
    )
