"""Rules that hold for any text at all, made from the words of all notations and much that is none."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.textcalls.dialects import DIALECTS
from tests.textcalls.kit import TOOLS, read_in_pieces, without_tail

from glassloop.wire.textcalls import find_calls
from glassloop.wire.textcalls.tokens import (
    ARGUMENT_KEYS,
    CALL_TAGS,
    CLOSERS,
    CONTROL_WORDS,
    NOISE,
    OPENERS,
    PARAMETER_TAGS,
    SEPARATORS,
)
from glassloop.wire.textcalls.whole import SHAPES

CALL = ("write_note", {"path": "a.txt", "text": "b"})
WORDS = [
    *OPENERS, *CALL_TAGS, *CLOSERS, *PARAMETER_TAGS, *PARAMETER_TAGS.values(), *ARGUMENT_KEYS, *NOISE, *SEPARATORS,
    *CONTROL_WORDS, *SHAPES, *TOOLS, "<|im_start|>", "<|im_end|>", "<|channel|>", "<|start|>", "<|message|>", "<|end|>",
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}', '{"city": "Oslo"}', "(city='Oslo')", '"', "'", "\\", "{", "}",
    "[", "]", "(", ")", ">", ":", ",", ";", "\n", "\n\n", " ", "text", "`", "```", "Oslo", "city", "5", "Observation:", "call:",
    "to=functions.get_weather", "<|", "｜>", '<|"|>', "<escape>", "</arg_key>", "<arg_value>", "</arg_value>", "…", "é",
    "<city>", "</city>", "assistantfinal", "Action Input:", '"name": "', "```json\n", "<get_weather>", "</get_weather>",
]  # fmt: skip
texts = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=14).map("".join)


@settings(max_examples=600)
@example(text='<tool_call>{"city": "Oslo"}<tool_call>', cuts=set())
@example(text='<tool_call>["Oslo"]<text', cuts={19})
@example(text="<tool_call>[)<tool_call>", cuts=set())
@example(text="<|start|>" + "a " * 110 + "<|tool call end|>", cuts=set())
@example(text="<tool_call>" + "a" * 250 + '{"city": "Oslo"}', cuts=set())
@example(text=f"<function=get_weather{' ' * 188}>{{}}</function>", cuts=set())  # as long as a head may be
@example(text=f"<function=get_weather{' ' * 189}>{{}}</function>", cuts={209})
@example(text=f"<function=get_weather{' ' * 190}>{{}}</function>", cuts={211})
@given(text=texts, cuts=st.sets(st.integers(0, 80), max_size=5))
def test_any_split_shows_the_same_text_and_finds_the_same_calls(text, cuts):
    whole = find_calls(text, TOOLS)
    cuts = sorted(min(cut, len(text)) for cut in cuts)
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for split in (pieces, list(text)):
        shown, read = read_in_pieces(split)
        assert without_tail(read) == without_tail(whole)
        assert shown.strip() == read.content.strip()


@settings(max_examples=300)
@given(text=texts)
def test_text_without_calls_and_control_tokens_is_kept_as_it_is(text):
    read = find_calls(text, TOOLS)
    if not read.calls and not read.mends and not read.reasoning:
        assert read.content == text


@settings(max_examples=300)
@given(text=texts, cut=st.booleans(), structured=st.booleans())
def test_a_call_that_may_run_names_a_tool_or_stood_behind_a_control_token(text, cut, structured):
    _, read = read_in_pieces([text], structured_calls=structured, cut_off=cut)
    assert not (structured and read.calls)
    for call in read.calls:
        assert call.problem or isinstance(call.arguments, dict)


@settings(max_examples=200)
@given(
    before=texts,
    dialect=st.sampled_from([d for d in DIALECTS if d.strict and not d.name.startswith("mistral")]),
)
def test_a_marked_call_on_its_own_line_is_found_whatever_was_said_before(before, dialect):
    quotes = "`" in before or "~~~" in before
    opened = any(
        word in before for word in (*OPENERS, *SHAPES, "<|channel|>", "<|start|>", "<|message|>", "<")
    ) or any(name in before for name in TOOLS)
    if not (quotes or opened):
        read = find_calls(f"{before}\n\n{dialect.render([CALL])}", TOOLS)
        assert [(call.name, call.arguments) for call in read.calls] == [CALL]
