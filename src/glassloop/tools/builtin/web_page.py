"""An HTML page as readable Markdown: which elements mean what, and which part of the page is its main one. Pure.

What a reader would not see is left out: scripts, styles, controls, what is hidden. Pictures are their alternative text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urljoin

from glassloop.tools.builtin.web_html import End, Start, Token
from glassloop.tools.builtin.web_markdown import DEFINITION, Block, Mark, Writer, joined

_MAX_TITLE = 300
_MAX_TARGET = 2_000
_MAX_ALT = 300
_SCHEMES = ("http://", "https://", "mailto:")

_UNSEEN = frozenset("svg canvas audio video object select datalist button map progress meter dialog".split())
_NEVER_HIDDEN = frozenset("html body main article".split())
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_IMPLIED_END = frozenset("p li dt dd tr td th option".split())
"""Elements that often have no end tag: one that is hidden ends where the next of its kind begins."""

_BLOCKS = frozenset(
    "address article aside body center details dialog div dl fieldset figcaption figure footer form header hgroup html "
    "legend main menu nav p search section summary caption tbody thead tfoot".split()
)
_MARKS: Mapping[str, Mark] = {
    "b": "strong",
    "strong": "strong",
    "i": "emphasis",
    "em": "emphasis",
    "cite": "emphasis",
    "code": "code",
    "kbd": "code",
    "samp": "code",
    "tt": "code",
    "s": "struck",
    "del": "struck",
}
_LEADS = {**{f"h{level}": "#" * level + " " for level in range(1, 7)}, "dt": "", "dd": DEFINITION}
_PARTS = frozenset("main article nav footer aside".split())

_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:^|[\s-])(?:language|lang|source|highlight)-(?!source-)([A-Za-z0-9+#_-]{1,30})")
_NUMBER = re.compile(r"\d{1,6}")


@dataclass(frozen=True, slots=True)
class Page:
    """A page to read."""

    title: str
    markdown: str


class Reader:
    """Reads one page, token by token: its main part where it names one, else all but navigation and footers."""

    def __init__(self, url: str) -> None:
        self._title = ""
        self._base = url
        self._writer = Writer()
        self._unseen = ""
        self._unseen_depth = 0
        self._in_title = False
        self._open: Counter[str] = Counter()
        self._language = ""

    def page(self) -> Page:
        """The page, when all tokens were taken."""
        self._writer.end_code()
        self._writer.end_table()
        self._writer.end_block()
        return Page(self._title, joined(_main(self._writer.blocks)))

    def take(self, token: Token) -> None:
        """The next token of the page at the URL."""
        if self._unseen and self._still_unseen(token):
            return
        match token:
            case str():
                self._text(token)
            case Start():
                self._start(token)
            case End():
                self._end(token.name)

    def _still_unseen(self, token: Token) -> bool:
        """Within an element that is not shown: wait for its end. True if the token belongs to it."""
        match token:
            case Start(name) if name == self._unseen and name in _IMPLIED_END:
                self._unseen = ""
                return False
            case Start(name) if name == self._unseen:
                self._unseen_depth += 1
            case End(name) if name == self._unseen:
                self._unseen_depth -= 1
                if not self._unseen_depth:
                    self._unseen = ""
        return True

    def _text(self, text: str) -> None:
        if not self._in_title:
            self._writer.text(text)
        elif not self._title:
            self._title = " ".join(text.split())[:_MAX_TITLE]

    def _start(self, tag: Start) -> None:
        name = tag.name
        if _is_unseen(tag):
            if name in _BLOCKS:
                self._writer.end_block()
            self._unseen, self._unseen_depth = name, 1
            return
        if name in _PARTS or tag.attributes.get("role") == "main":
            self._enter(name if name in _PARTS else "main", 1)
        if language := _LANGUAGE.search(tag.attributes.get("class", "")):
            self._language = language.group(1)
        if mark := _MARKS.get(name):
            self._writer.open(mark)
            if self._writer.in_code and self._language:
                self._writer.start_code(self._language)
        elif name in _LEADS:
            self._writer.start_block(_LEADS[name])
        elif name in _BLOCKS:
            self._writer.end_block()
        elif start := _STARTS.get(name):
            start(self, tag)

    def _end(self, name: str) -> None:
        if mark := _MARKS.get(name):
            self._writer.close(mark)
        elif name in _LEADS or name in _BLOCKS:
            self._writer.end_block()
        elif end := _ENDS.get(name):
            end(self)
        if name in _PARTS:
            self._enter(name, -1)

    def _enter(self, name: str, step: int) -> None:
        """A part of the page begins or ends, and with it the block before."""
        self._writer.end_block()
        self._open[name] = max(self._open[name] + step, 0)
        main = self._open["main"] or self._open["article"]
        beside = self._open["nav"] or self._open["footer"] or (self._open["aside"] and not main)
        self._writer.part = "beside" if beside else "main" if main else ""

    # ── elements with a way of their own ──

    def _link(self, tag: Start) -> None:
        self._writer.close("link")
        self._writer.open("link", self._target(tag.attributes.get("href", "")))

    def _image(self, tag: Start) -> None:
        if alternative := " ".join(tag.attributes.get("alt", "").split())[:_MAX_ALT]:
            self._writer.text(f"![{alternative}]")

    def _based(self, tag: Start) -> None:
        self._base = _absolute(self._base, tag.attributes.get("href", "")) or self._base

    def _code(self, tag: Start) -> None:
        self._writer.start_code(self._language)
        self._language = ""

    def _code_ends(self) -> None:
        self._writer.end_code()
        self._language = ""

    def _set_in_title(self, tag: Start) -> None:
        self._in_title = True

    def _title_ends(self) -> None:
        self._in_title = False

    def _target(self, reference: str) -> str:
        reference = "".join(reference.split("\n")).strip()
        if not reference or reference.startswith("#") or len(reference) > _MAX_TARGET:
            return ""
        found = _absolute(self._base, reference)
        if not found.lower().startswith(_SCHEMES):
            return ""
        return found.replace(" ", "%20").replace("(", "%28").replace(")", "%29")


def _main(blocks: list[Block]) -> list[Block]:
    """The main part, unless it is a small matter beside the rest."""
    sizes: Counter[str] = Counter()
    for block in blocks:
        sizes[block.part] += len(block.text)
    if sizes["main"] and sizes["main"] * 4 >= sizes[""]:
        return [block for block in blocks if block.part == "main"]
    return [block for block in blocks if block.part != "beside"] or blocks


@lru_cache(maxsize=1_024)
def _absolute(base: str, reference: str) -> str:
    """The reference as a URL of its own; "" if it is none."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return ""


def _is_unseen(tag: Start) -> bool:
    if tag.name in _UNSEEN:
        return True
    if (
        not tag.attributes
        or tag.name in _VOID
        or tag.name in _NEVER_HIDDEN
        or tag.attributes.get("role") == "tabpanel"
    ):
        return False
    return "hidden" in tag.attributes or bool(_NOT_SHOWN.search(tag.attributes.get("style", "")))


def _number(text: str, otherwise: int) -> int:
    found = _NUMBER.match(text)
    return int(found.group()) if found else otherwise


_STARTS: Mapping[str, Callable[[Reader, Start], None]] = {
    "a": Reader._link,
    "img": Reader._image,
    "base": Reader._based,
    "pre": Reader._code,
    "title": Reader._set_in_title,
    "br": lambda reader, tag: reader._writer.line_break(),
    "hr": lambda reader, tag: reader._writer.rule(),
    "ul": lambda reader, tag: reader._writer.start_list(None),
    "ol": lambda reader, tag: reader._writer.start_list(_number(tag.attributes.get("start", ""), 1)),
    "li": lambda reader, tag: reader._writer.start_item(),
    "blockquote": lambda reader, tag: reader._writer.start_quote(),
    "table": lambda reader, tag: reader._writer.start_table(),
    "tr": lambda reader, tag: reader._writer.start_row(),
    "td": lambda reader, tag: reader._writer.start_cell(_number(tag.attributes.get("colspan", ""), 1)),
    "th": lambda reader, tag: reader._writer.start_cell(_number(tag.attributes.get("colspan", ""), 1)),
}
_ENDS: Mapping[str, Callable[[Reader], None]] = {
    "a": lambda reader: reader._writer.close("link"),
    "pre": Reader._code_ends,
    "title": Reader._title_ends,
    "ul": lambda reader: reader._writer.end_list(),
    "ol": lambda reader: reader._writer.end_list(),
    "li": lambda reader: reader._writer.end_block(),
    "blockquote": lambda reader: reader._writer.end_quote(),
    "table": lambda reader: reader._writer.end_table(),
    "td": lambda reader: reader._writer.end_block(),
    "th": lambda reader: reader._writer.end_block(),
}
