"""The command line of `sandbox-exec` (macOS) and the profile that it is given.

Written from the profile language as Apple's own profiles use it, and not yet tried on a Mac. It is safe to have
wrong: a profile that does not load fails the probe, and then nothing runs. What it does not give: processes of
their own. A program that leaves its process group can outlive the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from glassloop.tools.builtin.sandbox_confines import Confines, Guards

PROGRAM = "/usr/bin/sandbox-exec"

_BASE = """(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/") (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System")
  (subpath "/Library/Developer") (subpath "/Library/Apple") (subpath "/opt/homebrew") (subpath "/private/etc/ssl")
  (literal "/private/etc/localtime") (subpath "/private/var/db/timezone") (subpath "/private/var/db/dyld")
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") (subpath "/dev/fd"))
(allow file-write-data (literal "/dev/null"))
"""

_NETWORK = """(allow network-outbound (remote ip))
(allow system-socket)
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd") (global-name "com.apple.trustd.agent"))
(allow file-read* (literal "/private/etc/hosts") (literal "/private/etc/resolv.conf"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
"""


def wrap(argv: Sequence[str], confines: Confines, guards: Guards, cwd: Path, scratch: Path) -> list[str]:
    """`Sandbox.wrap`. Paths are given as parameters, so that none can be read as a part of the profile."""
    granted = [
        *_rules("allow file-read*", "subpath", "READ", confines.readable),
        *_rules(
            "allow file-read* file-write*", "subpath", "WRITE", (confines.root.folder, scratch.resolve())
        ),
        *_rules("deny file-write*", "subpath", "FIXED", guards.fixed),
        *_rules("deny file-read* file-write*", "subpath", "HIDDEN", guards.hidden),
        *_rules("deny file-write-unlink", "literal", "PINNED", guards.pinned),
    ]
    profile = _BASE + (_NETWORK if confines.network else "") + "\n".join(rule for rule, _ in granted)
    parameters = [word for _, definition in granted for word in ("-D", definition)]
    return [PROGRAM, *parameters, "-p", profile, *argv]


def _rules(action: str, kind: str, name: str, paths: Iterable[Path]) -> Iterable[tuple[str, str]]:
    """A rule for each path, with the definition of its parameter."""
    for number, path in enumerate(paths):
        yield f'({action} ({kind} (param "{name}{number}")))', f"{name}{number}={path}"
