"""Text that we did not write, made safe to show: what could move the cursor or hide is spelled out."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1: escape sequences begin here; newline and tab stay
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # soft hyphen, fillers, invisible marks
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"  # zero width, line separators, bidi
    "\ufe00-\ufe0f"  # variation selectors
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # format controls, tags, more selectors
    "\ud800-\udfff"  # half of a surrogate pair: no terminal can show it
    "]"
)
JOINERS = "\u200c\u200d"

_HIDDEN_KINDS = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"))


def visible(text: str) -> str:
    """The text with every control, bidi and invisible character as an escape such as `\\x1b` or `\\u202e`.

    Newlines and tabs stay, and so do the joiners and variation selectors that emoji, Persian, Indic and Han
    writing need, where they stand between such characters.
    """
    text = text.replace("\r\n", "\n")
    return INVISIBLE.sub(_escaped, text)


def one_line(text: str) -> str:
    """`visible`, with every run of white space as a single space."""
    return visible(" ".join(text.split()))


def exact(text: str) -> str:
    """For what somebody decides on or a rule compares: newlines, joiners, odd spaces and unknown characters too."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape(char) if _is_hidden(char) else char for char in text)


def escape(character: str) -> str:
    """The spelling of one character as in a Python string."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_hidden(char: str) -> bool:
    return char != " " and (unicodedata.category(char) in _HIDDEN_KINDS or bool(INVISIBLE.match(char)))


def _escaped(found: re.Match[str]) -> str:
    character, text, at = found.group(), found.string, found.start()
    if _belongs(character, text[at - 1 : at], text[at + 1 : at + 2]):
        return character
    return escape(character)


def _belongs(character: str, before: str, after: str) -> bool:
    """Whether an invisible character is part of how its neighbours are written."""
    if character in JOINERS:
        return _takes_marks(before) and _takes_marks(after)
    if "\ufe00" <= character <= "\ufe0f":
        return _takes_marks(before) or (before != "" and before in "0123456789#*" and character == "\ufe0f")
    if "\U000e0100" <= character <= "\U000e01ef":
        return before != "" and "CJK" in unicodedata.name(before, "")
    return False


def _takes_marks(character: str) -> bool:
    """A letter, mark or symbol outside ASCII; one variation selector may stand between it and a joiner."""
    if not character or character < "\x80":
        return False
    return character == "\ufe0f" or (
        not INVISIBLE.match(character) and unicodedata.category(character)[0] in "LMS"
    )
