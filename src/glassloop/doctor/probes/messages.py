"""Roles, their order, history and reasoning: what the endpoint takes back, must have, or refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from glassloop.core.entries import JSON, Image, Text, User
from glassloop.doctor.findings import Answer
from glassloop.doctor.kit import BE_BRIEF, HELLO, SPECS, a_past_call, please_call, said
from glassloop.doctor.patient import Asked, Patient
from glassloop.doctor.probe import Probe, Work, failed, learned_in, taken_or_changed, taken_or_not

_QUESTION = please_call(("get_weather", {"city": "Oslo"}))
_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A PNG of one red point."""


async def _system(patient: Patient) -> Answer:
    return taken_or_changed(await patient.ask([BE_BRIEF, said(HELLO)]), "a system message")


async def _developer(patient: Patient) -> Answer:
    tried = await patient.try_once([BE_BRIEF, said(HELLO)], profile={"system": "developer"})
    return taken_or_not(tried, "the developer role", "developer_role", "sends instructions as system")


async def _two_users(patient: Patient) -> Answer:
    asked = await patient.ask([said("I have a question."), said(HELLO)])
    return taken_or_changed(asked, "two user messages in a row")


async def _history(patient: Patient) -> Answer:
    reply, result = a_past_call()
    asked = await patient.ask([BE_BRIEF, _QUESTION, reply, result], SPECS)
    return taken_or_changed(asked, "a past call and its result")


async def _without_tools(patient: Patient) -> Answer:
    """As in the last answer of a run: calls lie behind, and no tools are offered any more."""
    reply, result = a_past_call()
    asked = await patient.ask([BE_BRIEF, _QUESTION, reply, result])
    return taken_or_changed(asked, "past calls without tools")


async def _after_results(patient: Patient) -> Answer:
    reply, result = a_past_call()
    asked = await patient.ask([BE_BRIEF, _QUESTION, reply, result, said("Is that warm?")], SPECS)
    return taken_or_changed(asked, "a user message right after a result")


_USER: Mapping[str, JSON] = {"role": "user", "content": HELLO}
_SYSTEM: Mapping[str, JSON] = {"role": "system", "content": BE_BRIEF.text}
_ANSWER: Mapping[str, JSON] = {"role": "assistant", "content": "Hello!"}
_RESULT: Mapping[str, JSON] = {"role": "tool", "tool_call_id": "a1B2c3D4e", "name": "get_weather"}


def _calls(content: JSON = "Let me look.", arguments: str = '{"city": "Oslo"}') -> Mapping[str, JSON]:
    function = {"name": "get_weather", "arguments": arguments}
    call = {"id": "a1B2c3D4e", "type": "function", "function": function}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


_SUNNY = {**_RESULT, "content": "18 degrees"}
_PART: Mapping[str, JSON] = {"type": "text", "text": "18 degrees"}
_NAMELESS = {name: value for name, value in _SUNNY.items() if name != "name"}

BY_HAND: Mapping[str, tuple[str, Sequence[Mapping[str, JSON]]]] = {
    "system_in_the_middle": (
        "a second system message, in the middle",
        [_SYSTEM, _USER, _ANSWER, _SYSTEM, _USER],
    ),
    "empty_turn": ("an empty turn of the assistant", [_USER, {**_ANSWER, "content": ""}, _USER]),
    "words_beside_calls": ("a past call with words beside it", [_USER, _calls(), _SUNNY]),
    "content_empty": ("empty content beside calls", [_USER, _calls(""), _SUNNY]),
    "content_null": ("null content beside calls", [_USER, _calls(None), _SUNNY]),
    "empty_result": ("an empty result", [_USER, _calls(), {**_RESULT, "content": ""}]),
    "result_in_parts": ("a result in parts", [_USER, _calls(), {**_RESULT, "content": [_PART]}]),
    "result_without_name": ("a result without the tool's name", [_USER, _calls(), _NAMELESS]),
    "user_before_result": ("a user message between call and result", [_USER, _calls(), _USER, _SUNNY]),
    "empty_arguments": ("a past call with empty arguments", [_USER, _calls(arguments=""), _SUNNY]),
}
"""Histories that people build by hand and Glassloop avoids, or spells otherwise once it was told."""

_BASE = "words_beside_calls"
"""Where this is refused, what else is in a history with calls cannot be told."""


def _by_hand(name: str) -> Work:
    words, messages = BY_HAND[name]
    has_calls = any("tool_calls" in message for message in messages)

    async def work(patient: Patient) -> Answer:
        if has_calls and patient.facts.get(_BASE) is False:
            return Answer("no", "not known: past calls are refused in this form")
        tried = await patient.try_once([said(HELLO)], SPECS, edit={"messages": messages})
        return taken_or_not(tried, words, name, "avoids it, or learns another spelling")

    return work


async def _reasoning(patient: Patient) -> Answer:
    """Past calls with their reasoning and without: what is learned of the two says what the endpoint wants."""
    reply, result = a_past_call()
    name = (
        patient.facts.get("reasoning_field")
        or patient.facts.get("reasoning_with_calls")
        or "reasoning_content"
    )
    words = "A tool knows the weather."
    thought = structs.replace(
        reply, reasoning=words, reasoning_field=name, raw={"role": "assistant", name: words}
    )
    without = await patient.ask([BE_BRIEF, _QUESTION, reply, result], SPECS)
    with_it = await patient.ask([BE_BRIEF, _QUESTION, thought, result], SPECS)
    if without.reply is None or with_it.reply is None:
        return failed(without if without.reply is None else with_it)
    wish = _wish(patient, without, with_it)
    shown = patient.facts.get("reasoning_field") or patient.facts.get("reasoning_with_calls")
    seen = f"{wish} be passed back; " + (f"the model's comes as {shown}" if shown else "none was seen")
    changed = learned_in(without) or learned_in(with_it)
    return Answer("mended" if changed else "ok", seen, (("reasoning_back", wish),))


def _wish(patient: Patient, without: Asked, with_it: Asked) -> str:
    profile = patient.endpoint.profile
    if profile.reasoning_back == "never":
        return "must not"
    return "must" if profile.reasoning_name or learned_in(without) else "may"


async def _image(patient: Patient) -> Answer:
    picture = User((Text("Which colour is this?"), Image("image/png", _PIXEL)))
    asked = await patient.ask([picture])
    if asked.reply is None:
        return replace(failed(asked), outcome="no", facts=(("images", False),))
    changed = learned_in(asked)
    if changed:
        return Answer("no", f"refused: {changed}", (("images", False),))
    return Answer("ok", "an image is taken", (("images", True),))


PROBES = (
    Probe("system", "messages", "a system message", _system, 1, 60),
    Probe("developer", "messages", "the developer role", _developer, 1, 60),
    Probe("two_user_turns", "messages", "two user messages in a row", _two_users, 1, 60),
    Probe("history", "messages", "a past call and its result", _history, 1, 700),
    Probe("history_without_tools", "messages", "past calls, no tools any more", _without_tools, 1, 150),
    Probe("user_after_result", "messages", "a user message after a result", _after_results, 1, 700),
    *(Probe(name, "messages", BY_HAND[name][0], _by_hand(name), 1, 700) for name in BY_HAND),
    Probe("reasoning", "messages", "must reasoning be passed back?", _reasoning, 2, 1400),
    Probe("image", "messages", "an image", _image, 1, 300),
)
