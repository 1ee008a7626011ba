"""Markdown that is still coming: what is printed for good must never have to change."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from glassloop.cli.markdown import Block, blocks_of

DOCUMENT = """# Title

A paragraph
of two lines.

1. one

2. two

   more of two

- a
- b

```python
x = 1

y = "~~~"
```

~~~~
```

not the end
~~~~

| a | b |
|---|---|
| 1 | 2 |

1990 was a year.

    indented code

Last."""

LIST = "1. one\n\n2. two\n\n   more of two\n\n"  # and its neighbour, which Markdown may read as the same list
BLOCKS = [
    "# Title\n\n",
    "A paragraph\nof two lines.\n\n",
    LIST + "- a\n- b\n\n",
    '```python\nx = 1\n\ny = "~~~"\n```\n\n',
    "~~~~\n```\n\nnot the end\n~~~~\n\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "1990 was a year.\n\n    indented code\n\n",
]


def test_blocks_end_where_markdown_ends_them() -> None:
    assert blocks_of(DOCUMENT + "\n") == (BLOCKS, "Last.\n")


@pytest.mark.parametrize("end", range(0, len(DOCUMENT), 7))
def test_a_finished_block_stays_finished(end: int) -> None:
    blocks, rest = blocks_of(DOCUMENT[:end])
    assert blocks == BLOCKS[: len(blocks)]
    assert "".join(blocks) + rest == DOCUMENT[:end]


@given(st.text("a#1.- \n`~|>", max_size=60), st.integers(0, 60))
def test_more_text_never_changes_what_was_finished(text: str, end: int) -> None:
    before, _ = blocks_of(text[:end])
    after, _ = blocks_of(text)
    assert after[: len(before)] == before


def shown(markdown: str, width: int = 30, most: int | None = None) -> str:
    out = StringIO()
    Console(file=out, width=width, force_terminal=True, color_system=None).print(Block(markdown, most))
    return out.getvalue()


@pytest.mark.parametrize(
    "markdown",
    ["&#27;[2J &#x202e;", "`\x1b[2J`", "[click](http://evil.example)", "![pixel](http://evil.example/p.png)", "&rlm;&ZeroWidthSpace;"],
)  # fmt: skip
def test_markdown_neither_steers_the_terminal_nor_makes_links(markdown: str) -> None:
    text = shown(markdown)
    assert not set(text) & set("\x1b\u202e\u200b\u200f")


def test_a_block_has_no_empty_lines_around_it_and_can_be_cut_to_its_end() -> None:
    assert shown("\n\nhello\n\n").split("\n") == ["hello".ljust(30), ""]
    assert [line.strip() for line in shown("a\n\nb\n\nc", most=2).split("\n")] == ["", "c", ""]
