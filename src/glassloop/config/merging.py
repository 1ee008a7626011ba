"""What all sources say together, setting by setting. A file that came with a folder narrows rights and never widens
them: what it may not say is left out, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from glassloop.config.sources import OWN_FIELDS, RULE_LISTS, Source
from glassloop.core.entries import JSON
from glassloop.core.limits import Limits


def field_of(sources: Sequence[Source], name: str) -> Any:
    return next((source.fields[name] for source in sources if name in source.fields), None)


def merged(sources: Sequence[Source], name: str) -> dict[str, Any]:
    """The tables of all sources together; of two values of a name the stronger source's counts."""
    merged: dict[str, Any] = {}
    for source in reversed(sources):
        merged |= source.fields.get(name, {})
    return merged


def limits(sources: Sequence[Source]) -> Limits:
    """The user's limits, which a project may tighten but not loosen."""
    chosen: dict[str, Any] = {}
    for source in reversed(sources):
        for name, value in source.fields.get("limits", {}).items():
            chosen[name] = value if source.trusted or name not in chosen else min(value, chosen[name])
    return Limits(**chosen)


def rules(sources: Sequence[Source]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Approval rules by what they say. A project may only ask and deny: its rules come on top of the user's."""
    rules: dict[str, tuple[str, ...]] = dict.fromkeys(RULE_LISTS, ())
    warnings = []
    for source in sources:
        for name, said in source.fields.get("approvals", {}).items():
            says, texts = (name, tuple(said)) if name in RULE_LISTS else (said, (name,))
            if source.trusted or says in ("ask", "deny"):
                rules[says] += texts
            else:
                shown = f'approvals.{name} = "allow"' if says == said else f"approvals.{name}"
                warnings.append(f"{source.name}: {shown} is left out; only your own file may allow.")
    return rules, warnings


def files_root(sources: Sequence[Source]) -> tuple[str, list[str]]:
    """The folder that the file tools see. A project may name one inside its own folder, and no other."""
    source = next((source for source in sources if "files_root" in source.fields), None)
    if source is None:
        return ".", []
    root: str = source.fields["files_root"]
    if source.trusted:
        return root, []
    home = Path(source.name).parent.resolve()
    if (home / Path(root).expanduser()).resolve().is_relative_to(home):
        return str(home / root), []
    return ".", [f"{source.name}: files_root = {root!r} is left out: it leads out of the project."]


def mcp_servers(sources: Sequence[Source]) -> tuple[dict[str, Mapping[str, JSON]], list[str]]:
    """The user's MCP servers. A project has a file of its own for them, which must be trusted."""
    said = [source for source in sources if source.fields.get("mcp")]
    return {one.name: one.fields["mcp"].get("servers", {}) for one in said if one.trusted}, [
        f"{one.name}: mcp.servers is left out; a project's servers belong into .mcp.json (glassloop trust)."
        for one in said
        if not one.trusted
    ]


def own(sources: Sequence[Source]) -> dict[str, Any]:
    """The fields that only the user's own file may set, as far as it does."""
    return {
        name: source.fields[name]
        for source in sources
        for name in OWN_FIELDS
        if source.trusted and name in source.fields
    }


def own_warnings(sources: Sequence[Source]) -> list[str]:
    return [
        f"{source.name}: {name} is left out; only your own file may set it."
        for source in sources
        for name in OWN_FIELDS
        if not source.trusted and source.fields.get(name)
    ]


def tools(sources: Sequence[Source]) -> tuple[tuple[str, ...], list[str]]:
    """The strongest list of tools. A project may name ready-made tools, but not have its code run."""
    source = next((source for source in sources if "tools" in source.fields), None)
    if source is None:
        return (), []
    names: Sequence[str] = source.fields["tools"]
    if source.trusted:
        return tuple(names), []
    kept = tuple(name for name in names if name.isidentifier())
    return kept, [
        f"{source.name}: the tool {name!r} is left out: a project may not have code run. To use it: -T {name}"
        for name in names
        if name not in kept
    ]
