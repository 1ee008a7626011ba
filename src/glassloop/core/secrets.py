"""Masking, for logs, errors and exports: known key shapes, and the values that are in use."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

_SHORTEST = 15
_ESCAPE = r"\\(?:[bfnrt]|u[0-9A-Fa-f]{4})"
_RUN = re.compile(rf"(?:{_ESCAPE})?[A-Za-z0-9_.\-]{{{_SHORTEST},}}")
"""Where a key can be at all. Ordinary text has few runs so long, so the shapes are looked for in these alone. In JSON,
and in JSON within JSON, a run may begin with the letter of an escape that ends a line: `\\nsk-…`.
"""

_SHAPES = re.compile(
    r"""
    (?: (?<![A-Za-z0-9_]) | (?<=\\[bfnrt]) | (?<=\\u[0-9A-Fa-f]{4}) ) (?:
      (?:sk|pk|rk|gsk|xai|nvapi|csk|fw|tgp_v1|r8|hf|glpat|tvly|pplx)[-_][A-Za-z0-9_\-]{12,}   # prefixed API keys
    | AIza[A-Za-z0-9_\-]{30,}                                                                # Google
    | (?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}                # GitHub
    | xox[abposr]-[A-Za-z0-9-]{10,}                                                          # Slack
    | AKIA[0-9A-Z]{16}\b                                                                     # AWS
    | eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{5,}                        # JSON web tokens
    )
    """,
    re.VERBOSE,
)
_BEARER = re.compile(r"(?<=[Bb]earer )(?=\S*\d|\S{20})[A-Za-z0-9._~+/\-]{8,}=*")
"""Any bearer token; a word without a digit is prose ("bearer securities") unless it is very long."""

_URL_PASSWORD = re.compile(r"://([^/\s:@]+):([^/\s@]+)@")

# Finding that a text holds no run so long takes a twentieth of the time that the expressions take.
_LETTERS = bytes(120 if re.match(rb"[A-Za-z0-9_.\-]", bytes([i])) else 32 for i in range(256))
_LONG = b"x" * _SHORTEST
_FIELDS = frozenset((b"completion_tokens", b"reasoning_tokens", b"reasoning_content"))
"""Long names that stand in most replies."""

SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie", "set-cookie"}
)
"""Headers whose whole value is a secret, in lower case."""


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with every known secret replaced. Values shorter than 6 characters are not searched for."""
    if secrets:
        for secret in sorted((one for one in secrets if len(one) >= 6), key=len, reverse=True):
            text = text.replace(secret, MASK)
    if _may_hold_a_key(text.encode("utf-8", "surrogatepass")):
        text = _RUN.sub(lambda run: _SHAPES.sub(MASK, run.group()), text)
    if "earer " in text:
        text = _BEARER.sub(MASK, text)
    return _URL_PASSWORD.sub(rf"://\1:{MASK}@", text) if "://" in text else text


def may_hold_a_secret(data: bytes) -> bool:
    """Whether UTF-8 text is worth a search for known shapes. False for most texts, in a fraction of the time."""
    return b"earer " in data or (b"@" in data and b"://" in data) or _may_hold_a_key(data)


def _may_hold_a_key(data: bytes) -> bool:
    """A quick look at the long runs of letters, so that the long texts without one cost almost nothing."""
    plain = data.translate(_LETTERS)
    start = plain.find(_LONG)
    while start >= 0:
        end = plain.find(b" ", start)
        end = len(data) if end < 0 else end
        run = data[start:end]
        is_digest = run.isalnum() and run.islower()  # a key never is both
        if not (is_digest or run in _FIELDS):
            run = data[max(0, start - 1) : end]  # with the backslash of an escape
            if _SHAPES.search(run.decode("latin-1")):
                return True
        start = plain.find(_LONG, end)
    return False
