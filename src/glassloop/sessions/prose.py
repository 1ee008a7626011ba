"""What models write, as HTML that is safe: paragraphs, headings, lists, tables, code. Everything is escaped first,
no link is made and nothing is loaded; what is not understood stands as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from glassloop.core.visible import visible

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$")
_QUOTE = re.compile(r"^ {0,3}>\s?(.*)$")
_RULE = re.compile(r"^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$")
_DASHES = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")

_CODE = re.compile(r"(`+)(.+?)\1(?!`)")
_BOTH = re.compile(r"\*\*\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*\*\*")
_STRONG = re.compile(r"\*\*(?=[^\s*])(.+?)(?<=[^\s*])\*\*")
_EMPHASIS = re.compile(
    r"(?<![\w*])\*(?=[^\s*])((?:[^*\n<]|<strong>[^*\n<]*</strong>)+?)(?<=[^\s*])\*(?![\w*])"
)
"""Never from outside a strong piece into it, or out of it: the text is escaped, so a `<` is one of ours."""


def html(text: str) -> str:
    """The text as a piece of HTML."""
    return "\n".join(_blocks(text.replace("\r\n", "\n").split("\n")))


def _blocks(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif fence := _FENCE.match(line):
            end = _end_of_fence(lines, at + 1, fence[1])
            yield code("\n".join(lines[at + 1 : end]), fence[2].strip())
            at = end + 1
        elif heading := _HEADING.match(line):
            level = min(len(heading[1]) + 2, 6)
            yield f"<h{level}>{_inline(heading[2])}</h{level}>"
            at += 1
        elif _RULE.match(line):
            yield "<hr>"
            at += 1
        else:
            end = at + 1
            while end < len(lines) and not _begins_anew(lines, at, end):
                end += 1
            yield _lines(lines[at:end])
            at = end


def _begins_anew(lines: list[str], at: int, end: int) -> bool:
    line = lines[end]
    if not line.strip() or _FENCE.match(line) or _HEADING.match(line):
        return True
    return _kind(lines[at]) != _kind(line) and _kind(line) is not None


def _kind(line: str) -> str | None:
    """What a line that does not stand alone belongs to; None goes on with what it follows."""
    if _ITEM.match(line):
        return "item"
    if _QUOTE.match(line):
        return "quote"
    return "row" if line.lstrip().startswith("|") else None


def _end_of_fence(lines: list[str], start: int, fence: str) -> int:
    closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}\s*$")
    return next((at for at in range(start, len(lines)) if closing.match(lines[at])), len(lines))


def _lines(lines: list[str]) -> str:
    match _kind(lines[0]):
        case "item":
            return _list(lines)
        case "quote":
            inner = "\n".join(found[1] if (found := _QUOTE.match(line)) else line for line in lines)
            return f"<blockquote>{_inline(inner)}</blockquote>"
        case "row" if len(lines) > 1 and _DASHES.match(lines[1]):
            return _table(lines)
    return f"<p>{_inline(chr(10).join(lines))}</p>"


def _list(lines: list[str]) -> str:
    items: list[list[str]] = []
    for line in lines:
        if found := _ITEM.match(line):
            items.append([found[2]])
        else:
            items[-1].append(line.strip())
    first = _ITEM.match(lines[0])
    number = first[1] if first else None
    told = "".join(f"<li>{_inline(chr(10).join(item))}</li>" for item in items)
    return f'<ol start="{int(number)}">{told}</ol>' if number else f"<ul>{told}</ul>"


def _table(lines: list[str]) -> str:
    head, *rows = (
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in [lines[0], *lines[2:]]
    )
    top = "".join(f"<th>{_inline(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def code(text: str, language: str = "") -> str:
    """A block of code, or anything that must stand exactly as it is."""
    name = f' data-language="{escape(visible(language))}"' if language else ""
    return f"<pre{name}><code>{escape(visible(text))}</code></pre>"


def _inline(text: str) -> str:
    """Code, strong and emphasis within lines."""
    told, end = "", 0
    for found in _CODE.finditer(text):
        told += _marked(text[end : found.start()]) + f"<code>{escape(visible(found[2].strip()))}</code>"
        end = found.end()
    return (told + _marked(text[end:])).replace("\n", "<br>\n")


def _marked(text: str) -> str:
    told = _BOTH.sub(r"<strong><em>\1</em></strong>", escape(visible(text)))
    return _EMPHASIS.sub(r"<em>\1</em>", _STRONG.sub(r"<strong>\1</strong>", told))
