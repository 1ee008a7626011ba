"""Calls whose name and arguments stand each in a tag: `<name>get_weather</name><arguments>{…}</arguments>`.

Written by models that know calls from agents' prompts (Claude's first notation, chat clients' XML) inside
the opener of their own family.
"""

from __future__ import annotations

import re

from glassloop.wire.textcalls.found import CUT_OFF, Found
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.shapes import ARGUMENT_KEYS
from glassloop.wire.textcalls.source import Scan, Source, Words, ahead, char, spaces, until
from glassloop.wire.textcalls.tags import call_body
from glassloop.wire.textcalls.tokens import CLOSERS

NAME_TAGS = {f"<{key}>": f"</{key}>" for key in ("name", "tool_name", "function_name", "tool", "function")}
_ARGUMENT_TAGS = {f"<{key}>": f"</{key}>" for key in ARGUMENT_KEYS}
_NAME_TAG = Words(NAME_TAGS)
_ARGUMENTS = Words(_ARGUMENT_TAGS)
_NAME_END = {tag: Words((closer,)) for tag, closer in NAME_TAGS.items()}
_CLOSER = Words(CLOSERS)
_LONGEST_NAME = 200
_NAME = re.compile(r"[\w.:/-]+")


def keyed_call(source: Source, tools: Tools) -> Scan[Found | None]:
    """The call that begins with one of NAME_TAGS, or None if this is none."""
    tag = yield from ahead(source, _NAME_TAG)
    source.take(len(tag))
    name, closer = yield from until(source, _NAME_END[tag], _LONGEST_NAME)
    name = name.strip()
    if not closer:
        return Found(name, "", problem=CUT_OFF) if source.ended and not source.left() else None
    if not _NAME.fullmatch(name):
        return None
    source.take(len(closer))
    yield from spaces(source)
    tag = yield from ahead(source, _ARGUMENTS)
    if tag:
        source.take(len(tag))
        return (yield from call_body(source, tools, name, _ARGUMENT_TAGS[tag]))
    if (yield from ahead(source, _CLOSER)):
        return Found(name, {})
    return Found(name, "", problem=CUT_OFF) if (yield from char(source)) in {"", "<"} else None
