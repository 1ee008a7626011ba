from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.reading import joined, json_lines, shared

from glassloop.core.events import Delta, ReasoningDelta, TextDelta
from glassloop.wire.reasoning import ThinkSplitter, reasoning_of, split_thinking


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        ("<think>2+2</think>\n\nIt is 4.", "2+2", "It is 4."),
        ("\n <think>2+2</think>It is 4.", "2+2", "It is 4."),
        ("<THINK>2+2</Think >It is 4.", "2+2", "It is 4."),
        ('<think signature="x">2+2</think>It is 4.', "2+2", "It is 4."),
        ("<thinking>2+2</thinking>It is 4.", "2+2", "It is 4."),
        ("<think>2+2</thinking>It is 4.", "2+2", "It is 4."),
        ("[THINK]2+2[/THINK]It is 4.", "2+2", "It is 4."),
        ("<seed:think>2+2</seed:think>It is 4.", "2+2", "It is 4."),
        ("<mm:think>2+2</mm:think>It is 4.", "2+2", "It is 4."),
        (
            "<|START_THINKING|>2+2<|END_THINKING|><|START_RESPONSE|>It is 4.<|END_RESPONSE|>",
            "2+2",
            "It is 4.",
        ),
        ("◁think▷2+2◁/think▷It is 4.", "2+2", "It is 4."),
        ("<think>2+2</think>\n<answer>\nIt is 4.\n</answer>", "2+2", "It is 4.\n"),
        ("2+2\n</think>\n\nIt is 4.", "2+2", "It is 4."),
        ("2+2[/THINK]It is 4.", "2+2", "It is 4."),
        ("</think>It is 4.", "", "It is 4."),
        ("<think></think>It is 4.", "", "It is 4."),
        ("<think>2+2</think></think>It is 4.", "2+2", "It is 4."),
        ("a</think>\n\n<think></think>\n\nIt is 4.", "a", "It is 4."),
        ("<think>a</think>\n<think>b</think>It is 4.", "ab", "It is 4."),
        ("<think>a</think>It is <think>b</think>4.", "ab", "It is 4."),
        ("Let me see.\n<think>2+2</think>\nIt is 4.", "2+2", "Let me see.\n\nIt is 4."),
        ("<think>never closed", "never closed", ""),
        ("<think>a <b> < [x] </b></think>c", "a <b> < [x] </b>", "c"),
        ("<think>a</think>Use `</think>` to close.", "a", "Use `</think>` to close."),
    ],
)
def test_thinking_is_split_off_in_every_spelling(text: str, reasoning: str, rest: str) -> None:
    found, left, mend = split_thinking(text)
    assert (found, left) == (reasoning, rest)
    assert mend is not None
    assert mend.code == "thinking_in_content"


@pytest.mark.parametrize(
    "text",
    [
        "It is 4.",
        "",
        "  two blanks first",
        "The tag <think> opens a block and `</think>` closes it.",
        "```\n<think>\nx\n</think>\n```\nThat is how.",
        "Use '</think>' here.",
        "<thinker>no</thinker>",
        "a < b and [THINK about it]",
        "<answer>4</answer>",
        "<think",
        "[",
        "x ◁",
    ],
)
def test_what_only_mentions_a_tag_stays_as_it_is(text: str) -> None:
    assert split_thinking(text) == ("", text, None)


def _fed(pieces: list[str]) -> tuple[str, str, tuple[Any, ...]]:
    splitter = ThinkSplitter()
    deltas: list[Delta] = [delta for piece in pieces for delta in splitter.feed(piece)]
    deltas += splitter.finish()
    return joined(deltas, TextDelta), joined(deltas, ReasoningDelta), splitter.result()


_PIECES = st.sampled_from(
    ["<think>", "</think>", "<THINK>", "[THINK]", "[/THINK]", "<think x='1'>", "<think ", ">", "<", "[", "◁think▷", "```\n", "`", "\n", " ", "a", "text. ", "<answer>", "</answer>", "</think", "thin", "k>", "<|START_THINKING|>"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=14), st.data())
def test_any_split_of_the_content_gives_the_same(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    split = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert _fed(split) == _fed([text]) == _fed(list(text))
    assert split_thinking(text) == _fed([text])[2]


@given(st.text(st.characters(exclude_characters="<[◁")))
def test_text_without_tags_is_never_changed_or_held_to_the_end(text: str) -> None:
    assert _fed([text])[0] == text


def test_text_is_shown_as_it_comes() -> None:
    splitter = ThinkSplitter()
    assert splitter.feed("<think>a") == [ReasoningDelta("a")]
    assert splitter.feed("b</thi") == [ReasoningDelta("b")]
    assert splitter.feed("nk>\n") == []
    assert splitter.feed("It is <") == [TextDelta("It is ")]
    assert splitter.feed("4") == [TextDelta("<4")]


@pytest.mark.parametrize(
    ("message", "reasoning", "field"),
    [
        ({"reasoning_content": "a"}, "a", "reasoning_content"),
        ({"reasoning": "a"}, "a", "reasoning"),
        ({"reasoning": "a", "reasoning_content": "a"}, "a", "reasoning_content"),
        (
            {"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "text": "a"}]},
            "a",
            "reasoning",
        ),
        (
            {"reasoning": None, "reasoning_details": [{"summary": "a"}, {"text": "b"}]},
            "ab",
            "reasoning_details",
        ),
        ({"thinking": "a"}, "a", "thinking"),
        ({"reasoning_text": "a"}, "a", "reasoning_text"),
        ({"reasoning": {"content": "a"}}, "a", "reasoning"),
        (
            {"thinking_blocks": [{"type": "thinking", "thinking": "a", "signature": "s"}]},
            "a",
            "thinking_blocks",
        ),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]}, "a", "content"),
        ({"content": "a", "reasoning_content": ""}, "", None),
        ({"content": None}, "", None),
    ],
)
def test_reasoning_is_found_in_every_field(message: Any, reasoning: str, field: str | None) -> None:
    assert reasoning_of(message) == (reasoning, field)


NOT_OURS = {
    "reasoning:granite": "plain sentences as markers cannot be told from an answer",
    "<tool_call>": "a call inside thinking stays there; it is recovered only if nothing else came",
    "only_open_tag": "an unclosed block is thinking in both modes",
}


def test_recorded_outputs_of_thinking_models_are_split_as_their_parsers_do() -> None:
    outputs = json_lines(shared("GLASSLOOP_CORPORA", "corpora", "text_calls.jsonl"))
    outputs = [output for output in outputs if output["family"].startswith("reasoning:")]
    assert len(outputs) > 40
    for output in outputs:
        about = output["family"] + output["text"] + output["source"]["case"]
        unclosed = output["expect"]["content"] == output["text"]
        if unclosed or any(mark in about for mark in NOT_OURS):
            continue
        reasoning, rest, _ = split_thinking(output["text"])
        expected = output["expect"]
        assert reasoning.strip() == (expected["reasoning"] or "").strip(), output["text"]
        assert rest.strip() == (expected["content"] or "").strip(), output["text"]
