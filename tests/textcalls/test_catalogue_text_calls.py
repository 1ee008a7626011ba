"""Family D of the shared catalogue, and its neighbours in other families: whole, and streamed at every split."""

import pytest
from tests.textcalls.kit import QUIRKS, TOOLS, assert_same_in_pieces, calls_of, quirks

from glassloop.wire.reasoning import split_thinking
from glassloop.wire.textcalls import find_calls

if not QUIRKS.exists():
    pytest.skip(f"the shared catalogue is not at {QUIRKS}", allow_module_level=True)


def message(quirk):
    return quirk["wire"]["body"]["choices"][0]["message"]


@pytest.mark.parametrize("quirk", quirks("D"), ids=lambda quirk: quirk["id"])
def test_text_calls_come_out_as_the_catalogue_says(quirk):
    text = message(quirk)["content"]
    read = assert_same_in_pieces(text, every_split=True)
    expect = quirk["expect"]
    if (
        expect["action"] == "feed_back"
    ):  # a call that cannot run: its problem, or its unknown name, goes to the model
        assert read.calls
        assert all(call.problem or call.name not in TOOLS for call in read.calls)
        return
    assert calls_of(read) == [(call["name"], call["arguments"]) for call in expect["calls"]]
    assert read.content == (text if expect["content"] == "(unchanged text)" else expect["content"])


@pytest.mark.parametrize("quirk", [q for q in quirks("E") if q["id"] == "E17"], ids=lambda quirk: quirk["id"])
def test_a_draft_in_thinking_is_no_call(quirk):
    _, text, _ = split_thinking(message(quirk)["content"])
    read = find_calls(text, TOOLS)
    assert read.calls == ()
    assert read.content == quirk["expect"]["content"]


@pytest.mark.parametrize("quirk", [q for q in quirks("F") if q["id"] == "F62"], ids=lambda quirk: quirk["id"])
def test_the_text_of_a_generation_that_a_server_refused_is_read(quirk):
    read = find_calls(quirk["wire"]["body"]["error"]["failed_generation"], TOOLS)
    assert calls_of(read) == [(call["name"], call["arguments"]) for call in quirk["expect"]["calls"]]


SPELLINGS_OF_A_REFUSED_GENERATION = [
    '<function=get_weather{"city": "Oslo"}</function>',
    '<function=get_weather({"city": "Oslo"})</function>',
    '<function=get_weather>{"city": "Oslo"}',
    '<function=get_weather,{"city": "Oslo"}></function>',
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    '<tool-use>{"tool_calls": [{"id": "x", "type": "function", "function": {"name": "get_weather", "parameters": {"city": "Oslo"}}}]}</tool-use>',
    '[{"name": "get_weather", "parameters": {"city": "Oslo"}}]',
    '{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
]


@pytest.mark.parametrize("text", SPELLINGS_OF_A_REFUSED_GENERATION)
def test_every_spelling_of_a_refused_generation_is_read(text):
    read = assert_same_in_pieces(text, every_split=True)
    assert calls_of(read) == [("get_weather", {"city": "Oslo"})]
    assert read.content == ""
