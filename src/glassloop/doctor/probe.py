"""What a probe is, and the small judgements that many share. The probes themselves are in `probes/`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from glassloop.core.entries import JSON, Reply
from glassloop.core.events import Learned
from glassloop.doctor.findings import Answer, Finding, Outcome
from glassloop.doctor.patient import Asked, Patient, Tried
from glassloop.doctor.strict import shown
from glassloop.doctor.words import adaptation

Work = Callable[[Patient], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to an endpoint.

    `name` is stable, `asks` says it in words. `requests` and `tokens` are about what it costs where all is well.
    `needs`: probes that must have ended well enough. `quick`: part of the short examination.
    """

    name: str
    family: str
    asks: str
    work: Work
    requests: int = 1
    tokens: int = 200
    needs: tuple[str, ...] = ("answer",)
    quick: bool = False


def answer_of(asked: Asked, seen: str = "", *, outcome: Outcome = "ok", **facts: JSON) -> Answer:
    """What a question gave: the error if there was one, else `seen` or the beginning of the reply."""
    if asked.reply is None:
        return failed(asked)
    return Answer(outcome, seen or said_by(asked.reply), tuple(facts.items()))


def failed(asked: Asked) -> Answer:
    """No reply could be had."""
    error = asked.error
    assert error is not None, "a question without a reply has an error"
    return Answer("failed", shown(error.provider_text or str(error.args[0])))


def said_by(reply: Reply) -> str:
    """A reply on one line: its calls, or the beginning of its text."""
    if reply.tool_calls:
        return "; ".join(f"{call.name}({shown(call.text)})" for call in reply.tool_calls[:3])
    return shown(reply.text) or "(nothing)"


def learned_in(asked: Asked) -> str:
    """What is done from now on because of what was refused, in words; "" for nothing."""
    learned = [one for one in (*asked.steps, *asked.lessons) if isinstance(one, Learned)]
    return "; ".join(dict.fromkeys(adaptation(one.code)[1] or one.change for one in learned))


def taken_or_changed(asked: Asked, what: str) -> Answer:
    """Whether something was taken as it was sent."""
    if asked.reply is None:
        return failed(asked)
    changed = learned_in(asked)
    return (
        Answer("mended", f"{what}: refused; Glassloop {changed}")
        if changed
        else Answer("ok", f"{what}: taken")
    )


def taken_or_not(tried: Tried, what: str, name: str, does: str = "never sends it") -> Answer:
    """Whether one request was taken, where nothing depends on it: Glassloop `does` without."""
    if tried.reply is not None:
        return Answer("ok", f"{what}: taken", ((name, True),))
    if tried.is_unanswered:
        return Answer("failed", shown(tried.words))
    finding = Finding(f"refuses:{name}", "trait", f"{what} is refused", does, shown(tried.words))
    return Answer("no", f"{what}: refused, {shown(tried.words)}", ((name, False),), (finding,))


async def tries(
    patient: Patient, ask: Callable[[], Awaitable[Asked]], is_right: Callable[[Reply], bool], *, most: int = 3
) -> tuple[int, int, Asked]:
    """Ask until it is right, at most so often: how often it was right, how often it was asked, and the last."""
    most = min(most, patient.tries)
    count, right = 1, False
    asked = await ask()
    while not (right := asked.reply is None or is_right(asked.reply)) and count < most:
        asked = await ask()
        count += 1
    return int(right), count, asked
