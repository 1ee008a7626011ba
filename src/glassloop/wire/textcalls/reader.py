"""Reads an answer for calls written as text, while it streams: shows what is text, holds back what may be a call."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from glassloop.core.entries import Mend, ToolCall
from glassloop.core.tools import ToolSpec
from glassloop.core.values import Value
from glassloop.wire.textcalls import functionary, harmony
from glassloop.wire.textcalls.body import read_body
from glassloop.wire.textcalls.families import FAMILIES
from glassloop.wire.textcalls.found import Shape
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.line import Line
from glassloop.wire.textcalls.settle import Settled, believable, settle
from glassloop.wire.textcalls.source import Scan, Source, Words, ahead, char, run_of, spaces, until
from glassloop.wire.textcalls.tokens import (
    CLOSERS,
    CONTROL_TOKEN,
    CONTROL_TOKEN_BEGINNING,
    CONTROL_WORDS,
    HEADERS,
    OPENERS,
    OWN_ROLES,
    RESULT_OPENERS,
    ROLES,
)
from glassloop.wire.textcalls.trigger import Notation, notation
from glassloop.wire.textcalls.whole import Begins

_MESSAGES = {
    **dict.fromkeys(harmony.OPENERS, ("harmony", harmony.read_message)),
    **dict.fromkeys(functionary.OPENERS, ("functionary", functionary.read_message)),
}
"""What begins a message, and the family and the reader of its kind."""

_MARKERS = Words((*OPENERS, *_MESSAGES, *RESULT_OPENERS))
_MESSAGE_OPENERS = tuple(_MESSAGES)
_NOTHING = Words(())
_CONTROL_WORDS = Words((*CLOSERS, *CONTROL_WORDS))
_CLOSING = frozenset(CLOSERS)
_LONGEST_CONTROL_TOKEN = 60
_BLANKS = re.compile(r"[ \t]*")


_LONGEST_HELD = 99


class TextCalls(Value, frozen=True):
    """What an answer held. `content` is its text without calls and control tokens; `tail` the part of it
    that `feed` has not shown yet; `reasoning` what stood in a notation's own place for thinking."""

    content: str
    tail: str
    calls: tuple[ToolCall, ...]
    mends: tuple[Mend, ...]
    reasoning: str = ""


def _notation(tools: Collection[str], tool_mode: str) -> Notation:
    return notation(frozenset(tools), bool(tools) or tool_mode in FAMILIES, _MESSAGE_OPENERS)


def find_calls(text: str, tools: Mapping[str, ToolSpec], tool_mode: str = "native") -> TextCalls:
    """The calls in a whole answer. Thinking must have been removed from `text`."""
    if not _notation(tools, tool_mode).trigger.search("\n" + text):
        return TextCalls(text, "", (), ())  # nothing begins anywhere in it, as in most
    reader = TextCallReader(tools, tool_mode)
    reader.feed(text)
    return reader.finish()


class TextCallReader:
    """Feed it an answer in pieces and show what `feed` returns; `finish` says which calls the answer made.

    Any split of the answer shows the same text and gives the same calls. `tool_mode` is the text family
    that the model was asked to use; calls in that family are expected and so are no mends.
    """

    def __init__(self, tools: Mapping[str, ToolSpec], tool_mode: str = "native") -> None:
        self._tools = Tools(tools)
        family = FAMILIES.get(tool_mode)
        self._expected = (family.read_as or family.name) if family else ""
        self._beginnings, self._line_words, self._trigger = _notation(tools, tool_mode)
        self._source = Source()
        self._content: list[str] = []
        self._line = Line(self._content)
        self._fresh: list[str] = []
        self._calls: list[ToolCall] = []
        self._mends: list[Mend] = []
        self._reasoning: list[str] = []
        self._changed = False  # something was taken out of the text
        self._messages = False  # the answer is written as messages, whose tokens may stand anywhere
        self._shown_opener = False  # an opener stands in the text, and so may its closer
        self._whole = ""  # the text of an accepted call that was the whole answer
        self._idle = False  # all that came was shown or is held here
        self._held = ""
        self._held_shown = 0  # characters of it: a line break is shown at once
        self._new_line = False
        self._scan = self._read()
        next(self._scan)

    def feed(self, text: str) -> str:
        """Take more of the answer; returns what may be shown now."""
        if self._idle:
            text = self._held + text
            found = self._trigger.search(text)
            if found is None and not self._held:  # most of any answer
                self._content.append(text)
                return text
            start = found.start() if found else len(text)
            if found is None or (found.end() == len(text) and len(text) - start < _LONGEST_HELD):
                return self._plain(text, start)
        self._wake(text)
        next(self._scan)
        return self._shown()

    def _plain(self, text: str, end: int) -> str:
        """Show text up to `end`, where something may begin that the next piece decides."""
        new_line = text.startswith("\n", end)
        shown = text[self._held_shown : end + new_line]
        self._held, self._held_shown = text[end:], int(new_line)
        if shown:
            self._content.append(shown)
        return shown

    def _wake(self, text: str) -> None:
        self._new_line = self._held_shown > 0
        self._source.add(text[self._held_shown :])
        self._held, self._held_shown = "", 0

    def finish(self, structured_calls: bool = False, *, cut_off: bool = False) -> TextCalls:
        """The answer is complete, or `cut_off`. With `structured_calls` beside the text, none is taken from it."""
        self._wake(self._held)
        self._source.cut_off = cut_off
        self._source.ended = True
        next(self._scan, None)
        if structured_calls and self._whole:
            self._say(self._whole)
        content = "".join(self._content)
        content = content.strip() if self._changed else content
        calls = () if structured_calls else tuple(self._calls)
        mends = () if structured_calls else tuple(self._mends)
        return TextCalls(content, self._shown(), calls, mends, "\n".join(self._reasoning))

    def _shown(self) -> str:
        shown = "".join(self._fresh)
        self._fresh.clear()
        return shown

    def _say(self, text: str) -> None:
        self._source.mark()
        if text:
            self._content.append(text)
            self._fresh.append(text)

    def _done(self) -> bool:
        return self._source.ended and not self._source.left()

    def _read(self) -> Scan[None]:
        while not self._done():
            if self._line.blank and not self._line.fenced:
                gap = yield from spaces(self._source)
                self._say(gap)
                if (yield from self._line_shape()):
                    continue
            yield from self._text()

    def _text(self) -> Scan[None]:
        """Show text up to the end of the line, or up to and including a marker."""
        source = self._source
        while not self._done():
            found = self._trigger.search(source.text, source.pos)
            if not found:
                self._say(source.take(source.left()))
                if not source.ended:
                    self._idle = True
                    yield
                    self._idle = False
                    if self._new_line:
                        return
                continue
            self._say(source.take(found.start() - source.pos))
            if found.group().startswith("\n"):
                self._say(source.take(1))
                return
            if (yield from self._marker()):
                return

    def _marker(self) -> Scan[bool]:
        """Read what begins with `<`, `[` or `]`. False if it was one character of text."""
        source = self._source
        marker = yield from ahead(source, _MARKERS)
        if marker in RESULT_OPENERS and self._calls and not self._line.quotes:
            yield from self._invented("a tool's result")
            return True
        if marker and marker not in RESULT_OPENERS and not self._line.quotes:
            source.mark()
            yield from (self._message(marker) if marker in _MESSAGES else self._region(marker))
            return True
        if marker:
            self._shown_opener = self._shown_opener or marker not in RESULT_OPENERS
            self._say(source.take(len(marker)))
            return False
        if not self._line.quotes and (yield from self._stray()):
            return True
        self._say(source.take(1))
        return False

    # ── calls behind a marker ──

    def _region(self, marker: str) -> Scan[None]:
        opener = OPENERS[marker]
        within = self._line.within_sentence
        body = yield from read_body(self._source, self._tools)
        settled = [settle(found, self._tools) for found in body.found]
        if not settled and not body.broken and self._done():  # an opener and nothing behind it
            self._drop_tokens()
            return
        if not settled or not self._counts(settled, opener.strict):
            self._say(self._source.taken())
            self._shown_opener = True
            return
        if within and (yield from self._sentence_goes_on()):
            self._say(self._source.taken())
            self._shown_opener = True
            return
        rest = self._source.unsettled()
        self._accept(settled, opener.family)
        self._say(rest)

    def _counts(self, settled: Sequence[Settled], strict: bool) -> bool:
        """A control token makes a call of anything; behind a mark that prose may use, the tool must be known.

        A call that cannot run because of its arguments is one all the same: the model is told why.
        """
        return strict or all(each.call.name in self._tools.names for each in settled)

    def _sentence_goes_on(self) -> Scan[bool]:
        """Whether text follows on the same line: a call in the middle of a sentence is talk about a call."""
        rest = self._source.unsettled()
        line = rest.lstrip(" \t")
        return not line.startswith("\n") and bool((line or (yield from char(self._source))).strip())

    def _accept(self, settled: Sequence[Settled], family: str) -> None:
        self._changed = True
        self._line.end_lead()
        for each in settled:
            self._calls.append(each.call)
            self._mends.extend(each.mends)
            if family != self._expected:
                self._mends.append(
                    Mend("text_call", f"a call of {each.call.name!r} was read from text ({family})")
                )

    def _message(self, marker: str) -> Scan[None]:
        family, read = _MESSAGES[marker]
        talk = self._line.within_sentence and self._line.spaced and not self._messages
        message = yield from read(self._source)
        if message is None or (talk and (yield from self._is_only_shown(message))):
            self._say(self._source.taken())
            return
        if message.sender and not self._line.begins:
            yield from self._invented(f"a message of {message.sender}")
            return
        self._messages = True
        self._drop_tokens()
        if message.reasoning:
            self._reasoning.append(message.reasoning)
        if message.call:
            self._accept([settle(message.call, self._tools)], family)

    def _is_only_shown(self, message: harmony.Message) -> Scan[bool]:
        """Whether a message in the middle of a sentence is part of it."""
        if not message.call or message.call.problem:
            return True
        self._source.settle()
        yield from run_of(self._source, _BLANKS)
        return (yield from self._sentence_goes_on())

    # ── calls that only their shape shows ──

    def _line_shape(self) -> Scan[bool]:
        """Read what the line begins with, if it may be a call. False if it cannot be one."""
        source = self._source
        if (yield from ahead(source, _MARKERS)):
            return False
        word = yield from ahead(source, self._line_words)
        if not word:
            return False
        begins = self._beginnings[word]
        if not (begins.anywhere or begins.after_text or self._line.leads):
            return False
        source.mark()
        shape = yield from begins.read(source, self._tools)
        if shape is None or not (yield from self._believe(shape, begins)):
            self._say(source.taken())
        return True

    def _believe(self, shape: Shape, begins: Begins) -> Scan[bool]:
        settled = [settle(found, self._tools) for found in shape.found]
        is_whole = not (begins.anywhere or shape.text_follows)
        if is_whole and not (
            all(believable(each, self._tools) for each in settled) and (yield from self._at_end())
        ):
            return False
        if not self._counts(settled, strict=False):
            return False
        if shape.reasoning:
            self._reasoning.append(shape.reasoning)
        if not settled:
            self._drop_tokens()
        self._whole = self._source.taken() if is_whole else ""
        self._accept(settled, shape.family)
        return True

    def _at_end(self) -> Scan[bool]:
        """Whether the answer ends here, or goes on in a way that only follows calls: with a result, or, behind a
        call whose opener was lost, with the next call."""
        closed = False
        while True:
            yield from spaces(self._source)
            marker = yield from ahead(self._source, _MARKERS)
            if marker:
                return marker in RESULT_OPENERS or closed
            token = yield from self._control_token()
            if not token:
                return self._done()
            closed = closed or token in _CLOSING

    # ── what the model made up, and control tokens around an answer ──

    def _invented(self, what: str) -> Scan[None]:
        """Drop the rest of the answer: the model went on in somebody else's name."""
        yield from until(self._source, _NOTHING)
        self._changed = True
        self._mends.append(
            Mend("invented_turn", f"{what} that the model made up itself was removed from the text")
        )

    def _drop_tokens(self) -> None:
        self._changed = True
        if not any(mend.code == "control_tokens" for mend in self._mends):
            self._mends.append(
                Mend("control_tokens", "words of the chat template were removed from the text")
            )

    def _control_token(self) -> Scan[str]:
        """Consume one control token, or nothing. A closer is one unless its opener was shown as text."""
        source = self._source
        if (yield from ahead(source, _MARKERS)):
            return ""
        word = yield from ahead(source, _CONTROL_WORDS)
        if word:
            return "" if self._shown_opener and word in CLOSERS else source.take(len(word))
        while True:
            found = CONTROL_TOKEN.match(source.text, source.pos)
            if found:
                return source.take(found.end() - found.start())
            tail = source.text[source.pos : source.pos + _LONGEST_CONTROL_TOKEN]
            if source.ended or not CONTROL_TOKEN_BEGINNING.fullmatch(tail):
                return ""
            yield

    def _stray(self) -> Scan[bool]:
        """Drop control tokens at the beginning, at the end and before a call; anywhere else they are text."""
        source = self._source
        source.mark()
        talk = self._line.within_sentence and self._line.spaced
        token = yield from self._control_token()
        if not token:
            return False
        while token:
            yield from run_of(source, _BLANKS)
            if token in HEADERS:
                role = yield from ahead(source, ROLES)
                source.take(len(role))
                if role not in OWN_ROLES and talk:
                    break
                if role not in OWN_ROLES and not self._line.begins:
                    yield from self._invented(f"a turn of the {role}")
                    return True
            yield from spaces(source)
            token = yield from self._control_token()
        begins = self._line.begins
        if begins or self._messages or self._done() or (yield from ahead(source, _MARKERS)):
            self._drop_tokens()
            return True
        self._say(source.taken())
        return True
