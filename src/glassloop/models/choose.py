"""From what a person wrote (`provider:model`, a URL, or a `Model`) to a model that can be asked."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from glassloop.core.errors import ConfigError
from glassloop.models.model import Model
from glassloop.models.providers import ALIASES, PROVIDERS, Provider
from glassloop.models.urls import normal_base_url, origin

if TYPE_CHECKING:
    from glassloop.models.endpoint import Endpoint

_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+[/#].*|(?:localhost|[\w-]+\.[\w.-]+):\d+")
"""An address without its scheme, and no name of a model: those may end in a number as well (`phi:3`)."""

_GENERIC = ("GLASSLOOP_API_KEY", "OPENAI_API_KEY")
_GENERIC_ADDRESS = {
    "GLASSLOOP_API_KEY": ("GLASSLOOP_BASE_URL",),
    "OPENAI_API_KEY": PROVIDERS["openai"].address,
}


def model_from(
    spec: str | Model, *, env: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Model:
    """The model that `spec` names: `"provider:model"`, `"http://host:port/v1#model"`, or a `Model`, returned as it is.

    `env` is where keys and addresses are looked up (default: the process's environment); it must be one
    source, since a key in it is trusted with an address in it. `overrides` are arguments of `Endpoint`, such as
    `key`, `base_url` or `deadlines`. A key of the environment is only sent to the provider table's origin, or to
    the address that the same environment sets. Raises `ConfigError` naming what is missing.
    """
    if not isinstance(spec, str):
        return spec
    env = os.environ if env is None else env
    options = dict(overrides or {})
    spec = spec.strip()
    if "://" in spec:
        return _from_url(spec, env, options)
    name, colon, model = spec.partition(":")
    provider = PROVIDERS.get(ALIASES.get(name.strip().lower(), name.strip().lower()))
    if options.get("base_url") and provider is None:
        return _at(str(options.pop("base_url")), spec, env, options)
    if not colon or not model.strip():
        raise ConfigError(_no_model(spec, provider))
    if provider is None:
        raise ConfigError(_unknown(name, spec))
    return _from_provider(provider, model.strip(), env, options)


def _from_provider(
    provider: Provider, model: str, env: Mapping[str, str], options: dict[str, Any]
) -> Endpoint:
    from glassloop.models.endpoint import Endpoint

    address = _address(provider, env)
    told = options.pop("base_url", None)
    base_url = normal_base_url(str(told) if told else address or provider.base_url)
    if options.get("key") is None:
        trusted = normal_base_url(address or provider.base_url)
        variable = next((name for name in provider.keys if env.get(name)), None)
        if variable and origin(base_url) == origin(trusted):
            options["key"] = env[variable]
        elif not provider.local and origin(base_url) == origin(trusted):
            raise ConfigError(_no_key(provider))
    options.setdefault("name", f"{provider.name}:{model}")
    return Endpoint(base_url, model, provider=provider, **options)


def _address(provider: Provider, env: Mapping[str, str]) -> str | None:
    """Where this environment says the provider is."""
    found = next((env[name].strip() for name in provider.address if env.get(name, "").strip()), None)
    if found is None or provider.name != "ollama":
        return found
    return ollama_address(found)


def ollama_address(host: str) -> str:
    """`OLLAMA_HOST` as Ollama reads it: a bare host or port is filled up.

    0.0.0.0 is where a server listens, not where one finds it.
    """
    scheme, separator, rest = host.rpartition("://")
    name, slash, path = rest.partition("/")
    if name.startswith(":") or not name:
        name = "localhost" + name
    bare = name.removeprefix("[").partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    has_port = name.rpartition("]")[2].startswith(":") if name.startswith("[") else ":" in name
    if bare in ("0.0.0.0", "::"):
        name = "localhost" + (":" + name.rpartition(":")[2] if has_port else "")
    if not has_port and not separator:
        name += ":11434"
    return f"{scheme or 'http'}://{name}{slash}{path}"


def _from_url(spec: str, env: Mapping[str, str], options: dict[str, Any]) -> Endpoint:
    url, _, model = spec.partition("#")
    if not model.strip():
        raise ConfigError(f"{spec!r} names no model; write it behind a #: {url}#model-name")
    return _at(url, model.strip(), env, options)


def _at(url: str, model: str, env: Mapping[str, str], options: dict[str, Any]) -> Endpoint:
    """A model at an address: its provider's facts and key if the table knows the origin, else a key bound to it."""
    from glassloop.models.endpoint import Endpoint

    options.pop("base_url", None)
    base_url = normal_base_url(url)
    provider = next((one for one in PROVIDERS.values() if origin(one.base_url) == origin(base_url)), None)
    if options.get("key") is None:
        options["key"] = _key_for(base_url, provider, env)
    return Endpoint(base_url, model, provider=provider, **options)


def _key_for(base_url: str, provider: Provider | None, env: Mapping[str, str]) -> str | None:
    if provider is not None and (found := next((env[name] for name in provider.keys if env.get(name)), None)):
        return found
    for variable in _GENERIC:
        addresses = [env[name] for name in _GENERIC_ADDRESS[variable] if env.get(name)]
        if env.get(variable) and any(origin(normal_base_url(one)) == origin(base_url) for one in addresses):
            return env[variable]
    return None


def _no_key(provider: Provider) -> str:
    others = f" (or {', '.join(provider.keys[1:])})" if provider.keys[1:] else ""
    return f"No key for {provider.name}: set {provider.keys[0]}{others}, or pass `key=`. See {provider.docs}"


def _no_model(spec: str, provider: Provider | None) -> str:
    if provider is not None:
        return f"{spec!r} names a provider but no model; write {provider.name}:model-name"
    return f'{spec!r} is no model: write "provider:model" or "http://host:port/v1#model"'


def _unknown(name: str, spec: str) -> str:
    if _HOST_AND_PORT.fullmatch(spec):
        url = spec if "#" in spec else f"{spec}#model-name"
        return f"{spec!r} is an address without http:// before it. Did you mean http://{url}?"
    near = difflib.get_close_matches(name.strip().lower(), [*PROVIDERS, *ALIASES], n=3)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return (
        f"There is no provider {name!r}.{meant} Known are {', '.join(PROVIDERS)}; "
        'any other endpoint is named by its URL: "http://host:port/v1#model"'
    )
