"""`glassloop trust`: look at what a folder brings along (programs, instructions, skills), and trust it or not."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from glassloop.cli.failures import ANSWERED, FAILED
from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line, Style
from glassloop.cli.surroundings import Found, Surroundings, changes, look_around, start
from glassloop.cli.tables import print_table
from glassloop.cli.terminal import is_confirmed
from glassloop.config import load
from glassloop.config.trust import TrustStore

if TYPE_CHECKING:
    from glassloop.tools.mcp.settings import ServerSettings


@dataclass(frozen=True, slots=True)
class _Item:
    """One file to be trusted: what it would do, in a word, and in full."""

    path: Path
    text: str
    would: str
    shown: tuple[str, ...]


@click.command()
@click.option("--list", "as_list", is_flag=True, help="List what is trusted, and what waits here.")
@click.option(
    "--forget", "forgotten", metavar="FILE", multiple=True, help="Trust FILE no more. May be repeated."
)
@click.option("--yes", is_flag=True, help="Trust all that waits here, without asking.")
def command(as_list: bool, forgotten: tuple[str, ...], yes: bool) -> int:
    """Look at what this folder would start or tell the model, and trust it or not.

    That is .mcp.json (it starts programs), AGENTS.md and skills. They are used only as they were when you trusted
    them: once a file changes, or a server says something else of its tools, it waits for you again.
    """
    store = TrustStore.in_user_folder()
    if forgotten:
        return _forget(store, forgotten)
    found = look_around(load())
    for warning in found.warnings:
        say(Line(f"! {visible(warning)}", "mend"))
    items = list(_items(found))
    if as_list:
        return _list(store, items)
    waiting = [one for one in items if store.standing(one.path, one.text) != "trusted"]
    if not yes and waiting and not sys.stdin.isatty():
        for one in waiting:
            _show(store, one)
        raise click.UsageError("Nobody can be asked here: --yes trusts it without asking.")
    if not waiting:
        say(Line("No file here waits for your trust.", "quiet"))
    refused = [one for one in waiting if not _settle(store, one, yes=yes)]
    return _settle_servers(store, found, yes=yes) if not refused else FAILED


# ── files ────────────────────────────────────────────────────────────────────────────────────────────


def _items(found: Found) -> Iterator[_Item]:
    if found.servers.file is not None:
        file = found.servers.file
        shown = [line for one in file.servers for line in _server_lines(one)]
        yield _Item(file.path, file.text, "would start programs or send to servers", tuple(shown))
    for text in found.texts:
        if not text.own:
            yield _Item(text.path, text.text, "would instruct the model", tuple(text.text.splitlines()))
    for skill in found.skills:
        if not skill.own:
            would = "would instruct the model when it reads this skill"
            more = [f"(and the file {name})" for name in skill.files]
            shown = [f"{skill.name}: {skill.description}", *skill.body.splitlines(), *more]
            yield _Item(skill.path, skill.text, would, tuple(shown))


def _server_lines(server: ServerSettings) -> list[str]:
    """What would be started or reached, in full; of headers, and of variables that hold keys, only the names."""
    if server.url:
        lines = [f"{server.name}: {server.url}"]
        lines += [f"  header {name}: {_value(text)}" for name, text in server.headers.items()]
    else:
        lines = [f"{server.name}: {shlex.join((server.command, *server.args))}", f"  in {server.cwd}"]
        lines += [
            f"  variable {name}: {_value(text) if _HOLDS_A_KEY.search(name) else text}"
            for name, text in server.env.items()
        ]
    if server.disabled:
        lines.append("  (disabled: it is not started)")
    return lines


_HOLDS_A_KEY = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?|COOKIE)$", re.IGNORECASE)
"""All other values are shown: `NODE_OPTIONS` or `LD_PRELOAD` would have something else run than what is named."""


def _value(text: str) -> str:
    return text if "${" in text and len(text) < 100 else "set in the file"


def _show(store: TrustStore, item: _Item) -> None:
    before = store.trusted_text(item.path)
    what = "has changed; it" if before is not None else ""
    say(Line(f"{one_line(str(item.path))} {what} {item.would}:".replace("  ", " "), "title"))
    if before is not None:
        for line in changes(before, item.text):
            say(line)
        return
    for text in item.shown:
        say(Line(f"    {visible(text)}"))


def _settle(store: TrustStore, item: _Item, *, yes: bool) -> bool:
    _show(store, item)
    if not yes and not is_confirmed("  Trust it?"):
        say(Line("  not trusted", "quiet"))
        return False
    store.trust(item.path, item.text)
    say(Line("  trusted", "good"))
    return True


def _forget(store: TrustStore, names: tuple[str, ...]) -> int:
    gone = [(name, store.forget(Path(name).expanduser())) for name in names]
    for name, was_there in gone:
        words: tuple[str, Style] = (
            ("is trusted no more", "good") if was_there else ("was not trusted", "mend")
        )
        say(Line(f"{one_line(name)} {words[0]}", words[1]))
    return ANSWERED if all(was_there for _, was_there in gone) else FAILED


def _list(store: TrustStore, items: list[_Item]) -> int:
    here = {one.path.resolve(): one for one in items}
    rows = [
        (str(path), _standing(store, path, here.get(path)), kept.date) for path, kept in store.files().items()
    ]
    known = store.files()
    rows += [(str(path), "not trusted yet", "") for path in here if path not in known]
    if store.trouble:
        say(Line(f"! {visible(store.trouble)}", "mend"))
    if not rows:
        say(Line("Nothing is trusted, and nothing here waits for it.", "quiet"))
    print_table(["file", "state", "trusted on"], rows)
    return ANSWERED


def _standing(store: TrustStore, path: Path, here: _Item | None) -> str:
    if here is not None:
        return "trusted" if store.standing(path, here.text) == "trusted" else "changed: not trusted"
    return "trusted" if path.exists() else "gone"


# ── what servers say ─────────────────────────────────────────────────────────────────────────────────


def _settle_servers(store: TrustStore, found: Found, *, yes: bool) -> int:
    """Start the servers that are trusted, show what they say of their tools where that is new, and pin it."""
    chosen = [one for one in (*found.servers.own, *found.servers.of_project()) if not one.settings.disabled]
    if not chosen:
        return ANSWERED
    tools = start(chosen, found.servers)
    around = Surroundings(mcp=tools, configured={one.settings.name: one for one in chosen}, store=store)
    try:
        for state in tools.states:
            key = around.configured[state.settings.name].key
            if store.pinned(key) is None:
                for one in state.definitions:
                    say(Line(f"    {one_line(one.name)}: {one_line(one.description)}"))
            if yes:
                store.pin(key, state.definitions)
        around.settle()
        return FAILED if any(state.failure for state in tools.states) else ANSWERED
    finally:
        tools.close()
