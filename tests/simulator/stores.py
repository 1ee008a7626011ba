"""Where simulated processes keep their journal: a fake disk, or the real one in a file. Both can be crashed."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from glassloop.core.entries import ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.core.journal import SUSPENDED, Intent, Opened, entries_of
from glassloop.core.tools import Verdict
from glassloop.sessions import owner as owners
from glassloop.sessions.journal import SqliteJournal


@dataclass
class Disk:
    """One session as it survives its processes: fenced by `epoch`, like the real one."""

    epoch: int = 0
    owner: object = None
    open_run: str | None = None
    runs: dict = field(default_factory=dict)
    intents: dict = field(default_factory=dict)
    ends: dict = field(default_factory=dict)

    def journal(self, process, *, take_over):
        return DiskJournal(self, process, take_over)

    @property
    def last_end(self):
        """Why the run that ended last stopped, if it is over."""
        end = next(reversed(self.ends.values()), None)
        return None if end is None or end.stop_reason in SUSPENDED else end.stop_reason

    def all_records(self):
        return {run: list(records) for run, records in self.runs.items()}

    def all_intents(self):
        return [one for intents in self.intents.values() for one in intents.values()]


class DiskJournal:
    """What is not urgent waits in the process's memory, and dies with it."""

    def __init__(self, disk, process, take_over):
        self._disk, self._process, self._take_over = disk, process, take_over
        self._queue, self._epoch = [], 0

    async def open(self, start):
        disk = self._disk
        if disk.owner is not None and disk.owner.alive and not self._take_over:
            raise SessionError(f"in use by {disk.owner.name}", "in_use")
        disk.owner, disk.epoch = self._process, disk.epoch + 1
        self._epoch = disk.epoch
        disk.open_run = run_id = disk.open_run or start.run_id
        records = disk.runs.setdefault(run_id, [])
        answered = {one.seq for one in records if isinstance(one.value, ToolResult)}
        pending = [one for seq, one in disk.intents.setdefault(run_id, {}).items() if seq not in answered]
        history = [entry for run in disk.runs if run != run_id for entry in entries_of(disk.runs[run])]
        return Opened(run_id, tuple(history), tuple(records), tuple(pending))

    async def commit(self, run_id, records):
        self._queue.append(lambda: self._add(run_id, records))
        if any(isinstance(one.value, (User, ToolResult)) for one in records):
            self.flush()

    async def decide(self, run_id, records):
        self._queue.append(lambda: self._add(run_id, records))
        self.flush()

    async def intend(self, run_id, intents):
        def write():
            for one in intents:
                known = self._disk.intents[run_id].get(one.seq)
                assert one.attempt == (known.attempt + 1 if known else 1)
                self._disk.intents[run_id][one.seq] = one

        self._queue.append(write)
        self.flush()

    async def finish(self, end):
        def write():
            self._disk.ends[end.run_id] = end
            self._disk.owner = None
            self._disk.open_run = end.run_id if end.stop_reason in SUSPENDED else None

        self._queue.append(write)
        self.flush()

    def flush(self):
        """All that is queued, at once, if the session is still ours."""
        if self._disk.epoch != self._epoch:
            raise SessionError("taken over: nothing more is written", "taken_over")
        queue, self._queue = self._queue, []
        for write in queue:
            write()

    def abandon(self):
        """The process is no more; what it had not written is lost."""

    def _add(self, run_id, records):
        there = {_place(one) for one in self._disk.runs[run_id]}
        new = [one for one in records if _place(one) not in there]
        self._disk.runs[run_id] += [_without_objects(one) for one in new]


def _place(record):
    """Where only one thing can stand."""
    return record.seq, type(record.value), getattr(record.value, "attempt", 0)


def _without_objects(record):
    """A disk keeps no Python values."""
    if isinstance(record.value, Verdict):
        return replace(record, value=replace(record.value, bound=None))
    return record


@dataclass
class File:
    """The same in a real file, through the real journal."""

    path: object

    def journal(self, process, *, take_over):
        return FileJournal(self.path, take_over=take_over)

    @property
    def open_run(self):
        return self._one("SELECT open_run FROM session")

    @property
    def last_end(self):
        return self._one(
            "SELECT stop_reason FROM run WHERE status IN ('done', 'failed', 'cancelled') ORDER BY ended_ms DESC"
        )

    def all_records(self):
        with self._connected() as connection:
            runs = [run for (run,) in connection.execute("SELECT run_id FROM run ORDER BY started_ms, rowid")]
            return {run: _records(connection, run) for run in runs}

    def all_intents(self):
        from glassloop.sessions.branch import blob_reader
        from glassloop.sessions.codec import decode

        with self._connected() as connection:
            rows = connection.execute(
                "SELECT seq, body, key, attempt FROM entry WHERE attempt > 0"
            ).fetchall()
            verdicts = [decode("verdict", body, blob_reader(connection)) for _, body, _, _ in rows]
        return [
            Intent(seq, one.call, one.arguments, one.effect, key, attempt)
            for (seq, _, key, attempt), one in zip(rows, verdicts, strict=True)
        ]

    def _one(self, query):
        with self._connected() as connection:
            row = connection.execute(query).fetchone()
            return row[0] if row else None

    def _connected(self):
        from glassloop.sessions.database import opened

        return opened(self.path)


def _records(connection, run):
    from glassloop.sessions import branch

    rows = connection.execute(
        "SELECT entry_id, parent_id, run_id, seq, type, body, masked, seconds, cost, at_ms FROM entry "
        "WHERE run_id = ? ORDER BY entry_id",
        (run,),
    )
    return [one.record for one in branch.read(connection, map(branch.Row._make, rows.fetchall()))]


class FileJournal(SqliteJournal):
    """Abandoned, it stands as if its process had died: whoever looks finds nobody."""

    def abandon(self):
        for claim in self._claims.values():
            owners.release(claim.claimed.owner)

    def flush(self):
        """The real one writes what is queued when it likes."""
