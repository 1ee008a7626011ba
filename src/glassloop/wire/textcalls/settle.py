"""From what a grammar found to a call that may run: the name is looked up, the arguments are read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping

from glassloop.core.entries import JSON, Mend, ToolCall
from glassloop.core.values import Value
from glassloop.wire.arguments import read_arguments
from glassloop.wire.fits import fits
from glassloop.wire.textcalls.found import Field, Found, unreadable
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.shapes import CALL_KEYS
from glassloop.wire.textcalls.tags import read_fields


class Settled(Value, frozen=True):
    """A call and what was mended to read it."""

    call: ToolCall
    mends: tuple[Mend, ...] = ()


def settle(found: Found, tools: Tools) -> Settled:
    """The call as it goes to the loop: with a known name if there is one, and with a problem if it must not run."""
    name, renamed = tools.resolve(found.name)
    mends = (renamed,) if renamed else ()
    given = found.arguments
    problem = found.problem or _given_twice(given)
    if found.is_flat and isinstance(given, Mapping):
        given, problem = _own(given, tools.keys(name))
    if problem:
        return Settled(ToolCall(found.id, name, None, _source_text(given), problem), mends)
    schema = tools.schema(name)
    arguments = read_fields(given, schema) if isinstance(given, tuple) else given
    read = read_arguments(arguments, schema, name=name)
    text = arguments if isinstance(arguments, str) else _dump(arguments)
    return Settled(ToolCall(found.id, name, read.value, text, read.problem), (*mends, *read.mends))


def believable(settled: Settled, tools: Tools) -> bool:
    """Whether this is a call even where nothing but its shape says so: a known tool, and arguments that fit it."""
    call = settled.call
    if call.problem or call.arguments is None or call.name not in tools.names:
        return False
    return fits(call.arguments, tools.schema(call.name))


def _own(beside: Mapping[str, JSON], keys: frozenset[str]) -> tuple[Mapping[str, JSON], str | None]:
    """The arguments among what stands beside a call's name, and the problem where other things stand there."""
    given = {key: value for key, value in beside.items() if key in keys or key not in CALL_KEYS}
    if given.keys() <= keys:
        return given, None
    return given, unreadable('the arguments must stand in an object under the key "arguments"')


def _given_twice(arguments: Mapping[str, JSON] | str | tuple[Field, ...]) -> str | None:
    """Which of two values is meant cannot be known."""
    seen: set[str] = set()
    for field in arguments if isinstance(arguments, tuple) else ():
        if field.key in seen:
            return unreadable(f"the argument {field.key!r} is given twice")
        seen.add(field.key)
    return None


def _source_text(arguments: Mapping[str, JSON] | str | tuple[Field, ...]) -> str:
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, tuple):
        return _dump({field.key: field.text for field in arguments})
    return _dump(arguments)


def _dump(value: Mapping[str, JSON]) -> str:
    return json.dumps(dict(value), ensure_ascii=False)
