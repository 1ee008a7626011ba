"""What a replay needs of a session: each run of its branch with its agent, its records and what went over the wire."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from glassloop.core.entries import Entry, Reply, Summary
from glassloop.core.errors import SessionError
from glassloop.core.heard import heard
from glassloop.core.journal import Cancelled, ModelFailed, Record
from glassloop.core.setup import AgentSetup
from glassloop.sessions import branch, database, listing, setups, wire_log
from glassloop.sessions.wire_log import Exchange

_OLDER = "session {} was recorded by a Glassloop that did not keep how a run was set up: it can be shown, not replayed"
_NO_WIRE = (
    "nothing that went over the wire is kept of session {}: it can be shown, not replayed. "
    "A scripted model sends nothing over a wire, and an export holds it only with --wire"
)
_ENDS = (Reply, Summary, ModelFailed, Cancelled)
"""How a model call ends."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run, as far as the session's branch goes.

    `history` is what was said in the runs before it; `stop_reason` is "" if it did not end on this branch.
    `agent` began it; `askers` are the agents of its exchanges, one for each: another may have taken it up.
    """

    run_id: str
    agent: AgentSetup
    askers: tuple[AgentSetup, ...]
    history: tuple[Entry, ...]
    records: tuple[Record, ...]
    exchanges: tuple[Exchange, ...]
    stop_reason: str
    text: str
    error: str


def recorded_runs(path: Path, session_id: str) -> list[RecordedRun]:
    """The runs of the session's branch, in order. Raises `SessionError` if they cannot be replayed."""
    with database.opened(path) as connection:
        connection.execute("BEGIN")
        head = listing.info(connection, session_id).head
        stored = branch.read(connection, branch.path(connection, head))
        runs: list[RecordedRun] = []
        said: tuple[Entry, ...] = ()
        for run_id, group in groupby(stored, key=lambda one: one.run_id):
            own = list(group)
            setup, reason, text, error = connection.execute(
                "SELECT setup, coalesce(stop_reason, ''), text, coalesce(error, '') FROM run WHERE run_id = ?",
                (run_id,),
            ).fetchone()
            (last,) = connection.execute(
                "SELECT max(entry_id) FROM entry WHERE run_id = ?", (run_id,)
            ).fetchone()
            every = wire_log.exchanges(connection, run_id)
            if setup is None:
                raise SessionError((_OLDER if every else _NO_WIRE).format(session_id))
            records = tuple(one.record for one in own)
            ends = [one.seq for one in records if one.seq >= 1 and isinstance(one.value, _ENDS)]
            exchanges = tuple(heard(every, ends))
            agents = {
                text: setups.agent_of(text or setup) for text in {"", *(one.agent for one in exchanges)}
            }
            askers = tuple(agents[one.agent] for one in exchanges)
            unheard = any(one.after >= max(ends, default=0) for one in every)
            if last > own[-1].entry_id or unheard:
                # A fork or a rewind went on from within it, or it was killed while a model answered.
                reason, text, error = "", "", ""
            runs.append(
                RecordedRun(run_id, agents[""], askers, said, records, exchanges, reason, text, error)
            )
            said = (*said, *branch.conversation(own))
    if not any(run.exchanges for run in runs):
        raise SessionError(_NO_WIRE.format(session_id))
    return runs
