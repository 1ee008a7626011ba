"""Optional request fields: taken, refused, or wanted otherwise. What is refused is learned, for runs that set it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.doctor.findings import Answer
from glassloop.doctor.kit import HELLO, SPECS, said
from glassloop.doctor.patient import Patient
from glassloop.doctor.probe import Probe, Work, answer_of, failed, learned_in, taken_or_changed

FIELDS: Mapping[str, JSON] = {
    "temperature": 0,
    "top_p": 0.9,
    "seed": 7,
    "max_tokens": 300,
    "max_completion_tokens": 300,
    "frequency_penalty": 0.1,
    "stop": ["\n\n\n"],
    "reasoning_effort": "low",
    "enable_thinking": False,
    "user": "glassloop-doctor",
}
"""Fields that people set, with a value that means little."""

_LARGE = 32_000
_SCHEMA: Mapping[str, JSON] = {
    "type": "object",
    "properties": {"greeting": {"type": "string"}, "words": {"type": "integer"}},
    "required": ["greeting", "words"],
    "additionalProperties": False,
}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "greeting", "strict": True, "schema": _SCHEMA}}


def _field(name: str) -> Work:
    async def work(patient: Patient) -> Answer:
        asked = await patient.ask([said(HELLO)], **{name: FIELDS[name]})
        return taken_or_changed(asked, f"{name} = {json.dumps(FIELDS[name])}")

    return work


async def _large(patient: Patient) -> Answer:
    """A generous output limit, as coding tools set it: refused where it is above the model's own."""
    asked = await patient.ask([said(HELLO)], max_completion_tokens=_LARGE)
    if asked.reply is not None and not learned_in(asked):
        asked = await patient.ask([said(HELLO)], max_tokens=_LARGE)
    return taken_or_changed(asked, f"an output of {_LARGE} tokens")


async def _parallel(patient: Patient) -> Answer:
    asked = await patient.ask([said(HELLO)], SPECS, parallel_tool_calls=False)
    return taken_or_changed(asked, "parallel_tool_calls")


async def _schema(patient: Patient) -> Answer:
    asked = await patient.ask([said(f"{HELLO} As JSON.")], response_format=_FORMAT)
    if asked.reply is None:
        return failed(asked)
    if changed := learned_in(asked):
        return Answer("mended", f"refused: {changed}", (("json_schema", False),))
    fits = _fits(asked.reply.text)
    seen = "taken and kept to" if fits else f"taken, but not kept to: {asked.reply.text[:80]}"
    return answer_of(asked, seen, outcome="ok" if fits else "no", json_schema=fits)


async def _schema_and_tools(patient: Patient) -> Answer:
    asked = await patient.ask([said(f"{HELLO} As JSON.")], SPECS, response_format=_FORMAT)
    return taken_or_changed(asked, "response_format beside tools")


def _fits(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and value.keys() == {"greeting", "words"}


PROBES = (
    *(Probe(name, "options", name, _field(name), 1, 50) for name in FIELDS),
    Probe("large_output", "options", "a large output limit", _large, 2, 100),
    Probe("parallel_tool_calls", "options", "parallel_tool_calls", _parallel, 1, 600),
    Probe("json_schema", "options", "response_format json_schema", _schema, 1, 120),
    Probe("json_schema_and_tools", "options", "json_schema beside tools", _schema_and_tools, 1, 650),
)
