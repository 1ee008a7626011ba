"""Bytes of a web page as text: what kind of content they are, and in which encoding. Pure.

In the order of the HTML standard: a byte order mark, what the server declares, what the page declares. A declaration
that the bytes contradict is passed over if another one fits; servers often declare one encoding for all their pages.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

_LOOKED_AT = 4_096
"""Bytes at the start in which a page may declare its encoding; the standard asks for 1024, pages often need more."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:+-]+)", re.IGNORECASE)
_IN_PAGE = re.compile(
    rb"<(?:meta|\?xml)\b[^>]{0,500}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:+-]+)", re.IGNORECASE
)
_LANGUAGE = re.compile(rb"<html\b[^>]{0,500}?\blang\s*=\s*[\"']?([A-Za-z-]{2,20})", re.IGNORECASE)

# What browsers decode with under these names, as it is called in Python (https://encoding.spec.whatwg.org/#names-and-labels).
_WIDER: Mapping[str, str] = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "johab": "cp949",
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "utf-16": "utf-16-le",
}
_ALIASES: Mapping[str, str] = {
    "x-gbk": "gb18030",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "ks_c_5601-1987": "cp949",
    "x-euc-jp": "euc_jp",
    "x-x-big5": "big5hkscs",
    "windows-949": "cp949",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
}

_OF_THE_WEB = re.compile(
    r"utf-8|utf-16-[lb]e|gb18030|big5hkscs|cp932|euc_jp|iso2022_jp|cp949|cp125\d|cp874|cp866|iso8859-\d+|koi8-[ru]"
    r"|mac-(?:roman|cyrillic)"
)

# Where nothing is declared and it is not UTF-8: by language, or by the country in the host's name.
_BY_LANGUAGE: Mapping[str, tuple[str, ...]] = {
    "zh-tw": ("big5hkscs",),
    "zh-hk": ("big5hkscs",),
    "zh-hant": ("big5hkscs",),
    "zh": ("gb18030",),
    "ja": ("euc_jp", "cp932"),
    "ko": ("cp949",),
    "ru": ("cp1251",),
    "uk": ("cp1251",),
    "cn": ("gb18030",),
    "tw": ("big5hkscs",),
    "hk": ("big5hkscs",),
    "jp": ("euc_jp", "cp932"),
    "kr": ("cp949",),
    "su": ("cp1251",),
}
_LAST_RESORT = "cp1252"
"""Also what servers declare that were never told otherwise: so any other declaration comes before it."""


_SAYS_NOTHING = frozenset(
    ("application/octet-stream", "binary/octet-stream", "application/x-download", "unknown/unknown")
)
_STARTS_AS_HTML = re.compile(
    rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_TEXTS = frozenset(
    f"application/{name}"
    for name in "json xml javascript x-javascript ecmascript yaml x-yaml toml x-ndjson jsonl sql graphql x-sh".split()
) | {"application/x-www-form-urlencoded", "application/json5", "application/x-httpd-php"}


def text_of(body: bytes, content_type: str, url: str) -> str:
    """The body as text, with replacement characters for what does not fit. A byte order mark is left out."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    declared = sorted(_declared(body, content_type), key=lambda name: name == _LAST_RESORT)
    candidates = (*declared, "utf-8") if declared else ("utf-8", *_guesses(body, url))
    fitting = next((one for one in candidates if _fits(body, one)), None)
    return body.decode(fitting or next(iter(declared), _LAST_RESORT), "replace")


def _declared(body: bytes, content_type: str) -> Iterator[str]:
    """The known encodings that the server and the page declare."""
    if found := _IN_HEADER.search(content_type):
        yield from _known(found.group(1))
    if within := _IN_PAGE.search(body[:_LOOKED_AT]):
        name = within.group(1).decode("ascii", "replace")
        yield from _known(
            "utf-8" if name.lower().startswith("utf-16") else name
        )  # it was read as ASCII, so it is not


def _known(name: str) -> tuple[str, ...]:
    """Python's name for the encoding, if it is one that browsers know."""
    name = name.lower()
    try:
        found = codecs.lookup(_ALIASES.get(name, name)).name
    except (LookupError, ValueError):
        return ()
    found = _WIDER.get(found, found)
    return (found,) if _OF_THE_WEB.fullmatch(found) else ()


def _guesses(body: bytes, url: str) -> Iterator[str]:
    found = _LANGUAGE.search(body[:_LOOKED_AT])
    language = found.group(1).decode().lower() if found else ""
    country = (urlsplit(url).hostname or "").rpartition(".")[2]
    for key in (language, "-".join(language.split("-")[:2]), language.partition("-")[0], country):
        yield from _BY_LANGUAGE.get(key, ())


def _fits(body: bytes, encoding: str) -> bool:
    """Whether all of it decodes; a character that is cut off at the end does no harm."""
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(body)
    except UnicodeDecodeError:
        return False
    return True


# ── what kind of content it is ─────────────────────────────────────────────────────────────────────


def kind_of(body: bytes, content_type: str) -> str:
    """The media type in lower case, without parameters; by the first bytes where none of use is declared."""
    declared = content_type.partition(";")[0].strip().lower()
    if body.startswith(b"%PDF-"):
        return "application/pdf"
    if "/" in declared and declared not in _SAYS_NOTHING:
        return declared
    if b"\0" in body[:_LOOKED_AT] and not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "application/octet-stream"
    return "text/html" if _STARTS_AS_HTML.match(body[:_LOOKED_AT]) else "text/plain"


def is_text(kind: str) -> bool:
    """Whether bodies of that media type are text."""
    return kind.startswith("text/") or kind.endswith(("+json", "+xml", "+yaml")) or kind in _TEXTS
