"""The context window, told and real; how errors look; rate limits."""

from __future__ import annotations

import json
import re

from glassloop.core.entries import JSON
from glassloop.core.tokens import estimate_entries
from glassloop.doctor.findings import Answer, Finding
from glassloop.doctor.kit import HELLO, said
from glassloop.doctor.patient import Patient
from glassloop.doctor.probe import Probe, failed, said_by
from glassloop.doctor.strict import shown
from glassloop.models.profiles import Learnt, lesson
from glassloop.models.window import context_window

_FILLER = "The quick brown fox jumps over the lazy dog near the old mill. "
_FILLER_TOKENS = 6_000
"""About as much as an agent's first rounds come to, and more than the smallest default windows (2048, 4096)."""
_ROOM = 0.7
_CODEWORD = "BLUE-FALCON-17"
_RATE = re.compile(r"(?:x-)?ratelimit.*|retry-after(?:-ms)?")


async def _told(patient: Patient) -> Answer:
    endpoint = patient.endpoint
    tape = patient.tape()
    window = await context_window(endpoint)
    if window is None:
        return Answer("no", f"not told ({len(tape)} places asked)")
    change = f"the context window is {window} tokens"
    endpoint.learn(lesson("context_window", change), Learnt({"context_window": window}))
    return Answer("ok", f"{window} tokens", (("window", window),))


async def _truncation(patient: Patient) -> Answer:
    """A long prompt: does the server count all of it? The first line of it is what an old window loses first."""
    window = patient.facts.get("window") or patient.endpoint.profile.context_window
    tokens = min(_FILLER_TOKENS, int(window * _ROOM)) if window else _FILLER_TOKENS
    text = _FILLER * (tokens // estimate_entries([said(_FILLER)]))
    question = said(f"The codeword is {_CODEWORD}.\n{text}\nWhat is the codeword? Answer with it alone.")
    asked = await patient.ask([question])
    if asked.reply is None:
        if window := getattr(asked.error, "window", None):
            return Answer("ok", f"refused, and the window is told: {window} tokens", (("window", window),))
        return failed(asked)
    sent, counted = estimate_entries([question]), asked.reply.usage.prompt_tokens
    recalled = _CODEWORD in asked.reply.text
    facts: tuple[tuple[str, JSON], ...] = (
        ("long_sent", sent),
        ("long_counted", counted),
        ("recalled", recalled),
    )
    if counted is None:
        return Answer("ok", f"about {sent} tokens taken, none counted; first line {_known(recalled)}", facts)
    if counted == patient.facts.get("hello_tokens"):
        return Answer(
            "no", f"the count is no count: {counted} tokens, for a short question and for {sent}", facts
        )
    seen = f"{counted} tokens counted of about {sent} sent; first line {_known(recalled)}"
    warned = next((one.text for one in asked.warnings if one.code == "silent_truncation"), "")
    if not warned:
        return Answer("ok", seen, facts)
    finding = Finding(
        "silent_truncation", "broken", "part of a long prompt is dropped without a word", warned, seen
    )
    return Answer("failed", seen, facts, (finding,))


def _known(recalled: bool) -> str:
    return "remembered" if recalled else "not repeated"


async def _bad_request(patient: Patient) -> Answer:
    """How a refusal looks, on which telling one error from another depends."""
    tried = await patient.try_once([said(HELLO)], edit={"messages": "none"})
    exchange = tried.exchange
    if tried.reply is not None:
        return Answer("no", f"nonsense is answered: {said_by(tried.reply)}", (("error_format", "none"),))
    body = exchange.body.decode("utf-8", "replace")
    how = _error_format(body)
    seen = f"HTTP {exchange.status}, {how}: {shown(tried.words or body)}"
    return Answer("ok" if how == "the usual object" else "no", seen, (("error_format", how),))


def _error_format(body: str) -> str:
    try:
        value = json.loads(body)
    except ValueError:
        return "a web page" if body.lstrip().startswith("<") else "no JSON"
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return "the usual object"
    return "an error as text" if isinstance(error, str) else "an unusual object"


async def _rates(patient: Patient) -> Answer:
    """No request: what the headers of earlier answers said."""
    seen: dict[str, str] = patient.facts.get("rate_headers") or {}
    if not seen:
        return Answer("no", "none told")
    return Answer("ok", shown("; ".join(f"{name} {value}" for name, value in sorted(seen.items()))))


def rate_headers(answered: dict[str, str]) -> dict[str, str]:
    """Those headers of an answer that speak of limits."""
    return {name: value for name, value in answered.items() if _RATE.fullmatch(name)}


PROBES = (
    Probe("window", "limits", "the context window, as told", _told, 1, 0),
    Probe("long_prompt", "limits", "a long prompt: is all of it taken?", _truncation, 1, 6300),
    Probe("bad_request", "limits", "how errors look", _bad_request, 1, 0),
    Probe("rate_limits", "limits", "rate limits in headers", _rates, 0, 0),
)
