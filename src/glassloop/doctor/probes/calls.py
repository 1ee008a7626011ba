"""Tool calls: forced ones, with arguments of every kind, streamed, two at once, and what follows a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glassloop.core.entries import JSON, Entry, Reply
from glassloop.doctor.findings import Answer, Finding
from glassloop.doctor.kit import (
    BE_BRIEF,
    BOX,
    BY_NAME,
    EVERY_KIND,
    SPECS,
    a_past_call,
    named,
    please_call,
    result_of,
)
from glassloop.doctor.patient import Patient
from glassloop.doctor.probe import Probe, failed, said_by, tries
from glassloop.doctor.shape import stream_of
from glassloop.wire.textcalls import family_for

_OSLO: Mapping[str, JSON] = {"city": "Oslo"}
_ROME: Mapping[str, JSON] = {"city": "Rome"}


async def _empty(patient: Patient) -> Answer:
    """A call without parameters."""

    def is_right(reply: Reply) -> bool:
        return called(reply, "list_cities") is not None

    count, of, asked = await tries(
        patient,
        lambda: patient.ask(
            [BE_BRIEF, please_call(("list_cities", {}))], SPECS, tool_choice=named("list_cities")
        ),
        is_right,
    )
    if asked.reply is None:
        return failed(asked)
    return _mood(count, of, asked.reply, "forced_empty")


async def _kinds(patient: Patient) -> Answer:
    return await _with_every_kind(patient, stream=False)


async def _streamed(patient: Patient) -> Answer:
    return await _with_every_kind(patient, stream=True)


async def _with_every_kind(patient: Patient, *, stream: bool) -> Answer:
    """One call with arguments of every kind; wrong values are the model's, unreadable ones the endpoint's."""
    question: list[Entry] = [BE_BRIEF, please_call(("place_order", EVERY_KIND))]

    def is_right(reply: Reply) -> bool:
        return called(reply, "place_order") is not None

    count, of, asked = await tries(
        patient,
        lambda: patient.ask(question, SPECS, stream=stream, tool_choice=named("place_order")),
        is_right,
    )
    if asked.reply is None:
        return failed(asked)
    name = "streamed_call" if stream else "forced_call"
    if not count and not stream and not asked.reply.tool_calls and await _dropped(patient, question):
        words = (
            f"0 of {of} calls, but it calls where the tools are described in text: the endpoint drops them"
        )
        return Answer("failed", words, ((name, 0),), (_DROPPED,))
    if not count:
        return _mood(count, of, asked.reply, name)
    given = called(asked.reply, "place_order") or {}
    wrong = [key for key, value in EVERY_KIND.items() if given.get(key) != value]
    how = f", in {stream_of(asked.last.body).call_pieces} pieces" if stream else ""
    if wrong:
        return Answer("weak", f"called{how}, with other values for {', '.join(wrong)}", ((name, count),))
    return Answer("ok", f"every value right{how}", ((name, count),))


async def _then_answer(patient: Patient) -> Answer:
    """A call, its result, an answer. The call is the model's own where it makes one, with all that came along."""
    question = please_call(("get_weather", _OSLO))
    first = await patient.ask([BE_BRIEF, question], SPECS, tool_choice=named("get_weather"))
    if first.reply is None:
        return failed(first)
    reply, result = a_past_call()
    ready = bool(first.reply.tool_calls) and not first.reply.cut_off
    if ready and all(BOX.prepare(call).outcome == "ready" for call in first.reply.tool_calls):
        reply = first.reply
        results = [result_of(call, "18 degrees, sunny") for call in reply.tool_calls]
    else:
        results = [result]
    last = await patient.ask([BE_BRIEF, question, reply, *results], SPECS)
    if last.reply is None:
        return failed(last)
    facts = (("reasoning_with_calls", first.reply.reasoning_field),)
    if last.reply.tool_calls:
        return Answer("weak", f"calls again in place of an answer: {said_by(last.reply)}", facts)
    return Answer("ok", said_by(last.reply), facts)


async def _error_result(patient: Patient) -> Answer:
    """A result that is an error: does the model correct itself?"""
    reply, result = a_past_call(
        'There is no city "Oslo". Did you mean: get_weather {"city": "Rome"}', "error"
    )
    entries: list[Entry] = [BE_BRIEF, please_call(("get_weather", _OSLO)), reply, result]

    def is_right(reply: Reply) -> bool:
        return called(reply, "get_weather") is not None

    count, of, asked = await tries(patient, lambda: patient.ask(entries, SPECS), is_right)
    if asked.reply is None:
        return failed(asked)
    words = "corrects itself" if count else f"does not try again: {said_by(asked.reply)}"
    return Answer("ok" if count else "weak", f"{words} ({count} of {of})", (("corrects_itself", count),))


async def _two(patient: Patient) -> Answer:
    """Two calls in one turn."""

    def is_right(reply: Reply) -> bool:
        return len(reply.tool_calls) > 1

    question = please_call(("get_weather", _OSLO), ("get_weather", _ROME))
    count, of, asked = await tries(
        patient, lambda: patient.ask([BE_BRIEF, question], SPECS, tool_choice="required"), is_right
    )
    if asked.reply is None:
        return failed(asked)
    words = "two calls in one turn" if count else f"one after the other: {said_by(asked.reply)}"
    return Answer("ok" if count else "weak", f"{words} ({count} of {of})", (("parallel_calls", count),))


_FEW_TOKENS = 24
_LONG_TEXT = "one two three four five six seven eight nine ten " * 10


async def _cut_off(patient: Patient) -> Answer:
    """A call that does not fit into the output limit: is it said that it was cut off?"""
    question = please_call(("write_note", {"path": "a.txt", "text": _LONG_TEXT}))
    asked = await patient.ask(
        [BE_BRIEF, question], SPECS, tool_choice=named("write_note"), max_tokens=_FEW_TOKENS
    )
    if asked.reply is None:
        return failed(asked)
    if asked.reply.cut_off:
        return Answer("ok", f"cut off, and said so: {asked.reply.finish_reason}", (("says_cut_off", True),))
    if not any(call.name and call.arguments is None for call in asked.reply.tool_calls):
        return Answer("ok", f"not cut off: {said_by(asked.reply)}")
    return Answer(
        "mended", f"cut off, and called {asked.reply.finish_reason}", (("says_cut_off", False),), (_LIES,)
    )


_LIES = Finding(
    "finish_reason:lies",
    "mended",
    "a call that was cut off is passed off as complete",
    "sees that the arguments do not end; the call never runs",
)


def called(reply: Reply, name: str) -> Mapping[str, JSON] | None:
    """The arguments of a call of this tool that may run, as the tool would get them."""
    assert name in BY_NAME, name
    for call in reply.tool_calls:
        verdict = BOX.prepare(call)
        if call.name == name and verdict.outcome == "ready":
            return verdict.arguments
    return None


_DROPPED = Finding(
    "tools_dropped",
    "broken",
    "the tools never reach the model: described in text, it calls them at once",
    "can describe them in text: --tool-mode text",
)


async def _dropped(patient: Patient, question: Sequence[Entry]) -> bool:
    """Whether the model calls where the tools are described in text: then it is the endpoint that lost them."""
    if patient.endpoint.profile.text_tools:
        return False
    family = family_for(patient.endpoint.model)
    tried = await patient.try_once(question, SPECS, profile={"tool_mode": family})
    return tried.reply is not None and any(call.problem is None for call in tried.reply.tool_calls)


def _mood(count: int, of: int, reply: Reply, name: str) -> Answer:
    """Called or not, which is the model's doing."""
    facts, seen = ((name, count),), said_by(reply)
    if count:
        return Answer("ok", f"{seen} ({count} of {of})", facts)
    if reply.tool_calls:
        return Answer("weak", f"0 of {of}: the model called, but not as it was told: {seen}", facts)
    return Answer(
        "weak", f"0 of {of}: a weak model, it did not call though it was told to, and said: {seen}", facts
    )


PROBES = (
    Probe("forced_call", "calls", "one call with arguments of every kind", _kinds, 1, 700, quick=True),
    Probe("call_without_arguments", "calls", "one call without arguments", _empty, 1, 600),
    Probe("streamed_call", "calls", "one streamed call", _streamed, 1, 700, quick=True),
    Probe("call_then_answer", "calls", "call, result, answer", _then_answer, 2, 1300, quick=True),
    Probe("cut_off_call", "calls", "a call that is cut off", _cut_off, 1, 700),
    Probe("error_result", "calls", "does it correct itself after an error?", _error_result, 2, 1300),
    Probe("two_calls", "calls", "two calls in one turn", _two, 2, 1200),
)
