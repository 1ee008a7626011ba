"""Refusals, the request each is about, and what came of it: `tests/quirks/rejections.jsonl` holds those that people
reported, `wordings.jsonl` hundreds of other wordings, made up after what servers say.

What an adaptation must achieve is said of the request that is sent again, not of our names for changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from glassloop.core.entries import Entry, Image, Note, Reply, System, Text, ToolCall, ToolResult, User
from glassloop.core.tools import ToolSpec
from glassloop.wire.judgement import Adapt, Judgement, Overflow, Raise, Retry, Salvage
from glassloop.wire.profile import Profile
from glassloop.wire.rejection import judge
from glassloop.wire.request import Encoder
from glassloop.wire.sent import Sent

NOW = 1_790_000_000.0
QUIRKS = Path(__file__).parent.parent / "quirks"


def _read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (QUIRKS / name).read_text("utf-8").splitlines()]


REPORTS = _read("rejections.jsonl")
WORDINGS = _read("wordings.jsonl")


def _tool(name: str, properties: Mapping[str, Any], **schema: Any) -> ToolSpec:
    return ToolSpec(name, "What it does.", {"type": "object", "properties": properties, **schema})


_CITY = {"city": {"type": "string", "description": "A city"}}
_STRING_OR_NULL = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_ITEM = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
TOOLS: Mapping[str, tuple[ToolSpec, ...]] = {
    "none": (),
    "plain": (_tool("get_weather", _CITY, required=["city"]),),
    "no_parameters": (_tool("list_files", {}),),
    "closed": (_tool("add_all", {"all": {"type": "array", "items": _ITEM}}, additionalProperties=False),),
    "union": (_tool("get_weather", {**_CITY, "unit": _STRING_OR_NULL}),),
    "bounded": (_tool("read", {"path": {"type": "string", "minLength": 1, "maxLength": 100_000}}),),
    "odd_name": (_tool("7.weather/today", _CITY),),
    "search": (_tool("search", {"query": {"type": "string"}}),),
}
_CALL = ToolCall("call_PTLP8xhu3uwZk4l3nlnrrJha", "get_weather", {"city": "Oslo"}, '{"city": "Oslo"}')
_RESULT = ToolResult(_CALL.id, _CALL.name, (Text("12 degrees"),))
_ASKED = (System("Be brief."), User((Text("How warm is it in Oslo?"),)))
_REASONED = Reply(
    tool_calls=(_CALL,),
    reasoning="I need to look.",
    reasoning_field="reasoning",
    raw={"reasoning": "I need to look."},
)
HISTORIES: Mapping[str, tuple[Entry, ...]] = {
    "first": _ASKED,
    "called": (*_ASKED, Reply(tool_calls=(_CALL,)), _RESULT),
    "long_id": (*_ASKED, Reply(tool_calls=(_CALL,)), _RESULT),
    "reasoned": (*_ASKED, _REASONED, _RESULT),
    "steered": (*_ASKED, Reply(tool_calls=(_CALL,)), _RESULT, User((Text("And in Bergen?"),), "steer")),
    "answered": (*_ASKED, Reply("12 degrees.")),
    "picture": (System("Be brief."), User((Text("What is this?"), Image(data=b"x")))),
    "noted": (*_ASKED, Reply("12 degrees."), Note("Go on.", "empty_reply")),
}


def request(report: Mapping[str, Any], profile: Profile) -> bytes:
    """The request that the report is about, as `profile` has it."""
    sent = report["sent"]
    return Encoder(profile).encode(
        "a-model",
        HISTORIES[sent.get("history", "first")],
        TOOLS[sent.get("tools", "none")],
        sent.get("settings", {}),
        stream=sent.get("stream", False),
    )


def judged(report: Mapping[str, Any], profile: Profile, tried: tuple[str, ...] = ()) -> Judgement:
    """What is made of the report's answer to that request."""
    body = report["body"]
    payload: Any = None
    try:
        payload = json.loads(body)
    except ValueError:
        if body.startswith("event:"):
            payload = json.loads(body.partition("data: ")[2])
    sent = Sent.of(request(report, profile), profile, tried)
    return judge(report["status"], report["headers"], payload, body, sent, now=NOW)


def first_profile(report: Mapping[str, Any]) -> Profile:
    """What was known before: nothing, save that streams were asked for their usage where the report says so."""
    return Profile(stream_options=bool(report["sent"].get("stream")))


def outcome(report: Mapping[str, Any]) -> tuple[str, bool]:
    """What we do about it, in words, and whether that is right."""
    profile = first_profile(report)
    judgement = judged(report, profile)
    expected = report["expect"]
    options = (
        expected["detail"] if expected["outcome"] == "either" else [[expected["outcome"], expected["detail"]]]
    )
    return in_words(judgement), any(_is(judgement, report, profile, *option) for option in options)


def in_words(judgement: Judgement) -> str:
    match judgement:
        case Retry(after):
            return "retry" if after is None else f"retry after {after:g} s"
        case Adapt(code):
            return f"adapt: {code}"
        case Overflow(window):
            return f"overflow {window or ''}".strip()
        case Salvage():
            return "read the call from the error, else retry"
        case Raise(error):
            return f"raise {type(error).__name__}"


def _is(judgement: Judgement, report: Mapping[str, Any], profile: Profile, kind: str, detail: Any) -> bool:
    match judgement:
        case Retry(after):
            return kind == "retry" and (not detail or after == detail["wait"])
        case Salvage():
            return kind == "retry"
        case Overflow(window):
            return kind == "overflow" and window == detail["window"]
        case Raise(error):
            return kind == "raise" and type(error).__name__ == detail
        case Adapt(_, changes):
            again = json.loads(request(report, profile.merged(changes)))
            return kind == "adapt" and fulfils(again, detail)


def fulfils(body: Mapping[str, Any], wishes: Mapping[str, Any]) -> bool:
    """Whether a request is as wished."""
    return all(_WISHES[name](body, wish) for name, wish in wishes.items())


def _at(value: Any, path: str) -> Iterator[Any]:
    """Every value under a dotted path; `*` is any key or index, `**` any number of them."""
    step, _, rest = path.partition(".")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if step == "**":
        yield from _at(value, rest)
        for _, each in items:
            yield from _at(each, path)
        return
    for key, each in items:
        if step in ("*", str(key)):
            if rest:
                yield from _at(each, rest)
            else:
                yield each


def _any(body: Mapping[str, Any], path: str) -> bool:
    return next(_at(body, path), None) is not None


def _equal(body: Mapping[str, Any], wish: Mapping[str, Any]) -> bool:
    return all(body.get(name) == value for name, value in wish.items())


def _adjacent(body: Mapping[str, Any], pairs: list[list[str]]) -> bool:
    return any([before, after] in pairs for before, after in pairwise(_at(body, "messages.*.role")))


_WISHES: Mapping[str, Callable[[Mapping[str, Any], Any], bool]] = {
    "absent": lambda body, paths: not any(_any(body, path) for path in paths),
    "present": lambda body, paths: all(next(_at(body, path), body) is not body for path in paths),
    "equals": _equal,
    "equals_any": lambda body, wishes: any(_equal(body, wish) for wish in wishes),
    "any": lambda body, wishes: any(fulfils(body, wish) for wish in wishes),
    "at_most": lambda body, wish: all(0 < body.get(name, 0) <= value for name, value in wish.items()),
    "drop_or": lambda body, wish: all(body.get(name, value) == value for name, value in wish.items()),
    "not_object": lambda body, names: not any(isinstance(body.get(name), dict) for name in names),
    "names": lambda body, form: all(re.match(form, each) for each in _at(body, "tools.*.function.name")),
    "not_names": lambda body, names: not set(names) & set(_at(body, "tools.*.function.name")),
    "ids": lambda body, form: all(re.match(form, each) for each in _at(body, "messages.*.tool_call_id")),
    "not_adjacent": lambda body, pairs: not _adjacent(body, pairs),
    "not_roles": lambda body, roles: not set(roles) & set(_at(body, "messages.*.role")),
    "last_role": lambda body, roles: body["messages"][-1]["role"] in roles,
    "strings": lambda body, _: all(isinstance(each, str) for each in _at(body, "messages.*.content")),
    "object_arguments": lambda body, _: all(
        isinstance(each, dict) for each in _at(body, "messages.*.tool_calls.*.function.arguments")
    ),
    "present_where_calls": lambda body, name: all(
        name in message for message in body["messages"] if message.get("tool_calls")
    ),
    "no_empty_properties": lambda body, _: all(_at(body, "tools.**.properties")),
    "no_tool_messages": lambda body, _: "tool" not in list(_at(body, "messages.*.role")),
    "odd": lambda body, _: len([each for each in body["messages"] if each["role"] != "system"]) % 2 == 1,
}
