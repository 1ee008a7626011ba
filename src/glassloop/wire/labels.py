"""Tool names and call ids in the spelling an endpoint takes. Names and ids that *arrive* are read by `wire/names`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from glassloop.wire.names import ID_LENGTH, alphanumerics

_NAMES = {
    "plain": (re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"[^A-Za-z0-9_-]+"), 64),
    "strict": (re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}"), re.compile(r"[^A-Za-z0-9_]+"), 48),
}
_IDS = {
    "any": re.compile(r"[!-{}~]{1,512}"),  # visible ASCII without "|", which joins two ids in one
    "safe": re.compile(r"[A-Za-z0-9_-]{1,40}"),
    "nine": re.compile(r"[A-Za-z0-9]{9}"),
}


@lru_cache(maxsize=4096)
def wire_name(name: str, names: str) -> str:
    """A tool's name as it is sent. A name that is not safe keeps what can be kept, and six characters of its hash.

    It depends on the name alone, so that it is the same in every request.
    """
    safe, unsafe, longest = _NAMES[names]
    if safe.fullmatch(name):
        return name
    kept = unsafe.sub("_", name).strip("_-")
    kept = kept if kept[:1].isalpha() else f"tool_{kept}"
    return f"{kept[: longest - 7].rstrip('_-')}_{alphanumerics(name, 6)}"


def wire_id(call_id: str, ids: str, taken: Iterable[str] = ()) -> str:
    """A call's id as it is sent: itself where the endpoint takes it, else nine alphanumerics made from it."""
    if _IDS[ids].fullmatch(call_id) and call_id not in taken:
        return call_id
    salt = 0
    while (made := alphanumerics(f"{salt}:{call_id}", ID_LENGTH)) in taken:
        salt += 1
    return made
