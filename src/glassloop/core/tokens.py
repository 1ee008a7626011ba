"""Token estimates: honest for Chinese, Japanese and Korean, calibrated by what servers report.

Rates are rounded figures of common byte-pair vocabularies: about 4 characters a token for running
Latin text, 1 to 1.6 characters for CJK, and about 2.8 for other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from glassloop.core.entries import Entry, File, Image, Reply, ToolResult, User, text_of

TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 800

_ENOUGH_TO_COMPARE = 50
_MOSTLY_TOOLS = 2.0
"""Times the estimate from which on a first count is taken to hold tools: estimates are not that wrong."""

_CJK_RANGES = (
    r"\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    r"\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
# Compiled when first needed: to compile so large ranges takes as long as to import a library.
_CJK = f"[{_CJK_RANGES}]"
_OTHER = rf"[^\x00-\x7f{_CJK_RANGES}]"
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def estimate(text: str) -> int:
    """About how many tokens a text is, without knowing the model's vocabulary."""
    if text.isascii():
        cjk = other = 0
    else:
        cjk = len(re.findall(_CJK, text))
        other = len(re.findall(_OTHER, text))
    punctuation = len(_PUNCTUATION.findall(text))
    plain = len(text) - cjk - other - punctuation
    return int(plain / 4.4 + punctuation / 1.7 + cjk / 1.4 + other / 2.8 + 0.5)


def estimate_entry(entry: Entry) -> int:
    """About how many tokens an entry is when it is sent."""
    match entry:
        case User(parts=parts) | ToolResult(parts=parts):
            pictures = sum(isinstance(part, (Image, File)) for part in parts)
            return TOKENS_PER_MESSAGE + estimate(text_of(parts)) + TOKENS_PER_IMAGE * pictures
        case Reply():
            calls = sum(estimate(call.name) + estimate(call.text) + 8 for call in entry.tool_calls)
            return TOKENS_PER_MESSAGE + estimate(entry.text) + calls
        case _:
            return TOKENS_PER_MESSAGE + estimate(entry.text)


def estimate_entries(entries: Iterable[Entry]) -> int:
    """About how many tokens entries are when they are sent."""
    return sum(map(estimate_entry, entries))


@dataclass(slots=True)
class Meter:
    """How full the context is: what the server counted last, and an estimate of what came since.

    The estimate is scaled by how ours compared with the server's count of the same entries, so that
    it fits the model's own vocabulary after the first reply. Outlandish counts do not change the scale.
    `overhead` is what the server counts besides entries (the tools, the template), known once history was changed.
    """

    counted: int = 0
    upto: int = 0
    scale: float = 1.0
    overhead: int = 0
    _sums: list[int] = field(default_factory=lambda: [0])

    def heard(self, prompt_tokens: int | None, entries: Sequence[Entry], upto: int | None = None) -> None:
        """The server counted so many prompt tokens for these entries, or for the first `upto` of them."""
        upto = len(entries) if upto is None else upto
        if not prompt_tokens or prompt_tokens <= self.counted or upto < self.upto:
            return
        estimated = self._estimate(entries, upto) - self._sums[self.upto]
        more = prompt_tokens - (self.counted or self.overhead)
        if estimated >= _ENOUGH_TO_COMPARE and more > 0:
            ratio = more / estimated
            tools_are_in_it = not self.counted and not self.overhead and ratio > _MOSTLY_TOOLS
            self.scale = self.scale if tools_are_in_it else min(4.0, max(0.25, ratio))
        self.counted, self.upto = prompt_tokens, upto

    def tokens(self, entries: Sequence[Entry]) -> int:
        """About how many tokens these entries are; they start with those that were counted."""
        estimated = self._estimate(entries, len(entries)) - self._sums[self.upto]
        return (self.counted or self.overhead) + int(estimated * self.scale)

    def estimated(self, tokens: float) -> int:
        """The estimate for entries that the server would count as so many tokens, all told."""
        return max(0, int((tokens - self._besides()) / self.scale))

    def restart(self) -> None:
        """Older entries were changed or dropped: what was counted no longer holds, scale and overhead do."""
        self.overhead = self._besides()
        self.counted = self.upto = 0
        self._sums = [0]

    def _besides(self) -> int:
        if not self.counted:
            return self.overhead
        return max(0, self.counted - int(self._sums[self.upto] * self.scale))

    def _estimate(self, entries: Sequence[Entry], upto: int) -> int:
        """The estimate of the first `upto` entries; each is looked at once."""
        for index in range(len(self._sums) - 1, upto):
            self._sums.append(self._sums[-1] + estimate_entry(entries[index]))
        return self._sums[upto]
