"""Outputs as servers have leaked them: what each notation is bent into, and what must come of it."""

import pytest
from tests.textcalls.kit import TOOLS, assert_same_in_pieces, calls_of, problems_of, read_in_pieces

from glassloop.core.entries import ToolCall
from glassloop.wire.textcalls import TextCallReader, find_calls

OSLO = ("get_weather", {"city": "Oslo"})
CITIES = ("list_cities", {})
ADD = ("add", {"a": 1, "b": 2})

READ = {
    "hermes: the opener is missing": ('{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>', "", [OSLO]),
    "hermes: the closer repeats the opener": ('<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}<tool_call>', "", [OSLO]),
    "hermes: doubled braces": ('<tool_call>\n{{"name": "get_weather", "arguments": {"city": "Oslo"}}}\n</tool_call>', "", [OSLO]),
    "hermes: arguments as text": ('<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}</tool_call>', "", [OSLO]),
    "hermes: Python quotes": ("<tool_call>{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}</tool_call>", "", [OSLO]),
    "hermes: trailing comma": ('<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo",}}</tool_call>', "", [OSLO]),
    "hermes: fenced body": ('<tool_call>\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```\n</tool_call>', "", [OSLO]),
    "hermes: two objects in one block": ('<tool_call>\n{"name": "list_cities"}\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>', "", [CITIES, ADD]),
    "hermes: parameters for arguments": ('<tool_call>{"name": "get_weather", "parameters": {"city": "Oslo"}}</tool_call>', "", [OSLO]),
    "hermes: name and JSON": ('<tool_call>get_weather\n{"city": "Oslo"}\n</tool_call>', "", [OSLO]),
    "hermes: raw line break in a string": ('<tool_call>{"name": "get_weather", "arguments": {"city": "Os\nlo"}}</tool_call>', "", [("get_weather", {"city": "Os\nlo"})]),
    "hermes: another spelling of the name": ('<tool_call>{"name": "functions.GetWeather", "arguments": {"city": "Oslo"}}</tool_call>', "", [OSLO]),
    "hermes: whole answer in a fence": ('```xml\n<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>\n```', "", [OSLO]),
    "qwen3-coder: values over lines": ("<tool_call>\n<function=write_note>\n<parameter=path>\na.txt\n</parameter>\n<parameter=text>\none\n\n  two\n\n</parameter>\n</function>\n</tool_call>", "", [("write_note", {"path": "a.txt", "text": "one\n\n  two\n"})]),
    "qwen3-coder: two functions in one block": ("<tool_call>\n<function=list_cities>\n</function>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>", "", [CITIES, ADD]),
    "qwen3-coder: every closer of a value is missing": ("<tool_call>\n<function=add>\n<parameter=a>\n1\n<parameter=b>\n2\n</function>\n</tool_call>", "", [ADD]),
    "qwen3-coder: the function's closer is missing": ("<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</tool_call>", "", [OSLO]),
    "qwen3-coder: line breaks as letters": ("<tool_call>\\n<function=list_cities>\\n</function>\\n</tool_call>", "", [CITIES]),
    "qwen3-coder: its own tags in a value": ("<tool_call>\n<function=write_note>\n<parameter=path>\na.md\n</parameter>\n<parameter=text>\nUse <parameter=x>1</parameter=x> and </function> and </tool_call> freely.\n</parameter>\n</function>\n</tool_call>", "", [("write_note", {"path": "a.md", "text": "Use <parameter=x>1</parameter=x> and </function> and </tool_call> freely."})]),
    "glm: no value tag": ("<tool_call>get_weather\n<arg_key>city</arg_key>\nOslo</arg_value>\n</tool_call>", "", [OSLO]),
    "glm: blanks around": ("<tool_call> get_weather \n <arg_key> city </arg_key> \n <arg_value>Oslo</arg_value> \n </tool_call>", "", [OSLO]),
    "llama: python_tag with a call": ('<|python_tag|>get_weather.call(city="Oslo")<|eom_id|>', "", [OSLO]),
    "llama: type first": ('{"type": "function", "name": "get_weather", "parameters": {"city": "Oslo"}}', "", [OSLO]),
    "llama: a header token first": ('<|start_header_id|>assistant<|end_header_id|>\n\n{"name": "get_weather", "parameters": {"city": "Oslo"}}<|eot_id|>', "", [OSLO]),
    "llama: lines of JSON": ('{"name": "list_cities", "parameters": {}}\n{"name": "add", "parameters": {"a": 1, "b": 2}}', "", [CITIES, ADD]),
    "pythonic: nested and quoted": ("[plan_route(stops=['O\\'Hare', \"a)b\"], fast=False, note=None)]", "", [("plan_route", {"stops": ["O'Hare", "a)b"], "fast": False, "note": None})]),
    "pythonic: one call without a list": ("get_weather(city='Oslo')", "", [OSLO]),
    "mistral: the first token is lost": ('get_weather[ARGS]{"city": "Oslo"}', "", [OSLO]),
    "mistral: two, and text first": ('Sure.[TOOL_CALLS]list_cities{}[TOOL_CALLS]add{"a": 1, "b": 2}', "Sure.", [CITIES, ADD]),
    "mistral: an end token": ('[TOOL_CALLS] [{"name": "list_cities", "arguments": {}}]</s>', "", [CITIES]),
    "deepseek: no section": ('<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Oslo"}\n```<｜tool▁call▁end｜>', "", [OSLO]),
    "deepseek: an end of sentence": ('<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>list_cities<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>', "", [CITIES]),
    "dsml: doubled bars": ('<｜｜DSML｜｜function_calls>\n<｜｜DSML｜｜invoke name="get_weather">\n<｜｜DSML｜｜parameter name="city" string="true">Oslo</｜｜DSML｜｜parameter>\n</｜｜DSML｜｜invoke>\n</｜｜DSML｜｜function_calls>', "", [OSLO]),
    "dsml: no section": ('<｜DSML｜invoke name="add">\n<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>\n<｜DSML｜parameter name="b" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>', "", [ADD]),
    "dsml: a string stays as it is": ('<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">\n5 \n</｜DSML｜parameter>\n</｜DSML｜invoke>', "", [("get_weather", {"city": "\n5 \n"})]),
    "dsml: the token itself is lost": ('<tool_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n</tool_calls>', "", [OSLO]),
    "kimi: no section and no prefix": ('<|tool_call_begin|>get_weather:3<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|>', "", [OSLO]),
    "harmony: the recipient in the role": ('<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Oslo"}<|call|>', "", [OSLO]),
    "harmony: a preamble and an answer": ('<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>commentary to=functions.list_cities <|constrain|>json<|message|>{}<|call|>', "Let me look.", [CITIES]),
    "harmony: only the answer": ("<|channel|>analysis<|message|>Simple.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>", "It is 4.", []),
    "harmony: words only": ("analysisWe add.assistantfinalIt is 4.", "It is 4.", []),
    "command-r: directly answer": ('Action: ```json\n[\n    {\n        "tool_name": "directly_answer",\n        "parameters": {}\n    }\n]\n```', "", []),
    "command-r7b: an answer": ("<|START_RESPONSE|>It is 4.<|END_RESPONSE|>", "It is 4.", []),
    "functionary: an answer": (">>>all\nIt is 4.", "It is 4.", []),
    "functionary: an answer and a call": ('>>>all\nLet me see.\n>>>get_weather\n{"city": "Oslo"}', "Let me see.", [OSLO]),
    "gemma 3: assignment-free code": ("```tool_code\nget_weather(city='Oslo')\nlist_cities()\n```", "", [OSLO, CITIES]),
    "gemma 3: the default_api module": ('<tool_code>print(default_api.get_weather(city="Oslo"))</tool_code>', "", [OSLO]),
    "gemma 4: JSON quotes": ('<|tool_call>call:get_weather{"city": "Oslo"}<tool_call|>', "", [OSLO]),
    "gemma 4: bare words": ("<|tool_call>call:plan_route{stops:[Oslo,Rome],fast:true}<tool_call|>", "", [("plan_route", {"stops": ["Oslo", "Rome"], "fast": True})]),
    "minimax m3: a list of items": (']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="plan_route">]<]minimax[>[<stops>]<]minimax[>[<item>Oslo]<]minimax[>[</item>]<]minimax[>[<item>Rome]<]minimax[>[</item>]<]minimax[>[</stops>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>', "", [("plan_route", {"stops": ["Oslo", "Rome"]})]),
    "cline: tags named after the tool": ("<get_weather>\n<city>Oslo</city>\n</get_weather>", "", [OSLO]),
    "react: a string for the only argument": ("Thought: easy\nAction: list_cities\nAction Input: none\nObservation: Oslo", "", [CITIES]),
    "react: a final answer": ("Thought: I know that.\nFinal Answer: It is 4.", "It is 4.", []),
    "bracket: Calling tool": ('[Calling tool: add({"a": 1, "b": 2})]', "", [ADD]),
    "aliases: action": ('{"action": "get_weather", "action_input": {"city": "Oslo"}}', "", [OSLO]),
    "aliases: function": ('{"function": "get_weather", "args": {"city": "Oslo"}}', "", [OSLO]),
    "aliases: the key is the tool": ('{"get_weather": {"city": "Oslo"}}', "", [OSLO]),
    "a short line and a fence": ('I will look.\n\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```', "I will look.", [OSLO]),
    "hermes: a brace too many": ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}}\n</tool_call>', "", [OSLO]),
    "hermes: a thought in the call": ('<tool_call>{"thought": "x", "name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>', "", [OSLO]),
    "a name and a fence": ('get_weather\n```json\n{"city": "Oslo"}\n```', "", [OSLO]),
    "qwen-agent: flowers": ('✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Oslo"}\n✿RESULT✿: sunny', "", [OSLO]),
    'hermes: the arguments beside the name': ('<tool_call>\n{"name": "get_weather", "city": "Oslo"}\n</tool_call>', '', [OSLO]),
    'hermes: name and arguments in tags': ('<tool_call>\n<name>get_weather</name>\n<arguments>{"city": "Oslo"}</arguments>\n</tool_call>', '', [OSLO]),
    'hermes: all in tags': ('<tool_use>\n<tool_name>get_weather</tool_name>\n<parameters>\n<city>Oslo</city>\n</parameters>\n</tool_use>', '', [OSLO]),
    'hermes: a name in a tag and no arguments': ('<tool_call><name>list_cities</name></tool_call>', '', [CITIES]),
    'hermes: the opener of the first of two is missing': ('{"name": "list_cities", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>', '', [CITIES, OSLO]),
    'hermes: text between and after': ('One.\n<tool_call>{"name": "list_cities", "arguments": {}}</tool_call>\nTwo.\n<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>\nThree.', 'One.\n\nTwo.\n\nThree.', [CITIES, OSLO]),
    "claude's first notation": ('<function_calls>\n<invoke>\n<tool_name>get_weather</tool_name>\n<parameters>\n<city>Oslo</city>\n</parameters>\n</invoke>\n</function_calls>', '', [OSLO]),
    'qwen3-coder: a tag is not closed': ('<tool_call>\n<function=get_weather\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>', '', [OSLO]),
    "qwen3-coder: the function's tag is missing": ('<tool_call>get_weather\n<parameter=city>\nOslo\n</parameter>\n</tool_call>', '', [OSLO]),
    "glm: the value's closer is missing": ('<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo\n</tool_call>', '', [OSLO]),
    "glm: the key's closer is missing": ('<tool_call>get_weather<arg_key>city<arg_value>Oslo</arg_value></tool_call>', '', [OSLO]),
    'glm: the opener is missing': ('get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>', '', [OSLO]),
    'hunyuan: its separator': ('<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call></tool_calls>', '', [OSLO]),
    "dsml: the parameter's closer is missing": ('<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Oslo\n</｜DSML｜invoke>\n</｜DSML｜function_calls>', '', [OSLO]),
    'dsml: the first bar is lost': ('<DSML｜function_calls>\n<DSML｜invoke name="get_weather">\n<DSML｜parameter name="city" string="true">Oslo</DSML｜parameter>\n</DSML｜invoke>\n</DSML｜function_calls>', '', [OSLO]),
    'dsml: blanks around the bars': ('< | DSML | function_calls>\n< | DSML | invoke name="get_weather">\n< | DSML | parameter name="city" string="true">Oslo</ | DSML | parameter>\n</ | DSML | invoke>\n</ | DSML | function_calls>', '', [OSLO]),
    "dsml: one call's word": ('<｜DSML｜tool_call>\n<｜DSML｜invoke name="list_cities">\n</｜DSML｜invoke>\n</｜DSML｜tool_call>', '', [CITIES]),
    'deepseek: blanks for underscores': ('<｜tool calls begin｜><｜tool call begin｜>function<｜tool sep｜>get_weather\n```json\n{"city": "Oslo"}\n```<｜tool call end｜><｜tool calls end｜>', '', [OSLO]),
    'deepseek: all tokens are lost': ('functionlist_cities\n```json\n{}\n```\nfunctionget_weather\n```json\n{"city": "Oslo"}\n```', '', [CITIES, OSLO]),
    'kimi: all tokens are lost': ('functions.list_cities:0{}functions.get_weather:1{"city": "Oslo"}', '', [CITIES, OSLO]),
    'gemma 4: all tokens are lost': ('call:get_weather{city:<|"|>Oslo<|"|>}', '', [OSLO]),
    'mistral: several behind one token': ('[TOOL_CALLS]list_cities{}, add{"a": 1, "b": 2}get_weather[ARGS]{"city": "Oslo"}', '', [CITIES, ADD, OSLO]),
    'lm studio: its own request': ('[TOOL_REQUEST]{"name": "get_weather", "arguments": {"city": "Oslo"}}[END_TOOL_REQUEST]', '', [OSLO]),
    'harmony: an invented result': ('<|channel|>commentary to=functions.list_cities<|message|>{}<|call|><|start|>functions.list_cities to=assistant<|channel|>commentary<|message|>["Oslo"]<|end|><|start|>assistant<|channel|>final<|message|>Oslo.', '', [CITIES]),
    'functionary v2: a call': ('<|from|>assistant\n<|recipient|>get_weather\n<|content|>{"city": "Oslo"}<|stop|>', '', [OSLO]),
    'functionary v2: an answer and a call': ('<|recipient|> all\n<|content|> Let me see.\n<|from|> assistant\n<|recipient|> list_cities\n<|content|> {}<|stop|>', 'Let me see.', [CITIES]),
    'functionary v2: an answer': ('<|recipient|>all\n<|content|>It is 4.<|stop|>', 'It is 4.', []),
    'gemma 3: code behind a longer text': ('Okay.\n\nI will check the weather in Oslo.\n\n```tool_code\nget_weather(city="Oslo")\n```', 'Okay.\n\nI will check the weather in Oslo.', [OSLO]),
    'gemma 3: an invented result': ('```tool_code\nget_weather(city="Oslo")\n```\n```tool_output\nsunny\n```\nIt is sunny.', '', [OSLO]),
    'functools and a blank': ('functools [{"name": "list_cities", "arguments": {}}]', '', [CITIES]),
    'xlam: a thought first': ('{"thought": "I {must}.", "tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}', '', [OSLO]),
    'several fences': ('```json\n{"name": "list_cities", "arguments": {}}\n```\n\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```', '', [CITIES, OSLO]),
    'a fence on one line': ('```[{"name": "get_weather", "arguments": {"city": "Oslo"}}]```', '', [OSLO]),
    'react: bold labels': ('**Thought:** easy\n**Action:** get_weather\n**Action Input:** {"city": "Oslo"}\n**Observation:** sunny', '', [OSLO]),
    'react: the arguments in brackets': ('Thought: easy\nAction: get_weather(city="Oslo")', '', [OSLO]),
    'react: an object in brackets': ('Action: get_weather({"city": "Oslo"})', '', [OSLO]),
    "react: the paper's brackets": ('Thought: easy\nAction: get_weather[Oslo]\nObservation: sunny', '', [OSLO]),
    'react: a string for the only required argument': ('Action: get_weather\nAction Input: "Oslo"', '', [OSLO]),
    "a line of many blanks first": (
        'Here.\n' + " " * 150 + '{"name": "list_cities", "arguments": {}}',
        "Here.",
        [CITIES],
    ),
    "a wide blank and Windows line ends": (
        'Here.\r\n\u3000{"name": "list_cities", "arguments": {}}\r\n',
        "Here.",
        [CITIES],
    ),
    "an invented result": ('<tool_call>{"name": "list_cities", "arguments": {}}</tool_call>\n<tool_response>\n["Oslo"]\n</tool_response>\nThere is Oslo.', "", [CITIES]),
    "an invented turn": ("It is 4.<|im_end|>\n<|im_start|>user\nAnd 3+3?<|im_end|>", "It is 4.", []),
    "end tokens only": ("It is 4.<end_of_turn>\n<eos>", "It is 4.", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "content", "calls"), READ.values(), ids=READ)
def test_a_bent_notation_is_read(text, content, calls):
    read = assert_same_in_pieces(text, every_split=True)
    assert calls_of(read) == calls
    assert not problems_of(read)
    assert read.content == content


TEXT = {
    "the tag in inline code": 'Write `<tool_call>{"name": "list_cities", "arguments": {}}</tool_call>` to call it.',
    "the tag in the middle of a sentence": 'You write <tool_call>{"name": "list_cities", "arguments": {}}</tool_call> and wait.',
    "after a colon, and the sentence goes on": "It is: <function=list_cities></function>, as said.",
    "in a quoted line": '> <tool_call>{"name": "list_cities", "arguments": {}}</tool_call>\n\nThat is the format.',
    "in a fence with text on both sides": "See:\n```xml\n<function=list_cities>\n</function>\n```\nThat is all.",
    "JSON and then text": '{"name": "list_cities", "arguments": {}}\nThat is how it looks.',
    "JSON after two lines": 'One.\nTwo.\n{"name": "list_cities", "arguments": {}}',
    "JSON whose arguments do not fit": '{"name": "get_weather", "arguments": {"town": "Oslo"}}',
    "JSON that only looks like a call": '{"name": "get_weather", "description": "A tool", "parameters": {}}',
    "a list of other things": '[{"name": "Oslo"}, {"name": "Rome"}]',
    "Python with positional arguments": "[add(1, 2)]",
    "Python that computes": "[add(a=1+1, b=2)]",
    "Python code": "```python\nadd(a=1, b=2) + 1\n```",
    "a name alone": "list_cities",
    "an action that is none": "Action: write a letter\nAction Input: soon",
    "tokens in the middle": "The token <|im_end|> ends a turn.",
    "a word and a bracket": "[TOOL_CALLS] is a token of Mistral.",
    "in a table": 'As a table:\n\n| call | format |\n|---|---|\n| <tool_call>{"name": "list_cities", "arguments": {}}</tool_call> | Hermes |\n',
    "a fence in a longer fence": "````md\n```\n<function=list_cities></function>\n```\n````\nThat is all.",
    "a fence of other marks": "~~~\n```\n<function=list_cities></function>\n~~~\nThat is all.",
    "the pattern of a call": 'Write:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>\nfor each.',
    "a harmony header in a sentence": "The header <|channel|>commentary to=functions.list_cities<|message|> begins a call.",
    "a harmony call in a sentence": "Write <|channel|>commentary to=functions.list_cities<|message|>{}<|call|> for it.",
    "a message's beginning in a sentence": "Use <|start|>assistant<|message|> to begin.",
    "a turn's beginning in a sentence": "In ChatML you write <|im_start|>user\nHi<|im_end|>\nand so on.",
    "a word like Functionary's": ">>>all right then",
    "a tag that is named after a tool": "<get_weather>Oslo</get_weather> is no tag.",
    "a tag after a tool with other tags in it": "<get_weather><b>Oslo</b></get_weather>",
    "a tag after a tool that lacks what it needs": "<add><a>1</a></add>",
    "other things beside a name": '{"name": "get_weather", "city": "Oslo", "sunny": true}',
    "a fence and then another one": '```json\n{"name": "list_cities", "arguments": {}}\n```\n\n```json\n["Oslo"]\n```',
    "words behind a name in a tag": "<tool_call><name>list_cities</name> is how it begins.",
    "a tag that is named": "The <tool_call> tag opens a call.",
}


@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT)
def test_talk_about_calls_is_text(text):
    read = assert_same_in_pieces(text, every_split=True)
    assert read.calls == ()
    assert read.content == text


def test_a_call_that_does_not_fit_behind_a_control_token_goes_to_the_loop_which_explains():
    read = find_calls('<tool_call>{"name": "get_weather", "arguments": {"town": "Oslo"}}</tool_call>', TOOLS)
    assert read.calls == (ToolCall("", "get_weather", {"town": "Oslo"}, '{"town": "Oslo"}'),)


def test_ids_that_a_family_writes_are_kept():
    texts = (
        '[TOOL_CALLS] [{"name": "list_cities", "arguments": {}, "id": "abcdefghi"}]',
        "[TOOL_CALLS]list_cities[CALL_ID]abcdefghi[ARGS]{}",
    )
    assert [find_calls(text, TOOLS).calls[0].id for text in texts] == ["abcdefghi"] * 2
    kimi = "<|tool_call_begin|>functions.list_cities:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    assert find_calls(kimi, TOOLS).calls[0].id == "functions.list_cities:0"


def test_reasoning_in_a_notations_own_place_is_reported_as_such():
    read = find_calls(
        "<|channel|>analysis<|message|>Simple.<|end|><|start|>assistant<|channel|>final<|message|>4", TOOLS
    )
    assert (read.reasoning, read.content) == ("Simple.", "4")


def test_an_answer_cut_off_by_length_makes_an_unclosed_call_a_cut_off_one():
    text = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value>"
    assert calls_of(find_calls(text, TOOLS)) == [OSLO]
    _, read = read_in_pieces([text], cut_off=True)
    assert calls_of(read) == []


def test_an_argument_that_is_given_twice_is_a_problem():
    text = "<function=get_weather><parameter=city>Oslo</parameter><parameter=city>Rome</parameter></function>"
    ((name, problem),) = problems_of(find_calls(text, TOOLS))
    assert name == "get_weather"
    assert "twice" in problem


CUT = (
    "<tool_call><name>list_cities</name>\n<argum",
    "<tool_call><name>list_cit",
    'Action: get_weather\nAction Input: "Os',
    "Action: get_weather[Os",
    "Action: get_weather(city='Os",
    'functions.get_weather:0{"city": "Os',
    '<|recipient|>get_weather\n<|content|>{"city": "Os',
    '[TOOL_CALLS]get_weather{"city": "Os',
    "<tool_call><function=get_weather\n<parameter=city>Os",
)


@pytest.mark.parametrize("text", CUT)
def test_what_is_cut_off_never_runs(text):
    assert calls_of(assert_same_in_pieces(text, every_split=True)) == []


@pytest.mark.parametrize("text", ["<get_weather>\nThe", "<get_weather><b>", "All <s", "It is [TOO"])
def test_text_that_cannot_be_a_call_is_shown_at_once(text):
    reader = TextCallReader(TOOLS)
    assert reader.feed(text + " word") == text + " word"


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("broken", ['{"city": ["Oslo"}', '{"city": "Oslo"]', '{"city": (1]'])
@pytest.mark.parametrize(
    ("opener", "closer"),
    [
        ("<get_weather>", "</get_weather>"),
        ("<tool_call>", "</tool_call>"),
        ("<tool_call>get_weather\n", "</tool_call>"),
    ],
)
def test_a_call_with_a_wrong_bracket_is_told_of_wherever_it_stands(opener, broken, closer, closed):
    read = assert_same_in_pieces(f"{opener}{broken}{closer if closed else ''}", every_split=True)
    ((_, problem),) = problems_of(read)
    assert "brackets" in problem
    assert read.content == ""
