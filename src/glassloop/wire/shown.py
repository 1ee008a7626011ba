"""What a person may see of a reply while it streams: thinking apart, and no markup of calls written as text."""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.events import Delta, ReasoningDelta, TextDelta
from glassloop.core.tools import ToolSpec
from glassloop.wire import strictjson
from glassloop.wire.reasoning import ThinkSplitter
from glassloop.wire.textcalls import TextCallReader


class Shown:
    """Takes content and reasoning as they come, and gives the deltas that are certain by then."""

    def __init__(self, tools: Mapping[str, ToolSpec], tool_mode: str) -> None:
        self._thinking = ThinkSplitter()
        self._calls = TextCallReader(tools, tool_mode)
        self._half = ""  # of a surrogate pair that two chunks share

    def content(self, text: str) -> list[Delta]:
        """More of the content."""
        if self._half or not text.isascii():
            text = self._half + text
            self._half = ""
            if "\ud800" <= text[-1] <= "\udbff":
                text, self._half = text[:-1], text[-1]
            text = strictjson.without_surrogates(text)
        return self._without_calls(self._thinking.feed(text))

    def reasoning(self, text: str) -> list[Delta]:
        """More of a reasoning field."""
        return [ReasoningDelta(strictjson.without_surrogates(text))]

    def finish(self, structured_calls: bool) -> list[Delta]:
        """What was held back and turned out to be text."""
        half, self._half = strictjson.without_surrogates(self._half), ""
        deltas = self._without_calls([*self._thinking.feed(half), *self._thinking.finish()])
        tail = self._calls.finish(structured_calls).tail
        return coalesced([*deltas, TextDelta(tail)])

    def _without_calls(self, deltas: list[Delta]) -> list[Delta]:
        return [
            TextDelta(self._calls.feed(delta.text)) if isinstance(delta, TextDelta) else delta
            for delta in deltas
        ]


def coalesced(deltas: list[Delta]) -> list[Delta]:
    """The deltas with neighbours of one kind joined and empty ones dropped."""
    if not deltas:
        return deltas
    runs: list[tuple[type[TextDelta] | type[ReasoningDelta], list[str]]] = []
    for delta in deltas:
        if not delta.text:
            continue
        if not runs or runs[-1][0] is not type(delta):
            runs.append((type(delta), []))
        runs[-1][1].append(delta.text)
    return [kind("".join(texts)) for kind, texts in runs]
