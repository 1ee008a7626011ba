"""What went by while a question was asked → findings. Pure: built on what `wire/` mended, refused or could not read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glassloop.core.entries import Reply
from glassloop.core.errors import ContextOverflow, EndpointError
from glassloop.core.events import Learned, Retrying
from glassloop.doctor import words
from glassloop.doctor.findings import Finding, Level
from glassloop.doctor.kit import BOX, BY_NAME
from glassloop.doctor.patient import Asked, questions_of, redirects_of
from glassloop.doctor.shape import deviations, stream_of
from glassloop.doctor.strict import shown
from glassloop.doctor.tape import Exchange
from glassloop.wire.calls import CUT_OFF
from glassloop.wire.completion import Failure
from glassloop.wire.profile import OUTPUT_LIMITS
from glassloop.wire.reply import read_body

Step = Retrying | Learned | EndpointError

_TRANSPORT: tuple[tuple[str, str], ...] = (
    ("certificate", "certificate"),
    ("is not known", "unknown_host"),
    ("proxy", "proxy"),
    ("could not be reached|No connection within", "unreachable"),
    ("not valid HTTP", "no_http"),
    ("No bytes|No answer within|no content|was not complete after", "stalled"),
    ("larger than|damaged|encoded|compressed", "bad_coding"),
    ("hung up|reset|ended early", "hung_up"),
)
"""What `models/http` says of a broken exchange → our code for it."""


def findings_of(asked: Asked) -> list[Finding]:
    """Everything that deviates in what came of one question, in the order in which it came."""
    found = [
        _finding("redirect", "mended", words.STATUSES["redirect"], _line(one)) for one in redirects_of(asked)
    ]
    steps: list[Step] = [*asked.steps]
    if asked.error is not None:
        steps.append(asked.error)
    questions = questions_of(asked)
    for exchange, step in zip(questions, steps, strict=False):
        found += _failed(exchange, step, asked)
    if asked.reply is not None:
        if len(questions) > len(steps):
            found += _shapes(questions[-1], asked)
        found += _replied(asked.reply, asked)
    return list({one.code: one for one in reversed(found)}.values())[::-1]


# ── attempts that failed ─────────────────────────────────────────────────────────────────────────────────────────


def _failed(exchange: Exchange, step: Step, asked: Asked) -> Iterator[Finding]:
    level: Level = "broken" if isinstance(step, EndpointError) else "mended"
    if isinstance(step, ContextOverflow):
        yield _finding(
            "overflow", "mended", words.PROBLEMS["overflow"], step.provider_text or _line(exchange)
        )
        return
    if isinstance(step, Learned):
        what, does = words.adaptation(step.code)
        said = _one_line(step.words)
        yield Finding(
            f"refused:{step.code}",
            level,
            f"{what or 'something that we send is refused'}: {said}" if said else what,
            does or f"learned: {step.change}",
            _line(exchange),
        )
        if (exchange.status or 0) < 400:
            yield from _shapes(exchange, asked)
        return
    if exchange.error and exchange.error != "closed before its end":
        code = transport_code(exchange.error)
        yield _finding(f"transport:{code}", level, words.TRANSPORT[code], exchange.error)
    elif (exchange.status or 0) >= 400:
        yield _refused(exchange, step, level)
    else:
        yield from _unread(exchange, step, asked, level)


def transport_code(error: str) -> str:
    """The kind of a broken exchange, by what the client said of it."""
    return next((code for pattern, code in _TRANSPORT if re.search(pattern, error)), "hung_up")


def _refused(exchange: Exchange, step: Step, level: Level) -> Finding:
    if isinstance(step, EndpointError):
        said = step.provider_text or str(step.args[0])
        return Finding(
            f"error:{type(step).__name__}",
            level,
            f"{step.args[0]}",
            step.hint,
            f"HTTP {exchange.status} {_one_line(said)}",
        )
    code = "throttled" if exchange.status == 429 else "outage"
    return _finding(code, level, words.STATUSES[code], f"HTTP {exchange.status} {_one_line(_reason(step))}")


def _reason(step: Step) -> str:
    return step.reason if isinstance(step, Retrying) else ""


def _unread(exchange: Exchange, step: Step, asked: Asked, level: Level) -> Iterator[Finding]:
    """A body that came with a status of success and is no reply."""
    read = read_body(exchange.body, asked.tools, tool_mode=asked.tool_mode)
    if isinstance(read, Failure):
        code = read.reason
        yield _finding(f"body:{code}", level, words.BODIES[code], _line(exchange))
    elif isinstance(step, EndpointError):
        yield Finding(f"error:{type(step).__name__}", level, str(step.args[0]), step.hint, _line(exchange))
    else:
        yield _finding("garbled_call", level, words.STATUSES["garbled_call"], _line(exchange))
    if isinstance(step, EndpointError):
        yield Finding(f"error:{type(step).__name__}", level, str(step.args[0]), step.hint, _line(exchange))


# ── the reply ────────────────────────────────────────────────────────────────────────────────────────────────────


def _shapes(exchange: Exchange, asked: Asked) -> Iterator[Finding]:
    if (exchange.status or 0) >= 400:
        return
    for one in deviations(exchange.body, exchange.answered, streamed=b'"stream":true' in exchange.sent):
        does = words.SHAPES.get(one.place, words.READS_IT)
        slug = one.how.split(",")[0].replace(" ", "_")
        yield Finding(f"shape:{one.place}:{slug}", "mended", f"`{one.place}` {one.how}", does, one.seen)


def _replied(reply: Reply, asked: Asked) -> Iterator[Finding]:
    for mend in reply.mends:
        what, does = words.MENDS.get(mend.code, (mend.detail, words.READS_IT))
        yield Finding(f"mend:{mend.code}", "mended", what, does, mend.detail)
    yield from _traits(reply, asked)
    if reply.cut_off and not _was_limited(asked):
        yield _finding("cut_off", "mended", words.PROBLEMS["cut_off"], f"finish reason {reply.finish_reason}")
    if reply.refused:
        yield _finding("refusal", "trait", words.PROBLEMS["refusal"], reply.text)
    elif reply.is_empty:
        code = "reasoning_only" if reply.reasoning else "empty"
        yield _finding(code, "mended", words.PROBLEMS[code], f"finish reason {reply.finish_reason}")
    if any(mend.code == "unasked_call" for mend in reply.mends):
        return  # none of them may run, whatever stands in them
    if reply.tool_calls and not asked.tools:
        yield _finding("calls_unasked", "mended", words.PROBLEMS["calls_unasked"], _names(reply))
        return
    yield from _calls(reply, asked)


def _traits(reply: Reply, asked: Asked) -> Iterator[Finding]:
    """Ways in which healthy endpoints differ."""
    if reply.reasoning_field:
        yield _trait(f"reasoning:{reply.reasoning_field}", f"reasoning comes as {reply.reasoning_field}")
    if reply.tool_calls and reply.text.strip():
        yield _trait("text_beside_calls", "text comes beside calls")
    if not asked.streamed:
        return
    stream = stream_of(asked.last.body)
    if stream.comments:
        yield _trait("keep_alive", "streams hold keep-alive comments")
    if stream.usage:
        yield _trait("usage_in_streams", "streams end with usage")
    if stream.call_pieces == 1:
        yield _trait("whole_calls", "streamed calls come whole")


def _trait(code: str, what: str) -> Finding:
    return Finding(f"trait:{code}", "trait", what)


def _was_limited(asked: Asked) -> bool:
    """Whether we set an output limit ourselves, so that being cut off is no surprise."""
    return any(f'"{name}":'.encode() in asked.last.sent for name in OUTPUT_LIMITS)


def _calls(reply: Reply, asked: Asked) -> Iterator[Finding]:
    """What is wrong with the calls themselves: what stands in them is the model's doing."""
    for call in reply.tool_calls:
        if call.problem == CUT_OFF:
            continue
        if not call.name.strip():
            yield _finding("no_name", "mended", words.PROBLEMS["no_name"], call.text)
        elif call.name not in asked.tools:
            yield _finding("unknown_tool", "weak", words.PROBLEMS["unknown_tool"], call.name)
        elif call.problem is not None:
            yield _finding("bad_arguments", "mended", words.PROBLEMS["bad_arguments"], call.text)
        elif call.name in BY_NAME:
            verdict = BOX.prepare(call)
            if verdict.outcome == "problem":
                yield _finding("bad_arguments", "weak", words.PROBLEMS["bad_arguments"], verdict.text)
            elif verdict.text:
                yield _finding(
                    "mend:arguments_coerced", "mended", words.MENDS["arguments_coerced"], verdict.text
                )


def _names(reply: Reply) -> str:
    return ", ".join(call.name for call in reply.tool_calls)


def _finding(code: str, level: Level, what: words.Words, seen: str) -> Finding:
    return Finding(code, level, what[0], what[1], _one_line(seen))


def _line(exchange: Exchange) -> str:
    """An answer on one line."""
    status = "no answer" if exchange.status is None else f"HTTP {exchange.status}"
    return f"{status} {shown(exchange.body.decode('utf-8', 'replace'))}".strip()


def _one_line(text: str) -> str:
    return shown(text)
