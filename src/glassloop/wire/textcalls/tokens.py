"""The words that open, divide and close calls, by family, and the control tokens that may stand around an answer.

A new spelling is one entry here. Where each format is defined is said beside it: the model whose chat
template writes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from glassloop.core.values import Value
from glassloop.wire.textcalls.source import Words

BARS = ("｜", "|", "｜｜", "||")
"""The bar of DeepSeek's tokens is U+FF5C; copies through other tokenizers come with an ASCII bar, or doubled."""

DSML_BARS = (
    *((bar, bar) for bar in (*BARS, " ｜ ", " | ")),
    *(("", bar) for bar in BARS[:2]),
    *((bar, f"{bar} ") for bar in BARS[:2]),
)
"""What stands before and behind `DSML`: a bar, which some servers set off with blanks, or of which they drop the first."""


class Opener(Value, frozen=True):
    """What begins a call. `strict`: the word is a control token that prose never uses, so an unknown tool
    or unreadable arguments behind it are reported to the model; else the text stays text."""

    family: str
    strict: bool = True


def _deepseek(*words: str) -> tuple[str, ...]:
    """`<｜tool▁calls▁begin｜>` in each spelling of bar and underscore (U+2581, for some tokenizers a blank)."""
    return tuple(f"<{bar}{word.replace(' ', line)}{bar}>" for word in words for bar in BARS for line in "▁_ ")


def _dsml(word: str) -> tuple[str, ...]:
    """`<｜DSML｜invoke name=` for `<invoke name=`, with each bar."""
    begin, name = re.fullmatch("(</?)(.*)", word).groups()  # type: ignore[union-attr]
    return tuple(f"{begin}{before}DSML{behind}{name}" for before, behind in DSML_BARS)


DEEPSEEK_CALL = _deepseek("tool call begin")
DEEPSEEK_SEPARATOR = _deepseek("tool sep")
NAMESPACES = ("steptml", "antml", "xai")  # Step 3; models trained on Claude's output; Grok
MINIMAX_M3 = "]<]minimax[>["

OPENERS: Mapping[str, Opener] = {
    # Qwen 2.5 and 3, Hermes 2 Pro and 3, Granite 4, ERNIE 4.5, Reka: JSON. Qwen3-Coder, Nemotron 3,
    # Step 3.5: <function=…>. GLM 4.5 to 4.7: <arg_key>. The body decides.
    "<tool_call>": Opener("hermes"),
    "<tool_calls>": Opener("jamba"),  # Jamba 1.5, Hunyuan A13B, MiniMax M1, Apriel
    **dict.fromkeys(
        map(str.upper, ("<tool_call>", "<tool_calls>", "<function_call>")), Opener("hermes", strict=False)
    ),  # in capitals they are no tokens, and what models make of them
    "<|tool_call|>": Opener("granite"),  # Granite 3.x, Phi-4-mini
    "<function_call>": Opener("granite_20b", strict=False),  # granite-20b-functioncalling
    "<TOOLCALL>": Opener("nemotron"),  # Nemotron Nano v1, v2
    "<|tools_prefix|>": Opener("apertus"),  # Apertus 8B, 70B
    "[TOOL_CALLS]": Opener("mistral"),  # Mistral v3 to v13 tokenizers
    "[TOOL_CALL]": Opener("mistral", strict=False),
    "[TOOL_REQUEST]": Opener("lm_studio", strict=False),  # LM Studio's prompt for models without tool calling
    "<|python_tag|>": Opener("llama3"),  # Llama 3.1 to 3.3
    "<|python_start|>": Opener("llama4"),  # Llama 4
    "<|tool_call_start|>": Opener("lfm2"),  # LFM2
    "<|START_ACTION|>": Opener("command_r"),  # Command R7B, Command A
    "<|tool_call:begin|>": Opener("solar"),  # Solar Open
    "<|action_start|>": Opener("internlm"),  # InternLM 2, 2.5, 3
    "<|function_call|>": Opener("gigachat"),  # GigaChat 3
    "<|content_invoke_tool_json|>": Opener("inkling"),
    "<tool>": Opener("hermes", strict=False),  # what small models make of <tool_call>
    "<toolcall>": Opener("hermes", strict=False),
    "<tool_use>": Opener("hermes", strict=False),
    "<tool-use>": Opener("hermes", strict=False),
    "<tool_code>": Opener("gemma3", strict=False),
    "<tools>": Opener("hermes", strict=False),
    "<JSON>": Opener("hermes", strict=False),
    "<longcat_tool_call>": Opener("longcat"),  # LongCat Flash
    "<seed:tool_call>": Opener("seed"),  # Seed-OSS
    "<minimax:tool_call>": Opener("minimax"),  # MiniMax M2
    MINIMAX_M3: Opener("minimax"),  # MiniMax M3 puts it before every tag
    "<|tool_calls_section_begin|>": Opener("kimi"),  # Kimi K2
    "<|tool_call_section_begin|>": Opener("kimi"),
    "<|tool_call_begin|>": Opener("kimi"),
    "<|tool_call>": Opener("gemma4"),  # Gemma 4
    "<start_function_call>": Opener("functiongemma"),  # FunctionGemma 270M
    "<function_calls>": Opener("invoke", strict=False),  # models trained on Claude's output; OLMo 3
    "<invoke name=": Opener("invoke", strict=False),
    "<function=": Opener(
        "qwen_xml", strict=False
    ),  # Llama 3.1 custom tools, Functionary v3.1, a lost <tool_call>
    "<function name=": Opener("invoke", strict=False),  # MiniCPM
    "<tool_call name=": Opener("invoke", strict=False),
    "<tool name=": Opener("invoke", strict=False),
    **{f"<{space}:invoke name=": Opener("invoke") for space in NAMESPACES},
    **{f"<{space}:function_call name=": Opener("invoke") for space in NAMESPACES},  # Grok
    **{f"<{space}:function_calls>": Opener("invoke") for space in NAMESPACES},  # Step 3
    **dict.fromkeys(
        _deepseek("tool calls begin", "tool call begin"), Opener("deepseek")
    ),  # V3, R1, V3.1, Step 3
    **dict.fromkeys(
        _dsml("<function_calls>") + _dsml("<tool_calls>") + _dsml("<tool_call>"), Opener("dsml")
    ),  # V3.2, V4
    **dict.fromkeys(_dsml("<invoke name="), Opener("dsml")),
}

CALL_TAGS: Mapping[str, str] = {
    "<function=": "</function>",
    "<function name=": "</function>",
    "<tool_call name=": "</tool_call>",
    "<tool name=": "</tool>",
    "<invoke name=": "</invoke>",
    **{f"<{space}:invoke name=": f"</{space}:invoke>" for space in NAMESPACES},
    **{f"<{space}:function_call name=": f"</{space}:function_call>" for space in NAMESPACES},
    **dict(zip(_dsml("<invoke name="), _dsml("</invoke>"), strict=True)),
}
"""What opens one call whose name stands in the tag itself, and what closes it."""

PARAMETER_TAGS: Mapping[str, str] = {
    "<parameter=": "</parameter>",
    "<parameter name=": "</parameter>",
    "<param name=": "</param>",
    "<argument name=": "</argument>",
    **{f"<{space}:parameter name=": f"</{space}:parameter>" for space in NAMESPACES},
    **dict(zip(_dsml("<parameter name="), _dsml("</parameter>"), strict=True)),
}
"""What opens one argument whose name stands in the tag, and what closes it."""

ARGUMENT_KEYS: Mapping[str, tuple[str, str, str]] = {
    "<arg_key>": ("</arg_key>", "<arg_value>", "</arg_value>"),
    "<longcat_arg_key>": ("</longcat_arg_key>", "<longcat_arg_value>", "</longcat_arg_value>"),
}

CLOSERS = (
    *dict.fromkeys(CALL_TAGS.values()),
    "</tool_call>", "</tool_calls>", "<|/tool_call|>", "<|/tool_calls|>", "</function_call>", "</TOOLCALL>",
    *map(str.upper, ("</tool_call>", "</tool_calls>", "</function_call>")), "</tool>", "</toolcall>", "</tools>", "</tool_use>", "</tool-use>", "</tool_code>", "</JSON>",
    "<|tools_suffix|>", "[/TOOL_CALLS]", "[/TOOL_CALL]", "[END_TOOL_REQUEST]",
    "<|python_end|>", "<|tool_call_end|>", "<|tool_call:end|>", "<|END_ACTION|>", "<|action_end|>",
    "</longcat_tool_call>", "</seed:tool_call>", "</minimax:tool_call>", "<|tool_calls_section_end|>",
    "<|tool_call_section_end|>", "<tool_call|>", "<end_function_call>", "</function_calls>", "<|eom_id|>",
    "<|eot_id|>", "<|call|>", "<|end_message|>", *(f"</{space}:function_calls>" for space in NAMESPACES),
    *_deepseek("tool call end", "tool calls end"), *_dsml("</function_calls>"), *_dsml("</tool_calls>"),
    *_dsml("</tool_call>"),
)  # fmt: skip

SEPARATORS = (
    "<|tool_call_argument_begin|>",
    "<|tool_call:args|>",
    "[ARGS]",
    "<tool_sep>",
    *DEEPSEEK_SEPARATOR,
)  # the third: Hunyuan
"""What stands between a name and its arguments."""

NAME_SEPARATORS = ("<|tool_call:name|>",)
"""What stands between a call's id and its name: Solar Open."""

NOISE = (
    "<|plugin|>",
    "<|interpreter|>",
    "<|constrain|>json",
    "<invoke>",
    "<|message|>",
    MINIMAX_M3,
    "```json",
    "```",
    "\\n",
)
"""What may stand between the parts of a call and says nothing."""

CONTROL_WORDS = (
    "<s>", "</s>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>",  # Llama 2, Gemma
    "]~!b[", "]~b]", "[e~[",  # MiniMax
)  # fmt: skip
"""Control tokens that say who speaks or where a turn ends; all others look like `CONTROL_TOKEN`."""

CONTROL_TOKEN = re.compile(r"<[|｜]+[\w▁./:-]{1,40}[|｜]+>")
CONTROL_TOKEN_BEGINNING = re.compile(r"<[|｜]+(?:[\w▁./:-]{1,40}[|｜]*)?")

HEADERS = frozenset(
    ("<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "<|turn>", "<|start|>", "<|header_start|>", "]~b]",
     "<|start_of_role|>", "<|role_start|>")
)  # fmt: skip
"""Control tokens that the speaker's name follows."""

ROLES = Words(("assistant", "model", "ai", "user", "tool", "ipython", "system"))
OWN_ROLES = frozenset(("", "assistant", "model", "ai"))

RESULT_OPENERS = (
    "<tool_response>", "<|tool_response>", "<start_function_response>", "<function_results>", "[TOOL_RESULTS]",
    "<TOOL_RESPONSE>", "<tool_result>", "```tool_output", "<|tool_response|>",
    *_deepseek("tool outputs begin", "tool output begin"),
)  # fmt: skip
"""What begins a tool's result. Behind a call in the same answer, a model has made that result up."""
