"""A session as Markdown: what was asked, what was called, what came back, what was answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime

from glassloop.core.entries import (
    File,
    Image,
    Mend,
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
from glassloop.sessions.timeline import RunInfo, Step, Timeline

_LINE = 80
_USER_HEADINGS = {"task": "Task", "steer": "Meanwhile", "follow_up": "Then", "example": "Example"}
_RESOLVED = {
    "done": "It had taken effect",
    "retry": "To be run once more",
    "give_up": "Nobody can say whether it took effect",
}


def render(timeline: Timeline) -> str:
    """The whole branch as one document."""
    session = timeline.session
    title = session.name or session.title or session.session_id
    pieces = [f"# {_inline(title)}", f"Session `{session.session_id}`, {when(session.created_ms)}"]
    runs = {run.run_id: run for run in timeline.runs}
    before = ""
    for step in timeline.steps:
        if step.run_id != before:
            before = step.run_id
            pieces += ["---", f"*{_inline(about(runs[step.run_id]))}*"]
        pieces += _step(step)
    return visible("\n\n".join(pieces)) + "\n"


def when(at_ms: int) -> str:
    """A moment in this machine's time zone."""
    try:
        return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def about(run: RunInfo) -> str:
    """One line on a run: who, how far, how much."""
    facts = [run.model or run.agent, _many(run.rounds, "round"), _many(run.calls, "call")]
    facts.append(tokens(run))
    facts.append(f"${run.cost:.4f}" if run.cost else "")
    facts.append(f"{run.seconds:.1f} s")
    facts.append("" if run.stop_reason in ("", "answered") else f"stopped: {run.stop_reason}")
    return " · ".join(fact for fact in facts if fact)


def tokens(run: RunInfo) -> str:
    """What the endpoint reported; empty if it did not."""
    usage = run.usage
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return ""
    cached = f", {usage.cached_tokens:,} cached" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens or 0:,} + {usage.completion_tokens or 0:,} tokens{cached}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _step(step: Step) -> Iterator[str]:
    match step.record.value:
        case System(text=text):
            yield "## Instructions"
            yield quoted(text)
        case User() as user:
            yield f"## {_USER_HEADINGS.get(user.kind, 'Task')}"
            yield parts(user.parts)
        case Reply() as reply:
            yield from _reply(step, reply)
        case ToolResult() as result:
            state = "" if result.state == "ok" else f" ({result.state})"
            yield f"**Result of {_code(result.name)}**{state}"
            yield fenced(parts(result.parts))
        case Decision() as decision:
            reason = f": {_inline(decision.reason)}" if decision.reason else ""
            yield f"*{'Allowed' if decision.allowed else 'Not allowed'}{reason}*"
        case Resolution() as resolution:
            yield f"*{_inline(resolved(resolution))}*"
        case Note(text=text) | Summary(text=text):
            yield quoted(text)
        case ModelFailed(message=message):
            yield f"**The model gave no answer**\n\n{fenced(message)}"
        case Cancelled(reason=reason):
            yield f"*Cancelled: {_inline(reason)}*"


def _reply(step: Step, reply: Reply) -> Iterator[str]:
    yield f"## Round {step.round}"
    if reply.reasoning.strip():
        yield f"<details><summary>Thinking</summary>\n\n{quoted(reply.reasoning)}\n\n</details>"
    if reply.text.strip():
        yield reply.text
    for call in reply.tool_calls:
        yield f"**Call {_code(call.name)}**"
        yield fenced(arguments(call), "json")
    for mend in reply.mends:
        yield f"*{_inline(mended(mend))}*"


def arguments(call: ToolCall) -> str:
    """A call's arguments for people: as read (in one line where they fit), or as they arrived."""
    if call.arguments is None:
        return call.text
    line = json.dumps(call.arguments, ensure_ascii=False)
    return line if len(line) <= _LINE else json.dumps(call.arguments, ensure_ascii=False, indent=2)


def resolved(resolution: Resolution) -> str:
    """What was decided of a call whose outcome was unknown, in words."""
    by = f" (by {resolution.by})" if resolution.by else ""
    return f"{_RESOLVED[resolution.outcome]}{by}"


def mended(mend: Mend) -> str:
    """One mended deviation in words."""
    return f"mended: {mend.detail} [{mend.code}]"


def parts(found: tuple[Part, ...]) -> str:
    """Content as text; pictures and files by name."""
    return "\n".join(_part(part) for part in found)


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Image():
            return f"[image: {part.media_type}, {size(part.data)}]" if part.data else f"[image: {part.url}]"
        case File():
            return f"[file: {part.name}, {part.media_type}, {size(part.data)}]"


def size(data: bytes) -> str:
    """Bytes in words."""
    return f"{len(data):,} bytes" if len(data) < 10_000 else f"{len(data) / 1000:,.0f} kB"


def fenced(text: str, language: str = "") -> str:
    """A code block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def quoted(text: str) -> str:
    """A block quote."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _code(text: str) -> str:
    """Text in a code span, where a backtick would end it."""
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"


def _inline(text: str) -> str:
    """Text that stays in its line, and marks nothing up."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))
