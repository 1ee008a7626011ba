"""Transcripts of agents: `Action:` with its input, as ReAct and Command R write it."""

from __future__ import annotations

from glassloop.wire.textcalls.body import json_or_python
from glassloop.wire.textcalls.found import CUT_OFF, Found, Shape, unreadable
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.source import Scan, Source, Words, ahead, bracketed, char, spaces, until

_LONGEST_NAME = 200
_LINE_END = Words(("\n",))
_FENCE_END = Words(("```",))
_NOTHING = Words(())
_AFTER_THOUGHT = Words(("\nAction:", "\nFinal Answer:", "\nAnswer:"))
_ACTION = Words(("Action:", "✿FUNCTION✿:"))  # the second in Qwen-Agent's prompt
_INPUT = Words(("Action Input:", "Action_Input:", "ActionInput:", "Input:", "Arguments:", "✿ARGS✿:"))
_AFTER_INPUT = Words(("✿RESULT✿", "✿RETURN✿", "Observation", "Thought:", "Action:", "Final Answer:"))
_AFTER_TEXT = Words(("\nObservation", "\nThought:", "\nAction:"))
_FENCE_OR_LINE = Words(("```json", "```", "\n"))
_NO_CALL = frozenset({"directly_answer", "directly-answer"})  # Command R's tool for giving the answer itself


def read_action(source: Source, tools: Tools) -> Scan[Shape | None]:
    """ReAct (Qwen 1.5, small models): Thought, Action, Action Input. Command R: `Action:` and a JSON list in a fence.

    What follows as an observation was invented by the model and is dropped.
    """
    reasoning = ""
    if not (yield from ahead(source, _ACTION)):
        thought, word = yield from until(source, _AFTER_THOUGHT)
        if not word:
            return None
        reasoning = thought.removeprefix("Thought:").strip()
        if not word.endswith("Action:"):
            source.take(len(word))
            yield from spaces(source)
            return Shape("react", (), reasoning, text_follows=True)
        source.take(1)
    found: list[Found] = []
    while word := (yield from ahead(source, _ACTION)):
        source.take(len(word))
        call = yield from _action(source, tools)
        if call is None:
            return None
        found.extend(call)
        yield from spaces(source)
    if found and (yield from ahead(source, _AFTER_INPUT)):
        yield from until(source, _NOTHING)
    return Shape("react", tuple(call for call in found if call.name not in _NO_CALL), reasoning)


def _action(source: Source, tools: Tools) -> Scan[list[Found] | None]:
    yield from spaces(source)
    fence = yield from ahead(source, _FENCE_OR_LINE)
    if fence:
        source.take(len(fence))
        yield from spaces(source)
    mark = yield from char(source)
    if mark and mark in "{[":
        calls = yield from json_or_python(source)
        yield from _end_fence(source)
        return calls
    name, end = yield from until(source, _LINE_END, _LONGEST_NAME)
    name = name.strip().strip("`*[]")
    if not end or not tools.knows(name):
        return None
    yield from spaces(source)
    label = yield from ahead(source, _INPUT)
    if not label:
        return None
    source.take(len(label))
    return (yield from _action_input(source, tools, name))


def _action_input(source: Source, tools: Tools, name: str) -> Scan[list[Found] | None]:
    yield from spaces(source)
    fence = yield from ahead(source, _FENCE_OR_LINE)
    source.take(len(fence))
    yield from spaces(source)
    if (yield from char(source)) == "{":
        text, complete = yield from bracketed(source)
        yield from _end_fence(source)
        return [Found(name, text, problem=None if complete else CUT_OFF)]
    text, _ = yield from until(source, _AFTER_TEXT)
    keys = tools.keys(name)
    if not keys or text.strip() in {"None", "null"}:
        return [Found(name, {})]
    if not text.strip():
        return [Found(name, "", problem=CUT_OFF)] if tools.required(name) else [Found(name, {})]
    if len(keys) > 1:
        return [Found(name, text, problem=unreadable("the action input is no JSON object"))]
    return [Found(name, {next(iter(keys)): text.strip().strip('"')})]


def _end_fence(source: Source) -> Scan[None]:
    yield from spaces(source)
    fence = yield from ahead(source, _FENCE_END)
    source.take(len(fence))
