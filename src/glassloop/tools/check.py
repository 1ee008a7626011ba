"""Advice on tools that work but that a model may misuse. What cannot work at all is refused in `schema.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from glassloop.tools.tool import Tool

_WHEN = re.compile(
    r"\b(use (it|this|when|for|only|to)|when(ever)?\b|if (the|a|you|asked)|call (it|this)"
    r"|for (questions|tasks)|before|after|instead of|do not use|don't use|never use)"
    r"|时|适用|用于|用来|如果|当|需要|请在|场景|調用|使用",
    re.IGNORECASE,
)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WEAK_NAMES = _words(
    "do run call go execute exec tool function func fn foo bar baz test temp tmp main helper "
    "process handle thing stuff action perform get set data new my"
)
_VAGUE_PARAMETERS = _words(
    "a b c d x y z arg args data foo bar info input item obj object p param params s stuff temp "
    "thing tmp v val value var"
)
_DO_TWO_THINGS = re.compile(
    r"^[^.。\n]*\b(and then|and also|as well as)\b|^[^.。\n]*(并且|以及|同时|然后)", re.IGNORECASE
)
_AND_NAME = re.compile(r"_(and|or)_", re.IGNORECASE)
_MIN_WIDTH, _MAX_WIDTH = 20, 2_000
_MAX_PARAMETERS = 8


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to better: about which tool, a stable `code`, what is meant, and what to do."""

    tool: str
    code: str
    message: str
    hint: str


_Finding = tuple[str, str]
"""What is the matter, and what to do."""


def advise(tools: Iterable[Tool]) -> list[Advice]:
    """What could be better about each tool, in the order of the tools. Empty: nothing to say."""
    return [
        Advice(each.name, code, message, hint)
        for each in tools
        for code, look in _CHECKS
        for message, hint in look(each)
    ]


def _name(tool: Tool) -> Iterator[_Finding]:
    words = [
        word
        for word in re.split(r"[_\-.:/\d]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower())
        if word
    ]
    if all(word in _WEAK_NAMES for word in words):
        yield (
            f"the name `{tool.name}` does not say what it does",
            "Name it verb_noun, such as `search_notes`.",
        )
    if _AND_NAME.search(tool.name):
        yield f"the name `{tool.name}` joins several things", "Make one tool of each."


def _when(tool: Tool) -> Iterator[_Finding]:
    if not _WHEN.search(tool.description):
        yield "the description does not say when to use it", 'Add a sentence such as "Use it whenever ...".'


def _length(tool: Tool) -> Iterator[_Finding]:
    width = _width(tool.description)
    if width < _MIN_WIDTH:
        yield "the description is very short", "Say what it does, when to use it and what it returns."
    if width > _MAX_WIDTH:
        hint = "Keep what a model needs in order to choose; move the rest to where it is needed."
        yield f"the description is {len(tool.description)} characters long and is sent in every round", hint


def _undescribed(tool: Tool) -> Iterator[_Finding]:
    missing = [name for name, schema in _properties(tool).items() if not _text(schema)]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        yield f"no description of {names}", "Describe each under `Args:` in the docstring, with an example."


def _vague(tool: Tool) -> Iterator[_Finding]:
    for name, schema in _properties(tool).items():
        if name.lower() in _VAGUE_PARAMETERS and _width(_text(schema)) < _MIN_WIDTH:
            yield f"the parameter name `{name}` says nothing", "Name what it holds, such as `city` or `path`."


def _too_much(tool: Tool) -> Iterator[_Finding]:
    count = len(_properties(tool))
    if count > _MAX_PARAMETERS:
        yield f"it has {count} parameters", "Split it, or group what belongs together in a dataclass."
    if _DO_TWO_THINGS.search(tool.description):
        yield "the description joins several things", "Make one tool of each if they can be used alone."


def _switches(tool: Tool) -> Iterator[_Finding]:
    required = [
        name for name in tool.parameters.get("required", ()) if _is_bool(_properties(tool).get(name, {}))
    ]
    for name in required:
        yield (
            f"`{name}` is true or false without a default",
            "Give it the usual value as default, or a Literal whose members say what each means.",
        )
    switches = [name for name, schema in _properties(tool).items() if _is_bool(schema)]
    if len(switches) > 2:
        yield f"it has {len(switches)} switches", "Make one Literal of them, or separate tools."
    for name in switches:
        if re.match(r"(no|not|disable|skip|without)_", name):
            yield f"`{name}` is a negation: false means yes", "Turn it round, and default to the usual value."


def _untyped(tool: Tool) -> Iterator[_Finding]:
    for name, schema in _properties(tool).items():
        loose = (
            schema.get("type") == "object"
            and not schema.get("properties")
            and "additionalProperties" not in schema
        )
        if not set(schema) - {"description", "default"} or loose or schema.get("items") == {}:
            yield (
                f"`{name}` takes anything",
                "Give it a type that says what is in it; models guess otherwise.",
            )


_CHECKS: tuple[tuple[str, Callable[[Tool], Iterator[_Finding]]], ...] = (
    ("name", _name),
    ("when", _when),
    ("length", _length),
    ("undescribed", _undescribed),
    ("vague-parameter", _vague),
    ("too-much", _too_much),
    ("switches", _switches),
    ("untyped", _untyped),
)


def _properties(tool: Tool) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tool.parameters["properties"]
    return found


def _text(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", "")).strip()


def _is_bool(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "boolean"


def _width(text: str) -> int:
    """Length as a reader feels it: a Chinese character says about as much as three Latin letters."""
    return len(text) + 2 * len(_WIDE.findall(text))
