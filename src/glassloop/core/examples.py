"""`Example`: one question → calls → results → answer, shown to the model before a conversation begins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from glassloop.core.entries import JSON, Entry, Reply, Text, ToolCall, ToolResult, User, parts_of
from glassloop.core.values import Value


class Example(Value, frozen=True):
    """How a question is to be handled. `calls`: each a tool's name, its arguments, and what it returned.

    A small model that is unsure of calling learns most from one or two of these. They are sent as
    ordinary messages, natively or as text, whichever the endpoint takes.
    """

    question: str
    calls: Sequence[tuple[str, Mapping[str, JSON], str]]
    answer: str

    def entries(self, number: int) -> tuple[Entry, ...]:
        """The example as a conversation. `number` keeps call ids of several examples apart."""
        calls = tuple(self.tool_calls(number))
        results = [
            ToolResult(call.id, call.name, (Text(returned),))
            for call, (_, _, returned) in zip(calls, self.calls, strict=True)
        ]
        question = User(parts_of(self.question), "example")
        asked: tuple[Entry, ...] = (Reply(tool_calls=calls), *results) if calls else ()
        return (question, *asked, Reply(self.answer))

    def tool_calls(self, number: int) -> list[ToolCall]:
        """Its calls, with ids of nine letters and digits, as the strictest endpoint wants them."""
        return [
            ToolCall(
                f"ex{number:02d}call{place}"[:9], name, arguments, json.dumps(arguments, ensure_ascii=False)
            )
            for place, (name, arguments, _) in enumerate(self.calls)
        ]
