"""An error's text as the rules search it: lower-cased, without what is no complaint and without names of ours."""

from __future__ import annotations

import re

from glassloop.wire.sent import Sent

_CONTINUED_LINE = re.compile(r"\n[ \t]+")
"""Validators put a field's name on one line and what is wrong with it, indented, on the next."""
_REQUEST_ID = re.compile(r"\(?\b(?:request|trace)[ _-]?id\s*[:=]\s*[\w.-]+\)?")
"""Its digits are no number of tokens."""
_SCRIPTS_MEET = re.compile(r"(?<=[\u4e00-\u9fff])(?=[a-z0-9_])|(?<=[a-z0-9_])(?=[\u4e00-\u9fff])")
"""Chinese sets no spaces around a field's name, and rules look for whole words."""
_DUMPED = re.compile(r"; (?:tools|messages|tool_choice|request|body) = .*", re.DOTALL)
"""llama.cpp appends the part of our request that it could not read."""


def searched(text: str, sent: Sent) -> str:
    """The text to search. Names of our model and our tools may hold words that the rules look for."""
    text = _DUMPED.sub("", _REQUEST_ID.sub(" ", text.lower()))
    return _without_our_names(_SCRIPTS_MEET.sub(" ", _CONTINUED_LINE.sub(": ", text)), sent)


def _without_our_names(text: str, sent: Sent) -> str:
    if len(sent.model) > 3:
        text = text.replace(sent.model.lower(), "it")
    for name in map(str.lower, sent.tools):
        text = (
            text.replace(name, "it")
            if "_" in name
            else re.sub(rf"(?<=['\"`]){re.escape(name)}(?=['\"`])", "it", text)
        )
    return text
