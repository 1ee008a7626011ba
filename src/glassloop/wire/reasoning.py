"""Thinking: the fields in which it comes, and the tags that mark it inside content.

A tag counts where a model puts one: at the start of the content or of a line, or after another block.
A tag that an answer only mentions (inside a line, in quotes, in a code fence) stays text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from glassloop.core.entries import JSON, Mend
from glassloop.core.events import Delta, ReasoningDelta, TextDelta

# ── fields ──────────────────────────────────────────────────────────────────────────────────────

REASONING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
    "thoughts",
    "thought",
    "thinking_content",
    "reasoning_details",
    "thinking_blocks",
)
"""In order of preference: endpoints that send several say the same in each."""

_TEXT_KEYS = ("text", "thinking", "summary", "content", "reasoning", "value")


def reasoning_of(message: Mapping[str, JSON]) -> tuple[str, str | None]:
    """A message's (or delta's) reasoning and the field that held it: "content" for thinking parts, None for none."""
    for field in REASONING_FIELDS:
        if field in message and (value := message[field]) and (text := text_within(value)):
            return text, field
    relayed = message.get("provider_specific_fields")
    if isinstance(relayed, dict) and (found := reasoning_of(relayed))[0]:
        return found
    content = message.get("content")
    if isinstance(content, list):
        text = "".join(text_within(part) for part in content if is_thinking_part(part))
        return text, "content" if text else None
    return "", None


def is_thinking_part(part: JSON) -> bool:
    """Whether a part of a content list holds thinking."""
    return isinstance(part, dict) and part.get("type") in (
        "thinking",
        "reasoning",
        "thought",
        "redacted_thinking",
    )


def text_within(value: JSON) -> str:
    """The text of a string, of a part under any of its usual keys, or of a list of these."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(text_within, value))
    if isinstance(value, dict):
        return next((text for key in _TEXT_KEYS if (text := text_within(value.get(key)))), "")
    return ""


# ── tags ────────────────────────────────────────────────────────────────────────────────────────

_WORDS = ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think", "mm:think", "ant:thinking")

_PAIRS: Sequence[tuple[str, str]] = (
    *((f"<{word}>", f"</{word}>") for word in _WORDS),
    ("[THINK]", "[/THINK]"),
    ("[THINKING]", "[/THINKING]"),
    ("[REASONING]", "[/REASONING]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|think|>", "<|/think|>"),
    ("<|channel>thought", "<channel|>"),
    ("◁think▷", "◁/think▷"),
    ("<unused94>", "<unused95>"),
)
"""The spellings in use. A new one is one line here."""

_ANSWER_PAIRS: Sequence[tuple[str, str]] = (
    ("<answer>", "</answer>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
)
"""Tags around the answer of models that think in tags; dropped where the answer starts right after a block."""

_KINDS: Mapping[str, str] = {
    **dict.fromkeys((opener.lower() for opener, _ in _PAIRS), "opener"),
    **dict.fromkeys((closer.lower() for _, closer in _PAIRS), "closer"),
    **dict.fromkeys((opener.lower() for opener, _ in _ANSWER_PAIRS), "answer_opener"),
    **dict.fromkeys((closer.lower() for _, closer in _ANSWER_PAIRS), "answer_closer"),
    **{f"<{word}/>": "empty" for word in _WORDS},
}
_MAX_ATTRIBUTES = 200
_FLAGS = re.IGNORECASE | re.ASCII

_TAG_STARTS = "<[◁"
_NAMES = "|".join(sorted(map(re.escape, _WORDS), key=len, reverse=True))
_ATTRIBUTES = rf"\s[^{re.escape(_TAG_STARTS)}>]{{0,{_MAX_ATTRIBUTES}}}"
_TAG = re.compile(
    "|".join(sorted(map(re.escape, _KINDS), key=len, reverse=True)) + rf"|</?(?:{_NAMES}){_ATTRIBUTES}>",
    _FLAGS,
)
_UNFINISHED_ATTRIBUTES = re.compile(rf"</?(?:{_NAMES}){_ATTRIBUTES}\Z", _FLAGS)
_PREFIXES = frozenset(tag[:length] for tag in _KINDS for length in range(1, len(tag)))
_FENCES = ("```", "~~~")
_QUOTES = "`'\"“‘"


def may_hold_thinking(text: str) -> bool:
    """Whether there is anything in the text that could begin a tag."""
    return "<" in text or "[" in text or "◁" in text


def split_thinking(text: str) -> tuple[str, str, Mend | None]:
    """The reasoning and the rest of a content that may hold thinking blocks, with a mend if it did."""
    if not may_hold_thinking(text):
        return "", text, None
    splitter = ThinkSplitter()
    splitter.feed(text)
    splitter.finish()
    return splitter.result()


class ThinkSplitter:
    """Splits content into reasoning and text while it streams.

    What may be the beginning of a tag is held back, so any split of the content into feeds gives the
    same deltas. When only a closing tag comes, the text before it has been shown as text already;
    `result` counts it as the reasoning that it was.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._blocks = 0
        self._in_answer_tags = False
        self._skip_blanks = True  # blanks before the first block or after a leading one
        self._reasoning: list[str] = []
        self._texts: list[str] = []
        self._demoted: list[str] = []  # text that a closing tag without an opening one made reasoning
        self._demoted_at = 0  # where in the reasoning it stands
        self._mentioned_on = -1  # the line on which an opening tag stood in quotes
        self._line = _LineState()

    def feed(self, text: str) -> list[Delta]:
        """More content; the deltas that can be told apart by now."""
        if not self._held and not self._skip_blanks and not may_hold_thinking(text):
            return self._emitted(text)
        return self._consume(self._held + text, final=False)

    def finish(self) -> list[Delta]:
        """What was held back, now that nothing can follow it."""
        return self._consume(self._held, final=True)

    def result(self) -> tuple[str, str, Mend | None]:
        """Reasoning and text of all that was fed, after `finish`."""
        if self._demoted and not "".join(self._texts).strip():
            start, end = self._demoted_at, self._demoted_at + len(self._demoted)
            del self._reasoning[start:end]
            self._texts, self._demoted = self._demoted, []
        reasoning, text = "".join(self._reasoning), "".join(self._texts)
        if not self._blocks and not self._thinking:
            return "", text, None
        return (
            reasoning.strip(),
            text,
            Mend("thinking_in_content", "thinking tags in the content were split off"),
        )

    def _consume(self, text: str, *, final: bool) -> list[Delta]:
        self._held = ""
        deltas: list[Delta] = []
        position = 0
        for match in _TAG.finditer(text):
            deltas += self._emitted(text[position : match.start()])
            deltas += self._tag(match[0])
            position = match.end()
        keep = len(text) if final else _unfinished_tag(text, position)
        deltas += self._emitted(text[position:keep], final=final)
        self._held += text[keep:]
        return deltas

    def _tag(self, tag: str) -> list[Delta]:
        kind = _KINDS.get(tag.lower()) or _kind_with_attributes(tag)
        if self._thinking:
            if kind == "closer":
                self._thinking = False
                self._skip_blanks = not self._texts
            return self._emitted(tag) if kind.startswith("answer") else []
        if self._is_mentioned(kind):
            if kind == "opener" and self._is_quoted():
                self._mentioned_on = self._line.number
            return self._emitted(tag)
        self._held = ""
        match kind:
            case "opener":
                self._blocks += 1
                self._thinking = True
            case "closer":
                if self._blocks:  # the model went on thinking after a block, or closed its answer
                    self._demoted, self._demoted_at = self._texts, len(self._reasoning)
                self._blocks += 1
                self._reasoning, self._texts = [*self._reasoning, *self._texts], []
                self._skip_blanks = True
            case "answer_opener" | "answer_closer":
                self._in_answer_tags = kind == "answer_opener"
        return []

    def _is_quoted(self) -> bool:
        return self._line.in_fence() or self._line.last in _QUOTES

    def _is_mentioned(self, kind: str) -> bool:
        """Whether a tag outside of a block is only spoken about."""
        if self._is_quoted():
            return True
        match kind:
            case "opener" | "empty":
                return not (self._blocks or self._line.is_blank())
            case "closer":
                return self._mentioned_on == self._line.number
            case "answer_opener":
                return not self._blocks or bool(self._texts)
            case "answer_closer":
                return not self._in_answer_tags
        return False

    def _emitted(self, text: str, *, final: bool = False) -> list[Delta]:
        if not text:
            return []
        if self._thinking:
            self._reasoning.append(text)
            return [ReasoningDelta(text)]
        if self._skip_blanks:
            text = self._without_leading_blanks(text, final)
            if not text:
                return []
        self._texts.append(text)
        self._line.add(text)
        return [TextDelta(text)]

    def _without_leading_blanks(self, text: str, final: bool) -> str:
        """Blanks after a leading block go; those at the very start wait until it is clear that no block follows."""
        visible = text.lstrip()
        if self._blocks:
            text = visible
        elif not visible and not final:
            self._held += text
            return ""
        if not self._blocks and self._held:
            text, self._held = self._held + text, ""
        if visible:
            self._skip_blanks = False
        return text


def _kind_with_attributes(tag: str) -> str:
    if tag.endswith("/>"):
        return "empty"
    return "closer" if tag.startswith("</") else "opener"


def _unfinished_tag(text: str, start: int) -> int:
    """Where, after `start`, a tag begins that the text's end cuts; the text's length if none does."""
    window = max(start, len(text) - _MAX_ATTRIBUTES - 20)
    position = max(text.rfind(mark, window) for mark in _TAG_STARTS)
    if position < 0:
        return len(text)
    tail = text[position:]
    return position if tail.lower() in _PREFIXES or _UNFINISHED_ATTRIBUTES.match(tail) else len(text)


class _LineState:
    """Where in the text we are: at a blank line start, in a code fence. Evaluated only when a tag asks."""

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._head = ""  # of the current line, without indentation; its start is all that matters
        self._fenced = False
        self._lines = 0
        self.last = "\n"

    @property
    def number(self) -> int:
        self._catch_up()
        return self._lines

    def add(self, text: str) -> None:
        self._unread.append(text)
        self.last = text[-1]

    def is_blank(self) -> bool:
        self._catch_up()
        return not self._head

    def in_fence(self) -> bool:
        self._catch_up()
        return self._fenced or self._head.startswith(_FENCES)

    def _catch_up(self) -> None:
        *complete, current = "".join(self._unread).split("\n")
        self._unread = []
        self._lines += len(complete)
        for line in complete:
            if (self._head + line).lstrip().startswith(_FENCES):
                self._fenced = not self._fenced
            self._head = ""
        self._head = (self._head + current.lstrip() if not self._head else self._head + current)[:8]
