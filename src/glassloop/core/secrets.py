"""Masking, for logs, errors and exports: known key shapes, and the values that are in use."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

_SHAPES = re.compile(
    r"""
    \b(?:sk|pk|rk|gsk|xai|nvapi|csk|fw|tgp_v1|r8|hf|glpat|tvly|pplx)[-_][A-Za-z0-9_\-]{12,}   # prefixed API keys
    | \bAIza[A-Za-z0-9_\-]{30,}                                                                # Google
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}              # GitHub
    | \bxox[abposr]-[A-Za-z0-9-]{10,}                                                          # Slack
    | \bAKIA[0-9A-Z]{16}\b                                                                     # AWS
    | \beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{5,}                        # JSON web tokens
    | (?<=[Bb]earer\ )[A-Za-z0-9._~+/\-]{8,}=*                                                 # any bearer token
    """,
    re.VERBOSE,
)

_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]+):([^/\s@]+)@")

SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie", "set-cookie"}
)
"""Headers whose whole value is a secret, in lower case."""


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with every known secret replaced. Values shorter than 6 characters are not searched for."""
    for secret in sorted((one for one in secrets if len(one) >= 6), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", _SHAPES.sub(MASK, text))
