"""The options that several commands share, and what they make together with the configuration: an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from glassloop.config import Config, load, model_of

if TYPE_CHECKING:
    from glassloop.agent import Agent
    from glassloop.models.model import Model
    from glassloop.run import Approve
    from glassloop.tools.approval import Policy
    from glassloop.tools.tool import Tool

DEFAULT_TOOLS = ("calculator", "current_time", "weather")
"""The tools of the terminal where neither -T nor a file names any: ready-made ones that only read."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said about the model and its tools."""

    model: str | None = None
    base_url: str | None = None
    tools: tuple[str, ...] = ()
    no_tools: bool = False
    notes: str | None = None
    system: str | None = None
    tool_mode: str | None = None
    no_stream: bool = False

    def config(self) -> Config:
        """The configuration with the command line's word on top."""
        return load(model=self.model, base_url=self.base_url, tool_mode=self.tool_mode)


Command = TypeVar("Command", bound=Callable[..., Any])


def endpoint_options(command: Command) -> Command:
    """-m and --base-url."""
    command = click.option(
        "--base-url", metavar="URL", help="The endpoint, such as http://localhost:8080/v1."
    )(command)
    return click.option(
        "-m", "--model", metavar="MODEL", help='"provider:model", or "URL#model", or a name at --base-url.'
    )(command)


def agent_options(command: Command) -> Command:
    """Everything that `Options` holds."""
    for option in reversed(
        [
            click.option(
                "-T",
                "--tool",
                "tools",
                metavar="TOOL",
                multiple=True,
                help="A ready-made tool by name, or a Python file whose functions are tools. May be repeated.",
            ),
            click.option("--notes", metavar="FOLDER", help="Let the model search the notes in this folder."),
            click.option("--no-tools", is_flag=True, help="Give the model no tools."),
            click.option("--system", metavar="TEXT", help="Instructions for the model."),
            click.option(
                "--tool-mode",
                type=click.Choice(["auto", "native", "text"]),
                help="How tools are called: by the endpoint's own means, or in text. Learned if not said.",
            ),
            click.option("--no-stream", is_flag=True, help="Ask for the whole reply at once."),
        ]
    ):
        command = option(command)
    return endpoint_options(command)


def tools_of(options: Options, config: Config) -> list[Tool]:
    """The tools that -T and the configuration name, or the default ones; none with --no-tools."""
    if options.no_tools:
        return []
    from glassloop.tools.loading import load_tools

    named = config.tools + options.tools or DEFAULT_TOOLS
    settings = {"notes_folder": options.notes or config.notes_folder}
    chosen = dict.fromkeys((*named, *(["search_notes"] if options.notes else [])))
    tools = [tool for name in chosen for tool in load_tools(name, settings)]
    return list({(tool.name, tool.hash): tool for tool in tools}.values())  # "basics" and "weather" share one


def agent_of(options: Options, config: Config, *, approve: Approve | None) -> Agent[str]:
    """The agent. `approve` is asked where a rule says so. Raises `ConfigError` and `ToolDefinitionError`."""
    from glassloop.agent import Agent
    from glassloop.tools.toolbox import Toolbox

    return Agent(
        connected(options, config),
        instructions=options.system or config.instructions or "",
        tools=Toolbox(tools_of(options, config), policy=policy_of(config.approvals)),
        settings=config.settings,
        limits=config.limits,
        approve=approve,
    )


def connected(options: Options, config: Config) -> Model:
    """The configured model."""
    return model_of(config, **({"stream": False} if options.no_stream else {}))


def policy_of(rules: Mapping[str, str]) -> Policy:
    """The rules by tool name; where there is none, what is usual for the tool."""
    from glassloop.tools.approval import Ruling, by_tool_and_origin

    def policy(tool: Tool, arguments: Mapping[str, Any]) -> Ruling:
        match rules.get(tool.name):
            case "allow":
                return Ruling("allow")
            case "ask":
                return Ruling("ask", "your configuration says so")
            case "deny":
                return Ruling("deny", "the configuration denies it")
        return by_tool_and_origin(tool, arguments)

    return policy
