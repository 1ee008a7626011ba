"""The `calculator` tool. Reading and computing are in `expression` and `arithmetic`."""

from __future__ import annotations

from glassloop.tools.builtin.arithmetic import show
from glassloop.tools.builtin.expression import evaluate
from glassloop.tools.tool import tool

_MAX_ECHO = 200


@tool(effect="read", timeout=10)
def calculator(expression: str) -> str:
    """Compute an arithmetic expression. Use it for every calculation, however small.

    Knows + - * / // (rounds down) % (remainder) ** or ^ (power), brackets, the constants pi, e and tau, and
    functions such as sqrt, round, floor, ceil, abs, min, max, sum, mean, sin, cos, tan (in radians), degrees,
    radians, exp, ln, log (natural; log(x, base) for another), log10, log2, factorial, comb, gcd, lcm, hypot.
    Whole numbers and decimals are exact; other results are shown to 15 digits. round() rounds halves to even.

    Args:
        expression: What to compute, such as "(15 + 27) * 3" or "sqrt(2) * 100". Plain numbers without
            thousands separators, units or percent signs: 15% of 200 is "200 * 15 / 100".
    """
    plain, value = evaluate(expression)
    return f"{_shortened(plain)} = {show(value)}"


def _shortened(text: str) -> str:
    if len(text) <= _MAX_ECHO:
        return text
    half = _MAX_ECHO // 2
    return f"{text[:half]} … {text[-half:]}"
