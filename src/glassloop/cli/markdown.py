"""Markdown of a model for the terminal, as it comes: finished blocks are printed, the last one is redrawn in place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment

from glassloop.cli.safe_text import visible

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_LONGEST_MARKER = len("123456789. ")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])(\s|$)")


def _markdown(text: str) -> Markdown:
    """The Markdown as something to print: no links and pictures to follow, nothing invisible."""
    markdown = Markdown(text, hyperlinks=False, code_theme="ansi_dark", inline_code_theme="ansi_dark")
    _make_visible(markdown.parsed)
    return markdown


def _make_visible(tokens: Iterable[Token]) -> None:
    """Character references (`&#27;`) become characters only when Markdown is read, so look again after that."""
    for token in tokens:
        token.content = visible(token.content)
        _make_visible(token.children or ())


def blocks_of(text: str) -> tuple[list[str], str]:
    """The blocks of a growing Markdown text that can no longer change, and the rest.

    A block ends at an empty line outside a code fence, if what follows is known not to belong to it: not
    indented, and no further item of the same list.
    """
    starts, at = [0], 0
    fence, in_list, after_blank = "", False, False
    for line in text.splitlines(keepends=True):
        if fence:
            fence = "" if _closes(line, fence) else fence
        else:
            if after_blank and _is_known(line) and not (in_list and _ITEM.match(line)):
                starts.append(at)
                in_list = False
            fence = _opened(line)
            in_list = in_list or bool(_ITEM.match(line))
        after_blank = not fence and not line.strip()
        at += len(line)
    return [text[start:end] for start, end in pairwise(starts)], text[starts[-1] :]


def _is_known(line: str) -> bool:
    """Whether enough of a line has come to say that it begins a block of its own."""
    return (
        bool(line.strip()) and not line[0].isspace() and (line.endswith("\n") or len(line) > _LONGEST_MARKER)
    )


def _opened(line: str) -> str:
    """The fence that this line opens, if it does."""
    mark = _FENCE.match(line)
    return mark.group(1) if mark and line.endswith("\n") else ""


def _closes(line: str, fence: str) -> bool:
    word = line.strip()
    return word.startswith(fence) and not word.strip(fence[0]) and line.endswith("\n")


class Block:
    """Rendered Markdown without the empty lines around it; at most its last `most` lines, if that is given."""

    def __init__(self, text: str, most: int | None = None) -> None:
        self._text, self._most = text, most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(_markdown(self._text), options, pad=False)
        while lines and _is_blank(lines[0]):
            del lines[0]
        while lines and _is_blank(lines[-1]):
            del lines[-1]
        for line in lines[-self._most :] if self._most else lines:
            yield from line
            yield Segment.line()


def _is_blank(line: Sequence[Segment]) -> bool:
    return not any(segment.text.strip() for segment in line)
