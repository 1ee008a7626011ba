"""How a run was set up, as JSON text without its secrets, and back: its agent beside the run, its endpoints beside the
exchanges.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from glassloop.core.entries import JSON, Entry
from glassloop.core.errors import ConfigError, SessionError
from glassloop.core.limits import Limits
from glassloop.core.setup import AgentSetup, EndpointSetup
from glassloop.core.tools import ToolSpec
from glassloop.core.window import Window
from glassloop.sessions import codec, masking

_BAD = (KeyError, TypeError, ValueError, AttributeError, RecursionError, ConfigError)


def endpoint_text(endpoint: EndpointSetup, secrets: tuple[str, ...]) -> str:
    """An endpoint, as it is stored."""
    found = endpoint.to_json()
    found["base_url"] = masking.address(endpoint.base_url, secrets)
    return codec.cleaned(_text(found), secrets)


def checked_endpoint_text(value: JSON, secrets: tuple[str, ...]) -> str:
    """An endpoint that somebody else wrote down, as it is stored. Raises ValueError for what is none."""
    return endpoint_text(EndpointSetup.from_json(value), secrets)


def agent_text(agent: AgentSetup, secrets: tuple[str, ...]) -> str:
    """An agent, as it is stored. Raises `SessionError` for what no JSON can hold."""
    preface = [codec.encode(entry, secrets, aside=False) for entry in agent.preface]
    said = {
        "preface": [{"type": one.tag, "value": json.loads(one.body)} for one in preface],
        "tools": [{**asdict(spec), "parameters": spec.parameters} for spec in agent.tools],
        "settings": agent.settings,
        "limits": asdict(agent.limits),
        "window": asdict(agent.window),
        "size": agent.size,
        "hint": agent.hint,
    }
    try:
        return codec.cleaned(_text(said), secrets)
    except (TypeError, ValueError, RecursionError) as error:
        raise SessionError(f"the agent's definition cannot be written down: {error}") from error


def checked_agent_text(value: JSON, secrets: tuple[str, ...]) -> str:
    """An agent that somebody else wrote down, as it is stored. Raises `SessionError` for what is none."""
    return agent_text(agent_of(json.dumps(value)), secrets)


def agent_of(text: str) -> AgentSetup:
    """The agent that was stored. Raises `SessionError`."""
    try:
        said = json.loads(text)
        return AgentSetup(
            tuple(_entry(one) for one in said["preface"]),
            tuple(ToolSpec(**one) for one in said["tools"]),
            dict(said["settings"]),
            Limits(**said["limits"]),
            Window(**said["window"]),
            said["size"],
            said["hint"],
        )
    except _BAD as error:
        raise SessionError(f"a run's stored agent is damaged: {error}", "damaged") from error


def store_agent(connection: sqlite3.Connection, run_id: str, text: str) -> None:
    """Beside its run, which it began. One that takes it up and is another stands beside its first exchange."""
    connection.execute("UPDATE run SET setup = ? WHERE run_id = ? AND setup IS NULL", (text, run_id))


def latest_agent(connection: sqlite3.Connection, run_id: str) -> str:
    """The text of the agent that a run was last taken up by, or else began with; "" where that was not kept."""
    (text,) = connection.execute(
        "SELECT coalesce((SELECT agent FROM exchange WHERE run_id = run.run_id AND agent IS NOT NULL "
        "ORDER BY n DESC LIMIT 1), setup, '') FROM run WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    return str(text)


def _entry(one: Mapping[str, Any]) -> Entry:
    def no_blob(digest: str) -> bytes:
        raise SessionError("it refers to a blob", "damaged")

    entry: Entry = codec.decode(str(one["type"]), json.dumps(one["value"]), no_blob)
    return entry


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: object) -> JSON:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
