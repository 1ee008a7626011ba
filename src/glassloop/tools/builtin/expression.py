"""Reads an arithmetic expression and computes it in one pass: text → tokens → value.

A precedence-climbing parser that evaluates as it goes, so that a long chain needs no tree and no recursion;
only brackets, signs and powers recurse, and they are capped. What an operator computes is in `arithmetic`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from glassloop.tools.builtin.arithmetic import (
    CONSTANTS,
    FUNCTIONS,
    OPERATORS,
    ExpressionError,
    Number,
    bounded,
    literal,
    show,
)

MAX_CHARACTERS = 5_000
MAX_DEPTH = 100

_SYNONYMS: Mapping[str, str] = {
    **dict.fromkeys("×✕·⋅∙∗", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("−–﹣", "-"),
    **dict.fromkeys("、﹐", ","),
    **dict.fromkeys("【〔", "("),
    **dict.fromkeys("】〕", ")"),
}

# How tightly an operator binds. A sign stands between products and powers, as in Python: -2**2 is -4.
_BINDING: Mapping[str, int] = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 4}
_SIGN_BINDING = 3
_RIGHT_ASSOCIATIVE = frozenset({"**"})

_TOKEN = re.compile(
    r"(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+"
    r"|(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>(?:[mM]ath\.)?[^\W\d]\w*)"
    r"|(?P<operator>\*\*|//|[-+*/%^])"
    r"|(?P<mark>[(),])"
)

_HINTS: Mapping[str, str] = {
    "!": "write factorial(n)",
    "=": "write only the expression, without =",
    "√": "write sqrt(x)",
    "²": "write x**2",
    "³": "write x**3",
    "°": "write radians(x)",
    "[": "use round brackets",
    "{": "use round brackets",
    "|": "write abs(x)",
    "x": "write * to multiply",
    "X": "write * to multiply",
    "$": "write the number without a currency sign",
    "€": "write the number without a currency sign",
    "£": "write the number without a currency sign",
    "¥": "write the number without a currency sign",
}
_COMMA_HINT = "a comma only separates the arguments of a function; write 1000, not 1,000"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["number", "name", "operator", "mark", "end"]
    text: str
    at: int
    """Position of the first character, counted from 1."""


def evaluate(expression: str) -> tuple[str, Number]:
    """The expression in plain spelling, and its value.

    Raises `ExpressionError` for anything that is not arithmetic, is undefined, or would be too large.
    """
    if len(expression) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression is too long: {len(expression)} characters, at most {MAX_CHARACTERS}"
        )
    text = "".join(map(_plain, expression))
    if not text.strip():
        raise ExpressionError("the expression is empty")
    value = _Parser(list(_tokens(text))).whole()
    return " ".join(text.replace("^", "**").split()), value


def _plain(character: str) -> str:
    """One character in ASCII spelling where it has one, always one for one so that positions stay true."""
    if character.isascii():
        return character
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if "！" <= character <= "～":  # the full-width forms of ASCII
        return chr(ord(character) - 0xFEE0)
    return _SYNONYMS.get(character, character)


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unexpected(text[at], at + 1)
        kind: Literal["number", "name", "operator", "mark"] = found.lastgroup  # type: ignore[assignment]
        yield _Token(kind, "**" if found.group() == "^" else found.group(), at + 1)
        at = found.end()
    yield _Token("end", "", len(text.rstrip()) + 1)


def _unexpected(text: str, at: int, hint: str = "") -> ExpressionError:
    shown = text if text.isprintable() else ascii(text)[1:-1]
    hint = hint or _HINTS.get(text, "")
    return ExpressionError(f"unexpected `{shown[:40]}` at character {at}" + (f": {hint}" if hint else ""))


class _Parser:
    """Where we are in the tokens, and how deep."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Number:
        value = self._operation(0)
        left_over = self._peek()
        if left_over.kind == "end":
            return value
        raise _unexpected(left_over.text, left_over.at, _between(left_over))

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _operation(self, binding: int) -> Number:
        """An operand and all operators after it that bind tighter than `binding`."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(
                f"nested too deeply at character {self._peek().at}: at most {MAX_DEPTH} levels"
            )
        left = self._operand()
        while (operator := self._peek()).kind == "operator" and _BINDING[operator.text] > binding:
            self._take()
            tightness = _BINDING[operator.text]
            if operator.text == "%" and not self._starts_operand():
                raise _unexpected(
                    "%", operator.at, "% is the remainder and needs a number after it; write 15/100 for 15%"
                )
            right = self._operation(tightness - 1 if operator.text in _RIGHT_ASSOCIATIVE else tightness)
            left = _compute(operator, OPERATORS[operator.text], left, right)
        self._depth -= 1
        return left

    def _starts_operand(self) -> bool:
        token = self._peek()
        return token.kind in ("number", "name") or token.text in ("(", "+", "-")

    def _operand(self) -> Number:
        token = self._take()
        if token.kind == "number":
            return self._number(token)
        if token.kind == "name":
            return self._named(token)
        if token.text in ("+", "-"):
            value = self._operation(_SIGN_BINDING)
            return -value if token.text == "-" else value
        if token.text == "(":
            value = self._operation(0)
            self._close(token)
            return value
        if token.kind == "end":
            raise ExpressionError("the expression ends where a number was expected")
        raise _unexpected(token.text, token.at)

    def _number(self, token: _Token) -> Number:
        padded = len(token.text) > 1 and token.text[0] == "0" and token.text.isdigit()
        if padded:
            raise _unexpected(token.text, token.at, f"no leading zeros; {_COMMA_HINT}")
        return _located(token, lambda: literal(token.text))

    def _named(self, token: _Token) -> Number:
        name = token.text.lower().removeprefix("math.")
        function = FUNCTIONS.get(name)
        if function is None:
            if name in CONSTANTS:
                return CONSTANTS[name]
            raise ExpressionError(f"unknown name `{token.text[:40]}` at character {token.at}{_nearest(name)}")
        if self._peek().text != "(":
            raise ExpressionError(f"`{name}` at character {token.at} is a function: write {name}(...)")
        arguments = self._arguments()
        if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
            raise ExpressionError(
                f"`{name}` at character {token.at} takes {function.takes}, not {len(arguments)}"
                "; write 1000, not 1,000"
            )
        return _compute(token, function.compute, *arguments)

    def _arguments(self) -> list[Number]:
        opening = self._take()
        arguments: list[Number] = []
        if self._peek().text == ")":
            self._take()
            return arguments
        arguments.append(self._operation(0))
        while self._peek().text == ",":
            self._take()
            arguments.append(self._operation(0))
        self._close(opening)
        return arguments

    def _close(self, opening: _Token) -> None:
        token = self._take()
        if token.text == ")":
            return
        if token.kind == "end":
            raise ExpressionError(f"the bracket at character {opening.at} is never closed")
        raise _unexpected(token.text, token.at, _between(token))


def _between(token: _Token) -> str:
    """What is probably wrong where an operator was expected."""
    if token.text == ",":
        return _COMMA_HINT
    known = token.text.lower() in FUNCTIONS or token.text.lower() in CONSTANTS
    if known or token.kind == "number" or token.text == "(":
        return "an operator is missing before it; write * to multiply"
    return ""


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, [*FUNCTIONS, *CONSTANTS], n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _compute(token: _Token, compute: Callable[..., Number | complex], *operands: Number) -> Number:
    return _located(token, lambda: compute(*operands), operands)


def _located(
    token: _Token, compute: Callable[[], Number | complex], operands: tuple[Number, ...] = ()
) -> Number:
    """Run one step of arithmetic; whatever is wrong with it is said with its place in the expression."""
    try:
        return bounded(compute())
    except ZeroDivisionError:
        problem = "division by zero"
    except OverflowError:
        problem = "the result is too large"
    except ExpressionError as error:
        problem = str(error)
    except ValueError:
        problem = f"not defined for {', '.join(show(operand)[:40] for operand in operands)}"
    raise ExpressionError(f"`{token.text[:40]}` at character {token.at}: {problem}")
