"""Tool names and call ids in the spelling an endpoint takes. Names and ids that *arrive* are read by `wire/names`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

_NAMES = {
    "plain": (re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"[^A-Za-z0-9_-]+"), 64),
    "strict": (re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}"), re.compile(r"[^A-Za-z0-9_]+"), 48),
}
_IDS = {
    "any": re.compile(r"[!-{}~]{1,512}"),  # visible ASCII without "|", which joins two ids in one
    "safe": re.compile(r"[A-Za-z0-9_-]{1,40}"),
    "nine": re.compile(r"[A-Za-z0-9]{9}"),
}
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


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
    return f"{kept[: longest - 7].rstrip('_-')}_{_digest(name, 6)}"


def wire_id(call_id: str, ids: str, taken: Iterable[str] = ()) -> str:
    """A call's id as it is sent: itself where the endpoint takes it, else nine alphanumerics made from it."""
    if _IDS[ids].fullmatch(call_id) and call_id not in taken:
        return call_id
    salt = 0
    while (made := _digest(f"{salt}:{call_id}", 9)) in taken:
        salt += 1
    return made


def _digest(text: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:12], "big")
    characters = []
    for _ in range(length):
        number, rest = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[rest])
    return "".join(characters)
