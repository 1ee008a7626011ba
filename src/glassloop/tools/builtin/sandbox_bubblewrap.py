"""The command line of bubblewrap (Linux): new namespaces, a file system put together from a few read-only folders.

Facts about its options: bwrap(1). They are applied in order, so a later mount lies over an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from glassloop.tools.builtin.sandbox_confines import Confines, Guards

VARIANTS: tuple[tuple[str, ...], ...] = (("--disable-userns",), ())
"""Tried in this order: without further user namespaces inside; versions before 0.8 cannot forbid them."""

TMP = Path("/tmp")
_TMP_BYTES = 1 << 30

# Every namespace is new, all capabilities are gone (root has them otherwise, and could undo what is mounted here),
# no terminal can be typed into, and the first process dies with us.
_ALWAYS = ("--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--new-session", "--die-with-parent")

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
)

# Not all of /etc: root could read the passwords' hashes and the host's private keys in it.
_SETTINGS = (
    "alternatives ca-certificates ssl/certs ssl/openssl.cnf pki/tls/certs pki/ca-trust crypto-policies ld.so.cache"
    " ld.so.conf ld.so.conf.d localtime timezone mime.types services protocols fonts"
).split()
_NETWORK_SETTINGS = "resolv.conf hosts nsswitch.conf host.conf gai.conf".split()


def wrapper(
    program: str, extra: Sequence[str]
) -> Callable[[Sequence[str], Confines, Guards, Path, Path], list[str]]:
    """`Sandbox.wrap` with this program and these further options. Its `/tmp` is its own, so `scratch` is not used."""

    def wrap(argv: Sequence[str], confines: Confines, guards: Guards, cwd: Path, scratch: Path) -> list[str]:
        return [
            program,
            *_ALWAYS,
            *extra,
            *(("--share-net",) if confines.network else ()),
            *_system(confines.network),
            *_mounts(confines),
            *_guarding(guards),
            *("--remount-ro", "/", "--chdir", str(cwd), "--", *argv),
        ]

    return wrap


def _system(network: bool) -> Iterable[str]:
    yield from chain.from_iterable(_as_on_the_host(Path(path)) for path in _SYSTEM)
    settings = (*_SETTINGS, *(_NETWORK_SETTINGS if network else ()))
    yield from chain.from_iterable(("--ro-bind-try", f"/etc/{name}", f"/etc/{name}") for name in settings)
    yield from (
        "--proc",
        "/proc",
        # bubblewrap covers it only where it finds it writable, and does not on every kernel. The settings in it are the
        # whole machine's: who is root outside could name a program there that is then run outside.
        "--ro-bind-try",
        "/proc/sys",
        "/proc/sys",
        "--dev",
        "/dev",
        *_tmpfs("/dev/shm"),
        "--remount-ro",
        "/dev",
        *_tmpfs(str(TMP)),
    )


def _as_on_the_host(path: Path) -> tuple[str, ...]:
    """A folder read-only; a link, such as /bin is to usr/bin on most systems, as that link."""
    if path.is_symlink():
        return ("--symlink", str(path.readlink()), str(path))
    return ("--ro-bind-try", str(path), str(path))


def _tmpfs(path: str) -> tuple[str, ...]:
    return ("--size", str(_TMP_BYTES), "--tmpfs", path)


def _mounts(confines: Confines) -> Iterable[str]:
    """The root, over what lies around it and under what lies in it."""
    root = confines.root.folder
    readable = set(confines.readable) - {root}
    inside = {path for path in readable if path.is_relative_to(root)}
    for path in sorted(readable - inside):
        yield from ("--ro-bind-try", str(path), str(path))
    yield from ("--bind", str(root), str(root))
    for path in sorted(inside):
        yield from ("--ro-bind-try", str(path), str(path))


def _guarding(guards: Guards) -> Iterable[str]:
    """A place that is a mount cannot be renamed or removed. A device cannot be opened on one: hidden is refused."""
    for path in guards.pinned:
        yield from ("--bind", str(path), str(path))
    for path in guards.fixed:
        yield from ("--ro-bind", str(path), str(path))
    for path in guards.hidden:
        yield from (
            ("--tmpfs", str(path), "--remount-ro", str(path))
            if path.is_dir()
            else ("--ro-bind", "/dev/null", str(path))
        )
