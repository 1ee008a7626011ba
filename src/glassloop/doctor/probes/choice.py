"""`tool_choice`: is it heeded? Asked against the grain of the question, so that a willing model is no false pass."""

from __future__ import annotations

from glassloop.core.entries import JSON, Reply
from glassloop.doctor.findings import Answer, Finding
from glassloop.doctor.kit import BE_BRIEF, SPECS, named, please_call, said
from glassloop.doctor.patient import Patient
from glassloop.doctor.probe import Probe, failed, learned_in, said_by, tries

_IGNORED = Finding(
    "tool_choice:none_ignored",
    "mended",
    "tool_choice none does not keep it from calling",
    "offers no tools where none may be called",
)
_GREET = "Say hello. There is nothing to look up."


async def _none(patient: Patient) -> Answer:
    asked = await patient.ask(
        [BE_BRIEF, please_call(("get_weather", {"city": "Oslo"}))], SPECS, tool_choice="none"
    )
    if asked.reply is None:
        return failed(asked)
    if changed := learned_in(asked):
        return Answer("mended", f"refused: {changed}", (("tool_choice_none", False),))
    replies = [one.reply for one in patient.asked if one.reply is not None]
    ignored = any(map(_calls_all_the_same, replies))
    found = (_IGNORED,) if ignored else ()
    return Answer(
        "mended" if ignored else "ok", said_by(asked.reply), (("tool_choice_none", not ignored),), found
    )


def _calls_all_the_same(reply: Reply) -> bool:
    mended = any(mend.code == "unasked_call" for mend in reply.mends)
    return mended or bool(reply.tool_calls) or reply.finish_reason == "tool_calls"


async def _required(patient: Patient) -> Answer:
    return await _forced(patient, "required", "tool_choice_required")


async def _named(patient: Patient) -> Answer:
    return await _forced(patient, named("list_cities"), "tool_choice_named", "list_cities")


async def _forced(patient: Patient, choice: JSON, fact: str, name: str | None = None) -> Answer:
    """A forced call to a question that asks for none."""

    def is_right(reply: Reply) -> bool:
        return any(name in (None, call.name) for call in reply.tool_calls)

    count, of, asked = await tries(
        patient, lambda: patient.ask([BE_BRIEF, said(_GREET)], SPECS, tool_choice=choice), is_right, most=2
    )
    if asked.reply is None:
        return failed(asked)
    if changed := learned_in(asked):
        return Answer("mended", f"refused: {changed}", ((fact, False),))
    if _is_dropped(patient):
        return Answer("no", "refused before, and not sent any more", ((fact, False),))
    facts = ((fact, bool(count)),)
    if count:
        return Answer("ok", f"a call is forced: {said_by(asked.reply)}", facts)
    return Answer("no", f"taken, but not enforced ({count} of {of}): {said_by(asked.reply)}", facts)


async def _auto(patient: Patient) -> Answer:
    """Does it choose to call by itself? All three tries count: this is the model's mood."""
    right, said_last = 0, ""
    for _ in range(patient.tries):
        asked = await patient.ask([said("What is the weather in Oslo right now?")], SPECS)
        if asked.reply is None:
            return failed(asked)
        right += bool(asked.reply.tool_calls)
        said_last = said_by(asked.reply)
    words = f"calls of its own accord: {right} of {patient.tries}"
    if right:
        return Answer("ok", words, (("calls_by_itself", right),))
    words += f"; it answered from imagination: {said_last}"
    return Answer("weak", words, (("calls_by_itself", 0),))


def _is_dropped(patient: Patient) -> bool:
    profile = patient.endpoint.profile
    return "tool_choice" in profile.drop_fields or profile.text_tools


PROBES = (
    Probe("tool_choice_none", "choice", "tool_choice none", _none, 1, 600),
    Probe("tool_choice_required", "choice", "tool_choice required", _required, 1, 600),
    Probe("tool_choice_named", "choice", "tool_choice with a name", _named, 1, 600),
    Probe("tool_choice_auto", "choice", "does it call of its own accord?", _auto, 3, 1800),
)
