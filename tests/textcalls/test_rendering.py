"""Text mode: what a model without tool calling is told, and that its family's notation is read back."""

import pytest
from tests.textcalls.kit import TOOLS, calls_of

from glassloop.core.entries import Reply, ToolCall
from glassloop.wire.messages import render
from glassloop.wire.profile import Profile
from glassloop.wire.textcalls import (
    FAMILIES,
    family_for,
    find_calls,
    render_calls,
    render_result,
    render_tools,
)

CALLS = (
    ToolCall("1", "write_note", {"path": "a.txt", "text": 'two\nlines, "quoted", it\'s ünïcode'}),
    ToolCall("2", "add", {"a": 5, "b": -7}),
    ToolCall("3", "plan_route", {"stops": ["Oslo", "Rome"], "fast": True, "note": None}),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_familys_calls_are_read_back_without_a_mend(family):
    text = render_calls(family, "Let me see.", CALLS)
    read = find_calls(text, TOOLS, family)
    assert calls_of(read) == [(call.name, call.arguments) for call in CALLS]
    assert read.content == "Let me see."
    assert read.mends == ()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_call_in_another_familys_notation_is_read_with_a_mend(family):
    other = "mistral" if family in {"hermes", "qwen_xml", "glm"} else "hermes"
    read = find_calls(render_calls(family, "", CALLS[:1]), TOOLS, other)
    assert calls_of(read) == [("write_note", CALLS[0].arguments)]
    assert [mend.code for mend in read.mends] == ["text_call"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prompt_names_every_tool_shows_the_notation_and_is_short(family):
    prompt = render_tools(family, list(TOOLS.values()))
    assert all(f'"{name}"' in prompt for name in TOOLS)
    assert FAMILIES[family].calls([("tool_name", {"argument": "value"})]) in prompt
    schemas = sum(
        len(str(tool.parameters)) + len(tool.name) + len(tool.description) + 50 for tool in TOOLS.values()
    )
    assert len(prompt) < schemas + 500


@pytest.mark.parametrize("family", FAMILIES)
def test_the_example_of_the_prompt_is_no_call_of_a_real_tool(family):
    prompt = render_tools(family, list(TOOLS.values()))
    assert all(name not in TOOLS for name, _ in calls_of(find_calls(prompt, TOOLS)))


def test_without_tools_there_is_no_prompt():
    assert render_tools("hermes", []) == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_result_comes_back_in_a_user_message_that_holds_it_whole(family):
    role, content = render_result(family, CALLS[0], 'ok: {"a": 1}\n{braces}')
    assert role == "user"
    assert "{braces}" in content


def test_a_turn_without_calls_is_its_text():
    assert render_calls("hermes", "Hello.", ()) == "Hello."


def test_an_unknown_mode_is_written_as_hermes():
    assert (
        render_calls("native", "", CALLS[1:2])
        == '<tool_call>\n{"name": "add", "arguments": {"a": 5, "b": -7}}\n</tool_call>'
    )


MODELS = {
    "NousResearch/Hermes-3-Llama-3.1-8B": "hermes",
    "qwen2.5:7b": "hermes",
    "Qwen/Qwen3-30B-A3B": "hermes",
    "qwen3-coder:30b": "qwen_xml",
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": "qwen_xml",
    "qwen3.5-397b": "qwen_xml",
    "xiaomi/mimo-v2-flash": "qwen_xml",
    "Qwen/Qwen1.5-14B-Chat": "react",
    "zai-org/GLM-4.6": "glm",
    "meta-llama/Llama-3.2-3B-Instruct": "llama3",
    "llama3:8b": "llama3",
    "meta-llama/Llama-4-Scout": "llama4",
    "mistral-small:24b": "mistral",
    "deepseek-ai/DeepSeek-V3.1": "deepseek",
    "deepseek-r1:7b": "deepseek",
    "deepseek-ai/DeepSeek-V3.2": "dsml",
    "moonshotai/Kimi-K2-Instruct": "kimi",
    "MiniMaxAI/MiniMax-M2": "minimax",
    "MiniMaxAI/MiniMax-M1-80k": "jamba",
    "ibm-granite/granite-3.3-8b": "granite",
    "granite4:micro": "hermes",
    "CohereForAI/c4ai-command-r7b": "command_r",
    "phi4-mini": "functools",
    "nvidia/Nemotron-Nano-9B-v2": "nemotron",
    "google/gemma-3-27b-it": "gemma3",
    "gemma4:e4b": "gemma4",
    "functiongemma": "functiongemma",
    "Salesforce/xLAM-7b-r": "json",
    "allenai/Olmo-3-7B": "olmo",
    "LiquidAI/LFM2-1.2B": "lfm2",
    "internlm/internlm3-8b": "internlm",
    "smollm2:135m": "hermes",
    "my-own-model": "hermes",
    "": "hermes",
}


@pytest.mark.parametrize(("model", "family"), MODELS.items())
def test_the_family_is_known_by_the_models_name(model, family):
    assert family_for(model) == family


CALL_TEXT = '<tool_call>\n{"name": "add", "arguments": {"a": 5, "b": -7}}\n</tool_call>'
THOUGHT = "<think>5 - 7.</think>\n"


@pytest.mark.parametrize(
    ("back", "calling", "wanted"),
    [
        ("loop", True, THOUGHT + CALL_TEXT),
        ("loop", False, "It is -2."),
        ("always", False, THOUGHT + "It is -2."),
        ("never", True, CALL_TEXT),
        ("never", False, "It is -2."),
    ],
)
def test_thinking_in_the_text_goes_back_when_reasoning_does(back, calling, wanted):
    raw = THOUGHT + (CALL_TEXT if calling else "It is -2.")
    text = "" if calling else "It is -2."
    reply = Reply(text, reasoning="5 - 7.", tool_calls=CALLS[1:2] if calling else (), raw={"content": raw})
    profile = Profile(tool_mode="hermes", reasoning_back=back)
    assert render((reply,), profile)[0]["content"] == wanted


def test_a_call_that_stood_in_the_thinking_is_written_out_where_thinking_does_not_go_back():
    raw = f"<think>So {CALL_TEXT}</think>"
    reply = Reply("", reasoning="So", tool_calls=CALLS[1:2], raw={"content": raw})
    profile = Profile(tool_mode="hermes", reasoning_back="never")
    assert render((reply,), profile)[0]["content"] == CALL_TEXT
