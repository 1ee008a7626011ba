"""A message's texts as a stream sends them → what is new in each chunk.

Most endpoints send only what is new; some send all the text so far in every chunk. What decides is the
text itself: a second chunk that begins with the whole first one is held back until a third or the end tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from glassloop.core.entries import JSON
from glassloop.wire.reasoning import REASONING_FIELDS

_FIELDS = ("content", *REASONING_FIELDS)
_PROOF = 16
"""Characters: a chunk that begins by repeating so many is no coincidence. "ha" before "haha" may be one."""


class _Text:
    """One field's text."""

    def __init__(self) -> None:
        self.kind: Literal["unclear", "increments", "snapshots"] = "unclear"
        self._seen = ""
        self._held = ""

    def add(self, text: str) -> str:
        """What is certainly new in `text`."""
        if self.kind == "increments":
            return text
        if self.kind == "snapshots":
            return self._snapshot(text)
        if not self._seen:
            self._seen = text
            return text
        before = self._held or self._seen
        goes_on = text.startswith(before) and bool(before.strip())
        if goes_on and (self._held or len(before) >= _PROOF) and (text != before or len(before) >= _PROOF):
            self.kind = "snapshots"
            return self._snapshot(text)
        if goes_on and not self._held and text != before:
            self._held = text
            return ""
        self.kind = "increments"
        return self.rest() + text

    def rest(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return held

    def _snapshot(self, text: str) -> str:
        self._held = ""
        if self._seen.startswith(text):
            return ""
        new = text[len(self._seen) :] if text.startswith(self._seen) else text
        self._seen += new
        return new


class Increments:
    """Takes the deltas of one message in order."""

    def __init__(self) -> None:
        self._texts: dict[str, _Text] = {}

    def of(self, delta: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """The delta with only what is new in its texts."""
        new = {
            field: self._texts.setdefault(field, _Text()).add(text)
            for field in _FIELDS
            if field in delta and isinstance(text := delta[field], str) and text
        }
        return {**delta, **new} if any(new[field] is not delta[field] for field in new) else delta

    def rest(self) -> dict[str, str]:
        """What was held back, now that nothing follows it."""
        return {field: rest for field, text in self._texts.items() if (rest := text.rest())}

    def are_snapshots(self) -> bool:
        """Whether a field's chunks each held all the text so far."""
        return any(text.kind == "snapshots" for text in self._texts.values())

    def are_plain(self, field: str) -> bool:
        """Whether the field's chunks are known to be increments, so that the next may be appended unread."""
        return field in self._texts and self._texts[field].kind == "increments"
