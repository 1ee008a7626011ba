"""How each family writes calls, taken from its model's chat template (or its paper), independent of the product's own renderers."""

import json
from collections.abc import Callable
from dataclasses import dataclass


def dump(value):
    return json.dumps(value, ensure_ascii=False)


def text(value):
    return value if isinstance(value, str) else dump(value)


@dataclass(frozen=True)
class Dialect:
    """`render` writes a turn's calls, `closing` is the end of it that servers lose, `token` a word of its own
    that a value may contain. `strict`: marked by control tokens. `whole`: only as the whole answer.
    `forbidden`: what a value cannot hold in this notation."""

    name: str
    render: Callable
    closing: str = ""
    token: str = "<tool_call>"
    strict: bool = True
    whole: bool = False
    forbidden: str = ""
    several: bool = True

    def __repr__(self):
        return self.name


def each(write, join="\n", before="", after=""):
    return lambda calls: before + join.join(write(name, arguments) for name, arguments in calls) + after


def obj(key="arguments", before="", after=""):
    return lambda name, arguments: before + dump({"name": name, key: arguments}) + after


def listed(before, after, key="arguments"):
    return each(obj(key), ", ", before + "[", "]" + after)


def qwen_xml(name, arguments):
    values = "".join(f"<parameter={k}>\n{text(v)}\n</parameter>\n" for k, v in arguments.items())
    return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>"


def seed(name, arguments):
    values = "".join(f"<parameter={k}>{text(v)}</parameter>\n" for k, v in arguments.items())
    return f"<seed:tool_call>\n<function={name}>\n{values}</function>\n</seed:tool_call>"


def glm(newline, prefix=""):
    def write(name, arguments):
        pairs = newline.join(
            f"<{prefix}arg_key>{k}</{prefix}arg_key>{newline}<{prefix}arg_value>{text(v)}</{prefix}arg_value>"
            for k, v in arguments.items()
        )
        return f"<{prefix}tool_call>{name}{newline}{pairs}{newline}</{prefix}tool_call>"

    return write


def invoke(prefix="", kind=False):
    def write(name, arguments):
        values = "\n".join(
            f'<{prefix}parameter name="{k}"'
            + (f' string="{"true" if isinstance(v, str) else "false"}"' if kind else "")
            + f">{text(v)}</{prefix}parameter>"
            for k, v in arguments.items()
        )
        return f'<{prefix}invoke name="{name}">\n{values}\n</{prefix}invoke>'

    return write


NAMESPACE = "]<]minimax[>["


def minimax_m3(name, arguments):
    def value(v):
        if isinstance(v, list):
            return "".join(f"{NAMESPACE}<item>{value(item)}{NAMESPACE}</item>" for item in v)
        return text(v)

    values = "".join(f"{NAMESPACE}<{k}>{value(v)}{NAMESPACE}</{k}>" for k, v in arguments.items())
    return f'{NAMESPACE}<invoke name="{name}">{values}{NAMESPACE}</invoke>\n'


def step3(name, arguments):
    values = "".join(
        f'<steptml:parameter name="{k}">{text(v)}</steptml:parameter>' for k, v in arguments.items()
    )
    return f'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">{values}</steptml:invoke><｜tool_call_end｜>'


def python(name, arguments):
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"


def gemma(quote, opening, closing):
    def value(v):
        if isinstance(v, str):
            return quote + v + quote
        if isinstance(v, dict):
            return "{" + ",".join(f"{k}:{value(inner)}" for k, inner in v.items()) + "}"
        if isinstance(v, list):
            return "[" + ",".join(map(value, v)) + "]"
        return dump(v)

    return lambda name, arguments: f"{opening}call:{name}{value(arguments)}{closing}"


def deepseek_v3(name, arguments):
    return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{dump(arguments)}\n```<｜tool▁call▁end｜>"


def deepseek_v31(name, arguments):
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{dump(arguments)}<｜tool▁call▁end｜>"


def kimi(calls):
    inner = "".join(
        f"<|tool_call_begin|>functions.{name}:{i}<|tool_call_argument_begin|>{dump(arguments)}<|tool_call_end|>"
        for i, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def mistral_args(calls):
    return "".join(f"[TOOL_CALLS]{name}[ARGS]{dump(arguments)}" for name, arguments in calls)


def mistral_ids(calls):
    return "".join(
        f"[TOOL_CALLS]{name}[CALL_ID]{i:09d}[ARGS]{dump(arguments)}"
        for i, (name, arguments) in enumerate(calls)
    )


def command_r7b(calls):
    items = [
        {"tool_call_id": str(i), "tool_name": name, "parameters": arguments}
        for i, (name, arguments) in enumerate(calls)
    ]
    return "<|START_ACTION|>" + json.dumps(items, indent=4, ensure_ascii=False) + "<|END_ACTION|>"


def command_r(calls):
    items = [{"tool_name": name, "parameters": arguments} for name, arguments in calls]
    return "Action: ```json\n" + json.dumps(items, indent=4, ensure_ascii=False) + "\n```"


def harmony(name, arguments):
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{dump(arguments)}<|call|>"


def openai_shape(calls):
    items = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": dump(arguments)}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return dump({"tool_calls": items})


def tool_code(calls):
    return "```tool_code\n" + "\n".join(f"print({python(n, a)})" for n, a in calls) + "\n```"


def tagged_json(name, arguments):
    return f"<function={name}>{dump(arguments)}</function>"


DIALECTS = (
    Dialect("hermes", each(obj("arguments", "<tool_call>\n", "\n</tool_call>")), "\n</tool_call>", "</tool_call>"),
    Dialect("qwen3_coder", each(qwen_xml), "\n</tool_call>", "</tool_call> or <function=f>", forbidden="<"),
    Dialect("seed_oss", each(seed), "\n</seed:tool_call>", "</seed:tool_call>", forbidden="<"),
    Dialect("glm_4_5", each(glm("\n")), "\n</tool_call>", "</tool_call> <think>", forbidden="<"),
    Dialect("glm_4_7", each(glm("")), "</tool_call>", "</tool_call> <think>", forbidden="<"),
    Dialect("longcat", each(glm("\n", "longcat_")), "\n</longcat_tool_call>", "<longcat_tool_call>", forbidden="<"),
    Dialect("longcat_json", each(obj("arguments", "<longcat_tool_call>\n", "\n</longcat_tool_call>")), "\n</longcat_tool_call>", "</longcat_tool_call>"),
    Dialect("llama3_json", each(obj("parameters"), "; "), token="<|python_tag|>", strict=False, whole=True),
    Dialect("llama3_python_tag", each(obj("parameters", "<|python_tag|>")), token="<|python_tag|>"),
    Dialect("llama3_function", each(tagged_json, ""), "</function>", "</function>", strict=False),
    Dialect("llama4_pythonic", each(python, ", ", "[", "]"), token="<|python_end|>", strict=False, whole=True),
    Dialect("llama4_marked", each(python, ", ", "<|python_start|>[", "]<|python_end|>"), "<|python_end|>", "<|python_end|>"),
    Dialect("lfm2", each(python, ", ", "<|tool_call_start|>[", "]<|tool_call_end|>"), "<|tool_call_end|>", "<|tool_call_end|>"),
    Dialect("olmo3", each(python, "\n", "<function_calls>", "</function_calls>"), "</function_calls>", "</function_calls>", strict=False),
    Dialect("mistral_old", listed("[TOOL_CALLS] ", ""), token="[TOOL_CALLS]"),
    Dialect("mistral_args", mistral_args, token="[ARGS]"),
    Dialect("mistral_call_id", mistral_ids, token="[CALL_ID]"),
    Dialect("deepseek_v3", each(deepseek_v3, "\n", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"), "<｜tool▁calls▁end｜>", "<｜tool▁call▁end｜>"),
    Dialect("deepseek_ascii", lambda calls: each(deepseek_v3, "\n", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")(calls).replace("｜", "|").replace("▁", "_"), "<|tool_calls_end|>", "<|tool_call_end|>"),
    Dialect("deepseek_v31", each(deepseek_v31, "", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"), "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "<｜tool▁call▁end｜>"),
    Dialect("deepseek_v32", each(invoke("｜DSML｜", kind=True), "\n", "<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>"), "\n</｜DSML｜function_calls>", "</｜DSML｜invoke> is", forbidden="<"),
    Dialect("deepseek_v4", each(invoke("｜DSML｜", kind=True), "\n", "<｜DSML｜tool_calls>\n", "\n</｜DSML｜tool_calls>"), "\n</｜DSML｜tool_calls>", "</｜DSML｜invoke> is", forbidden="<"),
    Dialect("deepseek_v32_ascii", each(invoke("|DSML|", kind=True), "\n", "<|DSML|function_calls>\n", "\n</|DSML|function_calls>"), "\n</|DSML|function_calls>", "</|DSML|invoke> is", forbidden="<"),
    Dialect("kimi_k2", kimi, "<|tool_call_end|><|tool_calls_section_end|>", "<|tool_call_end|>"),
    Dialect("minimax_m1", each(obj(), "\n", "<tool_calls>\n", "\n</tool_calls>"), "\n</tool_calls>", "</tool_calls>"),
    Dialect("minimax_m2", each(invoke(), "\n", "<minimax:tool_call>\n", "\n</minimax:tool_call>"), "\n</minimax:tool_call>", "</minimax:tool_call>", forbidden="<"),
    Dialect("minimax_m3", each(minimax_m3, "", NAMESPACE + "<tool_call>\n", NAMESPACE + "</tool_call>"), NAMESPACE + "</tool_call>", "</invoke> is", forbidden="<"),
    Dialect("gpt_oss", each(harmony, "<|start|>assistant"), "<|call|>", "<|call|>"),
    Dialect("granite_3", listed("<|tool_call|>", ""), token="<|tool_call|>"),
    Dialect("granite_20b", each(obj("arguments", "<function_call> "), " "), token="<function_call>", strict=False),
    Dialect("command_r", command_r, "\n```", "Action:", strict=False),
    Dialect("command_r7b", command_r7b, "<|END_ACTION|>", "<|END_ACTION|>"),
    Dialect("phi4_mini", listed("<|tool_call|>", "<|/tool_call|>"), "<|/tool_call|>", "<|/tool_call|>"),
    Dialect("functools", listed("functools", ""), token="functools[", strict=False),
    Dialect("functionary_v3_2", each(lambda n, a: f">>>{n}\n{dump(a)}", "\n"), token=">>>all", strict=False),
    Dialect("xlam", listed("", ""), token="[TOOL_CALLS]", strict=False, whole=True),
    Dialect("nemotron", listed("<TOOLCALL>", "</TOOLCALL>"), "</TOOLCALL>", "</TOOLCALL>"),
    Dialect("gemma3", tool_code, "\n```", "```", strict=False, whole=True),
    Dialect("gemma4", each(gemma('<|"|>', "<|tool_call>", "<tool_call|>"), ""), "<tool_call|>", "<tool_call|>", forbidden="<"),
    Dialect("functiongemma", each(gemma("<escape>", "<start_function_call>", "<end_function_call>"), ""), "<end_function_call>", "<end_function_call>", forbidden="<"),
    Dialect("jamba", each(obj(), ",\n    ", "<tool_calls>[\n    ", "\n]</tool_calls>"), "</tool_calls>", "</tool_calls>"),
    Dialect("internlm", each(obj("parameters", "<|action_start|><|plugin|>\n", "<|action_end|>")), "<|action_end|>", "<|action_end|>"),
    Dialect("apertus", each(lambda n, a: dump({n: a}), ", ", "<|tools_prefix|>[", "]<|tools_suffix|>"), "<|tools_suffix|>", "<|tools_suffix|>"),
    Dialect("gigachat", each(obj("arguments", "<|function_call|>")), token="<|function_call|>"),
    Dialect("invoke", each(invoke(), "\n", "<function_calls>\n", "\n</function_calls>"), "\n</function_calls>", "</function_calls> is", strict=False, forbidden="<"),
    Dialect("step3", each(step3, "\n", "<｜tool_calls_begin｜>\n", "\n<｜tool_calls_end｜>"), "\n<｜tool_calls_end｜>", "<｜tool_call_end｜>", forbidden="<"),
    Dialect("react", each(lambda n, a: f"Action: {n}\nAction Input: {dump(a)}"), token="Action:", strict=False),
    Dialect("json_fence", each(obj(), "\n", "```json\n", "\n```"), "\n```", "```", strict=False, whole=True),
    Dialect("openai_shape", openai_shape, token="tool_calls", strict=False, whole=True),
)  # fmt: skip
