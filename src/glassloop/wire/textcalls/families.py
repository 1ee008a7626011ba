"""How each family of models is asked for calls as text, and how calls and results are written back to it.

A model follows best the notation that it was trained on, so the family is chosen by the model's name.
The words themselves are those of the model's own chat template, named beside each entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from glassloop.core.entries import JSON, ToolCall
from glassloop.core.tools import ToolSpec
from glassloop.core.values import Value

Arguments = Mapping[str, JSON]


class Family(Value, frozen=True, gc=True):
    """One notation. `call` writes a call, `opening` and `closing` stand around all calls of a turn,
    `between` stands between two; `result` writes a result, of which `name` and `text` (or `json`) are
    filled in. `read_as` is what the reader calls the notation, where that is not `name`."""

    name: str
    call: Callable[[str, Arguments], str]
    opening: str = ""
    closing: str = ""
    between: str = "\n"
    result: str = "<tool_response>\n{text}\n</tool_response>"
    read_as: str = ""

    def calls(self, calls: Sequence[tuple[str, Arguments]]) -> str:
        """All calls of one turn."""
        return (
            self.opening
            + self.between.join(self.call(name, arguments) for name, arguments in calls)
            + self.closing
        )


def _json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(arguments_key: str, before: str = "", after: str = "") -> Callable[[str, Arguments], str]:
    """`{"name": …, "arguments": …}` between two words."""
    return lambda name, arguments: f"{before}{_json({'name': name, arguments_key: dict(arguments)})}{after}"


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else _json(value)


def _qwen_xml(name: str, arguments: Arguments) -> str:
    values = "".join(f"<parameter={key}>\n{_text(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>"


def _glm(name: str, arguments: Arguments) -> str:
    pairs = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{_text(value)}</arg_value>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{pairs}</tool_call>"


def _invoke(bar: str) -> Callable[[str, Arguments], str]:
    def call(name: str, arguments: Arguments) -> str:
        values = "".join(
            f'<{bar}parameter name="{key}"{_kind(bar, value)}>{_text(value)}</{bar}parameter>\n'
            for key, value in arguments.items()
        )
        return f'<{bar}invoke name="{name}">\n{values}</{bar}invoke>'

    return call


def _kind(bar: str, value: JSON) -> str:
    return f' string="{"true" if isinstance(value, str) else "false"}"' if bar else ""


def _python(name: str, arguments: Arguments) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _gemma4(name: str, arguments: Arguments) -> str:
    return f"<|tool_call>call:{name}{_gemma_value(dict(arguments), QUOTE_GEMMA4)}<tool_call|>"


def _functiongemma(name: str, arguments: Arguments) -> str:
    value = _gemma_value(dict(arguments), QUOTE_FUNCTIONGEMMA)
    return f"<start_function_call>call:{name}{value}<end_function_call>"


QUOTE_GEMMA4 = '<|"|>'
QUOTE_FUNCTIONGEMMA = "<escape>"


def _gemma_value(value: JSON, quote: str) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_gemma_value(inner, quote)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_gemma_value(inner, quote) for inner in value) + "]"
    return _json(value)


def _deepseek(name: str, arguments: Arguments) -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_json(dict(arguments))}<｜tool▁call▁end｜>"


def _kimi(name: str, arguments: Arguments) -> str:
    return f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{_json(dict(arguments))}<|tool_call_end|>"


def _command_r(name: str, arguments: Arguments) -> str:
    return _json({"tool_name": name, "parameters": dict(arguments)})


def _react(name: str, arguments: Arguments) -> str:
    return f"Action: {name}\nAction Input: {_json(dict(arguments))}"


_FAMILIES = (
    # Hermes 2 Pro, Qwen 2.5 and 3; also what any other model is asked for.
    Family("hermes", _object("arguments", "<tool_call>\n", "\n</tool_call>")),
    # Qwen3-Coder, Qwen 3.5, MiMo, Step 3.5, Nemotron 3
    Family("qwen_xml", _qwen_xml, read_as="hermes"),
    # GLM 4.5, 4.6, 4.7
    Family("glm", _glm, read_as="hermes"),
    # Llama 3.1 to 3.3: one object alone
    Family("llama3", _object("parameters"), between="; ", read_as="json"),
    # Llama 4, OLMo 3 without its tags: a Python list
    Family("llama4", _python, "[", "]", ", ", read_as="json"),
    # LFM2
    Family("lfm2", _python, "<|tool_call_start|>[", "]<|tool_call_end|>", ", "),
    # OLMo 3
    Family("olmo", _python, "<function_calls>", "</function_calls>", read_as="invoke"),
    # Mistral, tokenizers v3 to v11
    Family("mistral", _object("arguments"), "[TOOL_CALLS] [", "]", ", ",
           '[TOOL_RESULTS] {{"content": {json}}}[/TOOL_RESULTS]'),
    # DeepSeek V3.1
    Family("deepseek", _deepseek, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "",
           "<｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜>"),
    # DeepSeek V3.2, V4
    Family("dsml", _invoke("｜DSML｜"), "<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>",
           result="<function_results>\n<result>{text}</result>\n</function_results>"),
    # Kimi K2
    Family("kimi", _kimi, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "",
           "## Return of {name}\n{text}"),
    # MiniMax M2
    Family("minimax", _invoke(""), "<minimax:tool_call>\n", "\n</minimax:tool_call>",
           result="<response>\n{text}\n</response>"),
    # Granite 3
    Family("granite", _object("arguments"), "<|tool_call|>[", "]", ", "),
    # Phi-4-mini
    Family("functools", _object("arguments"), "functools[", "]", ", "),
    # Command R7B, Command A
    Family("command_r", _command_r, "<|START_ACTION|>[", "]<|END_ACTION|>", ", "),
    # Nemotron Nano v2
    Family("nemotron", _object("arguments"), "<TOOLCALL>[", "]</TOOLCALL>", ", ",
           "<TOOL_RESPONSE>[{json}]</TOOL_RESPONSE>"),
    # Jamba 1.5, Hunyuan, MiniMax M1
    Family("jamba", _object("arguments"), "<tool_calls>[", "]</tool_calls>", ", "),
    # InternLM 2.5, 3
    Family("internlm", _object("parameters", "<|action_start|><|plugin|>", "<|action_end|>")),
    # Gemma 3
    Family("gemma3", _python, "```tool_code\n", "\n```", result="```tool_output\n{text}\n```", read_as="fence"),
    # Gemma 4
    Family("gemma4", _gemma4, between="",
           result="<|tool_response>response:{name}{{value:<|\"|>{text}<|\"|>}}<tool_response|>"),
    # FunctionGemma 270M
    Family("functiongemma", _functiongemma, between="",
           result="<start_function_response>response:{name}{{value:<escape>{text}<escape>}}<end_function_response>"),
    # xLAM, Hammer
    Family("json", _object("arguments"), "[", "]", ", "),
    # Qwen 1.5 and models that only know agents' transcripts
    Family("react", _react, result="Observation: {text}"),
)  # fmt: skip

FAMILIES: Mapping[str, Family] = {family.name: family for family in _FAMILIES}

_BY_MODEL: Sequence[tuple[str, str]] = (
    (r"hermes|nous", "hermes"),
    (r"qwen-?1|qwen1\.5", "react"),
    (r"qwen-?3-?coder|qwen-?3\.[5-9]|qwen-?[4-9]|mimo|step-?3\.5|nemotron-?3|nemotron-nano-3", "qwen_xml"),
    (r"nemotron", "nemotron"),
    (r"qwen|qwq|ernie|exaone|ling-|granite-?4|smollm", "hermes"),
    (r"glm|chatglm", "glm"),
    (r"xlam|hammer", "json"),
    (r"deepseek.*(v3\.2|v3-2|v[4-9])", "dsml"),
    (r"deepseek", "deepseek"),
    (r"llama-?4|llama4", "llama4"),
    (r"llama-?3|llama3", "llama3"),
    (r"mistral|mixtral|ministral|magistral|devstral|codestral|pixtral", "mistral"),
    (r"kimi|moonshot", "kimi"),
    (r"minimax-?m1|hunyuan|jamba|apriel", "jamba"),
    (r"minimax", "minimax"),
    (r"granite", "granite"),
    (r"command|c4ai|cohere", "command_r"),
    (r"phi-?[34]|firefunction", "functools"),
    (r"functiongemma", "functiongemma"),
    (r"gemma-?4", "gemma4"),
    (r"gemma", "gemma3"),
    (r"olmo", "olmo"),
    (r"lfm-?2", "lfm2"),
    (r"internlm|intern-s", "internlm"),
)


def family_for(model_name: str) -> str:
    """The family that the model was trained on, by its name; "hermes" for one that no entry names."""
    name = model_name.lower()
    return next((family for pattern, family in _BY_MODEL if re.search(pattern, name)), "hermes")


def _family(tool_mode: str) -> Family:
    return FAMILIES.get(tool_mode, FAMILIES["hermes"])


def render_tools(tool_mode: str, tools: Sequence[ToolSpec]) -> str:
    """The tools and how to call one, for the system message; empty without tools."""
    if not tools:
        return ""
    family = _family(tool_mode)
    lines = [_json({"name": t.name, "description": t.description, "parameters": t.parameters}) for t in tools]
    placeholder = family.calls([("tool_name", {"argument": "value"})])
    return (
        "You have these tools, one a line:\n"
        + "\n".join(lines)
        + "\nTo call one, write exactly this, with its name and arguments, and end your turn:\n"
        + placeholder
        + "\nIts result comes in the next message; never write one yourself. Where no tool is needed, just answer."
    )


def render_calls(tool_mode: str, text: str, calls: Sequence[ToolCall]) -> str:
    """An assistant turn as the family writes it: its text, then its calls."""
    if not calls:
        return text
    written = _family(tool_mode).calls([(call.name, call.arguments or {}) for call in calls])
    return f"{text}\n{written}" if text else written


def render_result(tool_mode: str, call: ToolCall, result_text: str) -> tuple[str, str]:
    """The role and the content of the message that brings a call's result (or its error) back.

    The role is always "user": an endpoint without tool calling mostly has no tool role either.
    """
    result = _family(tool_mode).result
    return "user", result.format(name=call.name, text=result_text, json=_json(result_text))
