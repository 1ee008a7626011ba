"""The tools and questions that the probes use. Tools are made as people make theirs, so that no probe is stricter
than real use; none of them ever runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, TypedDict

from glassloop.core.entries import JSON, Reply, System, Text, ToolCall, ToolResult, User
from glassloop.tools.tool import tool
from glassloop.tools.toolbox import Toolbox


class Address(TypedDict):
    """Where something goes."""

    street: str
    town: str


def get_weather(city: str, unit: Literal["C", "F"] | None = None) -> str:
    """Current weather in a city. Use it for any question about weather."""
    raise NotImplementedError


def add(a: int, b: int) -> int:
    """The sum of two whole numbers."""
    raise NotImplementedError


def list_cities() -> str:
    """All cities that there is weather for. Takes no arguments."""
    raise NotImplementedError


def plan_route(stops: list[str], fast: bool = False, note: str | None = None) -> str:
    """Plan a route along stops, in their order."""
    raise NotImplementedError


def write_note(path: str, text: str) -> str:
    """Write a text to a file."""
    raise NotImplementedError


def place_order(
    *,
    item: str,
    count: int,
    gift: bool,
    tags: list[str],
    address: Address,
    size: Literal["small", "large"],
    remark: str | None = None,
) -> str:
    """Place an order in the shop."""
    raise NotImplementedError


TOOLS = tuple(
    tool(effect="read")(each) for each in (get_weather, add, list_cities, plan_route, write_note, place_order)
)
BOX = Toolbox(TOOLS)
SPECS = BOX.specs
BY_NAME = {spec.name: spec for spec in SPECS}

HELLO = "Reply with one short sentence of greeting."
BE_BRIEF = System("Be brief. When a tool is asked for, call it and say nothing else.")

EVERY_KIND: Mapping[str, JSON] = {
    "item": 'Tee "清明" 🍵',
    "count": 3,
    "gift": True,
    "tags": ["茶", "a/b"],
    "address": {"street": "Straße 5", "town": "東京"},
    "size": "large",
}
"""Arguments of every kind: text with quotes, Chinese and emoji, a number, a truth value, a list, an object, one of
a choice, and an optional one left out."""


def said(text: str) -> User:
    """A user's message."""
    return User((Text(text),))


def please_call(*wanted: tuple[str, Mapping[str, JSON]]) -> User:
    """A request to call these tools with exactly these arguments, which even a small model can copy."""
    calls = "; ".join(f"{name} {json.dumps(arguments, ensure_ascii=False)}" for name, arguments in wanted)
    if len(wanted) == 1:
        return said(f"Call this tool with exactly these arguments: {calls}")
    return said(f"Call all of these tools now, in one single turn, with exactly these arguments: {calls}")


def named(name: str) -> JSON:
    """A `tool_choice` that forces one tool."""
    return {"type": "function", "function": {"name": name}}


def a_past_call(
    text: str = "18 degrees, sunny", state: Literal["ok", "error"] = "ok"
) -> tuple[Reply, ToolResult]:
    """A turn that called `get_weather`, and its result."""
    call = ToolCall("a1B2c3D4e", "get_weather", {"city": "Oslo"}, '{"city": "Oslo"}')
    return Reply(tool_calls=(call,), finish_reason="tool_calls"), result_of(call, text, state)


def result_of(call: ToolCall, text: str, state: Literal["ok", "error"] = "ok") -> ToolResult:
    """A call's result."""
    return ToolResult(call.id, call.name, (Text(text),), state)
