"""What stands behind an opening word: one or more calls, each in whichever notation it turns out to have.

The opener says that calls follow; which of the notations comes is seen from the text itself, since
models put one family's body behind another's opener, and servers drop half of the markers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec.structs import replace

from glassloop.core.entries import JSON
from glassloop.wire.textcalls.found import CUT_OFF, Found, broken_off, plain_name, unreadable
from glassloop.wire.textcalls.keyed import NAME_TAGS, keyed_call
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.shapes import calls_in, name_in, read_json
from glassloop.wire.textcalls.source import (
    BrokenBy,
    Scan,
    Source,
    Words,
    ahead,
    bracketed,
    char,
    run_of,
    spaces,
    until,
)
from glassloop.wire.textcalls.tags import argument_pairs, call_body, tagged_call
from glassloop.wire.textcalls.tokens import (
    ARGUMENT_KEYS,
    CALL_TAGS,
    CLOSERS,
    NAME_SEPARATORS,
    NOISE,
    OPENERS,
    PARAMETER_TAGS,
    SEPARATORS,
)
from glassloop.wire.textcalls.values import NotArguments, brace_arguments, python_calls

_WORDS = Words((*OPENERS, *CLOSERS, *NOISE, *NAME_TAGS))
_CLOSERS = frozenset(CLOSERS)
_NAME = re.compile(r"[\w.:/-]*")
_LONGEST_NAME = 200
_BEFORE_ARGUMENTS = Words(
    (
        *SEPARATORS,
        *NAME_SEPARATORS,
        *NOISE,
        "[CALL_ID]",
        *ARGUMENT_KEYS,
        *PARAMETER_TAGS,
        *CLOSERS,
        *CALL_TAGS,
    )
)
_ARGUMENTS_BEGIN = Words(("{", "(", *SEPARATORS))
_CALL_ID_END = Words(("[ARGS]", "{"))
_BRACE_PARTS = Words(("{", "}", '"', '<|"|>', "<escape>", "<end_function_call>", "<tool_call|>"))
_GEMMA_PREFIX = "call:"
_PYTHON_LIST = re.compile(r"\[\s*[A-Za-z_][\w.]*\s*\(")
_CALLING_TOOL = re.compile(r"\[Calling tool:\s*")


@dataclass(slots=True)
class Body:
    """The calls found, and whether what stands there is none. What is no part of them is left unsettled."""

    found: list[Found]
    broken: bool = False


def read_body(source: Source, tools: Tools) -> Scan[Body]:
    """Read from an opener (not yet consumed) to where calls end, further openers right behind included."""
    body = Body([])
    inside = False  # behind an opener whose closer has not come
    fresh = False  # and no value was read since
    while True:
        source.settle()
        yield from spaces(source)
        word = yield from ahead(source, _WORDS)
        if word in CALL_TAGS or (fresh and word in NAME_TAGS):
            call = yield from (tagged_call if word in CALL_TAGS else keyed_call)(source, tools)
            body.broken = call is None
            if call is None:
                return body
            body.found.append(call)
            fresh = False
        elif word in OPENERS:
            source.take(len(word))
            inside = fresh = True
        elif word in _CLOSERS and (inside or body.found):
            source.take(len(word))
            inside = fresh = False
        elif word in NOISE and inside:
            source.take(len(word))
        elif not inside or not (yield from _item(source, tools, body, fresh)):
            return body
        else:
            fresh = body.found[-1].is_python


def _item(source: Source, tools: Tools, body: Body, fresh: bool) -> Scan[bool]:
    """One value behind an opener; False where there is none and the body ends."""
    mark = yield from char(source)
    if mark in {"{", "["}:
        text, broken_by = yield from bracketed(source)
        # The pattern of a call, as prompts explain it: {"name": <function-name>, …
        if broken_by == "marker" and not name_in(text):
            body.broken = not body.found
            return False
        body.found.extend(_calls(text, broken_by))
        return True
    if mark and mark in ",;}])" and not fresh:  # separators, and a bracket too many behind a complete value
        source.take(1)
        return True
    if fresh and (mark.isalpha() or mark == "_"):
        call = yield from named_call(source, tools)
        body.broken = call is None
        if call:
            body.found.append(call)
        return call is not None
    if mark.isalpha():  # Mistral: further names and arguments behind one opener
        name = yield from run_of(source, _NAME, _LONGEST_NAME)
        if tools.knows(name) and (yield from ahead(source, _ARGUMENTS_BEGIN)):
            call = yield from _call_of(source, tools, name)
            body.found += [call] if call else []
            return call is not None
        return False
    body.broken = bool(mark) and not body.found
    return False


def json_or_python(source: Source) -> Scan[list[Found]]:
    """The calls in one JSON value or one Python list; what cannot be read is one call with a problem."""
    return _calls(*(yield from bracketed(source)))


def _calls(text: str, broken_by: BrokenBy) -> list[Found]:
    problem = broken_off(broken_by)
    return [Found(name_in(text), text, problem=problem)] if problem else calls_from_text(text)


def calls_from_text(text: str) -> list[Found]:
    """The calls in a complete bracketed text."""
    calling = _CALLING_TOOL.match(text)
    if calling or _PYTHON_LIST.match(text):
        return _python(text[calling.end() : -1] if calling else text)
    if text.startswith("{{") and text.endswith(
        "}}"
    ):  # a prompt's template was escaped, and the model copies it
        text = text[1:-1]
    value, problem = read_json(text)
    calls = None if problem else calls_in(value)
    if calls is None:
        return [Found(name_in(text), text, problem=unreadable(problem or "this JSON names no tool"))]
    return list(calls)


def _python(text: str) -> list[Found]:
    try:
        return [Found(name, arguments) for name, arguments in python_calls(text)]
    except NotArguments as error:
        return [Found(name_in(text), text, problem=unreadable(str(error)))]


def named_call(source: Source, tools: Tools) -> Scan[Found | None]:
    """A name and then its arguments: JSON, round brackets, tags, Gemma's braces, or nothing before the closer."""
    name = yield from run_of(source, _NAME, _LONGEST_NAME)
    return (yield from _call_of(source, tools, name))


def _call_of(source: Source, tools: Tools, name: str) -> Scan[Found | None]:
    call_id = ""
    while True:
        yield from spaces(source)
        word = yield from ahead(source, _BEFORE_ARGUMENTS)
        if word == "[CALL_ID]":
            source.take(len(word))
            call_id = (yield from until(source, _CALL_ID_END, _LONGEST_NAME))[0].strip()
        elif word in NAME_SEPARATORS:
            source.take(len(word))
            call_id, name = name, (yield from run_of(source, _NAME, _LONGEST_NAME))
        elif word in ARGUMENT_KEYS:
            return (yield from argument_pairs(source, tools, name))
        elif word in PARAMETER_TAGS:  # Qwen3-Coder without its <function=
            return (yield from call_body(source, tools, name, "</function>"))
        elif word in CALL_TAGS:  # Step 3: a tag behind the separator
            return (yield from tagged_call(source, tools))
        elif word in _CLOSERS:
            return Found(name, {})
        elif word:
            source.take(len(word))
            if name == "function" and word in SEPARATORS:  # DeepSeek V3: the type stands before the name
                name = (yield from run_of(source, _NAME, _LONGEST_NAME)) or name
        else:
            break
    if len(name) > _LONGEST_NAME:
        return None
    return (yield from _arguments(source, tools, name, call_id))


def _arguments(source: Source, tools: Tools, name: str, call_id: str) -> Scan[Found | None]:
    mark = yield from char(source)
    is_gemma = name.startswith(_GEMMA_PREFIX)
    name = name.removeprefix(_GEMMA_PREFIX)
    if mark == "{" and is_gemma:
        return (yield from _braces(source, name))
    if mark == "{":
        text, broken_by = yield from bracketed(source)
        call_id = call_id or (name if name.startswith("functions.") else "")  # Kimi: the name is the id
        return Found(plain_name(name), text, call_id, broken_off(broken_by))
    if mark == "(":
        text, broken_by = yield from bracketed(source)
        if broken_by:
            return Found(name.removesuffix(".call"), text, problem=broken_off(broken_by))
        return replace(_python(name + text)[0], is_python=True)
    if not mark:
        begun = any(known.startswith(name) for known in tools.names)
        return Found(name, "", problem=CUT_OFF) if begun or tools.knows(name) else None
    return None


def _braces(source: Source, name: str) -> Scan[Found]:
    """Gemma's `{city:<|"|>Oslo<|"|>}`: up to the brace that closes the first, strings skipped."""
    pieces: list[str] = []
    depth = 0
    quote = ""
    while True:
        text, word = yield from until(source, _BRACE_PARTS)
        pieces.append(text)
        if not word or (not quote and word.startswith(("<end", "<tool"))):
            problem = unreadable("the braces do not match") if word else CUT_OFF
            return Found(name, "".join(pieces), problem=problem)
        pieces.append(source.take(len(word)))
        if quote:
            escaped = word == '"' and text.endswith("\\")
            quote = "" if word == quote and not escaped else quote
        elif word in "{}":
            depth += 1 if word == "{" else -1
            if depth == 0:
                break
        else:
            quote = word
    return _read_braces(name, "".join(pieces))


def _read_braces(name: str, text: str) -> Found:
    try:
        arguments: dict[str, JSON] = brace_arguments(text)
    except NotArguments as error:
        return Found(name, text, problem=unreadable(str(error)))
    return Found(name, arguments)
