"""What is shown while an answer streams: never half a marker, and nothing later than it must be."""

import pytest
from tests.textcalls.kit import TOOLS, calls_of, read_in_pieces

from glassloop.wire.textcalls import TextCallReader

SHOWN_AT_ONCE = [
    "Hello",
    "Hello, world! 2 < 3 and 5 > 4.",
    "a<b",
    "<div>",
    "<b>bold</b> and <i>italic</i>",
    "[1, 2, 3]",
    "See [the docs](page.html).",
    '{"temperature": 21, "unit": "C"}',
    '{"name": "Oslo", "country": "Norway"}',
    '{"type": "weather"}',
    '[{"city": "Oslo"}]',
    '[{"name": "Oslo"}]',
    "```python\nx = 1\n```\nDone.",
    '```json\n{"city": "Oslo"}\n```\nDone.',
    "```json\n[1, 2]\n```\nDone.",
    "Sure:\n```python\nprint(1)\n",
    "analysis of the data shows this",
    "analysis: this",
    "Action: go home.\nNo tool is needed.",
    "add five and six",
    "get_weather is a tool",
    "> a quote\n>> deeper\n",
    ">>> import os\n>>> os.getcwd()\n",
    "functools.partial is handy",
    "`<tool_call>` is the tag.",
    "# Title\n\n- item\n- [ ] open\n- [x] done\n",
    "1 <| 2",
    "x |> f",
    "the <|special|> token",
    "He said: <tool_calls are fun",
    "naïve — “quoted” 日本語 👋",
]


@pytest.mark.parametrize("text", SHOWN_AT_ONCE)
def test_text_is_shown_as_soon_as_it_cannot_be_a_marker(text):
    reader = TextCallReader(TOOLS)
    assert (reader.feed(text + " z") + reader.feed("z\n")).rstrip() == text + " zz"
    read = reader.finish()
    assert read.content == text + " zz\n"
    assert read.calls == ()
    assert read.mends == ()


def first_shown(text):
    """How many characters had arrived when the first one was shown."""
    reader = TextCallReader(TOOLS)
    for count, mark in enumerate(text, 1):
        if reader.feed(mark):
            return count
    return None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Hello", 1),
        ("<tool", None),
        ("<tool_calx", 10),
        ("<|tool_call x", 12),
        ("[TOOL_CAT ", 10),
        ('{"temperature": 1}', 14),  # the key is complete, and none of a call
        ('{"name": "Oslo"}', 15),  # the name is complete, and none of a tool
        ("[1", 2),
        ("{x", 2),
        ("```python\n", None),
        ("```rust\n", 8),
        ("adx", 3),
        ("Act now", 4),
    ],
)
def test_a_marker_that_may_be_starting_is_held_exactly_until_it_is_decided(text, count):
    assert first_shown(text) == count


CALLS = [
    'Sure.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\nDone.',
    "Sure.\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>\nDone.",
    'Sure.\n[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}\nDone.',
    'Sure.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>\nDone.',
    'Sure.\n<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>\nDone.',
]


@pytest.mark.parametrize("text", CALLS)
def test_no_part_of_a_calls_markup_is_ever_shown(text):
    for size in range(1, 9):
        reader = TextCallReader(TOOLS)
        shown = [reader.feed(text[i : i + size]) for i in range(0, len(text), size)]
        read = reader.finish()
        assert "".join(shown).split() + read.tail.split() in (["Sure.", "Done."], ["Sure.", "Don", "e."])
        assert calls_of(read) == [("get_weather", {"city": "Oslo"})]


def test_text_after_a_call_is_shown_before_the_answer_ends():
    reader = TextCallReader(TOOLS)
    reader.feed('<tool_call>{"name": "list_cities", "arguments": {}}</tool_call>\nNow')
    assert reader.feed(" I wait") == " I wait"


def test_an_empty_answer_is_empty():
    shown, read = read_in_pieces([])
    assert (shown, read.content, read.calls, read.mends) == ("", "", (), ())


def test_empty_pieces_change_nothing():
    shown, read = read_in_pieces(["", "a", "", "<tool", "", "_call x", ""])
    assert shown == read.content == "a<tool_call x"
