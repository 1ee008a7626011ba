"""`glassloop models`: what an endpoint offers."""

from __future__ import annotations

import asyncio
import dataclasses
import sys

import click

from glassloop.cli.failures import ANSWERED, FAILED
from glassloop.cli.options import endpoint_options
from glassloop.cli.printing import say
from glassloop.cli.screen import Line
from glassloop.cli.tables import print_table
from glassloop.config import Config, load, model_of


@click.command()
@click.argument("provider", required=False)
@endpoint_options
def command(provider: str | None, model: str | None, base_url: str | None) -> int:
    """List the models of an endpoint: the configured one, PROVIDER's, or the one at a URL.

    \b
      glassloop models ollama
      glassloop models http://localhost:8080/v1
    """
    config = load(model=_asked(provider, base_url) if provider else model, base_url=base_url)
    if config.model is None and config.base_url is None:
        from glassloop.cli.welcome import show_welcome

        return show_welcome(config)
    return asyncio.run(_list(config))


def _asked(provider: str, base_url: str | None) -> str:
    """A model, whatever its name, of a provider or at an address that was given in its place."""
    if "://" not in provider:
        return f"{provider}:?"
    if base_url:
        raise click.UsageError(f"Give one address: {provider} or --base-url.")
    address, _, name = provider.partition("#")
    return f"{address}#{name or '?'}"


async def _list(config: Config) -> int:
    endpoint = model_of(dataclasses.replace(config, model=config.model or "?"))
    try:
        names = await endpoint.models()  # type: ignore[attr-defined]
    finally:
        await endpoint.close()
    if not names:
        say(Line("The endpoint lists no models.", "mend"))
        return FAILED
    print_table(["model"], [[name + (" *" if _is_chosen(name, config) else "")] for name in names])
    return ANSWERED


def _is_chosen(name: str, config: Config) -> bool:
    """The configured model is marked for people; other programs get bare names."""
    return sys.stdout.isatty() and name == config.model
