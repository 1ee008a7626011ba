"""Finish reasons: each endpoint has its own words, and only a few of them decide anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from glassloop.core.entries import JSON

FinishKind = Literal["failed", "cut_off", "filtered", "unclear"]

_FINISH_KINDS: Sequence[tuple[FinishKind, Sequence[str]]] = (
    (
        "failed",
        ("error", "fail", "malformed", "abort", "overload", "unavailable", "exception", "unexpected_"),
    ),
    ("failed", ("cancel", "insufficient_", "timeout", "interrupt")),
    (
        "cut_off",
        ("length", "max_tok", "maxtok", "max_output", "max_completion", "token_limit", "context_window"),
    ),
    ("cut_off", ("truncat", "incomplete")),
    (
        "filtered",
        ("filter", "safety", "sensitive", "recitation", "blocklist", "prohibited", "spii", "guardrail"),
    ),
)
"""Parts of the words that endpoints use, since each has its own. The first kind that matches decides."""

_ORDINARY = frozenset(("stop", "tool_calls"))
"""Words that say nothing, by far the most common ones."""


def finish_kind(reason: str | None) -> FinishKind:
    """What a finish reason means for the turn: most say nothing that its body does not say."""
    if not reason or reason in _ORDINARY:
        return "unclear"
    word = reason.lower().replace("-", "_").replace(" ", "_")
    for kind, marks in _FINISH_KINDS:
        if any(mark in word for mark in marks):
            return kind
    return "unclear"


def finish_word(value: JSON) -> str | None:
    """A finish reason as a word; null, "" and "null" are none."""
    if isinstance(value, dict):
        value = value.get("type") or value.get("reason")
    if not isinstance(value, str) or value.strip().lower() in ("", "null", "none"):
        return None
    return value


def finish_field(choice: Mapping[str, JSON]) -> str | None:
    """A choice's finish reason. Its other names count only where `finish_reason` says nothing: beside that,
    `stop_reason` may be the very text at which the model was told to stop."""
    for field in ("finish_reason", "stop_reason", "done_reason"):
        word = finish_word(choice.get(field))
        if word:
            return word
    return "stop" if choice.get("done") is True else None


def finish_of(choices: Sequence[Mapping[str, JSON]]) -> tuple[str | None, FinishKind]:
    """The choices' finish reason and what it means. A word that fails or blocks the turn outweighs all others,
    also one of the upstream's that a router relabelled."""
    words = [
        word
        for field in (finish_field, _finish_details, _native_reason)
        for choice in choices
        if (word := field(choice))
    ]
    kinds = [finish_kind(word) for word in words]
    decisive = next(
        (kind for kind in ("failed", "cut_off") if kind in kinds), kinds[0] if kinds else "unclear"
    )
    named = next((word for word, kind in zip(words, kinds, strict=True) if kind == decisive), None)
    return named, decisive


def _finish_details(choice: Mapping[str, JSON]) -> str | None:
    return finish_word(choice.get("finish_details"))


def _native_reason(choice: Mapping[str, JSON]) -> str | None:
    return finish_word(choice.get("native_finish_reason"))
