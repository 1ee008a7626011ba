"""HTML as a stream of tags and text. Pure, and linear in the page's length whatever is in it.

The rules of the HTML standard's tokenizer (https://html.spec.whatwg.org/multipage/parsing.html#tokenization), by which
everything that is not closed ends with the page. What elements mean is not known here; no tree is built.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Start(NamedTuple):
    """A start tag: its name and attributes, names in lower case. A tuple, because a page may have a million."""

    name: str
    attributes: Mapping[str, str]


class End(NamedTuple):
    """An end tag."""

    name: str


Token = Start | End | str
"""A `str` is text between tags, its character references read."""

_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*+)")
_BEFORE_ATTRIBUTE = re.compile(r"[\s/]*+")
_ATTRIBUTE = re.compile(r"(=?[^\s/>=]*+)(?:\s*+(=)\s*+)?")
_UNQUOTED = re.compile(r"[^\s>]*+")
_REFERENCE = re.compile(r"&(?:#[0-9]++|#[xX][0-9a-fA-F]++|[a-zA-Z][a-zA-Z0-9]{1,31});?")
_LONGEST_REFERENCE = 34
_MAX_ATTRIBUTES = 64
"""Kept of one tag; the others are read and dropped."""
_MOST_ATTRIBUTES = 5_000
"""Read of one tag, which then ends at the next `>`, whatever that stands in."""

_RAW = frozenset(("script", "style", "xmp", "iframe", "noembed", "noframes", "template"))
_RAW_WITH_REFERENCES = frozenset(("title", "textarea"))
_CLOSING = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW | _RAW_WITH_REFERENCES}


def tokens(page: str) -> Iterator[Token]:
    """The page's tags and texts, in order. The content of scripts and styles comes as no token at all."""
    at = 0
    while at < len(page):
        opened = page.find("<", at)
        if opened < 0:
            yield unescaped(page[at:])
            return
        if opened > at:
            yield unescaped(page[at:opened])
        tag = _TAG.match(page, opened)
        if tag is None:
            at = _end_of_markup(page, opened)
            if at == opened:
                yield "<"
                at += 1
            continue
        name = tag.group(1).lower()
        attributes, at = _attributes(page, tag.end())
        if at > len(page):
            return
        if page[opened + 1] == "/":
            yield End(name)
            continue
        yield Start(name, attributes)
        if closing := _CLOSING.get(name):
            end = closing.search(page, at)
            stop = end.start() if end else len(page)
            if name in _RAW_WITH_REFERENCES:
                yield unescaped(page[at:stop])
            at = stop


def unescaped(text: str) -> str:
    """The text with its character references read."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    return html.unescape(reference.group()) if len(reference.group()) <= _LONGEST_REFERENCE else "\ufffd"


def _end_of_markup(page: str, at: int) -> int:
    """Behind a comment, a declaration or what counts as one; `at` itself if it is only a less-than sign."""
    if page.startswith("<!--", at):
        end = page.find("-->", at + 2)
        return end + 3 if end >= 0 else len(page)
    if page[at + 1 : at + 2] in ("!", "?") or page.startswith("</", at):
        end = page.find(">", at)
        return end + 1 if end >= 0 else len(page)
    return at


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag, and where it ends; beyond the page if it is never closed."""
    found: dict[str, str] = {}
    if page.startswith(">", at):
        return found, at + 1
    for _ in range(_MOST_ATTRIBUTES):
        at = _skip(_BEFORE_ATTRIBUTE, page, at)
        if at >= len(page):
            return found, len(page) + 1
        if page[at] == ">":
            return found, at + 1
        attribute = _ATTRIBUTE.match(page, at)
        assert attribute is not None  # it may be empty, so it always matches
        at, value = attribute.end(), ""
        if attribute.group(2):
            value, at = _value(page, at)
        if len(found) < _MAX_ATTRIBUTES:
            found.setdefault(attribute.group(1).lower(), value)
    end = page.find(">", at)
    return found, end + 1 if end >= 0 else len(page) + 1


def _value(page: str, at: int) -> tuple[str, int]:
    quote = page[at : at + 1]
    if quote not in ("'", '"') or not quote:
        end = _skip(_UNQUOTED, page, at)
        return unescaped(page[at:end]), end
    end = page.find(quote, at + 1)
    return (unescaped(page[at + 1 : end]), end + 1) if end >= 0 else ("", len(page))


def _skip(pattern: re.Pattern[str], page: str, at: int) -> int:
    found = pattern.match(page, at)
    return found.end() if found else at
