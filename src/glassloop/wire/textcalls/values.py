"""Arguments that are not written as JSON: Python keyword arguments, and Gemma's braces with its own quotes.

The whole text of the arguments is read here, once its end is known; nothing is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from glassloop.core.entries import JSON

_SPACE = re.compile(r"\s*")
_KEY = re.compile(r"[A-Za-z_$][\w.$-]*")
_BARE = re.compile(r"[^,\[\](){}]*")
_STRING = {
    '"""': re.compile(r'"""((?:[^"\\]+|\\.|"(?!""))*)"""', re.DOTALL),
    "'''": re.compile(r"'''((?:[^'\\]+|\\.|'(?!''))*)'''", re.DOTALL),
    '"': re.compile(r'"((?:[^"\\]+|\\.)*)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]+|\\.)*)'", re.DOTALL),
}
_RAW_QUOTES = ('<|"|>', "<escape>")  # Gemma 4 and FunctionGemma; what stands between them is taken as it is
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U((?:000[0-9a-fA-F]|0010)[0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_KEPT = {"\\", "'", '"', "/"}
_WORDS: Mapping[str, JSON] = {"true": True, "false": False, "null": None, "none": None}
_INTEGER = re.compile(r"[+-]?\d{1,300}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DEEPEST = 64


class NotArguments(ValueError):
    """The text is not a list of arguments in this notation."""


def python_calls(text: str) -> list[tuple[str, dict[str, JSON]]]:
    """`[get_weather(city="Oslo"), list_cities()]`, with or without the list's brackets, in order.

    One object alone in a call's brackets, `add({"a": 1})`, is its arguments; `print(...)` around a call and
    `.call` behind its name are taken off. Raises NotArguments for anything that is no literal, for positional
    arguments, and for a key given twice.
    """
    reader = _Reader(text, bare_text=False)
    bracket = reader.next() == "["
    reader.pos += bracket
    calls = [reader.call()]
    while reader.next() and reader.next() in ",;":
        reader.pos += 1
        if reader.next() in {"", "]"}:
            break
        calls.append(reader.call())
    while not bracket and reader.next():  # one call a line
        calls.append(reader.call())
    if bracket:
        reader.expect("]")
    reader.end()
    return calls


def brace_arguments(text: str) -> dict[str, JSON]:
    """`{city:<|"|>Oslo<|"|>,days:3}` as an object; a bare word that is no number or constant is a string.

    Raises NotArguments as above.
    """
    reader = _Reader(text, bare_text=True)
    reader.expect("{")
    arguments = reader.pairs(":", "}", 1)
    reader.end()
    return arguments


class _Reader:
    def __init__(self, text: str, *, bare_text: bool) -> None:
        self.text = text
        self.pos = 0
        self.bare_text = bare_text

    def next(self) -> str:
        self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]
        return self.text[self.pos : self.pos + 1]

    def expect(self, mark: str) -> None:
        if self.next() != mark:
            raise NotArguments(f"expected {mark} at character {self.pos}")
        self.pos += 1

    def end(self) -> None:
        if self.next():
            raise NotArguments(f"unexpected text at character {self.pos}")

    def call(self, depth: int = 0) -> tuple[str, dict[str, JSON]]:
        name = self.key().removesuffix(".call")
        if name != "print" or depth:
            return name, self.arguments()
        self.expect("(")
        inner = self.call(depth + 1)
        self.expect(")")
        return inner

    def arguments(self) -> dict[str, JSON]:
        self.expect("(")
        if self.next() != "{":
            return self.pairs("=", ")", 1)
        only = self.value(1)
        self.expect(")")
        if not isinstance(only, dict):
            raise NotArguments("one positional argument")
        return only

    def pairs(self, between: str, closer: str, depth: int) -> dict[str, JSON]:
        result: dict[str, JSON] = {}
        while self.next() != closer:
            key = self.key()
            self.expect(between)
            if key in result:
                raise NotArguments(f"{key} is given twice")
            result[key] = self.value(depth)
            if self.next() == ",":
                self.pos += 1
            elif self.next() != closer:
                raise NotArguments(f"expected , or {closer} at character {self.pos}")
        self.pos += 1
        return result

    def key(self) -> str:
        self.next()
        quoted = self.string()
        if quoted is not None:
            return quoted
        found = _KEY.match(self.text, self.pos)
        if not found:
            raise NotArguments(f"expected a key at character {self.pos}")
        self.pos = found.end()
        return found.group()

    def value(self, depth: int) -> JSON:
        if depth > _DEEPEST:
            raise NotArguments("nested too deeply")
        mark = self.next()
        if mark == "{":
            self.pos += 1
            return self.pairs(":", "}", depth + 1)
        if mark and mark in "[(":
            self.pos += 1
            return self.items("]" if mark == "[" else ")", depth + 1)
        text = self.string()
        if text is None:
            return self.bare()
        while (more := self.next()) and more in "\"'" and (rest := self.string()) is not None:
            text += rest
        return text

    def items(self, closer: str, depth: int) -> list[JSON]:
        result: list[JSON] = []
        while self.next() != closer:
            result.append(self.value(depth))
            if self.next() == ",":
                self.pos += 1
            elif self.next() != closer:
                raise NotArguments(f"expected , or {closer} at character {self.pos}")
        self.pos += 1
        return result

    def string(self) -> str | None:
        for quote in _RAW_QUOTES if self.bare_text else ():
            if self.text.startswith(quote, self.pos):
                end = self.text.find(quote, self.pos + len(quote))
                if end < 0:
                    raise NotArguments("a string is not closed")
                piece = self.text[self.pos + len(quote) : end]
                self.pos = end + len(quote)
                return piece
        for quote, pattern in _STRING.items():
            if self.text.startswith(quote, self.pos):
                found = pattern.match(self.text, self.pos)
                if not found:
                    raise NotArguments("a string is not closed")
                self.pos = found.end()
                return unescape(found.group(1))
        return None

    def bare(self) -> JSON:
        found = _BARE.match(self.text, self.pos)
        word = found.group().strip() if found else ""
        self.pos = found.end() if found else self.pos
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        if _INTEGER.fullmatch(word):
            return int(word)
        if _NUMBER.fullmatch(word):
            return float(word)
        if not self.bare_text or not word:
            raise NotArguments(f"{word or 'nothing'} is no literal")
        return word


def unescape(text: str) -> str:
    """A string's content with its backslash escapes read; unknown ones stay as they are written."""
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_unescaped, text)
    if any("\ud800" <= mark <= "\udfff" for mark in text):  # \ud83d\ude00: two halves of one character
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1) or found.group(2) or found.group(3)
    if code:
        return chr(int(code, 16))
    mark: str = found.group(4)
    return _ESCAPED.get(mark, mark if mark in _KEPT else "\\" + mark)
