"""898 recorded exchanges of some 35 providers, read by us and by an independent reader (`expect`)."""

import json
from typing import Any

from tests.wire.reading import json_lines, shared

from glassloop.core.entries import Reply
from glassloop.core.tools import ToolSpec
from glassloop.wire.completion import Failure
from glassloop.wire.reply import read_body

NO_REPLY = {"error", "stream_error", "unparsable"}

EXCEPTIONS = {
    "failure": "an error object in the middle of a stream decides, whatever text came before it",
    "content": "thinking tags, ReAct labels and control tokens are taken out of the text; the other reader leaves them",
    "reasoning": "what was taken out as thinking is reasoning here, and nothing there",
    "usage": "cached tokens are also read from the fields of vendors that the other reader does not know",
}
"""Where our reading differs on purpose, and why. `_is_meant` says when each applies."""


def test_recorded_exchanges_are_read_as_an_independent_reader_reads_them() -> None:
    records = json_lines(shared("GLASSLOOP_CORPORA", "corpora", "wire.jsonl"))
    assert len(records) > 800
    unexplained = []
    for record in records:
        outcome = read_body(record["response"]["body_text"].encode(), _tools(record))
        for kind, expected, got in _differences(record["expect"], outcome):
            if not _is_meant(kind, expected, got, record, outcome):
                unexplained.append((record["id"], kind, expected, got))
    assert unexplained == []


def _tools(record: dict[str, Any]) -> dict[str, ToolSpec]:
    offered = (record["request"] or {}).get("tools") or []
    functions = [tool["function"] for tool in offered if tool.get("function", {}).get("name")]
    return {each["name"]: ToolSpec(each["name"], "", each.get("parameters") or {}) for each in functions}


def _differences(expect: dict[str, Any], outcome: Reply | Failure) -> list[tuple[str, Any, Any]]:
    """What differs, as (what, expected, got)."""
    if isinstance(outcome, Failure):
        return [] if expect["kind"] in NO_REPLY else [("failure", expect["kind"], outcome.reason)]
    if expect["kind"] in NO_REPLY:
        return [("reply", expect["kind"], outcome.text)]
    usage = outcome.usage
    counts = expect["usage"] or {}
    compared = [
        ("content", (expect["content"] or expect["refusal"] or "").strip(), outcome.text.strip()),
        ("reasoning", (expect["reasoning"] or "").strip(), outcome.reasoning.strip()),
        ("finish_reason", expect["finish_reason"], outcome.finish_reason),
        ("calls", _expected_calls(expect), [(call.id, call.name) for call in outcome.tool_calls]),
        ("arguments", _expected_arguments(expect), [call.arguments for call in outcome.tool_calls]),
        ("prompt", counts.get("prompt_tokens"), usage.prompt_tokens),
        ("completion", counts.get("completion_tokens"), usage.completion_tokens),
        ("total", counts.get("total_tokens"), usage.total_tokens),
        ("usage", counts.get("cached_tokens"), usage.cached_tokens),
        ("reasoning_tokens", counts.get("reasoning_tokens"), usage.reasoning_tokens),
    ]
    return [(what, expected, got) for what, expected, got in compared if expected != got]


def _expected_calls(expect: dict[str, Any]) -> list[tuple[str, str]]:
    calls = [(call["id"] or "", call["name"]) for call in expect["tool_calls"]]
    legacy = expect.get("function_call")
    return calls or ([("", legacy["name"])] if legacy else [])


def _expected_arguments(expect: dict[str, Any]) -> list[Any]:
    if expect.get("function_call"):
        return [json.loads(expect["function_call"]["arguments"])]
    return [call["arguments"] if call["arguments_valid"] else {} for call in expect["tool_calls"]]


def _is_meant(kind: str, expected: Any, got: Any, record: dict[str, Any], outcome: Reply | Failure) -> bool:
    match kind:
        case "failure":
            return got == "error_object" and "error_midstream" in record["features"]
        case "content":
            return got in expected and any(mark in expected for mark in ("<think>", "<|im_"))
        case "reasoning":
            content = record["expect"]["content"] or ""
            return not expected and got in content and "<think>" in content
        case "usage":
            return expected is None and got is not None
    return False
