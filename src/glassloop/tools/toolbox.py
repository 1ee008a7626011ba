"""A set of tools: where calls are prepared and run. `Tools` is one of the four replaceable parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec.structs import replace

from glassloop.core.entries import JSON, Entry, Part, ResultState, Text, ToolCall, ToolResult
from glassloop.core.errors import ToolDefinitionError
from glassloop.core.resolving import Answer, GiveUp, Retry, Unknown
from glassloop.core.tools import ToolSpec, Verdict
from glassloop.core.values import Value
from glassloop.core.visible import exact
from glassloop.tools.approval import Policy, Ruling, by_tool_and_origin, question
from glassloop.tools.calls import Fitted, explain, first_few, fit_arguments
from glassloop.tools.checking import checked
from glassloop.tools.context import ToolContext
from glassloop.tools.output import Spill, capped, parts_from, text_of_error
from glassloop.tools.running import Raised, Returned, run
from glassloop.tools.schema import BadArguments
from glassloop.tools.tool import Tool, as_tool
from glassloop.tools.untrusted import carries_away, marked, source_in, why_asked
from glassloop.tools.wording import nearest

Outcome = Literal["ready", "problem", "ask"]

_NAME_SHOWN = 80


class Tools(Protocol):
    """What an agent may do. Authorisation, quotas and audit wrap `execute`."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them, in a fixed order."""

    def prepare(self, call: ToolCall) -> Verdict:
        """Judge a call: ready, a problem, or to be asked about. Pure; never raises."""

    async def execute(self, verdict: Verdict, context: ToolContext) -> ToolResult:
        """Run a prepared call that may run. Raises nothing but `CancelledError`."""

    def is_sequential(self, name: str) -> bool:
        """Whether the tool must not run beside another call."""


@runtime_checkable
class Resolves(Protocol):
    """What `Tools` may have besides: a say in calls that a crash left in doubt. Without it a person is asked."""

    async def resolve_unknown(self, verdict: Verdict, unknown: Unknown, context: ToolContext) -> Answer | str:
        """What became of the call, or why that cannot be told. Raises nothing but `CancelledError`."""


@runtime_checkable
class Heeds(Protocol):
    """What `Tools` may have besides: a stricter judgement once others' words are in the conversation."""

    def after(self, history: Iterable[Entry]) -> Tools:
        """The tools as they judge calls after this conversation. Without any effect."""


class _Bound(Value, frozen=True):
    """A prepared call: the Python values for its tool's parameters. `outside`: as in `ToolContext`.

    Without the tool itself, by which a record of the call would lead to all that the tool's function knows.
    """

    values: Mapping[str, Any]
    outside: str


class Toolbox:
    """The tools of an agent.

    `policy` rules on who must be asked. Outputs that are too long to show are kept in `spill`; by
    default in a private temporary folder that goes with the toolbox. Raises `ToolDefinitionError` for
    two tools of one name.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        policy: Policy = by_tool_and_origin,
        spill: Path | None = None,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        for each in map(as_tool, tools):
            if other := self._tools.get(each.name):
                raise ToolDefinitionError(
                    f"Two tools are named `{each.name}` ({other.where} and {each.where})."
                    ' Rename one: @tool(name="...").'
                )
            self._tools[each.name] = each
        self._policy = policy
        self._spill = Spill(spill)
        self._outside = ""
        self._specs = tuple(each.spec for each in self._tools.values())
        # Nobody would notice otherwise, and looking costs a walk over the conversation in every round.
        self._heeds = any(carries_away(each) or each.context_parameter for each in self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    def is_sequential(self, name: str) -> bool:
        return name in self._tools and self._tools[name].sequential

    def tool(self, name: str) -> Tool | None:
        """The tool of that name; None if there is none."""
        return self._tools.get(name)

    def after(self, history: Iterable[Entry]) -> Toolbox:
        """The same tools for a conversation so far: `after_outside` from the first result of an `untrusted` tool on."""
        return self.after_outside(source_in(history)) if self._heeds else self

    def after_outside(self, source: str) -> Toolbox:
        """The same tools for a run that has read words of others, by the tool `source` ("": it has not). Calls of
        tools with `needs` are then asked about each time, unless the policy's ruling is `firm`."""
        if source == self._outside:
            return self
        same = copy(self)
        same._outside = source
        return same

    def asked_in(self, verdict: Verdict) -> Literal["clean", "outside", "unknown"]:
        """Whether the call was asked about in a run that has read words of others, and reaches out. `unknown` for
        a verdict that was stored, or that another toolbox gave."""
        tool = self._tools.get(verdict.call.name)
        if tool is None or not isinstance(verdict.bound, _Bound):
            return "unknown"
        return "outside" if verdict.bound.outside and carries_away(tool) else "clean"

    def prepare(self, call: ToolCall) -> Verdict:
        """Judge a call without any effect. A ready verdict's `text` says what was coerced, if anything."""
        tool = self._tools.get(call.name)
        if call.problem is not None:
            return Verdict(call, "problem", text=call.problem)
        if tool is None:
            return Verdict(call, "problem", text=self._no_such_tool(call.name))
        fitted = Fitted({})
        values: Mapping[str, Any] = {}
        try:
            fitted = fit_arguments(call, tool.name, tool.parameters)
            problems = fitted.problems
            values = {} if problems else tool.bind(fitted.arguments)
        except BadArguments as bad:
            problems = tuple(bad.problems)
        except Exception as error:  # a validator of the user's own, or a schema that is none
            problems = (text_of_error(error),)
        bound: _Bound | None = None
        if problems:
            outcome: Outcome = "problem"
            text = explain(tool.name, problems, tool.parameters)
        else:
            outcome, text = self._ruled(tool, fitted)
            bound = _Bound(values, self._outside) if outcome != "problem" else None
        digest = tool.hash
        if outcome == "ask" and (basis := _basis_of(tool, fitted.arguments)):
            digest = f"{tool.hash}:{basis}"
        return Verdict(call, outcome, fitted.arguments, tool.effect, text, digest, bound)

    async def execute(self, verdict: Verdict, context: ToolContext) -> ToolResult:
        """Run the call, time it and cap what it says. Failures of any kind are results."""
        started = monotonic()
        call = verdict.call
        try:
            parts, state = await self._run(verdict, context)
        except Exception as error:  # a stored verdict whose values no longer bind
            parts, state = (Text(text_of_error(error)),), "error"
        return ToolResult(call.id, call.name, parts, state, round(monotonic() - started, 6))

    async def resolve_unknown(self, verdict: Verdict, unknown: Unknown, context: ToolContext) -> Answer | str:
        """Ask the tool's `check`, then heed its `unknown` policy."""
        tool = self._tool_of(verdict)
        if tool is None:
            return f"`{verdict.call.name}` is not the tool any more that was called"
        why = ""
        if tool.check is not None:
            answer = await checked(tool, tool.check, context, partial(_shown, tool, self._spill))
            if not isinstance(answer, str):
                return answer
            why = answer
        match tool.unknown:
            case "retry" if unknown.repeatable:
                return Retry(by=f"the policy of {tool.name}")
            case "give_up":
                return GiveUp(by=f"the policy of {tool.name}")
        return why

    def _tool_of(self, verdict: Verdict) -> Tool | None:
        """The very tool that the verdict was about, if it is here. What its call builds on stands behind the hash."""
        tool = self._tools.get(verdict.call.name)
        return tool if tool is not None and tool.hash == verdict.tool_hash.partition(":")[0] else None

    def _ruled(self, tool: Tool, fitted: Fitted) -> tuple[Outcome, str]:
        """What the policy says of a call whose arguments fit, and the verdict's text for it."""
        try:
            ruling = self._policy(tool, fitted.arguments)
        except Exception as error:  # a rule that cannot be computed must not let the call through
            ruling = Ruling("ask", f"its approval rule failed with {text_of_error(error)}")
        if self._outside and ruling.outcome == "allow" and not ruling.firm and carries_away(tool):
            ruling = Ruling("ask", why_asked(self._outside))
        match ruling.outcome:
            case "deny":
                reason = f": {ruling.reason}" if ruling.reason else ""
                return "problem", f"`{tool.name}` is not allowed here{reason}"
            case "ask":
                return "ask", question(tool, fitted.arguments, ruling.reason)
        return "ready", "; ".join(first_few(fitted.changes)) if fitted.changes else ""

    def _no_such_tool(self, name: str) -> str:
        available = ", ".join(self._tools) or "none"
        if not name.strip():
            return f"The call names no tool, so nothing ran. Available: {available}."
        shown = exact(name if len(name) <= _NAME_SHOWN else name[:_NAME_SHOWN] + "…")
        close = nearest(name[:_NAME_SHOWN], list(self._tools))
        hint = f" Did you mean `{close[0]}`?" if close else ""
        return f"There is no tool `{shown}`, so nothing ran.{hint} Available: {available}."

    async def _run(self, verdict: Verdict, context: ToolContext) -> tuple[tuple[Part, ...], ResultState]:
        if verdict.outcome == "problem":
            return (Text(verdict.text),), "error"
        tool = self._tool_of(verdict)
        if tool is None:
            return (
                Text(f"`{verdict.call.name}` is not the tool any more that this call was judged by."),
            ), "refused"
        if approved_on := verdict.tool_hash.partition(":")[2]:
            basis = _basis_of(tool, verdict.arguments)
            if basis and basis != approved_on:
                return (Text(_CHANGED),), "error"
        show = partial(_shown, tool, self._spill)
        bound = verdict.bound
        if not isinstance(bound, _Bound):  # a verdict that was stored has lost its values
            bound = _Bound(tool.bind(verdict.arguments), self._outside)
        outcome = await run(_call(tool, bound, context), show, tool.timeout, on_loop=tool.is_async)
        match outcome:
            case Returned(value):
                return value, "ok"
            case Raised(error):
                return show(error), "error"
        return _out_of_time(tool)


_CHANGED = (
    "Nothing was done: what this call would replace has changed since a person approved it. Read it again, then"
    " decide."
)


def _basis_of(tool: Tool, arguments: Mapping[str, JSON]) -> str:
    """What the call would replace; "" for nothing, or where that cannot be said: then the call itself says why."""
    try:
        return tool.basis(arguments) if tool.basis else ""
    except Exception:
        return ""


def _out_of_time(tool: Tool) -> tuple[tuple[Part, ...], ResultState]:
    if tool.effect == "once":
        words = f"`{tool.name}` was started and had not ended after {tool.timeout:g} seconds"
        return (
            Text(f"{words}: outcome unknown, check whether it took effect before repeating it."),
        ), "unknown"
    return (Text(f"`{tool.name}` had not ended after {tool.timeout:g} seconds and was given up."),), "error"


def _call(tool: Tool, bound: _Bound, context: ToolContext) -> Callable[[], Any]:
    """The function with all that it takes. Its progress is passed on from whatever thread it runs in."""
    if tool.context_parameter is None:
        return partial(tool.function, **bound.values)
    loop, tell = asyncio.get_running_loop(), context.progress

    def progress(text: str) -> None:
        loop.call_soon_threadsafe(tell, text)

    given = {
        **bound.values,
        tool.context_parameter: replace(context, progress=progress, outside=bound.outside),
    }
    return partial(tool.function, **given)


def _shown(tool: Tool, spill: Spill, value: Any) -> tuple[Part, ...]:
    """What the model is shown of a returned value."""
    parts = capped(parts_from(value), tool.max_output, spill, tool.name)
    return marked(parts) if tool.untrusted else parts
