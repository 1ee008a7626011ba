"""Reading costs in proportion to the text, whatever the text is: operations are counted at two sizes, never timed."""

import cProfile

import pytest
from tests.textcalls.kit import TOOLS

from glassloop.core.events import TextDelta
from glassloop.wire.textcalls import TextCallReader

MEGABYTE = 1 << 20
PIECE = 61

PATHOLOGICAL = {
    "plain text": "The quick brown fox jumps over the lazy dog, and so on and on.\n",
    "one line": "The quick brown fox jumps over the lazy dog, and so on and on. ",
    "HTML": "<p>The <b>quick</b> brown fox [1] jumps</p>\n",
    "beginnings of markers": "< [ <tool [TOOL <| ]< text and more text ",
    "openers": "<tool_call>",
    "openers with a broken body": '<tool_call>{"name": "x", "arguments": <',
    "openers with an endless name": "<tool_call>" + "x" * 50,
    "closers": "text </tool_call> ",
    "control tokens": "<|im_end|> and text ",
    "one endless string": (
        '<tool_call>{"name": "write_note", "arguments": {"text": "',
        'a </tool_call> \\" {[ ',
    ),
    "one endless value": ("<function=write_note><parameter=text>", "a </function> b </tool_call> c "),
    "tags that open no parameter": ("<function=write_note><parameter=text>", "<parameter=x "),
    "endless braces": ("<|tool_call>call:write_note{", '{a:"} '),
    "endless brackets": ("<tool_call>", "[" * 40),
    "bare JSON without an end": ('{"name": "write_note", "arguments": {"text": "', "a } ] \\n "),
    "a fence without an end": ('```json\n{"name": "write_note", "arguments": {"text": "', "``` { "),
    "actions": "Action: write_note\nAction Input: none\nObservation\n",
    "thoughts": ("Thought: ", "and then\nAct "),
    "harmony headers": "<|channel|>commentary<|message|>text ",
    "stripped harmony": ("analysisI ", "think, assistant commentary "),
    "argument pairs": ("<tool_call>write_note", "<arg_key>k</arg_key><arg_value>v</arg_value>"),
    "fences": "```\ncode `x`\n```\n",
    "white space": " \n\t ",
}


def text_of(name, size):
    pattern = PATHOLOGICAL[name]
    head, body = pattern if isinstance(pattern, tuple) else ("", pattern)
    return (head + body * (size // len(body) + 1))[:size]


def operations(text):
    """Function calls made, and characters kept for another look, while reading in pieces."""
    profile = cProfile.Profile()
    profile.enable()
    reader = TextCallReader(TOOLS)
    kept = 0
    for start in range(0, len(text), PIECE):
        reader.feed(text[start : start + PIECE])
        kept += reader._source.left()
    reader.finish()
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()), kept


def assert_linear(name, size):
    half, kept_of_half = operations(text_of(name, size // 2))
    whole, kept_of_whole = operations(text_of(name, size))
    assert whole < 2.2 * half + 5_000
    assert kept_of_whole < 2.2 * kept_of_half + 5_000
    assert kept_of_whole < 4 * size  # what waits is a tag at most, never the whole call again


@pytest.mark.parametrize("name", PATHOLOGICAL)
def test_twice_the_text_costs_twice_the_operations(name):
    assert_linear(name, MEGABYTE // 16)


@pytest.mark.parametrize(
    "name", ["one line", "one endless string", "bare JSON without an end", "stripped harmony"]
)
def test_a_megabyte_costs_twice_the_operations_of_half_a_one(name):
    assert_linear(name, MEGABYTE)


class Copy:
    """The least that a reader of a stream does: keep each piece and hand it on."""

    def __init__(self):
        self.content = []

    def feed(self, text):
        self.content.append(text)
        return text


def calls_made(reader, text):
    reader.feed("What is built once for all answers is built. ")
    profile = cProfile.Profile()
    profile.enable()
    for start in range(0, len(text), PIECE):
        TextDelta(reader.feed(text[start : start + PIECE]))
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    "line",
    ["plain text", "one line", "The letter a < b, x[0] of [1] and <p>: $5 (or so) {not} more.\n"],
    ids=["lines", "one line", "signs"],
)
def test_text_without_a_call_costs_three_calls_more_than_a_copy_for_each_piece(line):
    text = text_of(line, MEGABYTE) if line in PATHOLOGICAL else (line * MEGABYTE)[:MEGABYTE]
    more = calls_made(TextCallReader(TOOLS), text) - calls_made(Copy(), text)
    assert more <= 3 * (len(text) / PIECE)
