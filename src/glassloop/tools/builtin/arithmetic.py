"""Bounded arithmetic for the calculator: the operators, functions and constants, and how a value is written.

Whole numbers and decimals are exact (`int`, `Fraction`); a float appears only where a function has no exact
result. Every operation is refused before it is computed if its result could be large. No parsing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import NoReturn

Number = int | Fraction | float

MAX_DIGITS = 4000
"""Decimal digits of the largest exact number, and of the largest numerator or denominator on the way."""

SIGNIFICANT_DIGITS = 15
"""Digits to which an inexact value is shown: what a float holds without noise."""

_EXACT_DECIMAL_DIGITS = 30
"""Up to so many digits, a decimal that ends is shown in full."""

_MAX_BITS = int(MAX_DIGITS * math.log2(10))
_TOO_LARGE = f"the result is too large: exact numbers are limited to {MAX_DIGITS} digits"
_NOT_FINITE = "the result is not a finite number: it is outside what a calculation here can hold"


class ExpressionError(ValueError):
    """The expression cannot be read or computed. The message says where and why."""


def _refuse(message: str) -> NoReturn:
    raise ExpressionError(message)


def bounded(value: Number | complex) -> Number:
    """The value in its simplest form, refused if it is complex, not finite, or has too many digits."""
    if isinstance(value, complex):
        raise ExpressionError("the result is not a real number")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError(_NOT_FINITE)
        return value
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise ExpressionError(_TOO_LARGE)
    return value.numerator if value.denominator == 1 else value


def literal(text: str) -> Number:
    """A number as written: `12`, `1_000`, `0xff`, `0b101`, `2.5`, `1e-3`. Decimals are kept exactly."""
    prefix = text[:2].lower()
    if prefix in ("0x", "0b", "0o"):
        if len(text) > MAX_DIGITS:
            _refuse(_TOO_LARGE)
        return bounded(int(text, 0))
    digits = text.replace("_", "")
    if len(digits) > MAX_DIGITS:
        _refuse(f"a number of {len(digits)} characters is too long: at most {MAX_DIGITS}")
    if digits.isdigit():
        return bounded(int(digits))
    mantissa, _, exponent = digits.lower().partition("e")
    if exponent and (len(exponent) > 5 or not 0 < float(f"1e{exponent}") < math.inf):
        _refuse("the exponent of a number must be between -307 and 308; use ** for larger powers of ten")
    if math.isinf(float(digits)):
        _refuse("the number is too large for a decimal; use ** for larger powers of ten")
    return bounded(Fraction(mantissa) * Fraction(10) ** int(exponent or 0))


def show(value: Number) -> str:
    """The value as a person writes it: whole numbers and short decimals in full, others to 15 digits."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _written(Context(SIGNIFICANT_DIGITS).create_decimal_from_float(value), SIGNIFICANT_DIGITS)
    numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
    exactly = Context(_EXACT_DECIMAL_DIGITS)
    decimal = exactly.divide(numerator, denominator)
    if not exactly.flags[Inexact]:
        return _written(decimal, _EXACT_DECIMAL_DIGITS)
    return _written(Context(SIGNIFICANT_DIGITS).divide(numerator, denominator), SIGNIFICANT_DIGITS)


def _written(decimal: Decimal, digits: int) -> str:
    if not decimal:
        return "0"
    decimal = decimal.normalize(Context(digits))
    plainly = -7 <= decimal.adjusted() < digits
    return format(decimal, "f" if plainly else "e")


def power(base: Number, exponent: Number) -> Number | complex:
    """`base ** exponent`, exact where both allow it."""
    if isinstance(exponent, int) and not isinstance(base, float):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if base not in (0, 1, -1) and (bits - 1) * abs(exponent) > _MAX_BITS:
            _refuse(_TOO_LARGE)
        return Fraction(base) ** exponent
    if base < 0 and exponent != int(exponent):
        _refuse("a negative number has no real root of this kind; for a cube root use cbrt(x)")
    result: float | complex = float(base) ** float(exponent)
    return result


def _divide(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int):
        return Fraction(left, right)
    return left / right


OPERATORS: Mapping[str, Callable[[Number, Number], Number | complex]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "//": lambda left, right: left // right,
    "%": lambda left, right: left % right,
    "**": power,
}

CONSTANTS: Mapping[str, float] = {"pi": math.pi, "π": math.pi, "e": math.e, "tau": math.tau, "τ": math.tau}


@dataclass(frozen=True, slots=True)
class Function:
    """What a name computes, and how many arguments it takes (`most=None`: any number)."""

    compute: Callable[..., Number | complex]
    least: int = 1
    most: int | None = 1

    @property
    def takes(self) -> str:
        """How many arguments, in words."""
        if self.most is None:
            return f"{self.least} or more arguments"
        if self.least != self.most:
            return f"{self.least} or {self.most} arguments"
        return f"{self.least} argument" + ("s" if self.least != 1 else "")


def _whole(value: Number, name: str) -> int:
    if value != int(value):
        _refuse(f"{name} needs whole numbers, not {show(value)}")
    return int(value)


def _count(value: Number, name: str) -> int:
    number = _whole(value, name)
    if number < 0:
        _refuse(f"{name} is not defined for negative numbers")
    return number


def _round(value: Number, digits: Number = 0) -> Number:
    places = _whole(digits, "round")
    if abs(places) > MAX_DIGITS:
        _refuse(f"round takes at most {MAX_DIGITS} places")
    if isinstance(value, float):
        return round(value, places)
    return round(Fraction(value), places)


def _sqrt(value: Number) -> Number:
    if value < 0:
        _refuse("sqrt of a negative number is not a real number")
    if isinstance(value, float):
        return math.sqrt(value)
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return root if root * root == value else math.sqrt(value)


def _factorial(value: Number) -> int:
    number = _count(value, "factorial")
    if number > _MAX_BITS or math.lgamma(number + 1) / math.log(2) > _MAX_BITS:
        _refuse(_TOO_LARGE)
    return math.factorial(number)


def _comb(total: Number, chosen: Number) -> int:
    n, k = _count(total, "comb"), _count(chosen, "comb")
    k = min(k, n - k) if k <= n else k
    if k <= n and min(n, k * n.bit_length()) > _MAX_BITS:
        _refuse(_TOO_LARGE)
    return math.comb(n, k)


def _perm(total: Number, chosen: Number) -> int:
    n, k = _count(total, "perm"), _count(chosen, "perm")
    if k <= n and k * n.bit_length() > _MAX_BITS:
        _refuse(_TOO_LARGE)
    return math.perm(n, k)


def _lcm(*values: Number) -> int:
    whole = [_whole(value, "lcm") for value in values]
    if sum(value.bit_length() for value in whole) > _MAX_BITS:
        _refuse(_TOO_LARGE)
    return math.lcm(*whole)


_NAMED_BASES: Mapping[Number, Callable[[Number], float]] = {2: math.log2, 10: math.log10}


def _log(value: Number, base: Number = math.e) -> float:
    if value <= 0 or base <= 0:
        _refuse("a logarithm is only defined for positive numbers")
    if base in _NAMED_BASES:
        return _NAMED_BASES[base](value)
    return math.log(value) if base == math.e else math.log(value) / math.log(base)


FUNCTIONS: Mapping[str, Function] = {
    "abs": Function(abs),
    "round": Function(_round, 1, 2),
    "floor": Function(math.floor),
    "ceil": Function(math.ceil),
    "trunc": Function(math.trunc),
    "int": Function(math.trunc),
    "min": Function(min, 1, None),
    "max": Function(max, 1, None),
    "sum": Function(lambda *values: sum(values), 1, None),
    "mean": Function(lambda *values: _divide(sum(values), len(values)), 1, None),
    "avg": Function(lambda *values: _divide(sum(values), len(values)), 1, None),
    "pow": Function(power, 2, 2),
    "sqrt": Function(_sqrt),
    "cbrt": Function(math.cbrt),
    "hypot": Function(math.hypot, 1, None),
    "exp": Function(math.exp),
    "ln": Function(_log),
    "log": Function(_log, 1, 2),
    "log2": Function(lambda value: _log(value, 2)),
    "log10": Function(lambda value: _log(value, 10)),
    "sin": Function(math.sin),
    "cos": Function(math.cos),
    "tan": Function(math.tan),
    "asin": Function(math.asin),
    "acos": Function(math.acos),
    "atan": Function(math.atan),
    "atan2": Function(math.atan2, 2, 2),
    "sinh": Function(math.sinh),
    "cosh": Function(math.cosh),
    "tanh": Function(math.tanh),
    "asinh": Function(math.asinh),
    "acosh": Function(math.acosh),
    "atanh": Function(math.atanh),
    "degrees": Function(math.degrees),
    "radians": Function(math.radians),
    "factorial": Function(_factorial),
    "comb": Function(_comb, 2, 2),
    "perm": Function(_perm, 2, 2),
    "gcd": Function(lambda *values: math.gcd(*(_whole(value, "gcd") for value in values)), 1, None),
    "lcm": Function(_lcm, 1, None),
}
