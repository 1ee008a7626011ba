"""The commands and where each one lives. A command's module is imported only when the command is used."""

from __future__ import annotations

import difflib
from importlib import import_module

import click

_COMMANDS = {
    "run": "Ask one question and print the answer.",
    "chat": "Talk with a model, with tools.",
    "sessions": "Find, name and export what was said.",
    "show": "See a session, round by round.",
    "replay": "Play a session again, offline.",
    "approve": "Decide about calls that wait.",
    "demo": "See the loop at work; no key needed.",
    "tools": "List the tools, or check a tool file.",
    "mcp": "Tools of MCP servers, and tools as one.",
    "trust": "Look at what a folder brings along.",
    "models": "List the models of an endpoint.",
    "profile": "What is known of endpoints, and why.",
    "doctor": "What can this endpoint really do?",
    "quirks": "Play what real endpoints get wrong.",
}


class _LazyGroup(click.Group):
    """Knows its commands by name and one line; `glassloop.cli.commands.NAME` has `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f"glassloop.cli.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with the nearest right spelling."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As in click, without importing every command for its one line."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from glassloop import __version__

    click.echo(f"glassloop {__version__}")
    ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show it.",
)
def app() -> None:
    """A tool-calling agent for every OpenAI-compatible endpoint, with nothing hidden.

    \b
      glassloop demo                          see how it works, without a key
      glassloop run "What is 15% of 240?"     ask once
      glassloop chat -T tools.py              talk, with your own tools
      glassloop doctor -m MODEL --quick       does this endpoint really work?

    Exit codes: 0 answered, 1 failed, 2 wrong usage or configuration, 3 stopped at a limit, 130 interrupted.
    """
