"""What a server says of its tools → definitions that are safe to show, to compare and to offer a model. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from glassloop.core.entries import JSON
from glassloop.core.tools import Effect
from glassloop.tools.cleaning import cleaned, hides
from glassloop.tools.inlining import plain
from glassloop.wire.names import alphanumerics

MOST_TOOLS = 500
"""Tools of one server that are looked at. Far fewer are of use to any model."""

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 8_000
_LARGEST_SCHEMA = 100_000
_LARGEST_DEFINITION = 200_000
_LARGEST_LISTING = 5_000_000
_DEEPEST_SCHEMA = 60
_LONGEST_WORDS = 4_000
_ANYTHING: Mapping[str, JSON] = {"type": "object", "properties": {}, "additionalProperties": True}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_SERVER = 30
_PLAIN_SERVER = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
"""No `_` at its ends and no two together: `__` is what parts a server's name from its tool's."""
_PROSE = ("description", "title", "$comment")


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool as its server defines it. `name`, `description` and `schema` are the server's own, unchanged."""

    name: str
    description: str = ""
    schema: Mapping[str, JSON] = field(default_factory=dict)
    annotations: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All of it as text, the same for the same definition: what is hashed, and what a diff is made of."""
        facts = {
            "description": self.description.splitlines(),
            "schema": self.schema,
            "annotations": self.annotations,
        }
        return json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False)

    @property
    def hash(self) -> str:
        """Of the whole definition: any change of it is another hash."""
        return hashlib.sha256(f"{self.name}\n{self.text}".encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def effect(self) -> Effect:
        """What its annotations claim. To be believed of a trusted server alone."""
        if self.annotations.get("readOnlyHint") is True:
            return "read"
        return "idempotent" if self.annotations.get("idempotentHint") is True else "once"

    @property
    def hides_words(self) -> bool:
        """Whether something in it cannot be seen when it is read: a sign of words that are not meant for people."""
        return any(map(hides, (self.name, self.description, *_strings(self.schema))))


def definitions_from(listed: Iterable[Any]) -> tuple[tuple[Definition, ...], tuple[str, ...]]:
    """The definitions in a listing, and what was left out and why. A name that comes twice counts once.

    What is larger than any tool needs is left out here, since all else is kept and compared.
    """
    found: dict[str, Definition] = {}
    left_out: list[str] = []
    room = _LARGEST_LISTING
    for position, one in enumerate(listed):
        if position >= MOST_TOOLS:
            left_out.append(f"it lists more than {MOST_TOOLS} tools; the rest is left out")
            break
        name = one.get("name") if isinstance(one, Mapping) else None
        if not isinstance(name, str) or not name.strip() or name in found:
            left_out.append(f"tool {position + 1} has no name of its own")
            continue
        if _only_as_task(one):
            left_out.append(f"the tool {cleaned(name)[:100]!r} runs only as a task, which is not supported")
            continue
        size = _size(one)
        if min(room, _LARGEST_DEFINITION) < size:
            left_out.append(f"the tool {cleaned(name)[:100]!r} is left out: what is said of it is too large")
            continue
        room -= size
        description, annotations = one.get("description"), one.get("annotations")
        found[name] = Definition(
            name,
            description if isinstance(description, str) else "",
            _schema(one.get("inputSchema")),
            annotations if isinstance(annotations, Mapping) else {},
        )
    return tuple(found.values()), tuple(left_out)


def _size(tool: Mapping[str, Any]) -> int:
    """Characters of what is kept of it."""
    kept = {key: tool.get(key) for key in ("name", "description", "inputSchema", "annotations")}
    try:
        return len(json.dumps(kept, ensure_ascii=False))
    except RecursionError:
        return _LARGEST_LISTING


def _only_as_task(tool: Mapping[str, Any]) -> bool:
    """Whether a plain call of it would be refused (`taskSupport` of the protocol of November 2025)."""
    execution = tool.get("execution")
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


def _schema(schema: Any) -> Mapping[str, JSON]:
    """An input schema; a server that gives none, or `true`, takes any object."""
    return schema if isinstance(schema, Mapping) else {}


# ── what the model is given ──────────────────────────────────────────────────────────────────────────


def offered(definition: Definition, server: str) -> tuple[str, dict[str, JSON]]:
    """The description and the parameters for a model, who sees no more of them than a person does.

    A schema that is none is told in words instead. Raises `ValueError` saying why the tool cannot be offered.
    """
    schema = definition.schema
    if _depth(schema) > _DEEPEST_SCHEMA or len(json.dumps(schema)) > _LARGEST_SCHEMA:
        raise ValueError("its schema is too large")
    words = _described(definition, server)
    try:
        made = _cleaned(plain(_without_nulls({**schema, "type": "object"})))
    except (ValueError, TypeError, AttributeError, RecursionError):  # the last by references to references
        said = cleaned(json.dumps(schema, ensure_ascii=False))[:_LONGEST_WORDS]
        return f"{words}\n\nIts arguments, as its server writes them: {said}", dict(_ANYTHING)
    if any(map(hides, _strings(made))):
        raise ValueError("its schema has invisible characters in a name or a value")
    return words, made if "properties" in schema else {**_ANYTHING, **made}


def _described(definition: Definition, server: str) -> str:
    """The description as a model is given it: what it can see is what a person can see."""
    text = cleaned(definition.description).strip()[:_LONGEST_DESCRIPTION]
    return text or f"The tool {cleaned(definition.name)[:100]} of the MCP server {cleaned(server)[:100]}."


def _depth(node: Any) -> int:
    deepest, level = 0, [node]
    while level and deepest <= _DEEPEST_SCHEMA:
        deepest += 1
        inner = (each for one in level for each in (one.values() if isinstance(one, Mapping) else one))
        level = [one for one in inner if isinstance(one, (Mapping, list))]
    return deepest


def _strings(node: Any) -> list[str]:
    """All texts in it: names, values and prose."""
    found: list[str] = []
    left = [node]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            left += [*map(str, one), *one.values()]
        elif isinstance(one, list):
            left += one
    return found


def _without_nulls(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`"properties": null` and `"required": null` mean that there are none."""
    return {key: value for key, value in schema.items() if value is not None}


def _cleaned(node: Any) -> Any:
    """The schema with its prose cleaned. Names and values stay: changed, they would mean something else."""
    if isinstance(node, list):
        return [_cleaned(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: cleaned(value) if key in _PROSE and isinstance(value, str) else _cleaned(value)
        for key, value in node.items()
    }


# ── names ────────────────────────────────────────────────────────────────────────────────────────────


def wire_names(tools: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A name for each (server, tool) that every endpoint takes: `server__tool`, and no two alike.

    Where that would be too long, has other characters, or is another's too, letters that stand for the pair alone
    are added; a pair's name does not depend on the order. No server's names begin like another's, so that a rule
    such as `github__*` means one server.
    """
    simple = {pair: f"{_of_server(pair[0])}__{_UNSAFE.sub('_', pair[1])}" for pair in tools}
    count = Counter(name.casefold() for name in simple.values())
    made = {}
    for pair, name in simple.items():
        alone = count[name.casefold()] == 1
        if alone and name == f"{pair[0]}__{pair[1]}" and len(name) <= _LONGEST_NAME:
            made[pair] = name
        else:
            made[pair] = f"{name[: _LONGEST_NAME - 9]}_{alphanumerics(json.dumps(pair), 8)}"
    return made


def _of_server(name: str) -> str:
    """What its tools' names begin with: the server's own name, or one with letters that stand for it alone."""
    if _PLAIN_SERVER.fullmatch(name) and len(name) <= _LONGEST_SERVER:
        return name
    plain = re.sub("_+", "_", _UNSAFE.sub("_", name)).strip("_") or "server"
    return f"{plain[:_LONGEST_SERVER]}-{alphanumerics(name, 6)}"
