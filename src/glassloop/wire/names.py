"""The tool-name ladder and call ids: a name as a model wrote it → a tool that exists; ids that are unique.

Only spelling is undone here (wrappers, tokens, case). A name that resembles a tool is not that tool:
guessing has routed invented names to real, different tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Sequence
from hashlib import sha256

from msgspec.structs import replace

from glassloop.core.entries import Mend, ToolCall

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 9
"""The strictest endpoint (Mistral) takes exactly nine letters and digits."""

_LONGEST_NAME = 300
"""Names may have 64 characters; anything far beyond that is text in the wrong place and is left alone."""


def resolve_name(raw: str, known: Collection[str]) -> tuple[str, Mend | None]:
    """The known tool that `raw` spells, with a mend if it was misspelt; else `raw` unchanged."""
    if raw in known or len(raw) > _LONGEST_NAME:
        return raw, None
    for candidate in _respellings(raw):
        if candidate in known:
            return candidate, _renamed(raw, candidate)
    variants = [name for name in known if _folded(name) in {_folded(text) for text in _respellings(raw)}]
    if len(variants) == 1:
        return variants[0], _renamed(raw, variants[0])
    return raw, None


def _renamed(raw: str, name: str) -> Mend:
    return Mend("tool_name", f"the tool name {raw!r} was read as {name!r}")


_STEPS: tuple[Callable[[str], str], ...] = (
    str.strip,
    lambda name: re.sub("[\u200b-\u200f\u2060\ufeff]", "", name).strip(),  # what has no width
    # Control tokens before the name, then everything from the first one after it.
    lambda name: re.sub(r"^(?:\s*(?:<[|｜][^<>]*[|｜]>|\[[A-Z_]+\]))+\s*", "", name),
    lambda name: re.split(r"<[|｜]|[|｜]>|<\||\[ARGS\]|</", name, maxsplit=1)[0].strip(),
    lambda name: re.sub(r"^<(?:function|invoke|tool)(?:=| name=)([^<>]+)>?$", r"\1", name),
    lambda name: name.strip(" \t\r\n\"'`"),
    lambda name: re.sub(r"^(?:assistant\s+)?(?:commentary\s+)?to=", "", name),
    lambda name: re.sub(r"^(?:function|tool|call|name)(?:_name)?\s*[=:]\s*", "", name, flags=re.IGNORECASE),
    lambda name: re.sub(r"(?:\(\s*\)|:)$", "", name),
    lambda name: re.sub(r":\d+$", "", name),
    lambda name: re.sub(
        r"^(?:(?:functions?|tools?|tool_calls?|default_api|api|multi_tool_use)(?:\.|::?|/))+", "", name
    ),
    lambda name: re.split(r"\s", name, maxsplit=1)[0],
    lambda name: re.sub(r"(?<=.)json$", "", name),
)


def _respellings(raw: str) -> list[str]:
    """The name after each step of undoing, and the unit of a name that is one word repeated."""
    spellings: list[str] = []
    name = raw
    for step in _STEPS:
        name = step(name)
        if name and name not in spellings:
            spellings.append(name)
    return spellings + [unit for unit in map(_repeated_unit, spellings) if unit]


def _repeated_unit(name: str) -> str:
    """`ab` of `abab`: a name that every delta sent again in full. "" if nothing repeats."""
    start = (name + name).find(name, 1)
    return name[:start] if start < len(name) else ""


def _folded(name: str) -> str:
    return re.sub(r"[\s._\-]", "", name).casefold()


def mint_id(ordinal: int, index: int, used: Container[str]) -> str:
    """An id for the call at `index` of the entry with this ordinal: the same each time, and not among `used`."""
    attempt = 0
    while True:
        minted = alphanumerics(f"{ordinal}:{index}:{attempt}", ID_LENGTH)
        if minted not in used:
            return minted
        attempt += 1


def alphanumerics(seed: str, length: int) -> str:
    """Letters and digits (ten at most) that stand for a text: the same each time, and hardly ever another's."""
    number = int.from_bytes(sha256(seed.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    characters = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[digit])
    return "".join(characters)


def with_unique_ids(calls: Sequence[ToolCall], ordinal: int, used: Container[str]) -> tuple[ToolCall, ...]:
    """The calls with every missing, blank or already used id replaced by a minted one; good ids stay verbatim."""
    seen: set[str] = set()
    others: set[str] = set()  # needed only if an id is to be minted
    result = []
    for index, call in enumerate(calls):
        if not call.id.strip() or call.id in used or call.id in seen:
            others = others or {each.id for each in calls}
            call = replace(call, id=mint_id(ordinal, index, _AnyOf(used, seen, others)))
        seen.add(call.id)
        result.append(call)
    return tuple(result)


class _AnyOf:
    """Membership in one of several containers."""

    def __init__(self, *containers: Container[str]) -> None:
        self._containers = containers

    def __contains__(self, item: object) -> bool:
        return any(item in container for container in self._containers)
