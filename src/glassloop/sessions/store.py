"""`Store`: what people do with their sessions: list, search, show, name, fork, go back, answer, export, delete."""

from __future__ import annotations

import secrets as random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from glassloop.core.entries import Entry
from glassloop.core.resolving import Answer
from glassloop.sessions import (
    approvals,
    branch,
    codec,
    doubts,
    jsonl,
    keeping,
    listing,
    markdown,
    page,
    place,
    tree,
    wire_log,
    words,
)
from glassloop.sessions import timeline as timelines
from glassloop.sessions.approvals import Question
from glassloop.sessions.database import opened, transaction
from glassloop.sessions.doubts import Doubt
from glassloop.sessions.listing import SessionInfo
from glassloop.sessions.timeline import Timeline
from glassloop.sessions.tree import Branch
from glassloop.sessions.wire_log import Exchange
from glassloop.sessions.words import Hit


class Store:
    """The sessions of one file (default: `sessions.db` in the user's data folder). Plain calls, no event loop.

    A session is named by its id, the beginning of its id, or its name. Every method raises `SessionError`.
    What a process is writing to can be read, forked and exported, but not moved or deleted.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = Path(path) if path is not None else place.default_path()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with opened(self.path) as connection:
            connection.execute("BEGIN")  # one moment for all that is read in the block
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with opened(self.path) as connection, transaction(connection):
            yield connection

    # ── looking ──────────────────────────────────────────────────────────

    def sessions(
        self, *, folder: str | None = None, label: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """Sessions, the last used first. `folder`: only those that began there."""
        with self._reading() as connection:
            return listing.sessions(connection, folder=folder, label=label, limit=limit)

    def last(self, folder: str | None = None) -> SessionInfo | None:
        """The session that was used last (in a folder), if there is one."""
        return next(iter(self.sessions(folder=folder, limit=1)), None)

    def resolve(self, reference: str) -> str:
        """The id of the session that a person means."""
        with self._reading() as connection:
            return listing.resolve(connection, reference)

    def info(self, session: str) -> SessionInfo:
        """One session, as it stands."""
        with self._reading() as connection:
            return listing.info(connection, listing.resolve(connection, session))

    def unindexed(self) -> int:
        """How many entries the next search has to index first; a second's work is some ten thousand of them."""
        with self._reading() as connection:
            return words.unindexed(connection)

    def search(self, query: str, limit: int = 20) -> list[Hit]:
        """The best entries of all sessions that hold every word of the query."""
        with opened(self.path) as connection:
            going_on = True
            while going_on:
                with transaction(connection):
                    going_on = words.index_some(connection)
            return words.search(connection, query, limit)

    def timeline(self, session: str) -> Timeline:
        """All that happened on the session's branch."""
        with self._reading() as connection:
            return timelines.timeline(connection, listing.resolve(connection, session))

    def entries(self, session: str) -> tuple[Entry, ...]:
        """The conversation on the session's branch."""
        with self._reading() as connection:
            head = listing.info(connection, listing.resolve(connection, session)).head
            return branch.said(connection, branch.path(connection, head))

    def exchanges(self, session: str) -> list[Exchange]:
        """What went over the wire in the runs of the session's branch, in order."""
        with self._reading() as connection:
            head = listing.info(connection, listing.resolve(connection, session)).head
            run_ids = dict.fromkeys(row.run_id for row in branch.path(connection, head))
            return [one for run_id in run_ids for one in wire_log.exchanges(connection, run_id)]

    def command(self, session: str) -> str:
        """What was noted with the last run of the session's branch (`SqliteJournal.command`), "" if nothing was."""
        with self._reading() as connection:
            head = listing.info(connection, listing.resolve(connection, session)).head
            return branch.command(connection, head)

    # ── giving away ──────────────────────────────────────────────────────

    def export_jsonl(self, session: str, secrets: Iterable[str] = (), *, wire: bool = False) -> str:
        """The session's branch as JSON lines, with what went over the wire if `wire`. `import_jsonl` reads it."""
        with self._reading() as connection:
            session_id = listing.resolve(connection, session)
            return "".join(
                f"{line}\n" for line in jsonl.lines(connection, session_id, tuple(secrets), wire=wire)
            )

    def export_markdown(self, session: str, secrets: Iterable[str] = ()) -> str:
        """The session's branch as a document."""
        return codec.cleaned(markdown.render(self.timeline(session)), tuple(secrets))

    def export_html(self, session: str, secrets: Iterable[str] = ()) -> str:
        """The session's branch as one page that needs nothing else."""
        return codec.cleaned(page.render(self.timeline(session)), tuple(secrets))

    def import_jsonl(self, lines: Iterable[str], secrets: Iterable[str] = ()) -> str:
        """Make a session of exported lines; all of it, or nothing. Gives its id."""
        with self._writing() as connection:
            return jsonl.read_back(connection, lines, tuple(secrets))

    # ── names ────────────────────────────────────────────────────────────

    def rename(self, session: str, name: str) -> None:
        """Give a session a name of its own; an empty one takes it away."""
        with self._writing() as connection:
            keeping.rename(connection, listing.resolve(connection, session), name)

    def set_labels(self, session: str, labels: Iterable[str]) -> None:
        """Make these the session's labels."""
        with self._writing() as connection:
            keeping.set_labels(connection, listing.resolve(connection, session), labels)

    # ── branches ─────────────────────────────────────────────────────────

    def fork(self, session: str, at: int | None = None, new_id: str | None = None) -> str:
        """A new session that shares what was said up to entry `at` (default: all). Gives its id."""
        wanted = new_id or random.token_hex(6)
        with self._writing() as connection:
            tree.fork(connection, listing.resolve(connection, session), wanted, at)
        return wanted

    def undo(self, session: str, turns: int = 1) -> str:
        """Go back to before the last task, or the last `turns` of them. Gives the text of that task."""
        with self._writing() as connection:
            return tree.undo(connection, listing.resolve(connection, session), turns)

    def rewind(self, session: str, to: int) -> int | None:
        """Go on from entry `to` of the session's tree. Gives the entry after which it really goes on."""
        with self._writing() as connection:
            return tree.rewind(connection, listing.resolve(connection, session), to)

    def branches(self, session: str) -> list[Branch]:
        """The tips of the session's tree."""
        with self._reading() as connection:
            return tree.branches(connection, listing.resolve(connection, session))

    # ── questions ────────────────────────────────────────────────────────

    def questions(self) -> list[Question]:
        """Calls of suspended or interrupted runs that wait for a person's word."""
        with self._reading() as connection:
            return approvals.waiting(connection)

    def answer(self, question: Question, *, allowed: bool, by: str, reason: str = "") -> None:
        """Decide about one. It is used when the session is opened the next time."""
        with self._writing() as connection:
            approvals.answer(connection, question, allowed=allowed, by=by, reason=reason)

    # ── calls in doubt ───────────────────────────────────────────────────

    def doubts(self) -> list[Doubt]:
        """Calls of runs that nobody runs, started before a crash, of which nobody knows whether they took effect."""
        with self._reading() as connection:
            return doubts.waiting(connection)

    def resolve_doubt(self, doubt: Doubt, answer: Answer, secrets: Iterable[str] = ()) -> None:
        """Say what became of one. It is heeded when the session is opened the next time. `by` must be said."""
        with self._writing() as connection:
            doubts.resolve(connection, doubt, answer, tuple(secrets))

    # ── the end ──────────────────────────────────────────────────────────

    def delete(self, session: str) -> None:
        """Delete a session, save what forks of it still share."""
        with self._writing() as connection:
            keeping.delete(connection, listing.resolve(connection, session))

    def prune(self, *, before_ms: int, keep: int = 0, dry_run: bool = False) -> list[SessionInfo]:
        """Delete sessions last used before a moment, save the last `keep`, named, labelled and open ones."""
        with self._writing() as connection:
            return keeping.prune(connection, before_ms=before_ms, keep=keep, dry_run=dry_run)
