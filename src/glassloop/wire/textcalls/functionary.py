"""The messages of Functionary v2 (its prompt template v2): sender, recipient, content, each behind a token."""

from __future__ import annotations

import re

from glassloop.wire.textcalls.found import CUT_OFF, Found, broken_off
from glassloop.wire.textcalls.harmony import Message
from glassloop.wire.textcalls.source import Scan, Source, Words, bracketed, char, spaces, until

OPENERS = ("<|from|>", "<|recipient|>")

_LONGEST_HEADER = 200
_CONTENT = "<|content|>"
_HEADER_END = Words((_CONTENT, "\n\n"))
_RECIPIENT = re.compile(r"<\|recipient\|>\s*([\w.:-]+)")


def read_message(source: Source) -> Scan[Message | None]:
    """The message that begins with one of OPENERS; None if this is no message."""
    header, end = yield from until(source, _HEADER_END, _LONGEST_HEADER)
    if end != _CONTENT:
        return None
    source.take(len(end))
    yield from spaces(source)
    recipient = _RECIPIENT.search(header)
    if not recipient or recipient.group(1) == "all":
        return Message()
    if (yield from char(source)) != "{":
        return Message(Found(recipient.group(1), "", problem=CUT_OFF)) if source.ended else None
    text, broken_by = yield from bracketed(source)
    return Message(Found(recipient.group(1), text, problem=broken_off(broken_by)))
