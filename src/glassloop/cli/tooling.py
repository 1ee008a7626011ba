"""The tools of the terminal, ready for an agent: rules, and what only a terminal can give them (a person to ask)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from glassloop.cli.answers import Standing
from glassloop.cli.asking import Asker
from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line
from glassloop.cli.screen import Line
from glassloop.config import Config, allowed
from glassloop.folders import config_folder

if TYPE_CHECKING:
    from glassloop.hands import Approve
    from glassloop.tools.approval import Policy
    from glassloop.tools.tool import Tool
    from glassloop.tools.toolbox import Toolbox

CODE_MODE = "run_code"


def settings_of(config: Config, notes: str | None = None) -> dict[str, str]:
    """The settings of ready-made tools."""
    settings = {
        "notes_folder": notes or config.notes_folder,
        "files_root": config.files_root,
        "web_allow": config.web_allow,
        "web_proxy": config.web_proxy,
        "web_secrets": config.web_secrets,
    }
    return {**settings, "sandbox": "accept_none"} if config.accept_no_sandbox else settings


def toolbox_of(tools: Iterable[Tool], config: Config, approve: Approve | None) -> Toolbox:
    """The tools under the configured rules; what `approve` can do as a terminal, `ask_user` and code mode can use."""
    from glassloop.tools.rules import policy_of
    from glassloop.tools.toolbox import Toolbox

    folder = Path(config.files_root).expanduser()
    policy = policy_of(config.approvals, folder)
    chosen = [_asking(tool, approve) for tool in tools]
    if any(tool.name == CODE_MODE for tool in chosen):
        chosen = _with_code_mode(chosen, config, approve, policy)
    _warn_of_idle(config, chosen)
    if sys.stderr.isatty() and any("exec" in tool.needs for tool in chosen):
        say(Line(f"· {sandbox_line(settings_of(config))}", "quiet"))
    toolbox = Toolbox(chosen, policy=policy)
    if isinstance(approve, Asker):
        keep = partial(allowed.allow_always, config_folder() / allowed.FILE_NAME, Path.cwd())
        approve.standing = Standing(toolbox, folder, keep, config.approvals.ask).in_place_of(approve.standing)
    return toolbox


def sandbox_line(settings: Mapping[str, str]) -> str:
    """What confines the programs that tools run here, or why nothing does."""
    from glassloop.core.errors import ConfigError
    from glassloop.tools.builtin.sandbox import NoSandbox
    from glassloop.tools.builtin.sandbox_place import found_at_once, place_from

    try:
        place = place_from(settings)
        found = found_at_once(place).described(place.confines)
    except (NoSandbox, ConfigError) as error:
        return one_line(f"programs cannot run here: {error}")
    return f"programs that tools start run in: {found}"


def _asking(tool: Tool, approve: Approve | None) -> Tool:
    """`ask_user` with the person at this terminal behind it."""
    from glassloop.cli.asking import ASK_USER
    from glassloop.tools.builtin.ask import ask_tool

    if tool.name != ASK_USER or tool.origin != "builtin" or not isinstance(approve, Asker):
        return tool
    return replace(ask_tool(approve.ask_user), origin="builtin")


def _with_code_mode(tools: list[Tool], config: Config, approve: Approve | None, policy: Policy) -> list[Tool]:
    """`run_code` with the other tools as its functions. A question to the person stays with the model itself."""
    from glassloop.cli.asking import ASK_USER
    from glassloop.tools.builtin.python import code_mode_tool
    from glassloop.tools.builtin.sandbox_place import place_from
    from glassloop.tools.toolbox import Toolbox

    others = [tool for tool in tools if tool.name != CODE_MODE]
    inner = Toolbox([tool for tool in others if tool.name != ASK_USER], policy=policy)
    asks = approve.within if isinstance(approve, Asker) else approve
    made = code_mode_tool(inner, asks, place_from(settings_of(config)))
    return [*others, replace(made, origin="builtin")]


def _warn_of_idle(config: Config, tools: list[Tool]) -> None:
    from glassloop.tools.rules import idle

    for warning in idle(config.approvals, tools):
        say(Line(f"! approvals: {one_line(warning)}", "mend"))
