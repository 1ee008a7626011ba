"""The `run_python` tool, and code mode: the same with the agent's other tools as functions of the code.

The code runs in a process of its own (`python_child`) under the same sandbox as `run_command`. Where no sandbox works
and `pydantic-monty` is installed, `run_python` runs it in that interpreter, which has no files and no network. Code
mode has no such fallback.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from glassloop.core.entries import JSON, Part, Text
from glassloop.tools.approval import Policy, by_tool_and_origin
from glassloop.tools.builtin import python_monty
from glassloop.tools.builtin.process import Ended
from glassloop.tools.builtin.python_calls import MAX_CALLS, MAX_LINE, Approve, Border, Function, functions_of
from glassloop.tools.builtin.sandbox import NoSandbox
from glassloop.tools.builtin.sandbox_place import Job, Place, place_from
from glassloop.tools.builtin.shell import MAX_SECONDS, outcome, within_limits
from glassloop.tools.context import ToolContext
from glassloop.tools.tool import Tool, as_tool, tool
from glassloop.tools.toolbox import Toolbox, Tools
from glassloop.tools.untrusted import marked

MAX_CODE = 100_000
_SPARE_SECONDS = 10

# No site customisation by environment or user, nothing of the working folder on the path before the standard
# library; the packages of this Python's own environment are there.
_INTERPRETER = ("-I", "-u", "-X", "utf8")


def python_tool(place: Place) -> Tool:
    """The `run_python` tool for one place. Asked about unless a rule allows it."""

    async def run_python(code: str, context: ToolContext, timeout: int = 60) -> Any:
        """Run Python code and return what it printed and the value of its last line, if that is an expression.
        Use it to compute, to work on data and files of the project, and to try things out.

        It runs in a sandbox, each time in a new interpreter: only the project can be written, and there is usually
        no network and no input. Installed packages can be imported; for the project's own modules add "." to
        sys.path.

        Args:
            code: A whole program, such as "import statistics\\nstatistics.mean([1, 2, 4])".
            timeout: Seconds after which it is stopped, at most 600.
        """
        _check(code)
        seconds = within_limits(timeout)
        try:
            return await _in_process(place, _Work(code, seconds, Toolbox(), None), context)
        except NoSandbox:
            if not python_monty.is_installed():
                raise
        ended = await python_monty.run(code, seconds, context.progress)
        return _shown(ended, seconds, python_monty.NAME, Counter())

    return tool(
        effect="once",
        approve=partial(_asks, place),
        sequential=True,
        timeout=MAX_SECONDS + _SPARE_SECONDS,
        untrusted=place.confines.network,
        needs=place.needs,
        preview=_code,
    )(run_python)


def code_mode_tool(tools: Tools, approve: Approve | None, place: Place) -> Tool:
    """The `run_code` tool: Python code that may call `tools` as functions, so that one turn does many calls.

    Each call is prepared, asked about with `approve` where its verdict says so, and executed on this side, as if the
    model had made it; without `approve`, a call that needs a person's word is refused. Time spent in calls does not
    count. For crash recovery all calls belong to the one call of `run_code`, whose effect is `once`.
    """
    functions = functions_of(tools)

    async def run_code(code: str, context: ToolContext, timeout: int = 60) -> Any:
        """Run code that can call the functions.

        Args:
            code: A whole program, such as "for name in ('a', 'b'):\\n    print(read_file(name))".
            timeout: Seconds after which it is stopped, at most 600; time spent in calls does not count.
        """
        _check(code)
        seconds = within_limits(timeout)
        return await _in_process(place, _Work(code, seconds, tools, approve), context)

    return tool(
        effect="once",
        approve=partial(_asks, place),
        sequential=True,
        timeout=None,
        description=_description(functions),
        untrusted=place.confines.network,
        needs=place.needs,
        preview=_code,
    )(run_code)


def code_mode(
    tools: Iterable[Any],
    *,
    approve: Approve | None = None,
    policy: Policy = by_tool_and_origin,
    folder: str | Path = ".",
) -> Toolbox:
    """Tools for an `Agent`: these, and `run_code`, whose code may call each of them as a function.

        Agent(model, tools=code_mode([search, fetch], approve=ask), approve=ask)

    `approve` and `policy` are for the calls that the code makes; `run_code` itself runs without a question, since
    its code can do nothing but compute and make those calls. `folder` is what the code can read and write.
    Raises `ConfigError` for a folder that cannot be confined to; without a sandbox each run fails, saying so.
    """
    given = [as_tool(each) for each in tools]
    place = place_from({"files_root": str(folder)})
    made = code_mode_tool(Toolbox(given, policy=policy), approve, place)
    return Toolbox([*given, replace(made, approve=None)], policy=policy)


def from_options(options: Mapping[str, str]) -> Tool:
    """`run_python`, as the options of `sandbox_place.place_from` describe its place."""
    return python_tool(place_from(options))


def code_from_options(options: Mapping[str, str]) -> Tool:
    """`run_code` where no agent has lent it its tools yet: Python with nothing to call."""
    return code_mode_tool(Toolbox(), None, place_from(options))


def _description(functions: tuple[Function, ...]) -> str:
    return "\n".join(
        [
            "Run Python code that can call the functions below, and return what it printed and the value of its last"
            " line. Use it where a task takes several calls, loops or filtering: one run can make up to"
            f" {MAX_CALLS} calls. Each function returns text (json.loads what is JSON) and raises ToolError with the"
            " reason if it did not work. The code runs in a sandbox, each time in a new interpreter.",
            "",
            *(function.line() for function in functions),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """A piece of code, how long it may take, and what it may call."""

    code: str
    seconds: int
    tools: Tools
    approve: Approve | None


async def _in_process(place: Place, work: _Work, context: ToolContext) -> str | tuple[Part, ...]:
    sandbox = await place.sandbox()
    limit = asyncio.timeout(work.seconds)
    border = Border(work.tools, work.approve, context, limit)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_LINE)
        writer.write(_task(work))
        argv = (sys.executable, *_INTERPRETER, "-c", _program(), str(theirs.fileno()))
        job = Job(argv, place.root.folder, limit, work.seconds, context.progress, (theirs.fileno(),))
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(border.serve(reader, writer))
                ended = await place.run(job)
                serving.cancel()
        finally:
            writer.transport.abort()  # it may never have been served
    text = _shown(ended, work.seconds, sandbox.described(place.confines), border.calls)
    return marked((Text(text),)) if border.heard_outside else text


def _task(work: _Work) -> bytes:
    functions = [each.told() for each in functions_of(work.tools)]
    return json.dumps({"code": work.code, "functions": functions}).encode() + b"\n"


def _program() -> str:
    return resources.files(__package__).joinpath("python_child.py").read_text(encoding="utf-8")


def _shown(ended: Ended, seconds: int, confined: str, calls: Counter[str]) -> str:
    facts = [outcome(ended, seconds), confined]
    if calls:
        facts.append("called " + ", ".join(f"{name} ×{count}" for name, count in calls.items()))
    return f"[{', '.join(facts)}]\n{ended.output}"


def _code(arguments: Mapping[str, JSON]) -> str:
    return str(arguments.get("code", ""))


def _asks(place: Place, arguments: Mapping[str, JSON]) -> str:
    lines = str(arguments.get("code", "")).count("\n") + 1
    return f"it runs {lines} {'line' if lines == 1 else 'lines'} of Python{place.warning}"


def _check(code: str) -> None:
    if not code.strip():
        raise ValueError("the code is empty; write a program")
    if len(code) > MAX_CODE:
        raise ValueError(
            f"the code has {len(code):,} characters, at most {MAX_CODE:,}; keep data in files of the project"
        )
