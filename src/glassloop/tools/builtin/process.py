"""One child process, run to its end: its limits, its environment, its output as it comes, and its certain death.

What confines it is in `sandbox`. Nothing here decides whether it may run. POSIX only.

What dies with a call: the child and its process group; with `owned`, also everything that it ever started (its
processes are a world of their own, and the kernel ends that world with its first process); else, on Linux, also
what left the group, found by a mark in its environment. Without `owned`, a program that leaves the group *and*
clears its environment can outlive the call.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from glassloop.tools.builtin.process_output import Output

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for: nothing that a user, a project or a model can write."""

TERM_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL. Less than what a cancelled tool is given for cleaning up."""

_DRAIN = 0.5
"""Seconds that the rest of the output is waited for when the child is dead."""

_MARK = "GLASSLOOP_CALL"
_MAX_PASSES = 20

# What a child has of our environment. No keys, no agent's socket, nothing that makes a program load code.
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")

_QUIET: Mapping[str, str] = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    # Git runs programs that a repository names. These settings outrank the repository's own.
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": "/dev/null",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_2": "core.pager",
    "GIT_CONFIG_VALUE_2": "cat",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process may use: bytes of private memory, bytes of one file, and how many processes there may be.

    `processes` counts all of a user's where the child has no user namespace of its own, so it is None there. The
    kernel does not apply it to root. `memory` is RLIMIT_DATA: address space that is only reserved, as Node, Go and
    Java do, does not count; shared memory does not either.
    """

    memory: int = 4 << 30
    file_size: int = 2 << 30
    processes: int | None = 512


@dataclass(frozen=True, slots=True)
class Child:
    """What to run. `descriptors` stay open in it. `owned`: whatever it starts ends with it (see above)."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    descriptors: tuple[int, ...] = ()
    owned: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How it went: the exit code (negative: the signal that killed it), the output, and whether time ran out."""

    code: int
    output: str
    out_of_time: bool


def environment(home: Path, path: str = SYSTEM_PATH) -> dict[str, str]:
    """A child's environment, built from nothing. `home` is a folder of its own, for temporary files too."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    folders = {"HOME": str(home), "TMPDIR": str(home), "PATH": path}
    return {"LANG": "C.UTF-8", **inherited, **_QUIET, **folders}


def limited(argv: Sequence[str], limits: Limits, seconds: float) -> list[str]:
    """The command behind a shell that sets the limits and becomes it. The words are passed on, never parsed.

    A shell, since code between fork and exec is not safe in a program with threads. A limit that is already lower
    stays. Processor time is for the case that nobody is left to watch the clock.
    """
    settings = [
        "ulimit -c 0",
        f"ulimit -t {ceil(seconds) * (os.cpu_count() or 1) + 1}",
        f"ulimit -f {limits.file_size // 512}",
        f"ulimit -d {limits.memory // 1024}",
    ]
    if limits.processes is not None:  # -u in bash and on macOS, -p in dash and busybox
        settings.append(f"ulimit -u {limits.processes} || ulimit -p {limits.processes}")
    return ["/bin/sh", "-c", f'{{ {"; ".join(settings)}; }} 2>/dev/null; exec "$@"', "sh", *argv]


async def run(child: Child, limit: asyncio.Timeout, progress: Callable[[str], None]) -> Ended:
    """Run it to its end, or to the limit's, which may be moved meanwhile. Nothing of it is left afterwards.

    Raises `OSError` where the program cannot be started, and `CancelledError` after the child is dead.
    """
    mark = secrets.token_hex(8)
    with Output(progress) as output:
        process = await _start(child, mark, output)
        try:
            with suppress(TimeoutError):
                async with limit:
                    await process.wait()
        finally:
            await _end(process, child.owned, mark)
        await output.rest(_DRAIN)
    return Ended(process.returncode or 0, output.text(), limit.expired())


async def _start(child: Child, mark: str, output: Output) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *child.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output.write_end,
            stderr=output.write_end,
            cwd=child.cwd,
            env={**child.environment, _MARK: mark},
            pass_fds=child.descriptors,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:  # it may have been started by now, and then it must be ended
        with suppress(OSError):
            await _end(await starting, child.owned, mark)
        raise
    finally:
        output.close_write_end()


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────


async def _end(process: asyncio.subprocess.Process, owned: bool, mark: str) -> None:
    """Let it end in order, then end it, and whatever it started. A second cancel only shortens the grace."""
    try:
        if process.returncode is None and not owned:
            _signal_group(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(TERM_GRACE):
                    await process.wait()
    finally:
        if process.returncode is None:
            for inner in _children(process.pid):  # a sandbox's first process: its end is the end of all in it
                _kill(inner)
        _signal_group(process.pid, signal.SIGKILL)
        if not owned:
            _kill_marked(mark)
    await process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        os.killpg(group, number)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """Direct children, where the kernel tells (Linux)."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _kill_marked(mark: str) -> None:
    """Kill what bears the mark, again and again until nothing does: it may be forking meanwhile."""
    if sys.platform != "linux":
        return
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(_MAX_PASSES):
        found = [pid for pid in _processes() if wanted in _environment_of(pid)]
        if not found:
            return
        for pid in found:
            _kill(pid)


def _processes() -> list[int]:
    own = os.getpid()
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != own]


def _environment_of(pid: int) -> bytes:
    """Empty for what is gone, is a zombie, or is not ours to read."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
