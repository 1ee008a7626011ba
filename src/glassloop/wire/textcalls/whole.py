"""Calls that nothing marks but their shape. They count only where they are the whole answer (a short line
before them is allowed), or where a line begins with a word that belongs to the notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from glassloop.core.values import Value
from glassloop.wire.textcalls import harmony
from glassloop.wire.textcalls.body import calls_from_text, json_or_python, named_call, read_body
from glassloop.wire.textcalls.found import CUT_OFF, WRONG_BRACKET, Found, Shape, broken_off
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.react import ACTIONS, THOUGHTS, read_action
from glassloop.wire.textcalls.settle import believable, settle
from glassloop.wire.textcalls.shapes import CALL_KEYS, NAME_KEYS, TYPES
from glassloop.wire.textcalls.source import Scan, Source, Words, ahead, bracketed, char, run_of, spaces, until
from glassloop.wire.textcalls.tags import call_body
from glassloop.wire.textcalls.tokens import OPENERS

_NAME = re.compile(r"[\w.:/-]*")
_LONGEST_NAME = 200
_LONGEST_KEY = 40
_QUOTE = {'"': Words(('"',)), "'": Words(("'",))}
_BLANKS = re.compile(r"[ \t]*")
_OPENER = Words(OPENERS)


Reader = Callable[[Source, Tools], Scan[Shape | None]]


def _bare(source: Source, tools: Tools) -> Scan[Shape | None]:
    """Llama 3, xLAM, Hammer, small models: JSON objects or a list of them; Llama 4 and 3.2: a Python list."""
    found: list[Found] = []
    mark = yield from char(source)
    while mark and mark in "{[":
        value = yield from _value(source, tools)
        if value is None or not _all_known(value, tools):
            return None
        found.extend(value)
        yield from spaces(source)
        mark = yield from char(source)
        if found and mark and mark in ";,":
            source.take(1)
            yield from spaces(source)
            mark = yield from char(source)
    return Shape("json", tuple(found))


def _all_known(calls: list[Found], tools: Tools) -> bool:
    return all(call.problem is None and not call.has_other_keys and tools.knows(call.name) for call in calls)


def _value(source: Source, tools: Tools) -> Scan[list[Found] | None]:
    """One value whose first member already says that it is a call; None as soon as it cannot be one."""
    head = source.take(1)
    closers = "]" if head == "[" else "}"
    if head == "[":
        head += yield from spaces(source)
        mark = yield from char(source)
        if mark == "{":
            head += source.take(1)
            closers += "}"
        elif not (mark.isalpha() or mark == "_"):
            return None
    if head == "{" and (yield from char(source)) == "{":
        head += source.take(1)
        closers += "}"
    begin = _first_member if head.endswith("{") else _first_name
    member = yield from begin(source, tools)
    if member is None:
        return None
    rest, broken_by = yield from bracketed(source, closers)
    return None if broken_by else calls_from_text(head + member + rest)


def _first_member(source: Source, tools: Tools) -> Scan[str | None]:
    head = yield from spaces(source)
    key = yield from _quoted(source, _LONGEST_KEY)
    if key is None or not (key[1:-1] in CALL_KEYS or tools.knows(key[1:-1])):
        return None
    head += key + (yield from spaces(source))
    if (yield from char(source)) != ":":
        return None
    head += source.take(1) + (yield from spaces(source))
    if (yield from char(source)) not in _QUOTE:
        return head
    if key[1:-1] not in (*NAME_KEYS, "type"):
        return head
    value = yield from _quoted(source, _LONGEST_NAME)
    if value is None:
        return None
    believed = value[1:-1] in TYPES if key[1:-1] == "type" else tools.knows(value[1:-1])
    return head + value if believed else None


def _quoted(source: Source, longest: int) -> Scan[str | None]:
    """A short string with its quotes, or None."""
    quote = yield from char(source)
    if quote not in _QUOTE:
        return None
    source.take(1)
    text, end = yield from until(source, _QUOTE[quote], longest)
    if not end:
        return None
    source.take(1)
    return quote + text + quote


_CALLING_TOOL = Words(("Calling tool:",))


def _first_name(source: Source, tools: Tools) -> Scan[str | None]:
    """The name of the first call of a Python list, with what stands before it."""
    head = ""
    prefix = yield from ahead(source, _CALLING_TOOL)
    if prefix:
        head = source.take(len(prefix)) + (yield from spaces(source))
    name = yield from run_of(source, _NAME, _LONGEST_NAME)
    if not tools.knows(name) or (yield from char(source)) != "(":
        return None
    return head + name


_LANGUAGES = frozenset(
    ("", "json", "jsonc", "json5", "xml", "html", "tool_code", "tool_call", "tool_calls", "tool", "function_call",
     "function", "python", "py", "text", "plaintext", "action")
)  # fmt: skip
_LANGUAGE = re.compile(r"[\w+-]*")
_FENCES = ("```", "~~~")
_FENCE_END = Words(_FENCES)
_FENCE_OR_RESULT = Words((*_FENCES, "```tool_output"))


def _fence(source: Source, tools: Tools) -> Scan[Shape | None]:
    """Code fences that hold nothing but calls: JSON, marked calls, or Gemma 3's `tool_code`."""
    found: list[Found] = []
    while (yield from ahead(source, _FENCE_OR_RESULT)) in _FENCES:
        inside = yield from _one_fence(source, tools)
        if inside is None:
            return None
        found.extend(inside.found)
        yield from spaces(source)
    return Shape("fence", tuple(found))


def _one_fence(source: Source, tools: Tools) -> Scan[Shape | None]:
    source.take(3)
    language = yield from run_of(source, _LANGUAGE, _LONGEST_KEY)
    if language.lower() not in _LANGUAGES:
        return None
    yield from spaces(source)
    mark = yield from char(source)
    if mark and mark in "{[":
        shape = yield from _bare(source, tools)
    elif (yield from ahead(source, _OPENER)):
        shape = Shape("fence", tuple((yield from read_body(source, tools)).found))
    else:
        shape = yield from _python_lines(source, tools)
    if shape is None:
        return None
    yield from spaces(source)
    fence = yield from ahead(source, _FENCE_END)
    source.take(len(fence))
    return shape


def _python_lines(source: Source, tools: Tools) -> Scan[Shape | None]:
    found: list[Found] = []
    while True:
        name = yield from run_of(source, _NAME, _LONGEST_NAME)
        if not name and found:
            return Shape("python", tuple(found))
        if (yield from char(source)) != "(" or not (tools.knows(name) or name == "print"):
            return None
        arguments, broken_by = yield from bracketed(source)
        if broken_by:
            return None
        calls = calls_from_text(f"[{name}{arguments}]")
        if not _all_known(calls, tools):
            return None
        found.extend(calls)
        yield from spaces(source)


def _bare_name(source: Source, tools: Tools) -> Scan[Shape | None]:
    """A tool's name and its arguments, once or more: `get_weather{"city": "Oslo"}`, `get_weather(city="Oslo")`, or
    what is left of a family's notation where a server dropped its tokens: `get_weather[ARGS]{"city": "Oslo"}`
    of Mistral, `functions.get_weather:0{…}` of Kimi, `functionget_weather` and a fence of DeepSeek V3."""
    found: list[Found] = []
    typed = yield from ahead(source, _typed_names(tools.names))
    while True:
        if typed:
            source.take(len((yield from ahead(source, _TYPE))))
        call = yield from named_call(source, tools)
        if call is None or call.problem:
            return None
        found.append(call)
        yield from spaces(source)
        fence = yield from ahead(source, _FENCE_END)
        source.take(len(fence))
        yield from spaces(source)
        if not (yield from char(source)).isalpha():
            return Shape("named", tuple(found))


_TYPE = Words(("function",))


@lru_cache(maxsize=32)
def _typed_names(names: frozenset[str]) -> Words:
    return Words(f"function{name}\n" for name in names)


_TAG_END = Words((">",))


def _named_tag(source: Source, tools: Tools) -> Scan[Shape | None]:
    """Cline's notation, which many models know: `<get_weather><city>Oslo</city></get_weather>`. A tag that holds
    anything but the tool's arguments is somebody's own: `<search>` and `<summary>` are words of many languages."""
    head, _ = yield from until(source, _TAG_END)
    source.take(1)
    name = head.removeprefix("<")
    yield from spaces(source)
    if not (yield from ahead(source, _inside(name, tools.keys(name)))):
        return None
    call = yield from call_body(source, tools, name, f"</{name}>")
    if call is None:
        return None
    if call.problem not in (CUT_OFF, WRONG_BRACKET) and not believable(settle(call, tools), tools):
        return None
    return Shape("named_tag", (call,))


@lru_cache(maxsize=128)
def _inside(name: str, keys: frozenset[str]) -> Words:
    """What may stand first in the tag named after a tool."""
    return Words(("{", f"</{name}>", *(f"<{key}>" for key in keys)))


_CHEVRONS = Words((">>>",))


def _functionary(source: Source, tools: Tools) -> Scan[Shape | None]:
    """Functionary v3.2 and v2: `>>>get_weather` and its JSON on the next line; `>>>all` begins the answer."""
    found: list[Found] = []
    while (yield from ahead(source, _CHEVRONS)):
        source.take(3)
        name = yield from run_of(source, _NAME, _LONGEST_NAME)
        if name == "all" and (yield from char(source)) in {"\n", ""}:
            yield from spaces(source)
            return Shape("functionary", tuple(found), text_follows=True)
        yield from spaces(source)
        if not tools.knows(name) or (yield from char(source)) != "{":
            return None
        text, broken_by = yield from bracketed(source)
        found.append(Found(name, text, problem=broken_off(broken_by)))
        yield from spaces(source)
    return Shape("functionary", tuple(found))


def _functools(source: Source, tools: Tools) -> Scan[Shape | None]:
    """Phi-4-mini, Phi-3 and Firefunction v2: `functools[{…}]`."""
    source.take(len("functools"))
    yield from run_of(source, _BLANKS)
    if (yield from char(source)) != "[":
        return None
    return Shape("functools", tuple((yield from json_or_python(source))))


def _stripped_harmony(source: Source, _: Tools) -> Scan[Shape | None]:
    message = yield from harmony.read_stripped(source)
    if message is None:
        return None
    return Shape("harmony", message.calls, message.reasoning, text_follows=True)


class Begins(Value, frozen=True, gc=True):
    """A word that a line may begin with. `anywhere`: on any line, and text may follow the calls. `after_text`:
    behind any text, as the word says that a call is meant, but at the end of the answer."""

    read: Reader
    anywhere: bool = False
    after_text: bool = False


SHAPES: Mapping[str, Begins] = {
    "{": Begins(_bare),
    "[": Begins(_bare),
    "```": Begins(_fence),
    "~~~": Begins(_fence),
    "```tool_code": Begins(_fence, after_text=True),
    "```tool_call": Begins(_fence, after_text=True),
    **dict.fromkeys(THOUGHTS, Begins(read_action)),
    **dict.fromkeys(ACTIONS, Begins(read_action, anywhere=True)),
    ">>>": Begins(_functionary, anywhere=True),
    "functools": Begins(_functools, anywhere=True),
    **dict.fromkeys(harmony.STRIPPED, Begins(_stripped_harmony)),
}


def beginnings(names: frozenset[str]) -> tuple[Mapping[str, Begins], Words]:
    """What a line may begin with where these are the tools: a tool's name and its arguments are one more shape."""
    marks = ("{", "(", "\n{", " {", ": {", "\n```", "[ARGS]", "[CALL_ID]", "<arg_key>", "\n<arg_key>")
    patterns = ("functions.{}:", "functions.{}{{", "functions.{}(", "call:{}{{", "function{}\n```")
    table = {
        **{f"{name}{mark}": Begins(_bare_name) for name in names for mark in marks},
        **{pattern.format(name): Begins(_bare_name) for name in names for pattern in patterns},
        **{f"<{name}>": Begins(_named_tag, anywhere=True) for name in names},
        **SHAPES,
    }
    return table, Words(table)
