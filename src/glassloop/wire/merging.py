"""The deltas of one streamed message → the message, in the shape in which a body would hold it."""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.core.tools import ToolSpec
from glassloop.wire.calls import CALL_FIELDS, items_of
from glassloop.wire.reasoning import REASONING_FIELDS
from glassloop.wire.slots import CallSlots

_APPENDED = frozenset((*REASONING_FIELDS, "refusal"))
_PART_TEXTS = ("text", "thinking", "summary", "data", "transcript", *REASONING_FIELDS)


class MergedMessage:
    """Takes deltas in order."""

    def __init__(self, tools: Mapping[str, ToolSpec]) -> None:
        self._tools = tools
        self._contents: list[str] = []
        self._parts: list[JSON] = []
        self._fields: dict[str, JSON] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls = CallSlots(tools)
        self._legacy: CallSlots | None = None  # of `function_call`

    def __bool__(self) -> bool:
        """Whether it holds content, reasoning or calls."""
        return bool(self._contents or self._parts or self._texts or self._calls or self._legacy)

    def add(self, delta: Mapping[str, JSON]) -> None:
        """Merge one delta. Null never overwrites anything."""
        for key, value in delta.items():
            if value is None:
                continue
            if key == "content":
                self._add_content(value)
            elif key in CALL_FIELDS:
                self._add_calls(value)
            elif key == "function_call" and isinstance(value, dict):
                self._legacy = self._legacy or CallSlots(self._tools)
                self._legacy.add({"index": 0, "function": value})
            elif key in _APPENDED and isinstance(value, str):
                if value:
                    self._texts.setdefault(key, []).append(value)
            else:
                old = self._fields.get(key)
                self._fields[key] = value if old is None else _merged(old, value)

    def has_calls(self) -> bool:
        """Whether any call has begun."""
        return bool(self._calls or self._legacy)

    def has_snapshots(self) -> bool:
        """Whether a call's fragments each held all of its arguments so far."""
        return self._calls.are_snapshots() or (self._legacy is not None and self._legacy.are_snapshots())

    def plain_texts(self) -> dict[str, list[str]]:
        """The texts that have begun, by field: more may be appended to them as it is."""
        content = {"content": self._contents} if self._contents and not self._parts else {}
        return {**self._texts, **content}

    def message(self) -> dict[str, JSON]:
        """The message so far."""
        message: dict[str, JSON] = {"role": "assistant", "content": self._content(), **self._fields}
        message |= {key: "".join(texts) for key, texts in self._texts.items()}
        if self._calls:
            message["tool_calls"] = self._calls.items()
        if self._legacy:
            message["function_call"] = self._legacy.items()[0]["function"]
        return message

    def _add_content(self, value: JSON) -> None:
        if isinstance(value, str):
            if value and self._parts:
                self._parts.append({"type": "text", "text": value})
            elif value:
                self._contents.append(value)
            return
        if self._contents:
            self._parts.append({"type": "text", "text": "".join(self._contents)})
            self._contents.clear()
        self._parts = _merged_list(self._parts, value if isinstance(value, list) else [value])

    def _content(self) -> JSON:
        if self._parts:
            return self._parts
        return "".join(self._contents) if self._contents else None

    def _add_calls(self, value: JSON) -> None:
        if not self._calls.add_ordinary(value):
            self._calls.add_all(items_of(value))


def _merged(old: JSON, new: JSON) -> JSON:
    """Two values of a field: lists are joined, objects merged; of anything else the later that is not empty counts."""
    if isinstance(old, list) and isinstance(new, list):
        return _merged_list(old, new)
    if isinstance(old, dict) and isinstance(new, dict):
        return _merged_part(old, new)
    return old if new in ("", [], {}) else new


def _merged_list(old: list[JSON], new: list[JSON]) -> list[JSON]:
    """`old` with the new parts; one that goes on with the last (same type and index) is appended to that."""
    for part in new:
        last = old[-1] if old else None
        if isinstance(last, dict) and isinstance(part, dict) and _goes_on(last, part):
            old[-1] = _merged_part(last, part)
        else:
            old.append(part)
    return old


def _goes_on(last: Mapping[str, JSON], part: Mapping[str, JSON]) -> bool:
    if part.get("type") != last.get("type") or part.get("index") != last.get("index"):
        return False
    return (
        any(isinstance(part.get(key), (str, list)) and key in last for key in _PART_TEXTS)
        or "signature" in part
    )


def _merged_part(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> dict[str, JSON]:
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if key in _PART_TEXTS and isinstance(before, str) and isinstance(value, str):
            merged[key] = before + value
        elif isinstance(before, list) and isinstance(value, list):
            merged[key] = _merged_list(before, value)
        elif value is not None:
            merged[key] = value
    return merged
