"""`glassloop mcp`: the MCP servers that are configured, and our own tools offered as one."""

from __future__ import annotations

import click

from glassloop.cli.failures import ANSWERED, FAILED
from glassloop.cli.printing import say, say_skipped
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line
from glassloop.cli.surroundings import look_around, start
from glassloop.cli.tables import print_table
from glassloop.config import load
from glassloop.config.mcp_servers import Configured, Servers
from glassloop.config.trust import TrustStore
from glassloop.core.errors import ConfigError

_DEFAULT = ("basics",)


@click.group()
def command() -> None:
    """Tools of MCP servers, and your tools as an MCP server.

    Servers are read from .mcp.json in the project (once it is trusted: `glassloop trust`), from mcp.json in your
    configuration folder, and from [mcp.servers.NAME] in your glassloop.toml. `run` and `chat` start them by themselves.
    """


@command.command("list")
def list_() -> int:
    """Start the trusted servers and list their tools."""
    servers, store = look_around(load()).servers, TrustStore.in_user_folder()
    trusted = _trusted(servers, store)
    rows = [(one.settings.name, _why_not(one), "", one.where) for one in _others(servers, trusted)]
    failed = False
    if trusted:
        tools = start(trusted, servers)
        try:
            for state, one in zip(tools.states, trusted, strict=True):
                name = state.settings.name
                failed = failed or bool(state.failure)
                pinned = store.pinned(one.key) or {}
                rows.append((name, "failed" if state.failure else "runs", "", one.where))
                for tool in state.definitions:
                    waits = pinned and pinned.get(tool.name) != tool.text
                    effect = tool.effect if state.settings.trusted else "once"
                    rows.append((name, "changed" if waits else effect, tool.name, tool.description))
        finally:
            tools.close()
    if not rows:
        say(Line("No MCP server is configured.", "quiet"))
    print_table(["server", "state", "tool", "what it says, or where it is configured"], rows)
    return FAILED if failed else ANSWERED


def _trusted(servers: Servers, store: TrustStore) -> list[Configured]:
    file = servers.file
    ours = [*servers.own]
    if file and store.standing(file.path, file.text) == "trusted":
        ours += servers.of_project()
    return [one for one in ours if not one.settings.disabled]


def _others(servers: Servers, trusted: list[Configured]) -> list[Configured]:
    return [one for one in (*servers.own, *servers.of_project()) if one not in trusted]


def _why_not(one: Configured) -> str:
    return "disabled" if one.settings.disabled else "not trusted"


@command.command()
@click.option(
    "-T",
    "--tool",
    "names",
    metavar="TOOL",
    multiple=True,
    help="A tool, a set or a file, as for run. May be repeated.",
)
@click.option(
    "--allow",
    "allowed",
    metavar="TOOL",
    multiple=True,
    help="Let this tool run although nobody is asked here.",
)
def serve(names: tuple[str, ...], allowed: tuple[str, ...]) -> int:
    """Offer tools as an MCP server over standard input and output.

    Without -T, the basics. A tool that would have to be asked about is refused, unless --allow names it: nobody can
    be asked here.

    \b
      glassloop mcp serve -T files --allow write_file
    """
    import asyncio

    from glassloop.cli.tooling import settings_of, toolbox_of
    from glassloop.tools.loading import look_up
    from glassloop.tools.mcp.serving import serve_stdio

    config = load()
    loaded = [look_up(name, settings_of(config, None)) for name in names or _DEFAULT]
    for one in loaded:
        say_skipped(one.skipped)
    tools = list({tool.name: tool for one in loaded for tool in one.tools}.values())
    unknown = set(allowed) - {tool.name for tool in tools}
    if unknown:
        known = ", ".join(tool.name for tool in tools)
        raise ConfigError(
            f"--allow {one_line(min(unknown))}: there is no such tool here. There are: {known}."
        )
    box = toolbox_of(tools, config, None)
    say(Line(f"· serving {visible(', '.join(tool.name for tool in tools))}", "quiet"))
    asyncio.run(serve_stdio(box, frozenset(allowed)))
    return ANSWERED
