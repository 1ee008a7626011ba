"""Where programs of the `shell` and `python` tools run: a root, the sandbox that was found, a home for each run."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin import process
from glassloop.tools.builtin.files import root_from
from glassloop.tools.builtin.rooted_names import Root
from glassloop.tools.builtin.sandbox import UNCONFINED, NoSandbox, Sandbox, candidates, chosen, no_sandbox
from glassloop.tools.builtin.sandbox_bubblewrap import TMP
from glassloop.tools.builtin.sandbox_confines import Confines, check_root
from glassloop.tools.tool import Need

OPTION_NETWORK = "sandbox_network"
OPTION_READ = "sandbox_read"
_SWITCH = {"yes": True, "no": False}

_PROBE_SECONDS = 10.0


def _to_nobody(text: str) -> None:
    """Nobody is shown this output while it comes."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command and how it runs. `limit` is the time it has, `seconds` the processor time, in seconds per core."""

    argv: Sequence[str]
    cwd: Path
    limit: asyncio.Timeout
    seconds: float
    progress: Callable[[str], None] = _to_nobody
    descriptors: tuple[int, ...] = ()


class Place:
    """A root with what confines programs there. The sandbox is probed at the first run and kept.

    `sandbox`: what to use; None finds the best that works, and `Place.run` raises `NoSandbox` if none does.
    """

    def __init__(self, confines: Confines, sandbox: Sandbox | None = None) -> None:
        self.confines = confines
        self._sandbox = sandbox

    @property
    def root(self) -> Root:
        return self.confines.root

    @property
    def warning(self) -> str:
        """For every approval: that nothing will confine the program, where a person chose so."""
        return " and no sandbox confines it" if self._sandbox is UNCONFINED else ""

    @property
    def needs(self) -> tuple[Need, ...]:
        """What a program reaches that runs here."""
        open_network = self.confines.network or self._sandbox is UNCONFINED
        return ("exec", "network") if open_network else ("exec",)

    async def sandbox(self) -> Sandbox:
        """The sandbox, found by running a program in each until one works. Raises `NoSandbox`."""
        if self._sandbox is None:
            self._sandbox = await self._probed()
        return self._sandbox

    async def run(self, job: Job) -> process.Ended:
        """Run a command to its end, confined. Raises as `process.run`, `NoSandbox`, and `Refused` where the project
        cannot be guarded."""
        return await self._run_in(await self.sandbox(), job)

    async def _run_in(self, sandbox: Sandbox, job: Job) -> process.Ended:
        limits = process.Limits() if sandbox.isolated else process.Limits(processes=None)
        inner = process.limited(job.argv, limits, job.seconds)
        with sandbox.guard(self.root) as guards, _scratch(sandbox) as scratch:
            child = process.Child(
                tuple(sandbox.wrap(inner, self.confines, guards, job.cwd, scratch)),
                job.cwd,
                process.environment(scratch, search_path(self.confines)),
                job.descriptors,
                owned=sandbox.isolated,
            )
            return await process.run(child, job.limit, job.progress)

    async def _probed(self) -> Sandbox:
        tried: dict[str, str] = {}
        for sandbox in candidates():
            try:
                ended = await self._run_in(
                    sandbox, Job(("true",), self.root.folder, asyncio.timeout(_PROBE_SECONDS), _PROBE_SECONDS)
                )
            except OSError as error:
                tried[sandbox.name] = str(error)
                continue
            if ended.code == 0 and not ended.out_of_time:
                return sandbox
            tried[sandbox.name] = ended.output.strip() or f"exit code {ended.code}"
        raise no_sandbox(tried)


def place_from(options: Mapping[str, str]) -> Place:
    """The place that the options describe: `files_root`, `sandbox` (see `CHOICES`), `sandbox_network` (no, yes),
    `sandbox_read` (further folders to read, separated as in PATH). Raises `ConfigError`."""
    root = root_from(options)
    choice = chosen(options)
    sandbox = UNCONFINED if choice == "none" else None
    if sandbox is None:
        check_root(root)
    network = options.get(OPTION_NETWORK, "no")
    if network not in _SWITCH:
        raise ConfigError(f"{OPTION_NETWORK} is {network!r}. Write yes or no.")
    named = [Path(word).expanduser() for word in options.get(OPTION_READ, "").split(os.pathsep) if word]
    place = Place(Confines(root, _SWITCH[network], (*map(_existing, named), *interpreter_folders())), sandbox)
    if choice == "accept_none":  # found now, since each approval has to name it
        with suppress(NoSandbox):
            return Place(place.confines, found_at_once(place))
        return Place(place.confines, UNCONFINED)
    return place


def found_at_once(place: Place) -> Sandbox:
    """`Place.sandbox` for code that cannot wait for it: takes about a tenth of a second. Raises `NoSandbox`."""
    with ThreadPoolExecutor(1) as thread:  # of its own: there may be an event loop in this one
        return thread.submit(lambda: asyncio.run(place.sandbox())).result()


def interpreter_folders() -> tuple[Path, ...]:
    """Where this Python and its packages are, outside the system's folders: with and without links in the path."""
    given = {Path(folder) for folder in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)}
    folders = given | {folder.resolve() for folder in given}
    home = Path.home()  # where an environment is the home folder itself, it is not for programs to see
    return tuple(
        sorted(each for each in folders if not each.is_relative_to("/usr") and not home.is_relative_to(each))
    )


def search_path(confines: Confines) -> str:
    """PATH: the system's folders, and of our own PATH what lies in a folder that a user made readable."""
    granted = [
        entry
        for entry in os.environ.get("PATH", "").split(os.pathsep)
        if any(Path(entry).is_relative_to(folder) for folder in confines.readable)
        and not Path(entry).resolve().is_relative_to(confines.root.folder)
    ]
    return os.pathsep.join([*granted, process.SYSTEM_PATH])


def _existing(folder: Path) -> Path:
    if not folder.is_absolute() or not folder.is_dir():
        raise ConfigError(
            f"{OPTION_READ} names {folder}, which is no folder. Give absolute paths of folders."
        )
    return folder


@contextmanager
def _scratch(sandbox: Sandbox) -> Iterator[Path]:
    """The home of one run: a sandbox's own, or a private folder that goes with the run."""
    if sandbox.isolated:
        yield TMP
        return
    with tempfile.TemporaryDirectory(prefix="glassloop-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()
