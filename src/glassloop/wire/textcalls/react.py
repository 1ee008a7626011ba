"""Transcripts of agents: `Action:` with its input, as ReAct and Command R write it."""

from __future__ import annotations

import re

from glassloop.wire.textcalls.body import calls_from_text, json_or_python
from glassloop.wire.textcalls.found import CUT_OFF, Found, Shape, broken_off, unreadable
from glassloop.wire.textcalls.known import Tools
from glassloop.wire.textcalls.source import Scan, Source, Words, ahead, bracketed, char, run_of, spaces, until

_LONGEST_NAME = 200
_LINE_END = Words(("\n",))
_BRACKET_END = Words(("]", "\n"))
_LABEL = re.compile(r"^[*]*Thought[*:]+")
_FENCE_END = Words(("```",))
_NOTHING = Words(())


def _bold(*labels: str) -> tuple[str, ...]:
    """Labels as they are and as chat models print them: `**Action:**`, `**Action**:`."""
    return tuple(form.format(label) for label in labels for form in ("{}:", "**{}:**", "**{}**:"))


THOUGHTS = _bold("Thought")
ACTIONS = (*_bold("Action"), "✿FUNCTION✿:")  # the last in Qwen-Agent's prompt
_ANSWERS = _bold("Final Answer", "Answer")
_NEXT_ACTION = tuple("\n" + label for label in ACTIONS)
_AFTER_THOUGHT = Words((*_NEXT_ACTION, *("\n" + label for label in _ANSWERS)))
_ACTION = Words(ACTIONS)
_INPUT = Words((*_bold("Action Input", "Action_Input", "ActionInput", "Input", "Arguments"), "✿ARGS✿:"))
_AFTER_INPUT = Words(
    ("✿RESULT✿", "✿RETURN✿", "Observation", "**Observation", *THOUGHTS, *ACTIONS, *_bold("Final Answer"))
)
_AFTER_TEXT = Words(
    ("\nObservation", "\n**Observation", *("\n" + label for label in THOUGHTS), *_NEXT_ACTION)
)
_NAME = re.compile(r"[\w.-]*")
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
        reasoning = _LABEL.sub("", thought, count=1).strip()
        if word not in _NEXT_ACTION:
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
    head = yield from run_of(source, _NAME, _LONGEST_NAME)
    if tools.knows(head) and (yield from char(source)) in {"(", "["}:
        return (yield from _in_brackets(source, tools, head))
    rest, end = yield from until(source, _LINE_END, _LONGEST_NAME)
    name = (head + rest).strip().strip("`*[]")
    if not end or not tools.knows(name):
        return None
    yield from spaces(source)
    label = yield from ahead(source, _INPUT)
    if not label:
        return None
    source.take(len(label))
    return (yield from _action_input(source, tools, name))


def _in_brackets(source: Source, tools: Tools, name: str) -> Scan[list[Found] | None]:
    """`get_weather(city="Oslo")`, `get_weather({"city": "Oslo"})`, and `get_weather[Oslo]` of the paper's own prompts."""
    if source.peek() == "(":
        text, broken_by = yield from bracketed(source)
        problem = broken_off(broken_by)
        return [Found(name, text, problem=problem)] if problem else calls_from_text(f"[{name}{text}]")
    source.take(1)
    text, end = yield from until(source, _BRACKET_END)
    source.take(len(end))
    return _only_text(tools, name, text) if end == "]" else None


def _action_input(source: Source, tools: Tools, name: str) -> Scan[list[Found] | None]:
    yield from spaces(source)
    fence = yield from ahead(source, _FENCE_OR_LINE)
    source.take(len(fence))
    yield from spaces(source)
    if (yield from char(source)) == "{":
        text, broken_by = yield from bracketed(source)
        yield from _end_fence(source)
        return [Found(name, text, problem=broken_off(broken_by))]
    text, _ = yield from until(source, _AFTER_TEXT)
    return _only_text(tools, name, text)


def _only_text(tools: Tools, name: str, text: str) -> list[Found]:
    """A call whose input is no object: it is the one argument that the tool has, or the one that it must have."""
    keys, required = tools.keys(name), tools.required(name)
    text = text.strip()
    if not keys or text in {"None", "null"}:
        return [Found(name, {})]
    if text.startswith('"') and (len(text) == 1 or not text.endswith('"')):
        return [Found(name, text, problem=CUT_OFF)]
    if not text:
        return [Found(name, "", problem=CUT_OFF)] if required else [Found(name, {})]
    candidates = keys if len(keys) == 1 else required
    if len(candidates) != 1:
        return [Found(name, text, problem=unreadable("the action input is no JSON object"))]
    return [Found(name, {next(iter(candidates)): text.strip('"')})]


def _end_fence(source: Source) -> Scan[None]:
    yield from spaces(source)
    fence = yield from ahead(source, _FENCE_END)
    source.take(len(fence))
