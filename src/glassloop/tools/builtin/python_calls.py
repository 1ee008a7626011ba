"""The border of code mode: what code in the sandbox asks for, judged and done on this side, a call at a time.

What comes over is a claim of untrusted code, like a call of the model itself: one line of JSON, limited in size, in
number, and in what it can name. Each call goes through `Tools.prepare`, is asked about where its verdict says so,
and only then runs. Nothing but text goes back.
"""

from __future__ import annotations

import asyncio
import json
import keyword
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from glassloop.core.entries import JSON, ToolCall
from glassloop.core.tools import Decision, ToolSpec, Verdict
from glassloop.core.visible import exact
from glassloop.tools.context import ToolContext
from glassloop.tools.toolbox import Toolbox, Tools
from glassloop.tools.untrusted import is_marked, unmarked
from glassloop.wire.strictjson import parse, scrubbed

Approve = Callable[[Verdict], "Awaitable[Decision | bool | None] | Decision | bool | None"]
"""Asked about a call that needs a person's word, as `Agent`'s `approve` is. None: nobody can say, so it is refused."""

MAX_CALLS = 128
"""As many as one reply of a model may have."""
MAX_LINE = 1 << 20
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Function:
    """A tool as the code sees it: a Python name, the tool's own, and its parameters in order."""

    name: str
    tool: str
    parameters: tuple[str, ...]
    spec: ToolSpec

    def told(self) -> dict[str, JSON]:
        """What the child needs to know of it."""
        return {"name": self.name, "tool": self.tool, "parameters": list(self.parameters)}

    def line(self) -> str:
        """What the model is told of it: the call, and the first paragraph of the description."""
        properties: Mapping[str, Any] = self.spec.parameters.get("properties", {})
        required = self.spec.parameters.get("required", ())
        taken = [
            f"{name}: {_kind(properties[name])}{'' if name in required else ' = …'}"
            for name in self.parameters
        ]
        about = " ".join(self.spec.description.strip().split("\n\n")[0].split())
        return f"{self.name}({', '.join(taken)}) -> str: {about}"


def functions_of(tools: Tools) -> tuple[Function, ...]:
    """The tools as functions, each under a name that Python takes. Of two that come to the same one, the first."""
    found: dict[str, Function] = {}
    for spec in tools.specs:
        name = re.sub(r"\W|^(?=\d)", "_", spec.name)
        name = f"{name}_" if keyword.iskeyword(name) else name
        properties = spec.parameters.get("properties", {})
        required = [each for each in properties if each in spec.parameters.get("required", ())]
        order = (*required, *(each for each in properties if each not in required))
        found.setdefault(name, Function(name, spec.name, order, spec))
    return tuple(found.values())


def _kind(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind if isinstance(kind, str) else "any"


class Border:
    """Serves the calls of one piece of code. `limit` stands still while a call is served: a person may be asked.

    `heard_outside`: words of others came in by one of these calls.
    """

    def __init__(
        self, tools: Tools, approve: Approve | None, context: ToolContext, limit: asyncio.Timeout
    ) -> None:
        self._tools = tools
        self._names = frozenset(spec.name for spec in tools.specs)
        self._approve = approve
        self._context = context
        self._limit = limit
        self.calls: Counter[str] = Counter()
        self.heard_outside = False
        self._outside = context.outside

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one line after the other, until the other side hangs up or sends more than a line may have."""
        with closing(writer), suppress(ConnectionError, ValueError):
            while line := await reader.readline():
                with _standing_still(self._limit):
                    ok, text = await self.answer(line)
                writer.write(json.dumps({"ok": ok, "text": text}).encode() + b"\n")
                await writer.drain()

    async def answer(self, line: bytes) -> tuple[bool, str]:
        """Do what the line asks for. Failures of any kind are text."""
        call = self._read(line)
        if call is None:
            return False, 'this is no call of a tool: {"tool": name, "arguments": {...}} was expected'
        if self.calls.total() >= MAX_CALLS:
            return False, f"the code has made {MAX_CALLS} calls, and no more are allowed in one run"
        known = call.name if call.name in self._names else "(no such tool)"
        self.calls[known] += 1
        call = replace(call, id=f"{self._context.call_id}.{self.calls.total()}")
        self._context.progress(f"{exact(known)} {exact(call.text[:_SHOWN])}\n")
        verdict = self._judged(call)
        if verdict.outcome == "problem":
            return False, verdict.text
        if verdict.outcome == "ask":
            decision = await self._asked(verdict)
            if not decision.allowed:
                reason = f": {decision.reason}" if decision.reason else ""
                return False, f"the user did not allow this call of `{call.name}`{reason}"
        number = self.calls.total()
        context = replace(self._context, call_id=call.id, key=f"{self._context.key}.{number}")
        result = await self._tools.execute(verdict, context)
        if is_marked(result):
            self.heard_outside = True
            self._outside = self._outside or call.name
        return result.state == "ok", unmarked(result.text)

    def _judged(self, call: ToolCall) -> Verdict:
        """What the tools say of it, knowing what the code has read so far."""
        tools = self._tools.after_outside(self._outside) if isinstance(self._tools, Toolbox) else self._tools
        return tools.prepare(call)

    def _read(self, line: bytes) -> ToolCall | None:
        try:
            asked = scrubbed(parse(line.decode()))
        except (ValueError, RecursionError):
            return None
        match asked:
            case {"tool": str(name), "arguments": dict(arguments)}:
                return ToolCall("", name, arguments, json.dumps(arguments, ensure_ascii=False))
        return None

    async def _asked(self, verdict: Verdict) -> Decision:
        answer = self._approve(verdict) if self._approve else None
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is None:
            return Decision(verdict.call.id, False, "it needs a person's word, and nobody can be asked here")
        return answer if isinstance(answer, Decision) else Decision(verdict.call.id, bool(answer))


@contextmanager
def _standing_still(limit: asyncio.Timeout) -> Iterator[None]:
    """Stop the clock, and let it go on with the time that was left. After the code's end there is none to stop."""
    clock = asyncio.get_running_loop().time
    until, since = limit.when(), clock()
    with suppress(RuntimeError):
        limit.reschedule(None)
    try:
        yield
    finally:
        if until is not None:
            with suppress(RuntimeError):
                limit.reschedule(until + clock() - since)
