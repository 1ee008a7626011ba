"""The messages of gpt-oss (format: OpenAI's harmony guide), with their control tokens or stripped to plain words."""

from __future__ import annotations

import re

from glassloop.core.values import Value
from glassloop.wire.textcalls.found import CUT_OFF, Found, broken_off, plain_name
from glassloop.wire.textcalls.source import Scan, Source, Words, ahead, bracketed, char, run_of, spaces, until

OPENERS = ("<|channel|>", "<|start|>", "<|message|>")
STRIPPED = ("analysis", "assistantanalysis", "assistantcommentary", "assistantfinal", "commentary to=")

_LONGEST_HEADER = 200
_HEADER_END = Words(("<|message|>", "{", "\n\n"))
_MESSAGE = Words(("<|message|>",))
_ENDS = Words(("<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"))
_SWALLOWED = frozenset(("<|end|>", "<|call|>", "<|return|>"))
_RECIPIENT = re.compile(r"to=([\w.:-]+)")
_SENDER = re.compile(r"<\|start\|>\s*(?!assistant)(\w[\w.-]*)")
_CHANNEL = re.compile(r"analysis|commentary|final")
_STRIPPED = Words(STRIPPED)
_STRIPPED_NEXT = Words(("assistantcommentary", "assistantfinal", "assistantanalysis", "commentary to="))
_NAME = re.compile(r"[\w.:-]*")
_WORDS_BEFORE_JSON = Words(("json", "code", "<|constrain|>", "<|message|>"))
_TO = Words(("to=", " to="))


class Message(Value, frozen=True):
    """One message: a call, reasoning, or (with neither) the header of a text that follows, which the model
    wrote itself unless `sender` is somebody else."""

    call: Found | None = None
    reasoning: str = ""
    sender: str = ""


def read_message(source: Source) -> Scan[Message | None]:
    """The message that begins with one of OPENERS; None if this is no message."""
    header, end = yield from until(source, _HEADER_END, _LONGEST_HEADER)
    if end == "\n\n" or (not end and not source.ended):
        return None
    if end == "<|message|>":
        source.take(len(end))
    recipient = _RECIPIENT.search(header)
    channel = _CHANNEL.search(header)
    sender = _SENDER.match(header)
    if sender and end == "<|message|>":
        return Message(sender=sender.group(1))
    if recipient:
        return Message((yield from _call(source, plain_name(recipient.group(1)), bool(end))))
    if not channel and "assistant" not in header and header:
        return None
    if channel and channel.group() == "analysis":
        text, word = yield from until(source, _ENDS)
        source.take(len(word) if word in _SWALLOWED else 0)
        return Message(reasoning=text)
    return Message() if end != "{" else None


def _call(source: Source, name: str, has_body: bool) -> Scan[Found]:
    if not has_body:
        return Found(name, "", problem=CUT_OFF)
    yield from spaces(source)
    if (yield from char(source)) == "{":
        text, broken_by = yield from bracketed(source)
        problem = broken_off(broken_by)
    else:
        text, word = yield from until(source, _ENDS)
        text, problem = text.strip(), None if word else CUT_OFF
    yield from spaces(source)
    word = yield from ahead(source, _ENDS)
    source.take(len(word) if word in _SWALLOWED else 0)
    return Found(name, text, problem=problem)


class Stripped(Value, frozen=True):
    """What came before the final answer. The answer itself follows as plain text."""

    calls: tuple[Found, ...]
    reasoning: str


def read_stripped(source: Source) -> Scan[Stripped | None]:
    """`analysisI need …assistantcommentary to=functions.get_weather json{…}assistantfinal…` up to the answer.

    None where the word that it begins with is only a word.
    """
    calls: list[Found] = []
    reasoning: list[str] = []
    word = yield from ahead(source, _STRIPPED)
    while word:
        source.take(len(word))
        if word.endswith("final"):
            break
        if word.endswith("analysis"):
            if not (yield from char(source)).isalpha():
                return None
            text, word = yield from until(source, _STRIPPED_NEXT)
            if not word:
                return None
            reasoning.append(text)
            continue
        call = yield from _stripped_call(source, word)
        if call is None:
            return None
        calls.append(call)
        yield from spaces(source)
        word = yield from ahead(source, _STRIPPED_NEXT)
    return Stripped(tuple(calls), "".join(reasoning).strip())


def _stripped_call(source: Source, word: str) -> Scan[Found | None]:
    if not word.endswith("to="):
        to = yield from ahead(source, _TO)
        if not to:
            return None
        source.take(len(to))
    name = yield from run_of(source, _NAME, _LONGEST_HEADER)
    while True:
        yield from spaces(source)
        filler = yield from ahead(source, _WORDS_BEFORE_JSON)
        if not filler:
            break
        source.take(len(filler))
    if (yield from char(source)) != "{":
        return None
    text, broken_by = yield from bracketed(source)
    return Found(plain_name(name), text, problem=broken_off(broken_by))
