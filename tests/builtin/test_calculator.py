"""The calculator against Python's own arithmetic, and against everything that is no arithmetic."""

from __future__ import annotations

import math
import operator
import re
import tracemalloc
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.tools.builtin.arithmetic import FUNCTIONS, MAX_DIGITS, ExpressionError, show
from glassloop.tools.builtin.calculator import calculator
from glassloop.tools.builtin.expression import MAX_CHARACTERS, evaluate


def value_of(expression: str) -> str:
    return calculator(expression).rpartition(" = ")[2]


def outcome(expression: str) -> str:
    """The answer or the refusal; any other exception fails the test."""
    try:
        return calculator(expression)
    except ExpressionError as error:
        return str(error).replace(" = ", "")


def refusal(expression: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        calculator(expression)
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(15 + 27) * 3", "126"),
        ("0.1 + 0.2", "0.3"),
        ("42 * 3.0", "126"),
        ("1/3", "0.333333333333333"),
        ("-2/3", "-0.666666666666667"),
        ("1/1024", "0.0009765625"),
        ("12345678901234567.89 + 0.01", "12345678901234567.9"),
        ("10**20/10**10", "10000000000"),
        ("floor(4.35*100)", "435"),
        ("1 % 0.1", "0"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("2**-2", "0.25"),
        ("-2**2", "-4"),
        ("2**3**2", "512"),
        ("2**-1**2", "0.5"),
        ("--3 + +4", "7"),
        ("10 - 4 - 3", "3"),
        ("2^10", "1024"),
        ("１５×３÷５−１", "8"),
        ("（１＋２）＊３", "9"),
        ("max（1，2）", "2"),
        ("3 · 4", "12"),
        ("٣ + ٤", "7"),
        ("1_000 + 1", "1001"),
        ("0xff + 0b11", "258"),
        (".5 + 5.", "5.5"),
        ("1.5e3", "1500"),
        ("1e-7 * 1", "0.0000001"),
        ("1e-9", "1e-9"),
        ("2 * PI", "6.28318530717959"),
        ("π - pi", "0"),
        ("math.sqrt(16)", "4"),
        ("Math.Max(1, 2)", "2"),
        ("sqrt(2.25)", "1.5"),
        ("sqrt(10**100)", str(10**50)),
        ("cbrt(-8)", "-2"),
        ("log(1000, 10)", "3"),
        ("floor(log(1000, 10))", "3"),
        ("log(8, 2) + log2(8) + log10(100)", "8"),
        ("ln(e)", "1"),
        ("hypot(3, 4)", "5"),
        ("degrees(pi)", "180"),
        ("sin(radians(30))", "0.5"),
        ("factorial(20)", str(math.factorial(20))),
        ("comb(1000, 500)", str(math.comb(1000, 500))),
        ("comb(10**30, 2)", str(math.comb(10**30, 2))),
        ("comb(2, 3)", "0"),
        ("perm(5, 2)", "20"),
        ("gcd(12, 18) + lcm(4, 6)", "18"),
        ("round(2.675, 2)", "2.68"),
        ("round(1234, -2)", "1200"),
        ("round(2.5) + round(3.5)", "6"),
        ("ceil(1/3) + trunc(-1.5) + int(2.9)", "2"),
        ("mean(1, 2, 6) + sum(1, 2)", "6"),
        ("abs(-3) - min(2, 1.5)", "1.5"),
        ("4 ** 0.5", "2"),
        ("10**400 / 3", "3.33333333333333e+399"),
        ("0 ** 0", "1"),
        ("1 ** (10**900)", "1"),
    ],
)
def test_an_expression_has_the_value_that_mathematics_gives_it(expression: str, expected: str) -> None:
    assert value_of(expression) == expected


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("(15 + 27) * 3", "(15 + 27) * 3 = 126"),
        ("  2\n^ \t3 ", "2 ** 3 = 8"),
        ("２×３", "2*3 = 6"),
        ("+".join(["1"] * 300), f"{'1+' * 50} … {'+1' * 50} = 300"),
    ],
)
def test_the_answer_repeats_what_was_computed(expression: str, answer: str) -> None:
    assert calculator(expression) == answer


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "the expression is empty"),
        (" \n", "the expression is empty"),
        ("1+2)", "unexpected `)` at character 4"),
        ("(1+2", "the bracket at character 1 is never closed"),
        ("max(1, 2", "the bracket at character 4 is never closed"),
        ("1 +", "ends where a number was expected"),
        ("1 + * 2", "unexpected `*` at character 5"),
        ("()", "unexpected `)` at character 2"),
        ("2pi", "unexpected `pi` at character 2: an operator is missing before it; write * to multiply"),
        ("2(3)", "an operator is missing"),
        ("1.2.3", "unexpected `.3` at character 4"),
        ("1,000 + 1", "write 1000, not 1,000"),
        ("max(1,000)", "write 1000, not 1,000"),
        ("sqrt(1,625)", "`sqrt` at character 1 takes 1 argument, not 2; write 1000, not 1,000"),
        ("round(1, 2, 3)", "takes 1 or 2 arguments, not 3"),
        ("max()", "takes 1 or more arguments, not 0"),
        ("007", "no leading zeros"),
        ("15%", "write 15/100 for 15%"),
        ("200 * 15% + 1)", "unexpected `)`"),
        ("(10%) * 2", "write 15/100 for 15%"),
        ("5!", "write factorial(n)"),
        ("1+2=", "write only the expression, without ="),
        ("3²", "write x**2"),
        ("$5", "without a currency sign"),
        ("3 x 4", "unexpected `x` at character 3: write * to multiply"),
        ("sqrtt(4)", "unknown name `sqrtt` at character 1; did you mean `sqrt`?"),
        ("1 + foo", "unknown name `foo` at character 5"),
        ("sqrt + 1", "write sqrt(...)"),
        ("pi(2)", "unexpected `(` at character 3"),
        ("nan", "unknown name `nan`"),
        ("inf", "unknown name `inf`"),
        ("0/0", "`/` at character 2: division by zero"),
        ("1 // 0", "division by zero"),
        ("1 % 0.0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("sqrt(-1)", "not a real number"),
        ("(-8) ** (1/3)", "use cbrt(x)"),
        ("ln(0)", "only defined for positive numbers"),
        ("log(2, 1)", "division by zero"),
        ("acos(2)", "`acos` at character 1: not defined for 2"),
        ("gcd(1.5, 2)", "gcd needs whole numbers, not 1.5"),
        ("factorial(-1)", "not defined for negative numbers"),
        ("factorial(2.5)", "needs whole numbers"),
        ("1e309", "the exponent of a number must be between"),
        ("9e308 * 1", "too large for a decimal"),
        ("1e-400", "the exponent of a number must be between"),
        ("exp(1000)", "too large"),
        ("exp(700) * exp(700)", "not a finite number"),
        ("sin(10**500)", "too large"),
        ("\x1b[31m", "unexpected `\\x1b` at character 1"),
    ],
)
def test_what_is_no_arithmetic_or_has_no_value_is_refused_with_its_place(expression: str, said: str) -> None:
    assert said in refusal(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('id')",
        "().__class__.__bases__[0].__subclasses__()",
        "'a' * 10**10",
        "[x for x in (1,)]",
        "lambda: 1",
        "1 if 2 else 3",
        "a := 1",
        "open",
        "e.__class__",
        "max.__self__",
        "1; 2",
        "1 == 1",
        "f(**{})",
        "{1}",
        "math.os",
        "True",
        "1j",
        "1 << 9999999",
        "# 1",
    ],
)
def test_code_is_never_anything_but_an_error(expression: str) -> None:
    assert re.search(r"unexpected|unknown|operator", refusal(expression))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("9**9**9", "too large"),
        ("10**5000", "too large"),
        ("2**100000*2", "too large"),
        ("3**-99999999", "too large"),
        ("(1/3)**999999", "too large"),
        ("10**3000*10**3000", "too large"),
        ("*".join(["10**3999"] * 400), "too large"),
        ("factorial(10**6)", "too large"),
        ("factorial(factorial(100))", "too large"),
        ("comb(10**9, 5*10**8)", "too large"),
        ("perm(10**9, 10**8)", "too large"),
        ("lcm(2**9000, 3**8000)", "too large"),
        ("pow(9, 9**9)", "too large"),
        ("9" * 4500, "too long"),
        ("0x" + "f" * 4500, "too large"),
        ("1e" + "9" * 3000, "exponent"),
        ("1." + "0" * 4500, "too long"),
        ("round(1/3, 10**9)", "at most"),
        ("1" * 10_000_000, "the expression is too long: 10000000 characters, at most 5000"),
        ("(" * 2400 + "1" + ")" * 2400, "nested too deeply at character 101"),
        ("-" * 4000 + "1", "nested too deeply"),
        ("2**" * 1600 + "1", "nested too deeply"),
        ("sqrt(" * 900 + "1", "nested too deeply"),
        ("(" * 5000, "nested too deeply"),
        ("(" * 10_000 + ")" * 10_000, "too long"),
    ],
)
def test_a_bomb_is_refused_before_it_is_computed(expression: str, said: str) -> None:
    tracemalloc.start()
    try:
        assert said in refusal(expression)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_long_chain_needs_no_depth() -> None:
    assert value_of("+".join(["1"] * (MAX_CHARACTERS // 2))) == str(MAX_CHARACTERS // 2)


def test_the_largest_number_allowed_is_shown_in_full() -> None:
    assert value_of(f"10**{MAX_DIGITS - 1}") == str(10 ** (MAX_DIGITS - 1))


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_a_refusal(text: str) -> None:
    assert outcome(text)


fragments = st.sampled_from(
    [*"()+-*/%^,.! 0123456789e_", "**", "//", "1e308", "9999", "pi", *FUNCTIONS, "factorial(", "1/3"]
)


@given(st.lists(fragments, max_size=25).map("".join))
def test_any_shuffle_of_arithmetic_is_a_finite_value_or_a_refusal(text: str) -> None:
    answer = outcome(text)
    assert " = " not in answer or Decimal(answer.rpartition(" = ")[2]).is_finite()


# ── random trees, computed here from the tree and there from the text ────────────────────────────────


@dataclass(frozen=True)
class Tree:
    """`text` as written, and the operands from which `exact` computes it."""

    sign: str
    operands: tuple[Tree, ...] = ()
    number: str = ""


EXACT = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": max,
    "min": min,
}
RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "neg": 3, "**": 4, "number": 5, "max": 5, "min": 5}


def exact(tree: Tree) -> Fraction:
    values = [exact(operand) for operand in tree.operands]
    if tree.sign == "number":
        return Fraction(tree.number)
    if tree.sign == "neg":
        return -values[0]
    if tree.sign == "**":
        return Fraction(values[0] ** int(values[1]))
    return Fraction(EXACT[tree.sign](*values))


def written(tree: Tree, gap: str) -> str:
    """With brackets only where they are needed, so that precedence and grouping are tested too."""
    if tree.sign == "number":
        return tree.number
    parts = [written(operand, gap) for operand in tree.operands]
    if tree.sign in ("max", "min"):
        return f"{tree.sign}({f',{gap}'.join(parts)})"
    ranks = [RANK[operand.sign] for operand in tree.operands]
    own = RANK[tree.sign]
    if tree.sign == "neg":
        return f"-{parts[0]}" if ranks[0] >= own else f"-({parts[0]})"
    left_needs = ranks[0] <= own if tree.sign == "**" else ranks[0] < own
    # A sign on the right of a power needs none: 2**-1.
    right_needs = ranks[1] < 3 if tree.sign == "**" else ranks[1] <= own
    left, right = (
        f"({part})" if needs else part for part, needs in zip(parts, (left_needs, right_needs), strict=True)
    )
    return f"{left}{gap}{tree.sign}{gap}{right}"


numbers = st.one_of(
    st.integers(0, 10**12).map(str),
    st.decimals("0", "9999", places=3, allow_nan=False).map(lambda number: f"{number:f}"),
).map(lambda text: Tree("number", number=text))
small = st.integers(-3, 3).map(
    lambda n: Tree("number", number=str(n)) if n >= 0 else Tree("neg", (Tree("number", number=str(-n)),))
)


def deeper(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    pair = st.tuples(children, children)
    return st.one_of(
        st.builds(Tree, st.sampled_from(sorted(EXACT)), pair),
        st.builds(Tree, st.just("neg"), st.tuples(children)),
        st.builds(Tree, st.just("**"), st.tuples(children, small)),
    )


@given(st.recursive(numbers, deeper, max_leaves=14), st.sampled_from(["", " "]))
def test_random_expressions_have_exactly_the_value_of_their_tree(tree: Tree, gap: str) -> None:
    text = written(tree, gap)
    try:
        expected = exact(tree)
    except ZeroDivisionError:
        assert "division by zero" in refusal(text)
        return
    assert evaluate(text)[1] == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_shown_to_within_its_fifteenth_digit(value: float) -> None:
    assert abs(Fraction(show(value)) - Fraction(value)) <= abs(Fraction(value)) / 10**14


@given(st.fractions())
def test_an_exact_value_is_shown_to_within_its_fifteenth_digit(value: Fraction) -> None:
    assert abs(Fraction(show(value)) - value) <= abs(value) / 10**14


@pytest.mark.parametrize(
    "name",
    [
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "atanh",
        "exp",
        "degrees",
        "radians",
        "cbrt",
        "log10",
        "log2",
    ],
)
def test_a_function_agrees_with_the_standard_library(name: str) -> None:
    assert evaluate(f"{name}(0.75)")[1] == getattr(math, name)(0.75)
