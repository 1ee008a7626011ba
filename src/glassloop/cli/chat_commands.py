"""What one can tell the chat itself: `/commands`, a few of them also as bare words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line, Style, call_text, counted, tokens_text
from glassloop.core.entries import Note, Reply, Summary, System, ToolResult, User
from glassloop.core.errors import ConfigError

if TYPE_CHECKING:
    from glassloop.cli.chat import Chat


class Leave(Exception):
    """The person wants to leave."""


BARE = frozenset({"quit", "exit", "q", "history", "clear"})
"""Commands that need no slash."""


def run_command(chat: Chat, text: str) -> list[Line] | None:
    """Do what a command says and give the lines that answer it; None if the text is no command."""
    word, _, argument = text.strip().partition(" ")
    name = word.removeprefix("/").lower()
    if not word.startswith("/") and not (name in BARE and not argument):
        return None
    if name not in COMMANDS:
        return [Line(f"There is no /{one_line(name)}. /help lists what there is.", "bad")]
    try:
        return COMMANDS[name][0](chat, argument.strip())
    except (ConfigError, OSError) as error:
        return [Line(visible(line), "bad") for line in str(error).splitlines()]


def _help(chat: Chat, argument: str) -> list[Line]:
    lines = [Line(f"{'/' + name:<10}{what}") for name, (_, what) in COMMANDS.items() if what]
    keys = (
        "Alt-Enter, or \\ at the end of a line, begins a new line. Ctrl-C stops an answer; twice it leaves."
    )
    return [*lines, Line(keys, "quiet")]


def _leave(chat: Chat, argument: str) -> list[Line]:
    raise Leave


def _tools(chat: Chat, argument: str) -> list[Line]:
    specs = chat.agent.tools.specs
    if not specs:
        return [Line("There are no tools. Start with -T to give some.", "quiet")]
    return [Line(f"{one_line(spec.name)} ({spec.effect}): {one_line(spec.description)}") for spec in specs]


def _model(chat: Chat, argument: str) -> list[Line]:
    if argument:
        chat.use_model(argument)
    return [Line(f"model: {one_line(chat.agent.model.name)}")]


def _usage(chat: Chat, argument: str) -> list[Line]:
    facts = [counted(chat.rounds, "model call"), tokens_text(chat.usage) or "tokens not reported"]
    facts.append(f"${chat.cost:.4f}" if chat.cost is not None else "cost not reported")
    return [Line(", ".join(facts))]


def _clear(chat: Chat, argument: str) -> list[Line]:
    chat.clear()
    return [Line("A new conversation begins.", "quiet")]


def _history(chat: Chat, argument: str) -> list[Line]:
    lines: list[Line] = []
    for entry in chat.entries:
        match entry:
            case User():
                lines += _block("you", entry.text, "title")
            case Reply():
                lines += _block("model", entry.text, "plain") if entry.text else []
                lines += [
                    Line(f"→ {call_text(one.name, one.arguments or one.text)}", "call")
                    for one in entry.tool_calls
                ]
            case ToolResult():
                lines += [Line(f"← {one_line(entry.text)[:200]}", "good" if entry.state == "ok" else "bad")]
            case System() | Note() | Summary():
                lines += _block("note", entry.text, "quiet")
    return lines or [Line("Nothing has been said yet.", "quiet")]


def _block(who: str, text: str, style: Style) -> list[Line]:
    return [Line(f"{who}: {visible(text)}", style)]


def _save(chat: Chat, argument: str) -> list[Line]:
    """As Chat Completions messages, which any tool can read and `history=` takes back."""
    if not chat.messages:
        return [Line("Nothing has been said yet, so nothing is saved.", "quiet")]
    path = Path(argument or "chat.json").expanduser()
    if path.exists() and not argument:
        raise ConfigError(f"{path} exists already. Name a file: /save FILE")
    path.write_text(
        json.dumps(chat.messages, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", errors="replace"
    )
    return [Line(f"saved {counted(len(chat.messages), 'message')} to {path}", "good")]


Action = Callable[["Chat", str], list[Line]]

COMMANDS: Mapping[str, tuple[Action, str]] = {
    "help": (_help, "this list"),
    "history": (_history, "what was said so far"),
    "clear": (_clear, "begin a new conversation"),
    "tools": (_tools, "the tools that the model may call"),
    "model": (_model, "the model; /model NAME takes another one"),
    "usage": (_usage, "tokens and cost so far"),
    "save": (_save, "write the conversation to a file: /save FILE"),
    "quit": (_leave, "leave; so do exit, q and Ctrl-D"),
    "exit": (_leave, ""),
    "q": (_leave, ""),
}
"""By name: what it does, and its line in /help ("" for a second name)."""
