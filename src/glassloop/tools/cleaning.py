"""Text of others, before a model reads it as a description or an instruction: only what a person can see. Pure."""

from __future__ import annotations

import re
import unicodedata

from glassloop.core.visible import INVISIBLE, visible

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?", re.DOTALL)
_UNKNOWN = ("Co", "Cn")
"""Private and unassigned characters: no two people see the same."""


def cleaned(text: str) -> str:
    """The text without escape sequences and without characters that cannot be seen.

    Joiners and selectors stay where writing needs them, as in emoji and in Persian.
    """
    if text.isascii() and text.isprintable():
        return text
    seen = INVISIBLE.sub(_if_it_belongs, _ESCAPES.sub("", text.replace("\r\n", "\n")))
    return "".join(char for char in seen if unicodedata.category(char) not in _UNKNOWN)


def hides(text: str) -> bool:
    """Whether something in the text cannot be seen: a sign of words that are not meant for people."""
    return cleaned(text) != text.replace("\r\n", "\n")


def _if_it_belongs(found: re.Match[str]) -> str:
    char, at = found.group(), found.start()
    return char if char in visible(found.string[max(at - 1, 0) : at + 2]) else ""
