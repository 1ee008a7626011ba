"""The `web_fetch` tool: a page of the web as text to read, a part at a time. How it is asked for is in `web_client`,
how HTML is read in `web_page`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from glassloop.core.entries import JSON
from glassloop.core.visible import one_line, visible
from glassloop.tools.builtin.web_client import Answer, Client, Request
from glassloop.tools.builtin.web_html import tokens
from glassloop.tools.builtin.web_options import client_from
from glassloop.tools.builtin.web_page import Page, Reader
from glassloop.tools.builtin.web_text import is_text, kind_of, text_of
from glassloop.tools.context import ToolContext
from glassloop.tools.targets import Address
from glassloop.tools.tool import Need, Tool, tool

PART_LENGTH = 15_000
"""Characters of one part: with its head below what a tool may show."""

_KEPT = 4
_LINE_SLACK = 500
MAX_TOKENS = 150_000
"""Tags and texts of a page that are read: about two seconds' work, and several times a long book."""

MAX_TEXT = 500_000
"""Characters of a document that are kept."""

_TOKENS_AT_ONCE = 1_000
_HTML = ("text/html", "application/xhtml+xml")
_NEEDS: tuple[Need, ...] = ("network",)
_UNSHOWN = {ord(char): None for char in "\u00ad\u200b\ufeff"}
"""Where a line may break, in pages everywhere; no reader sees them."""


@dataclass(frozen=True, slots=True)
class _Document:
    """What was fetched, ready to be shown. `facts` stand above the text."""

    facts: tuple[str, ...]
    text: str


class Fetcher:
    """Fetches, and keeps the last few documents, so that further parts are of the same text."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kept: OrderedDict[str, _Document] = OrderedDict()

    async def web_fetch(self, url: str, context: ToolContext, part: int = 1) -> str:
        """Fetch a page from the internet and return it as readable text (Markdown). Use it to read a page whose
        address you know, from the user or from a search. It reads HTML, plain text, JSON and XML; no scripts run.

        Args:
            url: The whole address, beginning with https:// or http://.
            part: Which part of a long page: 1 fetches it anew, further ones continue the same text.
        """
        url = url.strip()
        if part < 1:
            raise ValueError(f"there is no part {part}; parts are counted from 1")
        document = self._kept.get(url) if part > 1 else None
        if document is None:
            document = await self._fetched(Request(url, stays=bool(context.outside)))
        self._kept[url] = document
        self._kept.move_to_end(url)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return _shown(document, part)

    async def _fetched(self, request: Request) -> _Document:
        answer = await self._client.ask(request)
        page, is_whole = await _read(answer)
        kind = kind_of(answer.body, answer.headers.get("content-type", ""))
        facts = [
            f"URL: {answer.url}",
            f"Status: {answer.status} {one_line(answer.reason)}".rstrip(),
            f"Type: {kind}",
        ]
        if page.title:
            facts.insert(0, f"Title: {one_line(page.title)}")
        if answer.cut:
            facts.append(f"Only the first {len(answer.body):,} bytes were read")
        if not is_whole:
            facts.append(f"Only the first {MAX_TOKENS:,} tags and texts of the page were read")
        if len(page.markdown) > MAX_TEXT:
            facts.append(f"Only the first {MAX_TEXT:,} of its {len(page.markdown):,} characters are kept")
        text = await asyncio.to_thread(_readable, page.markdown[:MAX_TEXT])
        return _Document(tuple(facts), text)


def _readable(text: str) -> str:
    return visible(text.translate(_UNSHOWN))


def web_fetch_tool(client: Client | None = None) -> Tool:
    """The `web_fetch` tool. `client` says where it may go and how much it takes; by default the public internet."""
    return tool(
        effect="read",
        timeout=90,
        untrusted=True,
        needs=_NEEDS,
        targets=_targets,
    )(Fetcher(client or Client()).web_fetch)


def from_options(options: Mapping[str, str]) -> Tool:
    """The tool, as `web_options.client_from` reads the options."""
    return web_fetch_tool(client_from(options))


def _targets(arguments: Mapping[str, JSON]) -> tuple[Address, ...]:
    return (Address(str(arguments.get("url", "")).strip()),)


async def _read(answer: Answer) -> tuple[Page, bool]:
    """The answer's body as text, and whether that is all of it. Raises `ValueError` for what is none."""
    kind = kind_of(answer.body, answer.headers.get("content-type", ""))
    if not is_text(kind):
        what = "a PDF" if kind == "application/pdf" else f"no text ({kind})"
        raise ValueError(
            f"{answer.url} is {what}, which cannot be read here (status {answer.status}, "
            f"{'more than ' if answer.cut else ''}{len(answer.body):,} bytes); look for a page with the same content"
        )
    text = text_of(answer.body, answer.headers.get("content-type", ""), answer.url)
    if kind not in _HTML:
        return Page("", text), True
    return await _page(text, answer.url)


async def _page(html: str, url: str) -> tuple[Page, bool]:
    """The page, read a little at a time, so that a large one holds up nothing else; and whether that is all of it."""
    reader = Reader(url)
    for number, token in enumerate(tokens(html), 1):
        if number > MAX_TOKENS:
            return reader.page(), False
        reader.take(token)
        if number % _TOKENS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return reader.page(), True


def _shown(document: _Document, part: int) -> str:
    """One part with what is known of the whole."""
    ends = _ends(document.text)
    if part > len(ends):
        raise ValueError(f"there is no part {part}; the page has {len(ends)} part{'s' * (len(ends) > 1)}")
    text = document.text[ends[part - 2] if part > 1 else 0 : ends[part - 1]].strip("\n")
    head = list(document.facts)
    if len(ends) > 1:
        head.append(f"Part: {part} of {len(ends)}")
    if not document.text.strip():
        text = "(There is no text on the page. It may be made by scripts, which are not run here.)"
    more = (
        f"\n\n[Part {part} of {len(ends)} ends here; go on with part={part + 1}.]" if part < len(ends) else ""
    )
    return "\n".join(head) + f"\n\n{text}{more}"


def _ends(text: str) -> list[int]:
    """Where each part ends: at a line's end where one is near."""
    ends, at = [], 0
    while len(text) - at > PART_LENGTH:
        line = text.rfind("\n", at + PART_LENGTH - _LINE_SLACK, at + PART_LENGTH)
        at = line + 1 if line >= 0 else at + PART_LENGTH
        ends.append(at)
    return [*ends, len(text)]
