"""Rules on calls as people write them, and the policy that follows them: deny over ask over allow over what is usual.

    read_file                 every call of the tool, of a set (`files`), or of a server (`github__*`)
    write_file: docs/**       calls on files of that folder; `docs/plan.md` is that file, `*.md` names in one folder
    shell: git status         this command; `shell: git diff ...` also with more words
    web_fetch: example.org    that host; `*.example.org` those below it, `https://example.org/docs/**` a part of it
    send_mail: to=ada@x.org   calls whose argument has exactly this value
    effect: read              tools of that effect; `needs: network` tools that reach so far

An allow rule is read narrowly: it takes simple commands only, names as they are spelled, and every file of a call.
Ask and deny rules are read widely: any file, any command in a text, letters of any case. They are a net and no wall.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import get_args

from glassloop.core.entries import JSON
from glassloop.core.errors import ConfigError
from glassloop.core.tools import Effect
from glassloop.tools.approval import Policy, Ruling, by_tool_and_origin
from glassloop.tools.builtin.simple_command import CommandRule, command_rule, simple_words
from glassloop.tools.matching import holds, host_of, touches, within
from glassloop.tools.targets import Address, Command, Target
from glassloop.tools.tool import Need, Tool

_TOOL = re.compile(r"[\w./-]+\*?")
_ARGUMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
_COMMAND_TOOLS = frozenset(("run_command",))
_OF_SERVER = "__"
_GENERAL: Mapping[str, tuple[str, ...]] = {"effect": get_args(Effect), "needs": get_args(Need)}


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules as they are written. `allow_after_untrusted` allows also where others' words were read in the run."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow_after_untrusted: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every rule, whatever it says."""
        return tuple(text for one in fields(self) for text in getattr(self, one.name))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, read. `subject` names the tools, or is `effect` or `needs`; `on` is what stands behind the colon."""

    text: str
    subject: str
    on: str = ""
    command: CommandRule | None = None

    @property
    def is_general(self) -> bool:
        """Whether it speaks of a kind of tools instead of naming them."""
        return self.subject in _GENERAL


def rules(
    *,
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    allow_after_untrusted: Iterable[str] = (),
    folder: Path | None = None,
) -> Policy:
    """A policy for `Toolbox(policy=...)`. Where no rule says anything, the tool's own `approve` and origin decide.

    Paths in rules begin at `folder`, by default the working folder. Raises `ConfigError` for what is no rule.
    """
    try:
        return policy_of(Rules(*map(tuple, (allow, ask, deny, allow_after_untrusted))), folder)
    except ValueError as error:
        raise ConfigError(f"rules(): {error}") from None


def policy_of(written: Rules, folder: Path | None = None) -> Policy:
    """The same of rules that are read already. Raises `ValueError` for what is no rule."""
    base = (folder or Path.cwd()).resolve()
    denied, asked = (
        _any(map(rule, texts), partial(_concerns, base)) for texts in (written.deny, written.ask)
    )
    firm, allowed = (
        _any(map(rule, texts), partial(_covers, base))
        for texts in (written.allow_after_untrusted, written.allow)
    )

    def policy(tool: Tool, arguments: Mapping[str, JSON]) -> Ruling:
        if found := denied(tool, arguments):
            return Ruling("deny", f"the rule `{found.text}` denies it")
        if found := asked(tool, arguments):
            return Ruling("ask", f"the rule `{found.text}` says so")
        if firm(tool, arguments):
            return Ruling("allow", firm=True)
        if allowed(tool, arguments):
            return Ruling("allow")
        return by_tool_and_origin(tool, arguments)

    return policy


def covered(texts: Iterable[str], tool: Tool, arguments: Mapping[str, JSON], folder: Path) -> bool:
    """Whether one of these, as allow rules, takes in all of the call. Raises `ValueError` for what is no rule."""
    return any(_covers(folder.resolve(), one, tool, arguments) for one in map(rule, texts))


def concerned(texts: Iterable[str], tool: Tool, arguments: Mapping[str, JSON], folder: Path) -> bool:
    """Whether one of these, as ask or deny rules, speaks of the call. Raises `ValueError` for what is no rule."""
    return any(_concerns(folder.resolve(), one, tool, arguments) for one in map(rule, texts))


def rule(text: str) -> Rule:
    """A rule, read. Raises `ValueError` saying what was expected."""
    subject, colon, on = (part.strip() for part in text.partition(":"))
    if not _TOOL.fullmatch(subject) or (colon and not on):
        raise ValueError(
            f"{text!r} is no rule. Write a tool (`read_file`), a tool and what it may act on"
            " (`write_file: docs/**`, `shell: git diff ...`), or `effect: read`"
        )
    if subject in _GENERAL:
        if on not in _GENERAL[subject]:
            raise ValueError(f"{text!r}: `{subject}` is one of {', '.join(_GENERAL[subject])}")
        return Rule(text, subject, on)
    command = command_rule(on) if on and _COMMAND_TOOLS & set(_tools_of(subject)) else None
    if command is None and ".." in on.split("/"):
        raise ValueError(f"{text!r}: `..` is not allowed in a path. Write the folder itself")
    return Rule(text, subject, on, command)


def idle(written: Rules, tools: Iterable[Tool]) -> list[str]:
    """Rules that can never match, each with the reason: a tool that does not exist, or has nothing to compare."""
    from glassloop.tools.builtin import TOOLS

    here = {each.name: each for each in tools}
    found = []
    for one in map(rule, written.all):
        named = [name for name in {*here, *TOOLS} if _names(one, name)]
        if not one.is_general and not named:
            found.append(f"the rule {one.text!r} names no tool that there is")
        elif one.on and not one.is_general and not any(_can_compare(one, here.get(name)) for name in named):
            found.append(f"the rule {one.text!r} can match nothing; write `tool: argument=value`")
    return found


def suggested(tool: Tool, arguments: Mapping[str, JSON], folder: Path) -> str | None:
    """The rule that allows this call and its like: the program, the folder, the host, or the tool. None: there is none.

    A file to be read is asked about for its own sake, so there it is that file alone. Never for what runs
    anything else: a program such as `sh`, or code that nothing keeps from the network.
    """
    aims = _targets(tool, arguments)
    if tool.targets is None and not aims:
        return None if {"exec", "network"} <= set(tool.needs) else tool.name
    if len(aims) != 1:
        return None
    match aims[0]:
        case Command(text):
            words = simple_words(text)
            runs_any = words is None or _RUNS_OTHERS.fullmatch(words[0].rpartition("/")[2])
            return None if words is None or runs_any else f"shell: {words[0]} ..."
        case Address(url):
            host = host_of(url)
            return f"{tool.name}: {host}" if host else None
    text = f"{tool.name}: {_written(aims[0], folder)}"
    if tool.effect != "read":
        text = f"{tool.name}: {_written(aims[0].parent, folder)}/**"
    try:  # a name may have in it what means something else in a rule
        return text if covered([text], tool, arguments, folder) else None
    except ValueError:
        return None


_RUNS_OTHERS = re.compile(
    r"(ba|z|k|da|fi|c|tc)?sh|python[\d.]*|pypy\d*|perl|ruby|node|deno|bun|php|lua\w*|awk|gawk|mawk|sed|env|sudo|doas"
    r"|su|xargs|find|nohup|nice|timeout|stdbuf|setsid|watch|ssh|tmux|screen|g?make|npx|uvx?|pipx|docker|podman|busybox"
    r"|strace|ltrace|gdb|lldb|script|expect|parallel|flock|chroot|unshare|nsenter|ionice|taskset|time|at|batch|crontab"
    r"|systemd-run|socat|n?vim?|emacs|ed|ex|m4|Rscript|osascript"
)


# ── matching ─────────────────────────────────────────────────────────────────────────────────────────

_Match = Callable[[Rule, Tool, Mapping[str, JSON]], bool]


def _any(read: Iterable[Rule], match: _Match) -> Callable[[Tool, Mapping[str, JSON]], Rule | None]:
    known = tuple(read)
    return lambda tool, arguments: next((one for one in known if match(one, tool, arguments)), None)


def _covers(base: Path, one: Rule, tool: Tool, arguments: Mapping[str, JSON]) -> bool:
    """Whether an allow rule takes in all of this call. A general one never answers a tool's own question, and of
    servers' tools, whose names others chose, `*` takes in those of one server only."""
    if one.is_general:
        return tool.approve is None and _is_kind(one, tool)
    of_any_server = tool.origin == "mcp" and one.subject.endswith("*") and _OF_SERVER not in one.subject
    if of_any_server or not _names(one, tool.name):
        return False
    if not one.on:
        return True
    aims = _targets(tool, arguments)
    if not aims:
        return _has_value(one, arguments)
    return all(within(one.on, one.command, aim, base) for aim in aims)


def _concerns(base: Path, one: Rule, tool: Tool, arguments: Mapping[str, JSON]) -> bool:
    """Whether an ask or deny rule speaks of anything in this call."""
    if one.is_general:
        return _is_kind(one, tool)
    if not _names(one, tool.name):
        return False
    if not one.on or _has_value(one, arguments):
        return True
    return any(
        touches(one.on, one.command, aim, base)
        or (tool.effect != "read" and not one.command and holds(one.on, aim, base))
        for aim in _targets(tool, arguments)
    )


def _is_kind(one: Rule, tool: Tool) -> bool:
    return tool.effect == one.on if one.subject == "effect" else one.on in tool.needs


def _names(one: Rule, name: str) -> bool:
    if one.subject.endswith("*"):
        return name.startswith(one.subject[:-1])
    return name in _tools_of(one.subject)


def _tools_of(subject: str) -> Sequence[str]:
    from glassloop.tools.builtin import SETS

    return SETS.get(subject, (subject,))


def _targets(tool: Tool, arguments: Mapping[str, JSON]) -> Sequence[Target]:
    """What the tool says that the call is aimed at; of a tool that says nothing, an argument named `url`."""
    if tool.targets is not None:
        return tool.targets(arguments)
    url = arguments.get("url")
    return (Address(url),) if isinstance(url, str) else ()


def _can_compare(one: Rule, tool: Tool | None) -> bool:
    return tool is None or tool.targets is not None or "url" in tool.parameters["properties"] or "=" in one.on


def _has_value(one: Rule, arguments: Mapping[str, JSON]) -> bool:
    found = _ARGUMENT.fullmatch(one.on)
    if found is None or found[1] not in arguments:
        return False
    value = arguments[found[1]]
    return found[2] == (value if isinstance(value, str) else json.dumps(value, sort_keys=True))


def _written(path: Path, folder: Path) -> str:
    return glob.escape((path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix())
