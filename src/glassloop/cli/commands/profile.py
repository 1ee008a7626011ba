"""`glassloop profile`: what is known of endpoints, to see, to edit, to forget, to take along."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from glassloop.cli.failures import ANSWERED, FAILED
from glassloop.cli.options import endpoint_options
from glassloop.cli.printing import say
from glassloop.cli.screen import Line
from glassloop.cli.tables import print_table
from glassloop.cli.welcome import show_welcome
from glassloop.config import load, model_of
from glassloop.core.errors import ConfigError

if TYPE_CHECKING:
    from glassloop.models.endpoint import Endpoint
    from glassloop.models.profiles import Learnt


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int | None:
    """What Glassloop knows of endpoints: told by you, learned from refusals, or from the provider table.

    \b
      glassloop profile                        all that was learned
      glassloop profile show -m ollama:qwen3   one endpoint, and why
    """
    return _list() if ctx.invoked_subcommand is None else None


@command.command()
@endpoint_options
def show(model: str | None, base_url: str | None) -> int:
    """Show what is in force for one endpoint and model, and why."""
    endpoint = _endpoint(model, base_url)
    learnt = endpoint.learnt
    for warning in endpoint.warnings():
        say(Line(warning.text, "mend"))
    rows = [(name, _shown(value), _source(name, endpoint, learnt)) for name, value in _in_force(endpoint)]
    if learnt.url:
        rows.append(("url", learnt.url, "learned"))
    if not rows:
        say(Line(f"{endpoint.name}: nothing is known beyond what every endpoint takes.", "plain"))
        return ANSWERED
    print_table(["field", "value", "from"], rows)
    for one in learnt.lessons:
        words = f": {one.words}" if one.words else ""
        say(Line(f"{one.date} {one.change} ({one.code}){words}", "quiet"))
    return ANSWERED


@command.command(short_help="Open what was learned in your editor.")
@endpoint_options
def edit(model: str | None, base_url: str | None) -> int:
    """Open what was learned of one endpoint in your editor ($VISUAL or $EDITOR)."""
    endpoint = _endpoint(model, base_url)
    path = endpoint.store.path(endpoint.base_url, endpoint.model)
    if not path.exists():
        trouble = endpoint.store.save(endpoint.base_url, endpoint.model, endpoint.learnt)
        if trouble:
            raise ConfigError(trouble)
    click.edit(filename=str(path))
    _, trouble = endpoint.store.load(endpoint.base_url, endpoint.model)
    if trouble:
        say(Line(trouble, "bad"))
        return FAILED
    say(Line(f"Kept in {path}.", "good"))
    return ANSWERED


@command.command(short_help="Forget what was learned.")
@endpoint_options
@click.option("--all", "everything", is_flag=True, help="Forget what was learned of every endpoint.")
def forget(model: str | None, base_url: str | None, everything: bool) -> int:
    """Forget what was learned of one endpoint and model; it is learned again when it matters."""
    if everything:
        from glassloop.models.profiles import ProfileStore

        store = ProfileStore.in_user_folder()
        pairs = store.known()
        forgotten = sum(store.forget(*pair) for pair in pairs)
        say(Line(f"Forgot {forgotten} learned profile{'' if forgotten == 1 else 's'}.", "plain"))
        return ANSWERED
    endpoint = _endpoint(model, base_url)
    known = endpoint.store.forget(endpoint.base_url, endpoint.model)
    said = "Forgot what was learned of" if known else "Nothing was learned of"
    say(Line(f"{said} {endpoint.name}.", "plain"))
    return ANSWERED


@command.command(short_help="Print the whole profile as JSON.")
@endpoint_options
def export(model: str | None, base_url: str | None) -> int:
    """Print one endpoint's whole profile as JSON; `Endpoint(profile=...)` takes it."""
    print(json.dumps(_endpoint(model, base_url).profile.to_json(), ensure_ascii=False, indent=2))
    return ANSWERED


def _list() -> int:
    from glassloop.models.profiles import ProfileStore

    store = ProfileStore.in_user_folder()
    rows = []
    for base_url, model in store.known():
        learnt, _ = store.load(base_url, model)
        last = learnt.lessons[-1] if learnt.lessons else None
        rows.append(
            (model, base_url, last.date if last else "", "; ".join(one.change for one in learnt.lessons))
        )
    if not rows:
        say(Line("Nothing was learned yet: no endpoint has refused anything.", "plain"))
        return ANSWERED
    print_table(["model", "endpoint", "last", "learned"], rows)
    return ANSWERED


def _endpoint(model: str | None, base_url: str | None) -> Endpoint:
    from glassloop.models.endpoint import Endpoint

    config = load(model=model, base_url=base_url)
    if config.model is None:
        raise click.exceptions.Exit(show_welcome(config))
    found = model_of(config, key=config.key or "")  # nothing is sent, so none is needed
    if not isinstance(found, Endpoint):
        raise ConfigError(f"{found.name} is no endpoint over HTTP, so it has no profile")
    return found


def _in_force(endpoint: Endpoint) -> list[tuple[str, Any]]:
    return sorted(endpoint.profile.to_json().items())


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {one}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _source(name: str, endpoint: Endpoint, learnt: Learnt) -> str:
    """Which of the three sources says so, strongest first."""
    if name in endpoint.told:
        return "your settings"
    return "learned" if name in learnt.profile else "the provider table"
