"""Who holds a session: a process, named so that another one can prove that it is gone. No leases, no clocks."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

Standing = Literal["alive", "gone", "unknown"]

_HELD_HERE: set[str] = set()
"""The tokens of all claims that this process holds now."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One claim. `boot` and `pids` say in which life of which machine (and container) `pid` means something.

    `started` tells a process from a later one with the same number, `token` two claims of one process.
    """

    host: str
    pid: int
    started: str
    boot: str
    pids: str
    token: str

    def to_text(self) -> str:
        return json.dumps({name: getattr(self, name) for name in _TYPES})

    @property
    def name(self) -> str:
        """For people: "process 4711 on laptop"."""
        return f"process {self.pid} on {self.host}"


_TYPES = {"host": str, "pid": int, "started": str, "boot": str, "pids": str, "token": str}


def from_text(text: str) -> Owner | None:
    """The owner that was stored; None if that is no owner."""
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        if isinstance(found, dict) and {name: type(one) for name, one in found.items()} == _TYPES:
            return Owner(**found)
    return None


def new_claim() -> Owner:
    """This process, with a token that `release` takes back."""
    pid = os.getpid()
    owner = Owner(socket.gethostname(), pid, _began(pid), _boot(), _pid_space(), secrets.token_hex(8))
    _HELD_HERE.add(owner.token)
    return owner


def release(owner: Owner) -> None:
    """This process holds that claim no longer."""
    _HELD_HERE.discard(owner.token)


def standing(owner: Owner) -> Standing:
    """`gone` only where it is proved: same machine, and it has restarted or that process is no more."""
    if owner.host != socket.gethostname():
        return "unknown"
    if owner.boot != _boot():
        return "gone" if owner.boot and _boot() else "unknown"
    if owner.pids != _pid_space():
        return "unknown"
    if owner.pid == os.getpid() and owner.started == (_started(owner.pid) or ""):
        return "alive" if owner.token in _HELD_HERE else "gone"
    return "alive" if _started(owner.pid) == owner.started else "gone"


def _started(pid: int) -> str | None:
    """When a process started, in the system's own words; None if it is no more, or a zombie."""
    if not Path("/proc/self/stat").exists():
        return _output("ps", "-o", "lstart=", "-p", str(pid)) or None
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    return None


@lru_cache(maxsize=1)
def _began(pid: int) -> str:
    """When this process started; a fork of it has another number."""
    return _started(pid) or ""


@cache
def _boot() -> str:
    """Which life of this machine it is. Empty if the system does not say."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return _output("sysctl", "-n", "kern.boottime")


@cache
def _pid_space() -> str:
    """Containers on one host have process numbers of their own."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _output(*command: str) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return ""
