"""628 model outputs that other projects test their parsers with: same content and calls, or a reason why ours is right.

Tools that a record lacks are made from the calls it expects, since a call needs a known tool here.
"""

import json
from collections import defaultdict

import pytest
from tests.textcalls.kit import CORPORA, assert_same_in_pieces, calls_of, problems_of

from glassloop.core.tools import ToolSpec
from glassloop.wire.reasoning import split_thinking
from glassloop.wire.textcalls import find_calls

CORPUS = CORPORA / "text_calls.jsonl"
if not CORPUS.exists():
    pytest.skip(f"the corpus of text calls is not at {CORPORA}", allow_module_level=True)

OURS = {
    "a call that was cut off is refused and reported to the model, never completed or dropped": """
        t-cohere-command-5bcd0864c3 t-command-r7b-622a1b226c t-command-r7b-edea2d9063 t-granite-0fb5543c20
        t-granite-4985a97fd4 t-granite-71c7437448 t-granite-c5ed9ddd90 t-harmony-058226468b t-harmony-758a4e98ea
        t-harmony-fa1b251dda t-hermes-05e6c127d9 t-hermes-7a0bbd4dec t-lfm2-1de0b2a917 t-minimax-m2-5be5ff752d
        t-reka-edge-ac8a8f02b2 t-bare-json-list-08e9f74bf0 t-bare-json-list-0e6b550f07 t-llama3-json-2cf1ca13d4
    """,
    "a call that cannot be read is reported to the model instead of shown to a person": """
        t-deepseek-v3-c3aa69a1bc t-deepseek-v31-149d7a81de t-harmony-6987e974cd t-hermes-145298d8b2 t-hermes-fde67fd7ed t-internlm2-eed6d4ae7a t-llama3-json-80500bf4e0 t-longcat-8d1fc1363e
    """,
    "a shape without control tokens is a call only where it is the whole answer": """
        t-bare-json-05b3b6c979 t-bare-json-17acf55f30 t-bare-json-211ee67e9b t-bare-json-6b59134899 t-bare-json-a4fdac996c t-bare-json-e90852058c t-bare-json-list-6cba3a73ec t-lfm2-55e4306a7e
        t-llama3-json-2cd1e62b0b t-pythonic-17faf2e92b
    """,
    "arguments must be one object without repeated keys": """
        t-bare-json-2a44e17ce8 t-bare-json-2dca935004
    """,
    "an unknown tool behind a control token is reported by its name, so that the model can choose another": """
        t-inkling-b16af1ee40 t-internlm2-9bedd2968d t-poolside-v1-9f37035d57 t-poolside-v1-fb7494cb99
        t-cogito-25fcc66f5c
    """,
    "a complete call counts although its closer is missing or its layout is unusual": """
        t-hermes-2f829ab5a6 t-minimax-m1-5208f82ddd t-qwen3-coder-32df4e726f
    """,
    "the text between and after calls is kept": """
        t-glm4-moe-6e6756f7aa t-glm4-moe-e38e7abc8f t-hermes-9c9c7b0bf3 t-step3-0f5e214040
    """,
    "escapes in Python strings are read, as Python reads them": """
        t-lfm2-682f5ae94e t-lfm2-dc6de872e9
    """,
    "white space inside a value that stands on one line belongs to the value": """
        t-qwen3-coder-d02e45a97e
    """,
    "quotes around a name are not part of it": """
        t-qwen3-coder-81b6261b3f
    """,
    "a template's words for tool results, and a fence around an answer, are text": """
        t-deepseek-v31-8346653a59 t-deepseek-v31-a8cb261f50 t-deepseek-v31-c779b3424f t-deepseek-v31-ffd64ede37
        t-mistral-80da4432ce
    """,
    "text that only resembles the beginning of a marker is shown when nothing follows": """
        t-hermes-16ad9a2f08 t-hermes-7e53611613 t-hermes-8e0c92bc15 t-qwen3-coder-6a492411aa
    """,
    "thinking is split off before calls are looked for, whatever the peer was set to": """
        t-apriel-aaf6dad4bf t-apriel-e902f820d6 t-cogito-2f34098b29 t-deepseek-r1-1aa48d4167
        t-ernie45-4161b75f57 t-glm4-moe-ac1a15ebe7 t-granite-04b9f8e887 t-granite-4575392366
        t-granite-682bf7b826 t-granite-d3c3aa7f20 t-hermes-82cdac77c6 t-hermes-995a344c2e t-kimi-k2-4ba0a1922e
        t-lfm2-30c134a44b t-minimax-m2-f8def75d59 t-mistral-b9186ea8e6 t-qwen3-coder-cd9de81679
        t-xlam-0cba27e737
    """,
    "an opener with nothing behind it is no text": """
        t-gemma4-1d5423e31c
    """,
    "no notation: attributes instead of tags, a program behind a bare word, a text that the record does not hold": """
        t-glm4-moe-04ef68a8a2 t-functionary-v3-2-9eeb204916 t-functionary-v3-2-a94502f453 t-harmony-512dadfc4e
    """,
}
REASON = {record: reason for reason, records in OURS.items() for record in records.split()}


def records():
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if not record["family"].startswith(
            "reasoning:"
        ):  # these hold no calls; wire/reasoning is tested with them
            yield record


def type_of(value):
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return {"type": names[type(value)]} if type(value) in names else {}


def tools_of(record):
    if record["tools"]:
        functions = [tool.get("function", tool) for tool in record["tools"]]
        return {
            f["name"]: ToolSpec(f["name"], "", f.get("parameters") or {"type": "object"}) for f in functions
        }
    properties = defaultdict(dict)
    for call in record["expect"]["tool_calls"]:
        known = properties[call["name"]]
        if isinstance(call["arguments"], dict):
            known.update({key: type_of(value) for key, value in call["arguments"].items()})
    return {
        name: ToolSpec(name, "", {"type": "object", "properties": known, "additionalProperties": True})
        for name, known in properties.items()
    }


def differences(record, read, content):
    expect = record["expect"]
    wanted = [(call["name"], call["arguments"]) for call in expect["tool_calls"]]
    if calls_of(read) != wanted or problems_of(read):
        yield f"calls {calls_of(read)} {problems_of(read)} for {wanted}"
    if expect["content_check"] != "unchecked" and content.strip() != (expect["content"] or "").strip():
        yield f"content {content!r} for {expect['content']!r}"


@pytest.mark.parametrize("record", list(records()), ids=lambda record: record["id"])
def test_a_recorded_output_is_read_as_its_test_says_or_for_a_reason_otherwise(record):
    tools = tools_of(record)
    reasoning, text, _ = split_thinking(record["text"])
    read = assert_same_in_pieces(text, tools, sizes=(1, 3, 7))
    content = read.content
    if not read.calls and not content.strip():  # calls in thinking are recovered where nothing else came
        read = find_calls(reasoning, tools)
    found = list(differences(record, read, content))
    if record["id"] in REASON:
        assert found, f"no longer an exception: {REASON[record['id']]}"
    else:
        assert not found


def test_nothing_that_was_cut_off_runs():
    cut_off = next(records.split() for reason, records in OURS.items() if "cut off" in reason)
    for record in records():
        if record["id"] in cut_off:
            assert calls_of(find_calls(split_thinking(record["text"])[1], tools_of(record))) == []
