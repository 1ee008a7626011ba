"""What we did not write is shown with its control characters visible, and keeps its width."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.cli.safe_text import SafeStream, one_line, shortened, visible, width_of, wrapped

SHOWN = {
    "\x1b]0;title\x07": "\\x1b]0;title\\x07",
    "\x1b[2J\x9b31m": "\\x1b[2J\\x9b31m",
    "over\rwritten": "over\\x0dwritten",
    "dos\r\nlines\tand tabs\n": "dos\nlines\tand tabs\n",
    "a\u202eb\u2066c": "a\\u202eb\\u2066c",
    "zero\u200bwidth\ufeff": "zero\\u200bwidth\\ufeff",
    "tag \U000e0041": "tag \\U000e0041",
    "half \ud83d": "half \\ud83d",
    "soft\u00adhyphen\u2028line": "soft\\xadhyphen\\u2028line",
    "hid\u200dden joiner": "hid\\u200dden joiner",
    "data a\ufe01\ufe02\U000e0101": "data a\\ufe01\\ufe02\\U000e0101",
    "👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3": "👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3",
    "می\u200cخواهم क्\u200dष": "می\u200cخواهم क्\u200dष",
    "葛\U000e0100 北京": "葛\U000e0100 北京",
    "plain ASCII, é, 中文, 한국어": "plain ASCII, é, 中文, 한국어",
}
anything = st.text(
    st.one_of(st.characters(), st.sampled_from("\x1b\r\n\u200d\u200c\ufe0f\u202e\ud800👩💻a北\U000e0100"))
)


@pytest.mark.parametrize("text", SHOWN)
def test_what_could_steer_or_hide_is_spelled_out(text: str) -> None:
    assert visible(text) == SHOWN[text]


@given(anything)
def test_nothing_that_moves_the_cursor_is_left(text: str) -> None:
    shown = visible(text)
    assert all(unicodedata.category(one) not in ("Cc", "Cs", "Zl", "Zp") or one in "\n\t" for one in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff")
    shown.encode()


@given(anything)
def test_what_is_visible_stays_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(st.lists(anything))
def test_text_in_pieces_is_shown_as_in_one(pieces: list[str]) -> None:
    stream = SafeStream()
    assert "".join([*(stream.feed(piece) for piece in pieces), stream.end()]) == visible("".join(pieces))


@given(anything)
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@given(anything.map(one_line), st.integers(0, 30))
def test_a_shortened_line_fits_and_a_short_one_is_untouched(line: str, columns: int) -> None:
    cut = shortened(line, columns)
    assert width_of(cut) <= columns
    assert cut == line or cut == "" or cut.endswith("…")
    if width_of(line) <= columns and len(line) <= columns:
        assert cut == line


@pytest.mark.parametrize("columns", [1, 2, 7, 20])
def test_wrapped_lines_fit(columns: int) -> None:
    lines = wrapped("北京今天的天气怎么样 and a-very-long-word-that-must-break\nnext", columns)
    assert all(width_of(line) <= max(2, columns) for line in lines)
    assert "".join("".join(lines).split()) == "北京今天的天气怎么样anda-very-long-word-that-must-breaknext"


WRAPPED = {
    "words stay whole": ("one two three", 8, ["one two", "three"]),
    "what is too long is cut": ("abcdefghij kl", 4, ["abcd", "efgh", "ij", "kl"]),
    "Chinese breaks anywhere": ("密钥只会发给主机", 8, ["密钥只会", "发给主机"]),
    "no line begins with a closing mark": ("密钥只会，发给主机。", 8, ["密钥只", "会，发给", "主机。"]),
    "no line ends with an opening mark": ("密钥只（会）发", 8, ["密钥只", "（会）发"]),
    "Latin words within Chinese stay whole": ("密钥 key 只发给 host", 9, ["密钥 key", "只发给", "host"]),
    "an apostrophe is no end": ("we don’t go", 6, ["we", "don’t", "go"]),
    "margins stay": ("  a b", 9, ["  a b"]),
    "lines stay": ("a\n\nb", 9, ["a", "", "b"]),
}


@pytest.mark.parametrize("case", WRAPPED)
def test_lines_break_where_a_reader_expects_it(case: str) -> None:
    text, columns, lines = WRAPPED[case]
    assert wrapped(text, columns) == lines


@given(st.text(), st.integers(2, 40))
def test_wrapping_loses_nothing_but_white_space(text: str, columns: int) -> None:
    assert "".join("".join(wrapped(text, columns)).split()) == "".join(text.split())
