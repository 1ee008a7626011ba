"""Prompt cache, tokens a second, and several requests at once. Measured once: an impression, no benchmark."""

from __future__ import annotations

import asyncio
import time

from glassloop.core.entries import System
from glassloop.core.tokens import estimate
from glassloop.doctor.findings import Answer, Finding
from glassloop.doctor.kit import HELLO, said
from glassloop.doctor.patient import Asked, Patient
from glassloop.doctor.probe import Probe, failed

_PREFIX = "Rule {}: greet people kindly, in their own language, and never longer than one sentence. "
_RULES = 120
_TOGETHER = (1, 4, 8)


async def _cache(patient: Patient) -> Answer:
    """The same long prefix twice: how many tokens of the second came out of a cache."""
    prefix = System("".join(_PREFIX.format(number) for number in range(_RULES)))
    first = await patient.ask([prefix, said(HELLO)], stream=True)
    second = await patient.ask([prefix, said("And a farewell?")], stream=True)
    if first.reply is None or second.reply is None:
        return failed(first if first.reply is None else second)
    before, after = (one.last.arrivals[0][0] if one.last.arrivals else 0.0 for one in (first, second))
    cached = second.reply.usage.cached_tokens
    told = f"{cached} cached tokens" if cached else "no cached tokens told"
    facts = (
        ("cached_tokens", cached),
        ("first_token_cold", round(before, 3)),
        ("first_token_warm", round(after, 3)),
    )
    return Answer(
        "ok" if cached else "no", f"{told}; first token after {before:.2f} s, then {after:.2f} s", facts
    )


async def _rate(patient: Patient) -> Answer:
    asked = await patient.ask([said("Count from 1 to 60, in digits, with commas.")], stream=True)
    if asked.reply is None:
        return failed(asked)
    exchange, reply = asked.last, asked.reply
    first = exchange.arrivals[0][0] if exchange.arrivals else 0.0
    tokens = reply.usage.completion_tokens or estimate(reply.text + reply.reasoning)
    taken = exchange.seconds - first
    facts = (("first_token_seconds", round(first, 3)), ("completion_tokens", tokens))
    if taken <= 0 or len(exchange.arrivals) < 2:
        return Answer("ok", f"first token after {first:.2f} s; all came at once", facts)
    rate = round(tokens / taken, 1)
    return Answer(
        "ok",
        f"first token after {first:.2f} s, then {rate:g} tokens a second",
        (*facts, ("tokens_per_second", rate)),
    )


async def _parallel(patient: Patient) -> Answer:
    """1, 4 and 8 questions at once: served together, one after the other, or refused."""
    took: list[str] = []
    lost = 0
    throttled: list[Asked] = []
    for count in _TOGETHER:
        started = time.monotonic()
        asked = await asyncio.gather(*(patient.ask([said(HELLO)]) for _ in range(count)))
        took.append(f"{count} in {time.monotonic() - started:.2f} s")
        lost += sum(one.reply is None for one in asked)
        throttled += [one for one in asked if count > 1 and _is_throttled(one)]
    facts = (("parallel_lost", lost), ("parallel_throttled", len(throttled)))
    if throttled and not _is_throttled(await patient.ask([said(HELLO)])):
        patient.asked[:] = [one for one in patient.asked if one not in throttled]
        limit = Finding(
            "trait:parallel_limit", "trait", "few requests are served at once", "waits and asks again"
        )
        words = f"{', '.join(took)}; {len(throttled)} of {sum(_TOGETHER)} were told to wait, {lost} in vain"
        return Answer("no", words, facts, (limit,))
    if lost:
        return Answer("no", f"{', '.join(took)}; {lost} of {sum(_TOGETHER)} got no answer", facts)
    return Answer("ok", ", ".join(took), facts)


def _is_throttled(asked: Asked) -> bool:
    return any(one.status == 429 for one in asked.exchanges)


PROBES = (
    Probe("prompt_cache", "speed", "the same long prefix twice", _cache, 2, 4800),
    Probe("rate", "speed", "tokens a second", _rate, 1, 250),
    Probe("together", "speed", "1, 4 and 8 requests at once", _parallel, sum(_TOGETHER), 700),
)
