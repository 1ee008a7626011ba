"""Does it answer, whole and streamed? `answer` stands for either: most other probes need no more."""

from __future__ import annotations

from glassloop.core.entries import JSON
from glassloop.doctor.findings import Answer
from glassloop.doctor.kit import HELLO, said
from glassloop.doctor.patient import Asked, Patient
from glassloop.doctor.probe import Probe, answer_of, failed, learned_in
from glassloop.doctor.shape import stream_of
from glassloop.models.profiles import Learnt, lesson


async def _plain(patient: Patient) -> Answer:
    asked = await patient.ask([said(HELLO)])
    _remember(patient, asked)
    usage = asked.reply.usage.prompt_tokens if asked.reply else None
    return answer_of(asked, hello_tokens=usage)


async def _streamed(patient: Patient) -> Answer:
    asked = await patient.ask([said(HELLO)], stream=True)
    _remember(patient, asked)
    if asked.reply is None:
        return failed(asked)
    exchange = asked.last
    stream = stream_of(exchange.body)
    first = exchange.arrivals[0][0] if exchange.arrivals else 0.0
    parts = [
        f"{stream.chunks} chunks, the first after {first:.2f} s",
        "usage" if stream.usage else "no usage unless asked",
        "[DONE]" if stream.done else "no [DONE]",
    ]
    parts += [f"{stream.comments} keep-alive comments"] if stream.comments else []
    facts: dict[str, JSON] = {
        "stream_chunks": stream.chunks,
        "stream_usage": stream.usage,
        "stream_done": stream.done,
        "stream_comments": stream.comments,
        "first_token_seconds": round(first, 3),
        "reasoning_field": asked.reply.reasoning_field,
    }
    return answer_of(asked, ", ".join(parts), **facts)


async def _answer(patient: Patient) -> Answer:
    """No request: whether either of the two gave an answer."""
    error = patient.facts.get("error")
    if error:
        return Answer("failed", patient.facts.get("error_words", ""))
    return Answer("ok", "it answers")


async def _stream_usage(patient: Patient) -> Answer:
    """Where streams have no usage by themselves and the endpoint gives it when asked, it is asked from now on."""
    if patient.facts.get("stream_usage"):
        return Answer("ok", "comes without asking")
    endpoint = patient.endpoint
    if endpoint.profile.stream_options:
        return Answer("no", "asked for, and not given")
    asked = await patient.ask([said(HELLO)], stream=True, stream_options={"include_usage": True})
    if asked.reply is None:
        return failed(asked)
    if learned_in(asked):
        return Answer("mended", f"refused: {learned_in(asked)}")
    if not stream_of(asked.last.body).usage:
        return Answer("no", "taken, but no usage came")
    change = "usage is asked for in streams"
    endpoint.learn(lesson("stream_options:yes", change), Learnt({"stream_options": True}))
    return Answer("ok", "comes when asked, and is asked from now on")


def _remember(patient: Patient, asked: Asked) -> None:
    """The error that stands as long as no question was answered."""
    if asked.reply is not None:
        patient.facts |= {"answered": True, "error": None, "error_words": ""}
    elif asked.error is not None and not patient.facts.get("answered"):
        error = asked.error
        words = error.provider_text or str(error.args[0])
        patient.facts |= {"error": type(error).__name__, "error_words": words, "error_status": error.status}


PROBES = (
    Probe("plain", "answers", "a plain answer", _plain, needs=("reachable",), quick=True),
    Probe("streamed", "answers", "a streamed answer", _streamed, needs=("reachable",), quick=True),
    Probe("answer", "answers", "does it answer at all?", _answer, 0, 0, needs=("reachable",), quick=True),
    Probe("stream_usage", "answers", "usage in a stream, when asked", _stream_usage),
)
