"""What a person sees when no model is set: the three quickest ways to get one, with what is already here."""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from glassloop.cli.failures import USAGE, color_of
from glassloop.cli.safe_text import one_line
from glassloop.cli.terminal import for_stderr
from glassloop.cli.wording import program
from glassloop.config import Config, local_addresses
from glassloop.core.errors import ConfigError

PATIENCE = 1.0
"""Seconds that a local server has to answer."""

_MOST_MODELS = 6


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server found on this machine, with the models it offers."""

    provider: str
    base_url: str
    models: tuple[str, ...]


def show_welcome(config: Config) -> int:
    """Print the page on stderr. Gives the exit code. With a base URL, only the model's name is missing."""
    if config.base_url:
        raise ConfigError(no_model_at(config.base_url))
    servers = asyncio.run(find_servers(local_addresses()))
    for text, style in welcome_lines(servers, config.keys, program()):
        for line in [text] if style == _COMMAND else _indented(text):  # a command stays whole, to be copied
            click.echo(click.style(line, **style), err=True, color=color_of(sys.stderr))
    return USAGE


def _indented(text: str) -> list[str]:
    margin = text[: len(text) - len(text.lstrip())]
    return [margin + line for line in for_stderr(text.lstrip(), len(margin))]


def no_model_at(base_url: str) -> str:
    """What to say where there is a base URL and no model."""
    return f"No model is named. Add -m NAME. What {base_url} offers: {program()} models --base-url {base_url}"


Styled = tuple[str, dict[str, Any]]
_HEAD: dict[str, Any] = {"bold": True}
_COMMAND: dict[str, Any] = {"fg": "cyan"}


def welcome_lines(
    servers: Sequence[LocalServer], keys: Mapping[str, str], called: str = "glassloop"
) -> list[Styled]:
    """The page, made of what was found: local servers, and keys by provider with where they are."""
    lines: list[Styled] = [("No model is set yet. The three quickest ways to get one:", _HEAD), ("", {})]
    lines += [("1. A model on this machine", _HEAD), *_local(servers, called), ("", {})]
    lines += [
        ("2. A provider's key in a file named .env, in this folder", _HEAD),
        *_keyed(keys, called),
        ("", {}),
    ]
    lines += [
        ("3. Any OpenAI-compatible endpoint by its URL", _HEAD),
        (f'   {called} run -m "http://localhost:8080/v1#model-name" "Hello"', _COMMAND),
        ("", {}),
        ("To keep the choice, put it into .env:  GLASSLOOP_MODEL=provider:model", {}),
        (f"To see how it works without any model:  {called} demo", {}),
    ]
    return lines


def _local(servers: Sequence[LocalServer], called: str) -> list[Styled]:
    lines: list[Styled] = []
    for server in servers:
        lines.append(
            (f"   {_NAMES.get(server.provider, server.provider)} is running at {server.base_url}.", {})
        )
        if server.models:
            shown = ", ".join(one_line(name) for name in server.models[:_MOST_MODELS])
            more = len(server.models) - _MOST_MODELS
            lines.append((f"   It has {shown}" + (f" and {more} more." if more > 0 else "."), {}))
            name = one_line(server.models[0])
            lines.append((f'   {called} run -m {server.provider}:{name} "Hello"', _COMMAND))
        else:
            pull = (
                "   ollama pull qwen3:4b" if server.provider == "ollama" else "   Load a model there first."
            )
            lines += [("   It has no model yet:", {}), (pull, _COMMAND)]
    if lines:
        return lines
    return [
        ("   Install Ollama (ollama.com), then:", {}),
        ("   ollama pull qwen3:4b", _COMMAND),
        (f'   {called} run -m ollama:qwen3:4b "Hello"', _COMMAND),
    ]


def _keyed(keys: Mapping[str, str], called: str) -> list[Styled]:
    lines: list[Styled] = []
    for provider, where in keys.items():
        lines.append((f"   There is a key for {provider}: {one_line(where)}. See its models:", {}))
        lines.append((f"   {called} models {provider}", _COMMAND))
    if lines:
        return lines
    return [
        ("   OPENROUTER_API_KEY=sk-or-...    (openrouter.ai/keys; it has free models)", {}),
        (f'   {called} run -m openrouter:openai/gpt-oss-120b "Hello"', _COMMAND),
    ]


_NAMES = {"ollama": "Ollama", "lmstudio": "LM Studio", "llamacpp": "llama.cpp", "vllm": "vLLM"}


# ── Looking around ───────────────────────────────────────────────────────────────────────────────────


async def find_servers(addresses: Mapping[str, str]) -> list[LocalServer]:
    """The servers that answer at these base URLs (by provider), asked all at once."""
    asked = [asyncio.to_thread(_ask, provider, url) for provider, url in addresses.items()]
    return [found for found in await asyncio.gather(*asked) if found]


def _ask(provider: str, base_url: str) -> LocalServer | None:
    """Without a proxy and without redirects: this is our own machine."""
    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "localhost", parts.port, timeout=PATIENCE)
    try:
        connection.request("GET", f"{parts.path}/models", headers={"Accept": "application/json"})
        models = json.loads(connection.getresponse().read(1_000_000))["data"] or []
        return LocalServer(provider, base_url, tuple(str(one["id"]) for one in models))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()
