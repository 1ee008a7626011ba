"""What an agent gets from the folder it works in: MCP servers, AGENTS.md and skills, as far as they are trusted."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line, counted
from glassloop.cli.terminal import is_confirmed
from glassloop.cli.wording import program
from glassloop.config import Config
from glassloop.config.mcp_servers import Configured, Servers, find_servers
from glassloop.config.project_texts import (
    ProjectText,
    Skill,
    agents_files,
    find_skills,
    instructions_of,
    listed,
)
from glassloop.config.trust import TrustStore
from glassloop.folders import config_folder

if TYPE_CHECKING:
    from glassloop.tools.mcp import McpTools
    from glassloop.tools.mcp.definitions import Definition
    from glassloop.tools.mcp.servers import ServerState
    from glassloop.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Found:
    """All that there is around a folder, trusted or not."""

    servers: Servers
    texts: tuple[ProjectText, ...]
    skills: tuple[Skill, ...]
    warnings: tuple[str, ...] = ()


def look_around(config: Config, folder: Path | None = None) -> Found:
    """Find it. Nothing is started. Raises `ConfigError` for a list of servers that cannot be read."""
    folder, own = folder or Path.cwd(), config_folder()
    servers = find_servers(folder, own, config.mcp_servers)
    skills, warnings = find_skills(folder, own)
    return Found(servers, tuple(agents_files(folder, own)), tuple(skills), (*servers.warnings, *warnings))


@dataclass(slots=True)
class Surroundings:
    """What is trusted of it. `tools` are its own tools, and `mcp` those of the servers that run.

    `left_out` is what is to be said of the rest, once it is known that there is a run.
    """

    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    mcp: McpTools | None = None
    configured: Mapping[str, Configured] = field(default_factory=dict)
    store: TrustStore = field(default_factory=TrustStore.in_user_folder)
    left_out: list[Line] = field(default_factory=list)
    _listings: int = 0

    def all_tools(self) -> list[Tool]:
        """The tools as they are now."""
        return [*self.tools, *(self.mcp or ())]

    def has_changed(self) -> bool:
        """Have servers said that their tools are others now? They are gone through then, and a person may be asked."""
        if self.mcp is None or self.mcp.listings == self._listings:
            return False
        self.settle()
        return True

    def settle(self) -> None:
        """Offer what was accepted before; what is new or changed is shown, and asked about where that can be."""
        assert self.mcp is not None
        self._listings = self.mcp.listings
        for state in self.mcp.states:
            key = self.configured[state.settings.name].key
            pinned = self.store.pinned(key)
            accepted = state.definitions if pinned is None else _as_pinned(state.definitions, pinned)
            new = [one for one in state.definitions if one not in accepted]
            if pinned is None and not state.failure:
                _say_hidden(state.settings.name, state.definitions)
                self._pin(key, accepted)
            elif new and _is_accepted(state.settings.name, new, pinned or {}):
                accepted = state.definitions
                self._pin(key, accepted)
            self.mcp.only(state.settings.name, accepted)
        list(self.mcp)
        for warning in self.mcp.warnings:
            say(Line(f"! {visible(warning)}", "mend"))

    def _pin(self, key: str, definitions: Iterable[Definition]) -> None:
        """Keep what was accepted; where that cannot be, it holds for this program alone."""
        try:
            self.store.pin(key, definitions)
        except OSError as error:
            say(Line(f"! {visible(str(self.store.path))} cannot be written: {error.strerror}", "mend"))

    def say_left_out(self) -> None:
        """Say it, once."""
        while self.left_out:
            say(self.left_out.pop(0))

    def close(self) -> None:
        """End the servers."""
        if self.mcp is not None:
            self.mcp.close()


def surroundings_of(config: Config, *, with_tools: bool) -> Surroundings:
    """Use what is trusted, and keep a line on what is not. Starts the servers; the caller closes them."""
    found, store = look_around(config), TrustStore.in_user_folder()
    for warning in found.warnings:
        say(Line(f"! {visible(warning)}", "mend"))
    left_out: list[Line] = []
    texts = [one for one in found.texts if one.own or _is_trusted(store, one.path, one.text, left_out)]
    skills = [
        one
        for one in (found.skills if with_tools else ())
        if one.own or _is_trusted(store, one.path, one.text, left_out)
    ]
    made = Surroundings(
        "\n\n".join(filter(None, (instructions_of(texts), listed(skills)))),
        _skill_tools(skills),
        store=store,
        left_out=left_out,
    )
    if with_tools:
        _start_servers(made, found.servers)
    if store.trouble:
        say(Line(f"! {visible(store.trouble)}", "mend"))
    return made


def _is_trusted(store: TrustStore, path: Path, text: str, left_out: list[Line]) -> bool:
    standing = store.standing(path, text)
    if standing == "trusted":
        return True
    why = "is not trusted yet" if standing == "new" else "has changed since it was trusted"
    words = f"! {one_line(str(path))} {why} and is left out. To look at it: {program()} trust"
    left_out.append(Line(words, "mend"))
    return False


def _skill_tools(skills: Iterable[Skill]) -> tuple[Tool, ...]:
    from glassloop.tools.skills import read_skill_of

    pages = {one.name: {"": one.body, **one.files} for one in skills}
    return (read_skill_of(pages),) if pages else ()


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────


def _start_servers(made: Surroundings, servers: Servers) -> None:
    chosen = [*servers.own]
    if (
        servers.file
        and servers.of_project()
        and _is_trusted(made.store, servers.file.path, servers.file.text, made.left_out)
    ):
        chosen += servers.of_project()
    chosen = [one for one in chosen if not one.settings.disabled]
    if chosen:
        made.configured = {one.settings.name: one for one in chosen}
        made.mcp = start(chosen, servers)
        made.settle()


def start(chosen: Iterable[Configured], servers: Servers) -> McpTools:
    """Start these of the servers, all at once, and say how that goes."""
    from glassloop.tools.mcp import McpTools

    tools = McpTools(
        [one.settings for one in chosen],
        variables=servers.variables,
        data_variables=servers.data_variables,
    )
    names = ", ".join(one_line(state.settings.name) for state in tools.states)
    say(Line(f"· starting MCP servers: {names}", "quiet"))
    try:
        tools.start(_say_started)
    except BaseException:
        tools.close()
        raise
    return tools


def _say_started(state: ServerState) -> None:
    """In the order in which they are ready."""
    name, count = one_line(state.settings.name), counted(len(state.definitions), "tool")
    failed = Line(f"! {visible(state.failure)}", "mend")
    say(failed if state.failure else Line(f"· {name}: {count}", "quiet"))


def _as_pinned(definitions: Iterable[Definition], pinned: Mapping[str, str]) -> tuple[Definition, ...]:
    return tuple(one for one in definitions if pinned.get(one.name) == one.text)


def _is_accepted(server: str, new: Iterable[Definition], pinned: Mapping[str, str]) -> bool:
    """Show what is new or changed, and ask; where nobody can be asked it is not accepted."""
    new = list(new)
    names = ", ".join(one_line(one.name) for one in new)
    say(Line(f"! the MCP server {one_line(server)} now says something else of its tools: {names}", "mend"))
    for one in new:
        for line in changes(pinned.get(one.name, ""), one.text):
            say(line)
    _say_hidden(server, new)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say(Line(f"! these are left out until they are accepted: {program()} trust", "mend"))
        return False
    try:
        return is_confirmed("  Use them from now on?")
    except click.Abort:
        return False


def _say_hidden(server: str, definitions: Iterable[Definition]) -> None:
    for one in definitions:
        if one.hides_words:
            words = f"{one_line(server)}: the tool {one_line(one.name)} has characters that cannot be seen: "
            say(Line(f"! {words}{one_line(one.description)}", "mend"))
            say(Line("  The model gets the text without them.", "mend"))


def changes(before: str, after: str) -> list[Line]:
    """What is another line now, with nothing invisible in it."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    styles = {"+": "good", "-": "bad"}
    lines = [one for one in compared if not one.startswith(("---", "+++", "@@"))]
    return [Line(f"    {visible(one)}", styles.get(one[:1], "quiet")) for one in lines]  # type: ignore[arg-type]
