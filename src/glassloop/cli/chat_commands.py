"""What one can tell the chat itself: `/commands`, a few of them also as bare words."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glassloop.cli.failures import message_lines
from glassloop.cli.safe_text import one_line, shortened, visible
from glassloop.cli.screen import Line, Style, call_text, counted
from glassloop.cli.tally import usage_lines
from glassloop.core.entries import Note, Reply, Summary, System, ToolResult, User, parts_of
from glassloop.core.errors import ConfigError, SessionError
from glassloop.core.journal import Session

if TYPE_CHECKING:
    from glassloop.cli.chat import Chat


class Leave(Exception):
    """The person wants to leave."""


@dataclass(frozen=True, slots=True)
class Say:
    """The model is to be told this."""

    message: str | User


@dataclass(frozen=True, slots=True)
class SumUp:
    """The model is to sum up the session; `hint`: what is to be kept above all."""

    session: Session
    hint: str


BARE = frozenset({"quit", "exit", "q", "history", "clear"})
"""Commands that need no slash."""


NOTHING_SAID = Line("Nothing has been said yet.", "quiet")


def run_command(chat: Chat, text: str) -> list[Line] | Say | SumUp:
    """Do what a command says: the lines that answer it, or what the model is to be asked. Other text is to be said."""
    word, _, argument = text.strip().partition(" ")
    name = word.removeprefix("/").lower()
    if not word.startswith("/") and not (name in BARE and not argument):
        return Say(text)
    if name not in COMMANDS:
        return [Line(f"There is no /{one_line(name)}.{_meant(name)} /help lists what there is.", "bad")]
    try:
        return COMMANDS[name][0](chat, argument.strip())
    except (ConfigError, SessionError, OSError) as error:
        return [Line(line, "bad") for line in message_lines(error)]


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f" Did you mean /{near[0]}?" if near else ""


def _help(chat: Chat, argument: str) -> list[Line]:
    lines = [Line(f"{'/' + name:<12}{what}") for name, (_, what) in COMMANDS.items() if what]
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
    return usage_lines(chat.last_tally, chat.tally)


def _compact(chat: Chat, argument: str) -> list[Line] | SumUp:
    return SumUp(chat.session, argument) if chat.session is not None else [NOTHING_SAID]


def _pin(chat: Chat, argument: str) -> list[Line] | Say:
    """Said like anything else, and never left out."""
    if not argument:
        pinned = [one.text for one in chat.entries if isinstance(one, User) and one.pinned]
        lines = [Line(f"· {shortened(one_line(text), 70)}") for text in pinned]
        return lines or [
            Line("/pin TEXT says it and keeps it word for word, however long this gets", "quiet")
        ]
    return Say(User(parts_of(argument), pinned=True))


def _reasoning(chat: Chat, argument: str) -> list[Line]:
    chat.shows_reasoning = argument != "off" if argument else not chat.shows_reasoning
    return [Line(f"reasoning is {'shown' if chat.shows_reasoning else 'not shown'} from now on", "quiet")]


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
                    Line(
                        f"→ {call_text(one.name, one.text if one.arguments is None else one.arguments)}",
                        "call",
                    )
                    for one in entry.tool_calls
                ]
            case ToolResult():
                lines += [Line(f"← {one_line(entry.text)[:200]}", "good" if entry.state == "ok" else "bad")]
            case System() | Note() | Summary():
                lines += _block("note", entry.text, "quiet")
    return lines or [NOTHING_SAID]


def _block(who: str, text: str, style: Style) -> list[Line]:
    return [Line(f"{who}: {visible(text)}", style)]


def _save(chat: Chat, argument: str) -> list[Line]:
    """As Chat Completions messages, which any tool can read and `history=` takes back."""
    if not chat.entries:
        return [NOTHING_SAID]
    path = Path(argument or "chat.json").expanduser()
    text = json.dumps(chat.messages, ensure_ascii=False, indent=2) + "\n"
    try:
        # A file of this chat's own making may be written again; anything else that is there stays.
        mode = "w" if path.resolve() in chat.saved else "x"
        with path.open(mode, encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists: give another name, as in /save FILE") from None
    chat.saved.add(path.resolve())
    return [Line(f"saved {counted(len(chat.messages), 'message')} to {path}", "good")]


# ── Sessions ─────────────────────────────────────────────────────────────────────────────────────────


def _fork(chat: Chat, argument: str) -> list[Line]:
    """The same conversation once more; what is said from now on is said in the new one."""
    if chat.session is None:
        return [NOTHING_SAID]
    store, before = chat.store, chat.session.id
    forked = store.fork(before)
    if argument:
        store.rename(forked, argument)
    chat.go_on_with(chat.keeping.continued(forked))
    named = f", named {one_line(argument)}" if argument else ""
    return [Line(f"this is session {forked} now{named}; the one before is {before}", "good")]


def _undo(chat: Chat, argument: str) -> list[Line]:
    return _back(chat, 1)


def _rewind(chat: Chat, argument: str) -> list[Line]:
    """Keep the first N questions with their answers. Without N: the questions by number."""
    asked = _questions(chat)
    if not asked:
        return [NOTHING_SAID]
    if not argument:
        lines = [Line(f"{number:>3}  {shortened(text, 70)}") for number, text in enumerate(asked, 1)]
        return [*lines, Line("/rewind N keeps the first N of them", "quiet")]
    if argument.isdecimal() and int(argument) == len(asked):
        return [Line(f"All {counted(len(asked), 'question')} are kept: nothing to take back.", "quiet")]
    if not argument.isdecimal() or int(argument) > len(asked):
        last = len(asked)
        return [Line(f"/rewind N keeps the first N questions: N is a number from 0 to {last}", "bad")]
    return _back(chat, len(asked) - int(argument))


def _back(chat: Chat, turns: int) -> list[Line]:
    if chat.session is None or not chat.entries:
        return [NOTHING_SAID]
    before = _results(chat)
    text = chat.store.undo(chat.session.id, turns)
    chat.go_on_with(chat.keeping.continued(chat.session.id))
    acted = _results(chat) < before
    outside = [Line("What its tools did outside is not undone.", "quiet")] if acted else []
    return [Line(f"taken back: {one_line(text)}", "good"), *outside]


def _results(chat: Chat) -> int:
    return sum(isinstance(one, ToolResult) for one in chat.entries)


def _questions(chat: Chat) -> list[str]:
    return [one_line(one.text) for one in chat.entries if isinstance(one, User) and one.kind == "task"]


def _sessions(chat: Chat, argument: str) -> list[Line]:
    from glassloop.cli.keeping import folder
    from glassloop.sessions.markdown import when

    current = chat.session.id if chat.session else ""
    found = chat.keeping.store_of(None).sessions(folder=folder(), limit=15)
    lines = [
        Line(
            f"{one.session_id}  {when(one.updated_ms)} {shortened(one_line(one.name or one.title), 60)}",
            "title" if one.session_id == current else "plain",
        )
        for one in found
    ]
    return (
        [*lines, Line("/resume ID goes on with one of them", "quiet")]
        if lines
        else [Line("none yet", "quiet")]
    )


def _resume(chat: Chat, argument: str) -> list[Line]:
    from glassloop.cli.keeping import titled

    session = chat.keeping.continued(argument or None)
    chat.go_on_with(session)
    return [
        Line(f"this is session {session.id} now: {one_line(titled(chat.store, session.id))}", "good"),
        Line(f"{counted(len(_questions(chat)), 'question')} so far; /history shows them", "quiet"),
    ]


def _name(chat: Chat, argument: str) -> list[Line]:
    if chat.session is None:
        return [NOTHING_SAID]
    if not argument:
        name = chat.store.info(chat.session.id).name
        return [Line(f"it is named {one_line(name)}" if name else "it has no name: /name TEXT gives it one")]
    chat.store.rename(chat.session.id, argument)
    return [Line(f"named {one_line(argument)}", "good")]


Action = Callable[["Chat", str], "list[Line] | Say | SumUp"]

COMMANDS: Mapping[str, tuple[Action, str]] = {
    "help": (_help, "this list"),
    "history": (_history, "what was said so far"),
    "clear": (_clear, "begin a new conversation"),
    "tools": (_tools, "the tools that the model may call"),
    "model": (_model, "the model; /model NAME takes another one"),
    "fork": (_fork, "go on in a copy: /fork [NAME]"),
    "undo": (_undo, "take the last question and its answer back"),
    "rewind": (_rewind, "keep the first N questions only: /rewind N"),
    "sessions": (_sessions, "the conversations of this folder"),
    "resume": (_resume, "go on with another one: /resume ID, name or words"),
    "name": (_name, "what this conversation is named; /name TEXT names it"),
    "usage": (_usage, "tokens, cost and time: of the last answer, and so far"),
    "compact": (_compact, "have the model sum up what was said: /compact [what to keep]"),
    "pin": (_pin, "say something that stays word for word: /pin TEXT"),
    "reasoning": (_reasoning, "show the model's reasoning, or no more"),
    "save": (_save, "write the conversation to a file: /save FILE"),
    "quit": (_leave, "leave; so do exit, q and Ctrl-D"),
    "exit": (_leave, ""),
    "q": (_leave, ""),
}
"""By name: what it does, and its line in /help ("" for a second name)."""
