"""Calls whose arguments are tags: Qwen3-Coder, Llama's `<function=`, `<invoke>`, DSML, Step 3, GLM, LongCat, MiniMax.

No XML parser could read them: values are not escaped, closers are forgotten. A value ends at its own
closer, or at a tag that can only come after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import lru_cache
from typing import NamedTuple

from glassloop.core.entries import JSON
from glassloop.wire.fits import typed, types_of
from glassloop.wire.textcalls.found import BROKEN_OFF, CUT_OFF, Field, Found, broken_off, unreadable
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.source import Scan, Source, Words, ahead, bracketed, char, spaces, until
from glassloop.wire.textcalls.tokens import (
    ARGUMENT_KEYS,
    CALL_TAGS,
    CLOSERS,
    MINIMAX_M3,
    NOISE,
    OPENERS,
    PARAMETER_TAGS,
)

_LONGEST_TAG = 200
_AFTER_CALL = Words((*CLOSERS, *OPENERS))
_HEAD_END = Words((">", "{", "(", "\n"))
_TAG_END = Words((">", "\n"))
_CALL_TAG = Words(CALL_TAGS)
_ARGUMENT_TAG = Words(PARAMETER_TAGS)
_PARTS = Words((*PARAMETER_TAGS, *CLOSERS, *OPENERS, *NOISE))
_KEY_TAGS = Words(ARGUMENT_KEYS)
_ATTRIBUTE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+))(.*)""", re.DOTALL)
_IS_STRING = re.compile(r"""\bstring\s*=\s*["']?(true|false)""")
_JSON_BEGINS = frozenset("{(")
_CHILD = re.compile(r"<([A-Za-z_][\w.-]*)>")


def tagged_call(source: Source, tools: Tools) -> Scan[Found | None]:
    """One call that starts with a tag such as `<function=get_weather>`, or None if this is none."""
    tag = yield from ahead(source, _CALL_TAG)
    source.take(len(tag))
    head, end = yield from until(source, _HEAD_END, _LONGEST_TAG)
    name = _first_value(head.rstrip(" ,[]="))[0]
    if not end:
        return Found(name, "", problem=CUT_OFF) if source.ended and name else None
    if not name:
        return None
    if end == "\n":  # a forgotten `>` is no matter where the arguments follow
        yield from spaces(source)
        if not (tools.knows(name) and (yield from ahead(source, _ARGUMENT_TAG))):
            return None
    if end == ">":
        source.take(1)
    return (yield from call_body(source, tools, name, CALL_TAGS[tag]))


def call_body(source: Source, tools: Tools, name: str, closer: str) -> Scan[Found | None]:
    """The arguments of a call whose opening tag was consumed, up to `closer` or what must come after it."""
    fields: list[Field] = []
    missing = set(tools.keys(name))
    while True:
        yield from spaces(source)
        word = (yield from ahead(source, _one(closer))) or (yield from ahead(source, _PARTS))
        if word in PARAMETER_TAGS:
            field = yield from _parameter(source, (closer, word), missing)
            if field is None:
                return Found(name, tuple(fields), problem=CUT_OFF)
            fields.append(field)
        elif word and word == closer:
            source.take(len(word))
            return Found(name, tuple(fields))
        elif word in NOISE:
            source.take(len(word))
        elif word:  # the closer is missing, but what comes next is outside of this call
            return Found(name, tuple(fields))
        elif (yield from char(source)) in _JSON_BEGINS and not fields:
            return (yield from _json_body(source, name, closer))
        elif source.peek() == "<":
            child = yield from _child(source, closer)
            if child is None:
                return Found(name, tuple(fields), problem=(yield from _why(source)))
            fields.append(child)
        elif not source.peek():
            return Found(name, tuple(fields), problem=CUT_OFF)
        else:
            text, end = yield from until(source, _one(closer))
            source.take(len(end))
            return (
                Found(name, text, problem=unreadable("the arguments are neither JSON nor tags"))
                if end
                else None
            )


def _json_body(source: Source, name: str, closer: str) -> Scan[Found]:
    """The object of `<function=get_weather>{"city": "Oslo"}</function>`, bare or in round brackets."""
    text, broken_by = yield from bracketed(source)
    if not broken_by and text.startswith("("):
        text = text[1:-1].strip() or "{}"
    yield from spaces(source)
    if not broken_by and (yield from char(source)) == ">":
        source.take(1)
        yield from spaces(source)
    if (yield from ahead(source, _one(closer))):
        source.take(len(closer))
    return Found(name, text, problem=broken_off(broken_by))


def _why(source: Source) -> Scan[str]:
    return BROKEN_OFF if (yield from char(source)) else CUT_OFF


def _parameter(source: Source, tags: tuple[str, str], missing: set[str]) -> Scan[Field | None]:
    """One `<parameter=city>Oslo</parameter>`; None if the text ends inside.

    `missing` are the arguments that the tool has and that were not given yet.
    """
    call_closer, tag = tags
    source.take(len(tag))
    head, end = yield from until(source, _TAG_END, _LONGEST_TAG)
    if end != ">":
        return None
    source.take(1)
    key, attributes = _first_value(head)
    is_string = _IS_STRING.search(attributes)
    missing.discard(key)
    text = yield from _value(source, _Ends(PARAMETER_TAGS[tag], tag, call_closer), missing)
    if text is None:
        return None
    if is_string:
        return Field(key, text, "string" if is_string.group(1) == "true" else "json")
    if tag.endswith(" name="):
        return Field(key, _without_frame(text))
    return Field(key, _unframed(text))


class _Ends(NamedTuple):
    """What may end a value: its closer, the tag that opens the next one, and the closer of the whole call."""

    closer: str
    next_tag: str
    call_closer: str


def _value(source: Source, ends: _Ends, keys: Set[str]) -> Scan[str | None]:
    """The text of a value. None if the text ends inside. Where its closer is missing, the white space
    before the next tag is layout."""
    closer, next_tag, call_closer = ends
    words = _value_ends(closer, next_tag, call_closer)
    pieces: list[str] = []
    while True:
        text, word = yield from until(source, words)
        pieces.append(text)
        if not word:
            return None
        if word == closer:
            source.take(len(word))
            return _joined(pieces)
        is_next = word == next_tag and (yield from _opens_one_of(source, word, keys))
        if is_next or (word != next_tag and (yield from _ends_call(source, word))):
            return _joined(pieces).rstrip()
        pieces.append(source.take(len(word)))


def _joined(pieces: list[str]) -> str:
    return "".join(pieces).replace(MINIMAX_M3, "")


@lru_cache(maxsize=128)
def _value_ends(closer: str, next_tag: str, call_closer: str) -> Words:
    return Words((closer, next_tag, call_closer, "</tool_call>", "</longcat_tool_call>", "</seed:tool_call>"))


@lru_cache(maxsize=128)
def _one(word: str) -> Words:
    return Words((word,))


@lru_cache(maxsize=16)
def _either(one: str, other: str) -> Words:
    return Words((one, other))


def _opens_one_of(source: Source, tag: str, keys: Set[str]) -> Scan[bool]:
    """Whether the tag that comes next opens an argument that the tool has and that was not given yet."""
    start = len(tag)
    while source.left() < start + _LONGEST_TAG and not source.ended:
        if source.text.find(">", source.pos + start, source.pos + start + _LONGEST_TAG) >= 0:
            break
        yield
    head = source.text[source.pos + start : source.pos + start + _LONGEST_TAG]
    key = re.split("[<>]", head, maxsplit=1)[0]
    return _first_value(key)[0] in keys


def _ends_call(source: Source, word: str) -> Scan[bool]:
    """Whether the closer that comes next is followed by the end of the text or by other call markup."""
    while True:
        pos = source.pos + len(word)
        while source.text[pos : pos + 1].isspace():
            pos += 1
        if pos - source.pos > _LONGEST_TAG:
            return False
        if source.ended or not (pos == len(source.text) or _AFTER_CALL.may_grow(source.text, pos)):
            return pos == len(source.text) or bool(_AFTER_CALL.at(source.text, pos))
        yield


def _child(source: Source, call_closer: str) -> Scan[Field | None]:
    """MiniMax M3: the tag itself is the argument's name, `<city>Oslo</city>`."""
    head, end = yield from until(source, _TAG_END, _LONGEST_TAG)
    found = _CHILD.fullmatch(head + ">")
    if end != ">" or not found:
        return None
    source.take(1)
    key = found.group(1)
    text = yield from _value(source, _Ends(f"</{key}>", call_closer, call_closer), frozenset())
    return None if text is None else Field(key, _without_frame(text))


def argument_pairs(source: Source, tools: Tools, name: str) -> Scan[Found]:
    """GLM and LongCat: `<arg_key>city</arg_key><arg_value>Oslo</arg_value>`, pair by pair, up to the call's closer."""
    fields: list[Field] = []
    missing = set(tools.keys(name))
    while True:
        yield from spaces(source)
        tag = yield from ahead(source, _KEY_TAGS)
        if not tag:
            break
        source.take(len(tag))
        key_closer, value_tag, value_closer = ARGUMENT_KEYS[tag]
        key, end = yield from until(source, _either(key_closer, value_tag), _LONGEST_TAG)
        source.take(len(end) if end == key_closer else 0)
        yield from spaces(source)
        if not end:
            return Found(name, tuple(fields), problem=(yield from _why(source)))
        source.take(len((yield from ahead(source, _one(value_tag)))))
        missing.discard(key.strip())
        text = yield from _value(source, _Ends(value_closer, tag, "</tool_call>"), missing)
        if text is None:
            return Found(name, tuple(fields), problem=CUT_OFF)
        fields.append(Field(key.strip(), _without_frame(text)))
    if (yield from ahead(source, _AFTER_CALL)) or not (source.cut_off or tools.required(name) & missing):
        return Found(name, tuple(fields))
    return Found(name, tuple(fields), problem=CUT_OFF)


def _unframed(text: str) -> str:
    """Qwen3-Coder's value: one line break on each side is not part of it. Where the closing tag is indented,
    the model has laid out its tags as a tree, and no white space around the value is meant."""
    last_line = text.rpartition("\n")[2]
    if last_line and last_line.isspace() and "\n" in text:
        return text.strip()
    return text.removeprefix("\n").removesuffix("\n")


def _without_frame(text: str) -> str:
    """The value without the line breaks that set it off, where there is one on both sides."""
    framed = len(text) > 1 and text.startswith("\n") and text.endswith("\n")
    return text[1:-1] if framed else text


def _first_value(text: str) -> tuple[str, str]:
    """The attribute's value that a tag's head starts with, and the rest of the head."""
    found = _ATTRIBUTE.match(text)
    if not found:
        return "", ""
    return (found.group(1) or found.group(2) or found.group(3) or "").strip(), found.group(4)


def nested(text: str, schema: JSON) -> JSON:
    """A value written in tags, read by the schema: `<item>a</item><item>b</item>` is a list where a list is wanted."""
    types = types_of(schema)
    if not types & {"array", "object"} or not text.lstrip().startswith("<"):
        return typed(text, schema)
    children = list(_children(text))
    if not children:
        return typed(text, schema)
    if "array" in types:
        return [nested(inner, schema.get("items") or {}) for _, inner in children]
    properties = schema.get("properties") or {}
    return {key: nested(inner, properties.get(key) or {}) for key, inner in children}


def _children(text: str) -> list[tuple[str, str]]:
    result: list[tuple[str, str]] = []
    pos = 0
    while found := _CHILD.search(text, pos):
        closer = f"</{found.group(1)}>"
        end = text.find(closer, found.end())
        if end < 0:
            return []
        result.append((found.group(1), text[found.end() : end]))
        pos = end + len(closer)
    return result


def read_fields(fields: tuple[Field, ...], schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Arguments from their text, each by what it says of itself, else by the tool's schema."""
    properties = schema.get("properties") or {}
    return {field.key: _read_field(field, properties.get(field.key) or {}) for field in fields}


def _read_field(field: Field, schema: JSON) -> JSON:
    if field.kind == "string":
        return field.text
    if field.kind == "json":
        return typed(field.text, {})
    return nested(field.text, schema)
