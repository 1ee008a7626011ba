"""A session's timeline as lines for a terminal, with the exchanges of each round. Pure: a `Timeline` in, lines out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from glassloop.cli.safe_text import one_line, shortened, visible
from glassloop.cli.screen import Line, call_text, counted, mend_line, result_lines, tokens_text
from glassloop.core import summary
from glassloop.core.entries import Note, Reply, Summary, System, ToolResult, User
from glassloop.core.journal import Cancelled, ModelFailed
from glassloop.core.resolving import Resolution
from glassloop.core.tools import Decision, Verdict
from glassloop.sessions.markdown import about, resolved, when
from glassloop.sessions.timeline import RunInfo, Step, Timeline
from glassloop.sessions.wire_log import Exchange

_WHO = {"task": "you", "steer": "you, meanwhile", "follow_up": "you, then", "example": "example"}
_CALLS = ("reply", "summary", "model_failed")
"""What a model call leads to."""


@dataclass(frozen=True, slots=True)
class Round:
    """One model call and what came of it. `number` counts the replies of all runs; a call that brought none has the
    number of the one that was wanted. `number` 0 is what came before it, or a summary.

    `exchanges`: the requests that were sent for it, those that were retried included.
    """

    number: int
    run: RunInfo
    steps: tuple[Step, ...]
    exchanges: tuple[Exchange, ...] = ()

    @property
    def said(self) -> Reply | Summary | None:
        """What the model said; None where it gave no answer."""
        value = self.steps[0].record.value if self.steps else None
        return value if isinstance(value, Reply | Summary) else None


def rounds_of(timeline: Timeline, exchanges: Sequence[Exchange]) -> list[Round]:
    """The timeline in rounds, each with its exchanges. What is said before a run's first reply is a round 0."""
    rounds: list[Round] = []
    number = 0
    for run in timeline.runs:
        left = [one for one in exchanges if one.run_id == run.run_id]
        for steps in _split([step for step in timeline.steps if step.run_id == run.run_id]):
            kind, seq = steps[0].kind, steps[0].record.seq
            if kind not in _CALLS:
                rounds.append(Round(0, run, tuple(steps)))
                continue
            number += kind == "reply"
            own = tuple(one for one in left if one.after < seq)
            left = [one for one in left if one.after >= seq]
            rounds.append(Round(_number_of(steps[0], number), run, tuple(steps), own))
        if left:  # the last of these brought no reply
            rounds.append(Round(number + 1, run, (), tuple(left)))
    return rounds


def _number_of(step: Step, replies: int) -> int:
    """The number of the round that this begins, with so many replies up to here."""
    match step.record.value:
        case Summary() | ModelFailed(kind=summary.SUMMARY_FAILED):
            return 0
        case ModelFailed():
            return replies + 1
    return replies


def _split(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Before what each model call led to, and before each message of the user that follows a round."""
    part: list[Step] = []
    for step in steps:
        if part and step.kind in (*_CALLS, "user"):
            yield part
            part = []
        part.append(step)
    if part:
        yield part


def head_lines(timeline: Timeline) -> list[Line]:
    """What session it is."""
    session = timeline.session
    facts = [when(session.created_ms), session.folder, session.state]
    facts += [f"held by {session.holder}"] if session.holder else []
    facts += [f"forked from {session.forked_from}"] if session.forked_from else []
    title = session.name or session.title or "nothing was said yet"
    return [
        Line(one_line(f"{session.session_id}  {title}"), "title"),
        Line(
            one_line(" · ".join([*filter(None, facts), *(f"#{label}" for label in session.labels)])), "quiet"
        ),
    ]


def run_line(run: RunInfo) -> Line:
    """One line on a run: who, how far, how much."""
    error = f": {run.error}" if run.error else ""
    return Line(one_line(f"── {about(run)}{error}"), "quiet")


def round_lines(one: Round, width: int, *, whole: bool = False) -> list[Line]:
    """The lines of a round. `whole`: nothing is cut short."""
    lines = [_round_line(one)] if one.number or one.steps[0].kind in _CALLS else []
    for step in one.steps:
        lines += _step_lines(step, width, whole=whole)
    return lines


def _round_line(one: Round) -> Line:
    said = one.said
    facts = [f"{one.steps[0].took:.1f} s", tokens_text(said.usage)] if said else ["no reply"]
    if said and (cost := one.steps[0].record.cost):
        facts.append(f"${cost:.4f}")
    facts += [counted(len(one.exchanges), "request")] if len(one.exchanges) > 1 else []
    what = f"round {one.number}" if one.number else "summary"
    return Line(f"· {what}: " + ", ".join(fact for fact in facts if fact), "quiet")


def _step_lines(step: Step, width: int, *, whole: bool) -> list[Line]:
    match step.record.value:
        case System(text=text):
            return [Line(f"instructions: {visible(text)}", "quiet")]
        case User() as user:
            return [Line(f"{_WHO[user.kind]}: {visible(user.text)}", "title")]
        case Reply() as reply:
            return _reply_lines(reply, width, whole=whole)
        case ToolResult() as result:
            if whole:
                return [
                    Line(f"{one_line(result.name)} ({result.state}):", "good"),
                    Line(visible(result.text)),
                ]
            return result_lines(result, width, ran=result.seconds > 0)
        case Verdict(outcome="ask", call=call, text=text):
            return [Line(f"? asked about {one_line(call.name)}: {one_line(text)}", "mend")]
        case Decision() as decision:
            reason = f": {one_line(decision.reason)}" if decision.reason else ""
            by = f" by {one_line(decision.by)}" if decision.by else ""
            return [Line(f"  {'allowed' if decision.allowed else 'not allowed'}{by}{reason}", "quiet")]
        case Resolution() as resolution:
            return [Line(f"  {one_line(resolved(resolution))}", "quiet")]
        case Note(text=text) | Summary(text=text):
            return [Line(f"✎ told the model: {visible(text) if whole else one_line(text)}", "quiet")]
        case ModelFailed(message=message):
            return [Line(f"✗ {one_line(message)}", "bad")]
        case Cancelled(reason=reason):
            return [Line(f"! cancelled: {one_line(reason)}", "mend")]
    return []


def _reply_lines(reply: Reply, width: int, *, whole: bool) -> list[Line]:
    lines = []
    if reply.reasoning.strip():
        thought = visible(reply.reasoning) if whole else shortened(one_line(reply.reasoning), width - 10)
        lines.append(Line(f"thinking: {thought}", "quiet"))
    if reply.text.strip():
        lines.append(Line(visible(reply.text)))
    if reply.is_empty:
        lines.append(Line("(an empty reply)", "mend"))
    for call in reply.tool_calls:
        text = f"→ {call_text(call.name, call.arguments if call.arguments is not None else call.text)}"
        lines.append(Line(text if whole else shortened(text, width), "call"))
        lines += [Line(f"  not run: {one_line(call.problem)}", "bad")] if call.problem else []
    return [*lines, *(mend_line(mend) for mend in reply.mends)]


def wire_lines(exchange: Exchange) -> list[Line]:
    """One exchange as it went over the wire: `>` what was sent, `<` what came back, secrets as `***`."""
    lines = [Line(f"> {one_line(exchange.method)} {one_line(exchange.url)}", "call")]
    lines += [*_headers(">", exchange.request_headers), Line(_body(exchange.request))]
    if exchange.status is not None:
        lines.append(
            Line(f"< {exchange.status}, {_timing(exchange)}", "good" if exchange.status < 400 else "bad")
        )
        lines += [*_headers("<", exchange.response_headers), Line(_body(exchange.response))]
    if exchange.error:
        lines.append(Line(f"! {one_line(exchange.error)}", "bad"))
    return lines


def _headers(mark: str, headers: Mapping[str, str]) -> list[Line]:
    return [Line(f"{mark} {one_line(name)}: {one_line(value)}", "quiet") for name, value in headers.items()]


def _body(data: bytes) -> str:
    return visible(data.decode("utf-8", "backslashreplace")).rstrip("\n")


def _timing(exchange: Exchange) -> str:
    whole = f"{exchange.ended_ms - exchange.started_ms} ms"
    if not exchange.chunks:
        return whole
    pieces = counted(len(exchange.chunks), "piece")
    return (
        f"first byte after {exchange.chunks[0][0]} ms, {pieces}, {len(exchange.response):,} bytes in {whole}"
    )
