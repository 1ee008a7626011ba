"""Docstrings in Google, numpy and Sphinx style → a description of the tool and one for each parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

from glassloop.core.values import Value

_CHINESE_HEADINGS = {
    "参数": "Args",
    "返回": "Returns",
    "返回值": "Returns",
    "异常": "Raises",
    "示例": "Examples",
}
_WIDE = "\N{FULLWIDTH COLON}"
_HEADING = re.compile(rf"^(\s*)({'|'.join(_CHINESE_HEADINGS)})[:{_WIDE}][ \t]*$")
_WIDE_COLON = re.compile(rf"^(\s+\*{{0,2}}\w+(?:\s*\([^)]*\))?)\s*{_WIDE}\s*")


class Described(Value, frozen=True):
    """What a docstring says: of the tool, and of each parameter that it names."""

    text: str
    parameters: dict[str, str]


def described(docstring: str) -> Described:
    """Read a docstring. Sections other than the parameters are for programmers and left out."""
    clean = _western(inspect.cleandoc(docstring))
    if "\n" not in clean and not clean.startswith((":", "@")):  # no section: most tools need no parser
        return Described(clean, {})
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(clean)
    except ParseError:
        return Described(clean, {})
    return Described(
        "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part),
        dict(
            _named(
                (param.arg_name, param.description or "")
                for param in parsed.params
                if param.args[:1] != ["attribute"]
            )
        ),
    )


def _western(text: str) -> str:
    """Chinese headings and full-width colons, as the styles that the parser knows have them."""
    lines = []
    for line in text.splitlines():
        line = _HEADING.sub(lambda found: f"{found[1]}{_CHINESE_HEADINGS[found[2]]}:", line)
        lines.append(_WIDE_COLON.sub(r"\1: ", line))
    return "\n".join(lines)


def _named(params: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """`x, y : int` in numpy style documents both."""
    for names, text in params:
        for name in names.split(","):
            yield name.strip().lstrip("*"), " ".join(text.split())
