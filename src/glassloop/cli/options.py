"""The options that several commands share, and what they make together with the configuration: an agent."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import structs

from glassloop.cli.printing import say_skipped
from glassloop.config import COMMAND_LINE, Config, load, model_of
from glassloop.core.errors import ConfigError
from glassloop.core.limits import Limits
from glassloop.core.window import Window

if TYPE_CHECKING:
    from glassloop.agent import Agent
    from glassloop.cli.keeping import Keeping
    from glassloop.cli.surroundings import Surroundings
    from glassloop.hands import Approve, Review
    from glassloop.models.model import Model
    from glassloop.tools.tool import Tool

DEFAULT_TOOLS = ("calculator", "current_time", "weather")
"""The tools of the terminal where neither -T nor a file names any: ready-made ones that only read."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said about the model and its tools. `said_by`: who named the model, if not it."""

    model: str | None = None
    base_url: str | None = None
    tools: tuple[str, ...] = ()
    no_tools: bool = False
    no_project: bool = False
    notes: str | None = None
    system: str | None = None
    tool_mode: str | None = None
    no_stream: bool = False
    limits: tuple[tuple[str, Any], ...] = ()
    window: tuple[tuple[str, Any], ...] = ()
    last: bool = False
    resume: str | None = None
    no_save: bool = False
    take_over: bool = False
    accept_changes: bool = False
    root: str | None = None
    accept_no_sandbox: bool = False
    said_by: str = COMMAND_LINE

    def __post_init__(self) -> None:
        if self.last and self.resume is not None:
            raise click.UsageError("-c continues the last session here, -r the one that it names: give one.")
        if self.no_save and self.continues:
            raise click.UsageError("A session that is continued is kept: leave --no-save away.")
        if self.root is not None and not Path(self.root).expanduser().is_dir():
            raise click.UsageError(f"--root {self.root}: there is no such folder.")

    @property
    def continues(self) -> bool:
        """Is a session to be continued?"""
        return self.last or self.resume is not None

    def config(self) -> Config:
        """The configuration with the command line's word on top."""
        config = load(
            model=self.model, base_url=self.base_url, tool_mode=self.tool_mode, said_by=self.said_by
        )
        return replace(
            config,
            limits=structs.replace(config.limits, **dict(self.limits)),
            window=structs.replace(config.window, **dict(self.window)),
            files_root=self.root or config.files_root,
            accept_no_sandbox=self.accept_no_sandbox or config.accept_no_sandbox,
        )

    def spelled(self, beyond: str = "") -> str:
        """The options that make the agent, as they were typed, for a command that goes on with the same agent.

        `beyond`: why its last run stopped; the limit that it stopped at would stop the next one there as well.
        """
        words = [*_word("-m", self.model), *_word("--base-url", self.base_url)]
        for tool in self.tools:
            words += _word("-T", tool)
        words += [*_word("--notes", self.notes), *_word("--system", self.system), *_word("--root", self.root)]
        reached = "repeats" if beyond == "repeated_calls" else beyond
        for name, limit in self.limits:
            if name != reached:
                words += ["--limit", f"{name}={_NO_LIMIT if limit is None else limit}"]
        words += ["--i-accept-no-sandbox"] if self.accept_no_sandbox else []
        words += ["--no-tools"] if self.no_tools else []
        words += ["--no-project"] if self.no_project else []
        return "".join(f" {shlex.quote(word)}" for word in words)


def _word(flag: str, value: str | None) -> list[str]:
    return [] if value is None else [flag, value]


_WHOLE_LIMITS = ("rounds", "calls", "tokens", "repeats")
_LIMITS = (*_WHOLE_LIMITS, "cost", "seconds")
_NO_LIMIT = "none"


def _each(
    read: Callable[[str], tuple[str, Any]],
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[tuple[str, Any], ...]]:
    """Reads each value of an option that may be repeated into a pair of a name and its value."""

    def pairs(
        ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
    ) -> tuple[tuple[str, Any], ...]:
        try:
            return tuple(map(read, values))
        except ConfigError as error:
            raise click.BadParameter(str(error), ctx, parameter) from error

    return pairs


def _limit(text: str) -> tuple[str, Any]:
    """`rounds=40`; `none` takes the limit away."""
    name, _, said = (part.strip().lower() for part in text.partition("="))
    if name not in _LIMITS:
        raise ConfigError(f"{text!r} is no limit: write NAME=NUMBER, NAME one of {', '.join(_LIMITS)}.")
    if said == _NO_LIMIT:
        return name, None
    try:
        return name, _checked(name, said)
    except (ValueError, ConfigError) as error:
        kind = "a whole number" if name in _WHOLE_LIMITS else "a number"
        raise ConfigError(f"{text!r}: give {kind} above 0, or {_NO_LIMIT}.") from error


def _checked(name: str, said: str) -> Any:
    plain = said.replace("_", "")
    number: Any = int(plain) if name in _WHOLE_LIMITS else float(plain)
    Limits(**{name: number})
    return number


_WINDOW: dict[str, Callable[[str], Any]] = {"size": int, "keep_last": int, "share": float, "policy": str}


def _window_field(text: str) -> tuple[str, Any]:
    """`size=32768`."""
    name, _, said = (part.strip().lower() for part in text.partition("="))
    if name not in _WINDOW:
        raise ConfigError(f"{text!r}: write NAME=VALUE, NAME one of {', '.join(_WINDOW)}.")
    try:
        value = _WINDOW[name](said)
    except ValueError:
        kind = "a whole number" if _WINDOW[name] is int else "a number"
        raise ConfigError(f"{text!r}: give {kind}.") from None
    Window(**{name: value})
    return name, value


Command = TypeVar("Command", bound=Callable[..., Any])


def endpoint_options(command: Command) -> Command:
    """-m and --base-url."""
    command = click.option(
        "--base-url", metavar="URL", help="The endpoint, such as http://localhost:8080/v1."
    )(command)
    return click.option(
        "-m", "--model", metavar="MODEL", help='"provider:model", or "URL#model", or a name at --base-url.'
    )(command)


def session_options(command: Command) -> Command:
    """Which conversation is continued, and whether it is kept."""
    for option in reversed(
        [
            click.option(
                "-c", "--continue", "last", is_flag=True, help="Continue the last session of this folder."
            ),
            click.option(
                "-r",
                "--resume",
                metavar="SESSION",
                help="Continue a session: its id, name, or words said in it.",
            ),
            click.option("--no-save", is_flag=True, help="Keep nothing of this conversation on disk."),
            click.option(
                "--take-over",
                is_flag=True,
                help="Continue it although another process may hold it; that one is locked out.",
            ),
            click.option(
                "--accept-changes",
                is_flag=True,
                help="Continue an unfinished run although model, tools or instructions are others now.",
            ),
        ]
    ):
        command = option(command)
    return command


def agent_options(command: Command) -> Command:
    """Everything that makes the agent."""
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
            click.option(
                "--root",
                metavar="FOLDER",
                help="The folder that file, shell and Python tools work in (this one).",
            ),
            click.option(
                "--i-accept-no-sandbox",
                "accept_no_sandbox",
                is_flag=True,
                help="Let tools run programs unconfined where no sandbox works. Each approval says so.",
            ),
            click.option("--no-tools", is_flag=True, help="Give the model no tools."),
            click.option("--no-project", is_flag=True, help="Leave AGENTS.md, skills and MCP servers alone."),
            click.option("--system", metavar="TEXT", help="Instructions for the model."),
            click.option(
                "--tool-mode",
                type=click.Choice(["auto", "native", "text"]),
                help="How tools are called: by the endpoint's own means, or in text. Learned if not said.",
            ),
            click.option("--no-stream", is_flag=True, help="Ask for the whole reply at once."),
            click.option(
                "--limit",
                "limits",
                metavar="NAME=N",
                callback=_each(_limit),
                multiple=True,
                help="Stop at rounds, calls, tokens, cost (US dollars) or seconds, as in rounds=40. May be repeated.",
            ),
            click.option(
                "--window",
                metavar="NAME=VALUE",
                callback=_each(_window_field),
                multiple=True,
                help="What is done when history gets long: policy=trim, size=32768 (tokens), share=0.8, keep_last=4.",
            ),
        ]
    ):
        command = option(command)
    return endpoint_options(command)


def tools_of(options: Options, config: Config) -> list[Tool]:
    """The tools that -T and the configuration name, or the default ones; none with --no-tools."""
    if options.no_tools:
        return []
    from glassloop.cli.tooling import settings_of
    from glassloop.tools.loading import look_up

    named = config.tools + options.tools or DEFAULT_TOOLS
    settings = settings_of(config, options.notes)
    chosen = dict.fromkeys((*named, *(["search_notes"] if options.notes else [])))
    loaded = [look_up(name, settings) for name in chosen]
    for one in loaded:
        say_skipped(one.skipped)
    tools = [tool for one in loaded for tool in one.tools]
    return list({(tool.name, tool.hash): tool for tool in tools}.values())  # "basics" and "weather" share one


def agent_of(
    options: Options,
    config: Config,
    *,
    approve: Approve | None,
    review: Review | None = None,
    keeping: Keeping | None = None,
    around: Surroundings | None = None,
) -> Agent[str]:
    """The agent. `approve` is asked where a rule says so, `review` about calls that a crash left in doubt;
    `keeping` is where its sessions go (memory), and `around` what the folder brings along (nothing).

    Raises `ConfigError` and `ToolDefinitionError`.
    """
    from glassloop.agent import Agent
    from glassloop.cli.tooling import toolbox_of

    said = options.system or config.instructions
    agent: Agent[str] = Agent(
        connected(options, config),
        instructions="\n\n".join(filter(None, (said, around.instructions if around else ""))),
        tools=toolbox_of(
            [*tools_of(options, config), *(around.all_tools() if around else ())], config, approve
        ),
        settings=config.settings,
        limits=config.limits,
        window=config.window,
        approve=approve,
        review=review,
        journal=keeping.journal if keeping else None,
        recorder=keeping.recorder if keeping else None,
    )
    if around:
        around.say_left_out()  # not before: what is wrong with the configuration is said alone
    return agent


def surroundings(options: Options, config: Config) -> Surroundings:
    """What the folder brings along, as far as it is trusted and wanted. It goes with the command.

    Raises `ConfigError`.
    """
    from glassloop.cli.surroundings import Surroundings, surroundings_of

    if options.no_project:
        return Surroundings()
    made = surroundings_of(config, with_tools=not options.no_tools)
    click.get_current_context().call_on_close(made.close)
    return made


def connected(options: Options, config: Config) -> Model:
    """The configured model."""
    return model_of(config, **({"stream": False} if options.no_stream else {}))
