"""A message of the library in the terminal's words: what a program would write in Python becomes what one types."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

_REWORDED: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r" \(Connection refused\)"), ""),  # that nothing listens there is plain from the rest
    (re.compile(r"\[Errno -?\d+\] "), ""),
    (re.compile(r" \((?:Deadlines|Retries)\.\w+\)"), ""),
    (re.compile(r"\bthe ([\d.]+ s) of (?:Deadlines|Retries)\.\w+"), r"\1"),
    (re.compile(r", or allow a longer wait\."), ", or choose another model with -m."),
    (
        re.compile(r"Pass `ca=`[^.]*, or `verify=False`\."),
        "If you trust it, set SSL_CERT_FILE to a file with its certificate.",
    ),
    (re.compile(r"Limits\((\w+)=([^)]*)\): give"), r"limit \1 = \2: give"),
    # The file matters where it is at fault; which session is meant, or what became of it, has nothing to do with it.
    (re.compile(r"^[^\n]*/sessions\.db: (?=(?:session |there is no session ))"), ""),
    (re.compile(r"\btake_over=True"), "--take-over"),
    (re.compile(r"\baccept_changes=True"), "--accept-changes"),
    (re.compile(r"such as Limits\(cost=…, tokens=…\)"), "such as tokens"),
)


def in_terminal_words(text: str) -> str:
    """The text without parameters and classes of Python's, and without an HTTP client's spelling of a failure."""
    for pattern, words in _REWORDED:
        text = pattern.sub(words, text)
    return text


def start_hint(url: str) -> str:
    """How the server at this URL is started, if it is where one of the known local servers is looked for."""
    from glassloop.config import local_addresses
    from glassloop.core.errors import ConfigError
    from glassloop.models.providers import PROVIDERS
    from glassloop.models.urls import origin

    try:
        places = local_addresses()
    except ConfigError:
        return ""
    return next(
        (PROVIDERS[name].started_by for name, home in places.items() if origin(home) == origin(url)), ""
    )


def program() -> str:
    """How this program is called here: by its name if the shell finds it, else by the path that it was called by."""
    called = Path(sys.argv[0])
    if shutil.which("glassloop"):
        return "glassloop"
    return str(called) if called.stem == "glassloop" else "python -m glassloop"
