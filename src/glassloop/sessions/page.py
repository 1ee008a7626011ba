"""A session as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from html import escape

from glassloop.core.entries import (
    File,
    Image,
    Note,
    Part,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from glassloop.core.journal import Cancelled, ModelFailed
from glassloop.core.resolving import Resolution
from glassloop.core.tools import Decision
from glassloop.core.visible import visible
from glassloop.sessions import prose
from glassloop.sessions.markdown import about, arguments, mended, resolved, size, when
from glassloop.sessions.page_style import STYLE
from glassloop.sessions.timeline import RunInfo, Step, Timeline

# Says to the browser what the page promises to people: nothing runs and nothing is fetched.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SPOKEN = {"task": "Task", "steer": "Meanwhile", "follow_up": "Then", "example": "Example"}
_LONG = 1200


def render(timeline: Timeline) -> str:
    """The whole branch as one page, for light and dark screens and for paper."""
    session = timeline.session
    title = _text(session.name or session.title or session.session_id)
    body = "\n".join([_head(timeline, title), "<main>", *_runs(timeline), "</main>", _foot(timeline)])
    return (
        '<!doctype html>\n<html lang="und">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _text(text: str) -> str:
    return escape(visible(text))


def _head(timeline: Timeline, title: str) -> str:
    session, runs = timeline.session, timeline.runs
    models = dict.fromkeys(run.model for run in runs if run.model)
    facts = [
        when(session.created_ms),
        ", ".join(models),
        _count(sum(run.rounds for run in runs), "round"),
        _count(sum(run.calls for run in runs), "tool call"),
        f"{sum(run.seconds for run in runs):.1f} s",
        *_spent(runs),
    ]
    told = "".join(f"<li>{_text(fact)}</li>" for fact in facts if fact)
    return f'<header><h1 dir="auto">{title}</h1><ul class="facts">{told}</ul></header>'


def _spent(runs: Iterable[RunInfo]) -> Iterator[str]:
    known = [
        run for run in runs if run.usage.prompt_tokens is not None or run.usage.completion_tokens is not None
    ]
    if known:
        total = sum((run.usage.prompt_tokens or 0) + (run.usage.completion_tokens or 0) for run in known)
        yield f"{total:,} tokens"
    cost = sum(run.cost or 0.0 for run in runs)
    if cost:
        yield f"${cost:.4f}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""


def _foot(timeline: Timeline) -> str:
    return (
        f"<footer>Session <code>{_text(timeline.session.session_id)}</code> · recorded by Glassloop</footer>"
    )


def _runs(timeline: Timeline) -> Iterator[str]:
    for run in timeline.runs:
        steps = [step for step in timeline.steps if step.run_id == run.run_id]
        results = {
            step.record.value.call_id: step for step in steps if isinstance(step.record.value, ToolResult)
        }
        told = "\n".join(filter(None, (_step(step, results) for step in steps)))
        said_why = any(isinstance(step.record.value, ModelFailed) for step in steps)
        ended = "" if said_why else _ending(run)
        yield f'<section class="run">\n{told}\n{ended}<p class="about">{_text(about(run))}</p>\n</section>'


def _ending(run: RunInfo) -> str:
    return f'<div class="failed">{prose.html(run.error)}</div>\n' if run.error else ""


def _step(step: Step, results: dict[str, Step]) -> str:
    """One step; a result stands under its call."""
    match step.record.value:
        case System(text=text):
            return _folded("Instructions", prose.html(text), "system")
        case User() as user:
            label = _SPOKEN.get(user.kind, "Task")
            return f'<article class="user" dir="auto"><h2>{label}</h2>{_parts(user.parts, exact=False)}</article>'
        case Reply() as reply:
            return _reply(step, reply, results)
        case Note(text=text):
            return f'<aside class="note" dir="auto"><b>Note</b> {_text(text)}</aside>'
        case Summary(text=text):
            return _folded("Summary of what came before", prose.html(text), "system")
        case Decision() as decision:
            word = "Allowed" if decision.allowed else "Not allowed"
            because = f": {_text(decision.reason)}" if decision.reason else ""
            return f'<aside class="note">{word}{because}</aside>'
        case Resolution() as resolution:
            return f'<aside class="note">{_text(resolved(resolution))}</aside>'
        case ModelFailed(message=message):
            return f'<div class="failed">{prose.html(message)}</div>'
        case Cancelled(reason=reason):
            return f'<aside class="note">Cancelled: {_text(reason)}</aside>'
    return ""


def _reply(step: Step, reply: Reply, results: dict[str, Step]) -> str:
    pieces = [f'<h2>Round {step.round}<span class="took">{_facts(step, reply)}</span></h2>']
    if reply.reasoning.strip():
        pieces.append(_folded("Thinking", prose.html(reply.reasoning), "thinking"))
    if reply.text.strip():
        pieces.append(f'<div class="prose" dir="auto">{prose.html(reply.text)}</div>')
    pieces += [_call(call, results.get(call.id)) for call in reply.tool_calls]
    pieces += [f'<p class="mend">{_text(mended(mend))}</p>' for mend in reply.mends]
    return '<article class="reply">' + "\n".join(pieces) + "</article>"


def _facts(step: Step, reply: Reply) -> str:
    facts = [f"{step.took:.1f} s" if step.took else "", reply.finish_reason or ""]
    if reply.usage.completion_tokens is not None:
        facts.insert(1, f"{reply.usage.prompt_tokens or 0:,} → {reply.usage.completion_tokens:,} tokens")
    return _text(" · ".join(fact for fact in facts if fact))


def _call(call: ToolCall, result: Step | None) -> str:
    found = result.record.value if result else None
    state = found.state if isinstance(found, ToolResult) else "open"
    took = f"{found.seconds:.1f} s" if isinstance(found, ToolResult) and found.seconds >= 0.05 else ""
    outcome = _parts(found.parts, exact=True) if isinstance(found, ToolResult) else ""
    problem = f'<p class="mend">{_text(call.problem)}</p>' if call.problem else ""
    return (
        f'<div class="call {state}"><h3><code>{_text(call.name)}</code>'
        f'<span class="state">{state}</span><span class="took">{took}</span></h3>'
        f"{prose.code(arguments(call))}{problem}{outcome}</div>"
    )


def _exact(text: str) -> str:
    """A tool's output, letter by letter; a long one is folded."""
    block = f'<div class="result">{prose.code(text)}</div>'
    if len(text) <= _LONG:
        return block
    first = next((line for line in text.splitlines() if line.strip()), "")[:80]
    return _folded(f"{len(text):,} characters: {first} …", block, "long")


def _folded(summary: str, inner: str, kind: str) -> str:
    return f'<details class="{kind}" dir="auto"><summary>{_text(summary)}</summary>{inner}</details>'


def _parts(parts: tuple[Part, ...], *, exact: bool) -> str:
    return "".join(_part(part, exact=exact) for part in parts)


def _part(part: Part, *, exact: bool) -> str:
    match part:
        case Text(text=text):
            return _exact(text) if exact else prose.html(text)
        case Image(media_type=media_type, data=data) if data and media_type in _PICTURES:
            return f'<img alt="" src="data:{media_type};base64,{base64.b64encode(data).decode("ascii")}">'
        case Image(media_type=media_type, data=data, url=url):
            return f'<p class="file">Image: {_text(url or f"{media_type}, {size(data or bytes())}")}</p>'
        case File():
            return (
                f'<p class="file">File: {_text(part.name)}, {_text(part.media_type)}, {size(part.data)}</p>'
            )
