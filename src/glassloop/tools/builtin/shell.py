"""The `run_command` tool: a command in the project, confined, with a working folder that lasts from call to call.

Reading command lines is in `simple_command`, confining in `sandbox*`, running in `process`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from glassloop.core.entries import JSON
from glassloop.core.visible import exact
from glassloop.tools.builtin.process import SYSTEM_PATH, Ended
from glassloop.tools.builtin.sandbox_place import Job, Place, place_from, search_path
from glassloop.tools.builtin.simple_command import MAX_LENGTH, commands_in, simple_words
from glassloop.tools.context import ToolContext
from glassloop.tools.targets import Command
from glassloop.tools.tool import Tool, tool

MAX_SECONDS = 600
_SPARE_SECONDS = 10
"""What the toolbox waits longer than the command may run: for starting and ending it."""

_MAX_CWD = 4_096
_NOT_FOUND = 127

# Tells the folder in which it ends to a descriptor of ours. The text is an argument, never part of this script.
_SCRIPT = 'trap "pwd -P >&{told}" EXIT; eval "$1"'


class Shell:
    """Commands of one project. `folder` is where the next one starts, always inside the root."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.folder = place.root.folder

    async def run_command(self, command: str, context: ToolContext, timeout: int = 60) -> str:
        """Run a command in the project's folder and return its exit code and what it printed, errors included.
        Use it to build, test, search and inspect the project with its own tools.

        It runs in a sandbox: only the project can be written, and there is usually no network, no home folder and
        no input. `cd` lasts for the following calls; variables and functions do not. When the call ends, so does
        everything that it started.

        Args:
            command: The command line for bash, such as "pytest -x tests" or "git log --oneline | head".
            timeout: Seconds after which it is stopped, at most 600.
        """
        _check(command)
        seconds = within_limits(timeout)
        sandbox = await self._place.sandbox()
        job = Job((), self._start_folder(), asyncio.timeout(seconds), seconds, context.progress)
        words = simple_words(command)
        ended = await (self._run_script(command, job) if words is None else self._run_program(words, job))
        facts = [outcome(ended, seconds), sandbox.described(self._place.confines)]
        return f"[{', '.join(facts)}, in {self._shown_folder()}]\n{ended.output}"

    async def _run_program(self, words: tuple[str, ...], job: Job) -> Ended:
        """A simple command, without a shell."""
        program = words[0]
        if "/" not in program:
            found = shutil.which(program, path=search_path(self._place.confines))
            if found is None:
                return Ended(_NOT_FOUND, f"{program}: command not found", out_of_time=False)
            program = found
        return await self._place.run(replace(job, argv=(program, *words[1:])))

    async def _run_script(self, command: str, job: Job) -> Ended:
        """Anything else, by bash, which tells the folder it ended in."""
        shell = shutil.which("bash", path=SYSTEM_PATH) or "/bin/sh"
        read_end, write_end = os.pipe()
        try:
            os.set_blocking(read_end, False)
            argv = (shell, "-c", _SCRIPT.format(told=write_end), shell, command)
            ended = await self._place.run(replace(job, argv=argv, descriptors=(write_end,)))
            self._move_to(_told(read_end))
        finally:
            os.close(read_end)
            os.close(write_end)
        return ended

    def _start_folder(self) -> Path:
        """Where the last command ended; the root, if that is gone or has become a way out."""
        root = self._place.root.folder
        real = self.folder.resolve()
        if not real.is_dir() or not real.is_relative_to(root):
            real = root
        self.folder = real
        return real

    def _move_to(self, told: str) -> None:
        """Follow the command, as far as the root: what it told is no more than a claim."""
        if not told.startswith("/"):
            return
        real = Path(told).resolve()
        if real.is_dir() and real.is_relative_to(self._place.root.folder):
            self.folder = real

    def _shown_folder(self) -> str:
        return exact(str(self.folder.relative_to(self._place.root.folder)))


def shell_tool(place: Place) -> Tool:
    """The `run_command` tool for one place. Asked about unless a rule allows it."""
    shell = Shell(place)
    return tool(
        effect="once",
        approve=partial(asks_to_run, place),
        sequential=True,
        timeout=MAX_SECONDS + _SPARE_SECONDS,
        untrusted=place.confines.network,
        needs=place.needs,
        preview=preview,
        targets=lambda arguments: (Command(str(arguments.get("command", ""))),),
    )(shell.run_command)


def from_options(options: Mapping[str, str]) -> Tool:
    """The tool, as the options of `sandbox_place.place_from` describe its place."""
    return shell_tool(place_from(options))


def preview(arguments: Mapping[str, JSON]) -> str:
    """The command line as it is, and below it each word of a simple command, or each command of any other."""
    command = str(arguments.get("command", ""))
    words = simple_words(command)
    if words is not None:
        return f"{command}\nwithout a shell: {' '.join(map(_quoted, words))}"
    commands = commands_in(command)
    return "\n".join([command, f"by a shell, {len(commands)} commands:", *(f"  {one}" for one in commands)])


def _quoted(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def asks_to_run(place: Place, arguments: Mapping[str, JSON]) -> str:
    """Why a person is asked: it runs programs, and how many."""
    command = str(arguments.get("command", ""))
    words = simple_words(command)
    if words is not None:
        return f"it runs the program {words[0]}{place.warning}"
    return f"a shell would run {len(commands_in(command))} commands{place.warning}"


def within_limits(timeout: int) -> int:
    """The seconds that a model asks for, as far as they are given."""
    return min(max(timeout, 1), MAX_SECONDS)


def outcome(ended: Ended, seconds: float) -> str:
    """How it ended, in a few words."""
    if ended.out_of_time:
        return f"stopped after {seconds:g} seconds"
    return f"exit code {ended.code}" if ended.code >= 0 else f"killed by signal {-ended.code}"


def _check(command: str) -> None:
    if not command.strip():
        raise ValueError("the command is empty; write what to run")
    if "\0" in command:
        raise ValueError("the command has a NUL character; write it without")
    if len(command) > MAX_LENGTH:
        raise ValueError(
            f"the command has {len(command):,} characters, at most {MAX_LENGTH:,}; write a script file and run that"
        )


def _told(handle: int) -> str:
    """The last thing that was written to the pipe, without its line end. Empty if nothing was."""
    with suppress(BlockingIOError):
        return os.fsdecode(os.read(handle, _MAX_CWD)).removesuffix("\n")
    return ""
