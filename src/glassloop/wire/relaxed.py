"""Almost-JSON that models write: json5, Python literals, wrong escapes and quotes, XML-style parameters.

Each reader takes a whole text and gives a value, or raises ValueError. None of them closes anything
that was left open.
"""

from __future__ import annotations

import ast
import html
import re
import warnings
from collections.abc import Callable, Mapping, Sequence

from glassloop.core.entries import JSON
from glassloop.wire import strictjson
from glassloop.wire.fits import typed
from glassloop.wire.strictjson import STRING, Forbidden

MAX_RELAXED = 16 * 1024
"""Characters up to which the slow readers (json5, Python literals) are tried."""


def with_control_characters(text: str) -> JSON:
    """Raw newlines and tabs inside strings."""
    return strictjson.parse(text, control_characters=True)


def holds_control_characters(text: str) -> bool:
    """Whether a JSON text has raw control characters inside its strings."""
    return any(_CONTROL.search(match[0]) for match in STRING.finditer(text))


def with_trailing_commas(text: str) -> JSON:
    """A comma after the last item; string-aware, and for texts of any size."""
    mended = _STRING_OR_TRAILING_COMMA.sub(lambda match: "" if match[0][0] == "," else match[0], text)
    return _if_changed(mended, text)


def with_wrong_escapes(text: str) -> JSON:
    r"""Escapes that JSON lacks: `\'` is the quote; any other, as in `\d` or `C:\temp`, is a real backslash."""
    return _if_changed(_WRONG_ESCAPE.sub(_right_escape, text), text)


def with_escaped_quotes(text: str) -> JSON:
    r"""An object that was encoded twice and lost its outer quotes: `{\"city\": \"Oslo\"}`."""
    if not text.startswith("{\\"):
        raise ValueError("not escaped")
    decoded = strictjson.parse(f'"{text}"', control_characters=True)
    return strictjson.parse(decoded, control_characters=True)


def with_escapes_between(text: str) -> JSON:
    r"""Escapes outside of strings: `\n` can only be white space there, and `\"Oslo\"` only a string."""
    return _if_changed(_STRING_OR_ESCAPE.sub(_unescaped_between, text), text)


def with_template_quotes(text: str) -> JSON:
    """Quote tokens of a chat template that leaked: `<|"|>` and what is left of it."""
    return _if_changed(_TEMPLATE_QUOTE.sub('"', text), text, also=json5)


def with_typographic_quotes(text: str) -> JSON:
    """Curly quotes throughout; where plain ones occur too, it is unclear which delimit."""
    if '"' in text:
        raise ValueError("plain quotes too")
    return _if_changed(text.replace("\u201c", '"').replace("\u201d", '"'), text)


def with_entities(text: str) -> JSON:
    """The whole text went through an HTML or XML escape."""
    return _if_changed(html.unescape(text), text)


def json5(text: str) -> JSON:
    """JSON5: comments, unquoted keys, single quotes."""
    _refuse_large(text)
    import json5 as reader  # slow to import, rarely needed

    try:
        return reader.loads(
            text,
            object_pairs_hook=lambda pairs: strictjson.unique_object(list(pairs)),
            parse_constant=strictjson.refuse_constant,
        )
    except RecursionError:
        raise Forbidden("they nest too deep") from None


def python_literal(text: str) -> JSON:
    """A Python literal, with JSON's true, false and null allowed in it."""
    _refuse_large(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a wrong escape in a literal is not this program's fault
            tree = ast.parse(text.strip(), mode="eval")
        _refuse_glued_strings(text.strip())
        return _literal(tree.body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None


def _refuse_glued_strings(text: str) -> None:
    """Python joins two strings side by side; here a comma is missing, and what was meant would be a guess."""
    import tokenize

    before = None
    for token in tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__):
        if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT):
            if token.type == before == tokenize.STRING:
                raise ValueError("two strings without a comma between them")
            before = token.type


READERS: Sequence[tuple[str, Callable[[str], JSON]]] = (
    ("control_characters", with_control_characters),
    ("trailing_comma", with_trailing_commas),
    ("wrong_escape", with_wrong_escapes),
    ("escaped_quotes", with_escaped_quotes),
    ("escapes_between", with_escapes_between),
    ("template_quotes", with_template_quotes),
    ("typographic_quotes", with_typographic_quotes),
    ("html_entities", with_entities),
    ("python_literal", python_literal),
    ("json5", json5),
)
"""In the order in which they are tried: the mend's code, and the reader."""

_STRING_OR_TRAILING_COMMA = re.compile(STRING.pattern + r"|,(?=\s*+[}\]])", re.DOTALL)
_STRING_OR_ESCAPE = re.compile(
    STRING.pattern + r'|\\[nrt]|\\+"(?P<string>(?:[^"\\]++|\\(?!"))*+)\\+"', re.DOTALL
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_WRONG_ESCAPE = re.compile(
    r'(?P<right>(?:[^\\]++|\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))++)|\\(?P<escaped>.)?', re.DOTALL
)
_TEMPLATE_QUOTE = re.compile(r'<\|\\?"(?:\|>|>)|<escape>|<\|quote\|>')


def _unescaped_between(match: re.Match[str]) -> str:
    if match[0].startswith('"'):
        return match[0]
    return " " if match["string"] is None else f'"{match["string"]}"'


def _right_escape(match: re.Match[str]) -> str:
    if match["right"] is not None:
        return match[0]
    escaped = match["escaped"] or ""
    return "'" if escaped == "'" else "\\\\" + escaped


def _if_changed(mended: str, text: str, also: Callable[[str], JSON] | None = None) -> JSON:
    if mended == text:
        raise ValueError("nothing to mend")
    try:
        return strictjson.parse(mended, control_characters=True)
    except Forbidden:
        raise
    except ValueError:
        if also is None:
            raise
        return also(mended)


def _refuse_large(text: str) -> None:
    if len(text) > MAX_RELAXED:
        raise ValueError(f"longer than {MAX_RELAXED} characters")
    strictjson.refuse_deep(text)


_NAMED_CONSTANTS = {"true": True, "false": False, "null": None}


def _literal(node: ast.expr) -> JSON:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return node.value
        case ast.Name(id=name) if name in _NAMED_CONSTANTS:
            return _NAMED_CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return strictjson.unique_object(
                [(_literal_key(key), _literal(value)) for key, value in zip(keys, values, strict=True)]
            )
    raise ValueError("not a literal")


def _literal_key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError("a key that is no string")


_PARAMETER_FORMS = (
    re.compile(
        r"<(?P<tag>parameter|param|argument|arg)\s*(?:=\s*|\s+name\s*=\s*)[\"']?(?P<key>[^\"'<>=]+?)[\"']?\s*>"
    ),
    re.compile(r"<arg_key>\s*(?P<key>[^<>]+?)\s*</arg_key>\s*<(?P<tag>arg_value)>"),
    re.compile(r"<(?P<tag>(?P<key>[A-Za-z_][\w.-]*))>"),
)


def xml_parameters(text: str, properties: Mapping[str, JSON]) -> dict[str, JSON]:
    """A text that consists of the tags of declared parameters and nothing else, its values typed by the schema."""
    for form in _PARAMETER_FORMS:
        if form.match(text):
            return _parameters(text, form, properties)
    raise ValueError("no parameter tags")


def _parameters(text: str, form: re.Pattern[str], properties: Mapping[str, JSON]) -> dict[str, JSON]:
    pairs: list[tuple[str, JSON]] = []
    position = 0
    while position < len(text):
        opener = form.match(text, position)
        closer = f"</{opener['tag']}>" if opener else ""
        end = text.find(closer, opener.end()) if opener else -1
        if opener is None or end < 0 or opener["key"] not in properties:
            raise ValueError("text between the parameter tags, or a tag that is not closed or not declared")
        value = text[opener.end() : end].removeprefix("\n").removesuffix("\n")
        pairs.append((opener["key"], typed(value, properties[opener["key"]])))
        position = end + len(closer)
        while text[position : position + 1].isspace():
            position += 1
    return strictjson.unique_object(pairs)
