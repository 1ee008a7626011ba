"""The writer under many threads and loops, closed at any moment: nothing is lost, done twice, or out of order."""

import asyncio
import random
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from tests.sessions import kit

from glassloop.core.entries import ToolResult
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.core.tools import Verdict
from glassloop.sessions.database import connect
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.sessions.writer import WriterClosed, writer_for

ROUNDS = 12


async def one_run(journal, name, chance):
    await journal.open(kit.start(name, name))
    for seq in range(1, ROUNDS + 1):
        await journal.commit(name, [Record(2 * seq, kit.answer(str(seq)))])
        made = kit.call(seq)
        waiting = asyncio.create_task(journal.commit(name, [Record(2 * seq + 1, kit.result(made, str(seq)))]))
        if chance.random() < 0.2:
            await asyncio.sleep(0)
            waiting.cancel()
        await asyncio.wait([waiting])
    await journal.finish(RunEnd(name, "answered", ""))


def test_many_loops_write_while_others_close_the_file_and_nothing_is_lost_or_out_of_order(tmp_path):
    path = tmp_path / "s.db"
    names = [[f"run{thread}-{number}" for number in range(3)] for thread in range(4)]
    over = threading.Event()

    def work(mine):
        async def all_of_them():
            journal = SqliteJournal(path)
            await asyncio.gather(*(one_run(journal, name, random.Random(name)) for name in mine))

        asyncio.run(all_of_them())

    def close():
        while not over.is_set():
            time.sleep(0.005)
            writer_for(path).close()

    closing = threading.Thread(target=close)
    working = [threading.Thread(target=work, args=(mine,), daemon=True) for mine in names]
    for thread in (closing, *working):
        thread.start()
    for thread in working:
        thread.join(60)
    over.set()
    closing.join(60)
    assert not any(thread.is_alive() for thread in working)
    store = Store(path)
    for name in (name for mine in names for name in mine):
        said = [(type(one) is ToolResult, one.text) for one in store.entries(name)]
        assert said == [(kind, str(seq)) for seq in range(1, ROUNDS + 1) for kind in (False, True)]


def test_whatever_a_writer_took_before_it_was_closed_is_done_whoever_put_it(tmp_path):
    path = tmp_path / "s.db"
    taken, lock = [], threading.Lock()

    def put(chance):
        for _ in range(60):
            try:
                done = kit.submit(writer_for(path), lambda connection: "done", urgent=chance.random() < 0.5)
            except WriterClosed:
                continue
            with lock:
                taken.append(done)
            if chance.random() < 0.1:
                writer_for(path).close()

    threads = [threading.Thread(target=put, args=(random.Random(seed),)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {done.result(timeout=20) for done in taken} == {"done"}


def test_a_new_writer_does_nothing_before_the_closed_one_has_done_all_that_it_took(tmp_path, monkeypatch):
    path, going_on, order = tmp_path / "s.db", threading.Event(), []

    def slow(path):
        monkeypatch.undo()
        going_on.wait(20)
        return connect(path)

    monkeypatch.setattr("glassloop.sessions.writer.connect", slow)
    first = writer_for(path)
    kit.submit(first, lambda connection: order.append("before"), urgent=True)
    closing = threading.Thread(target=first.close)
    closing.start()
    while first.works:
        time.sleep(0.001)
    second = writer_for(path)
    later = kit.submit(second, lambda connection: order.append("after"), urgent=True)
    threading.Timer(0.1, going_on.set).start()
    later.result(timeout=20)
    closing.join(20)
    assert order == ["before", "after"]


def test_the_thread_does_not_fall_asleep_where_it_was_woken_a_moment_ago(tmp_path):
    """Whoever wakes it loses the processor right after that; what then comes without haste is done all the same."""

    class Slow:
        def __init__(self, ready):
            self._ready = ready
            self.get = ready.get

        def put(self, batch):
            self._ready.put(batch)
            time.sleep(0.2)

    writer = writer_for(tmp_path / "s.db")
    inbox = writer._inbox
    kit.submit(writer, lambda connection: None, urgent=True).result(10)
    while not inbox._asleep:
        time.sleep(0.01)
    inbox._ready = Slow(inbox._ready)
    kit.submit(writer, lambda connection: None, urgent=True).result(10)
    kit.submit(writer, lambda connection: None, urgent=False).result(10)
    writer.close()


def test_a_lock_that_is_held_too_long_is_waited_for_once(tmp_path):
    tried = []

    def fails(connection):
        tried.append("one")
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorname = "SQLITE_BUSY"
        raise error

    writer = writer_for(tmp_path / "s.db")
    kit.submit(writer, lambda connection: None, urgent=True).result(10)
    with writer._inbox._lock:
        told = [kit.submit(writer, fails, urgent=False) for _ in range(9)]
        told.append(kit.submit(writer, fails, urgent=True))
    for one in told:
        with pytest.raises(SessionError, match="writing to it for too long"):
            one.result(10)
    assert len(tried) == 1
    assert kit.submit(writer, lambda connection: 1, urgent=True).result(10) == 1
    writer.close()


# ── who writes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def quick(monkeypatch):
    """Every disk is quick enough for an event loop to write, also this machine's on a bad day."""
    monkeypatch.setattr("glassloop.sessions.writer.QUICK_SECONDS", 1e9)


def watched(journal, seen):
    """Note the thread of each COMMIT from now on."""

    def note(statement):
        if statement == "COMMIT":
            seen.append(threading.current_thread())

    journal._submit(lambda connection: connection.set_trace_callback(note)).result(10)


async def rounds(journal, run, first, last, text="sunny"):
    for number in range(first, last):
        made = kit.call(number)
        await journal.commit(run, [Record(3 * number, kit.calling(made))])
        await journal.commit(run, [Record(3 * number + 1, Verdict(made, "ready", made.arguments))])
        await journal.intend(run, [kit.intent(3 * number + 1, made)])
        await journal.commit(run, [Record(3 * number + 1, kit.result(made, text))])


def test_a_run_that_is_alone_is_written_by_its_own_event_loop(tmp_path, quick):
    journal, seen = SqliteJournal(tmp_path / "s.db"), []

    async def work():
        await journal.open(kit.start())
        watched(journal, seen)
        await rounds(journal, "run1", 1, 6)

    asyncio.run(work())
    journal.close()
    # The first COMMIT is that of the watching itself, the second comes after work of somebody else.
    assert [thread is threading.main_thread() for thread in seen] == [False, False] + 9 * [True]
    assert len(Store(journal.path).entries("session1")) == 10


def test_runs_that_take_turns_share_the_thread(tmp_path, quick):
    journal, seen = SqliteJournal(tmp_path / "s.db"), []

    async def work():
        for name in ("a", "b"):
            await journal.open(kit.start(name, name))
        watched(journal, seen)
        for number in range(5):
            for name in ("a", "b"):
                await journal.commit(name, [Record(number + 1, kit.result(kit.call(number), "ok"))])

    asyncio.run(work())
    assert not any(thread is threading.main_thread() for thread in seen)
    assert len(seen) > 2


def test_what_is_large_is_left_to_the_thread(tmp_path, quick):
    journal, seen = SqliteJournal(tmp_path / "s.db"), []

    async def work():
        await journal.open(kit.start())
        await rounds(journal, "run1", 1, 2)
        watched(journal, seen)
        await rounds(journal, "run1", 2, 3)
        for number, text in enumerate(["x" * 100_000, "small"]):
            await journal.commit("run1", [Record(20 + number, kit.result(kit.call(number + 9), text))])

    asyncio.run(work())
    assert [thread is threading.main_thread() for thread in seen] == [False, False, True, False, True]


def test_an_event_loop_never_waits_for_another_process_that_writes(tmp_path, quick):
    """The lock is let go by the event loop itself: were it to wait for it, it would wait until it gives up."""
    path = tmp_path / "s.db"
    journal = SqliteJournal(path)

    async def work():
        await journal.open(kit.start())
        await rounds(journal, "run1", 1, 3)
        other = sqlite3.connect(path, isolation_level=None)
        for number in range(3, 8):
            other.execute("BEGIN IMMEDIATE")
            asyncio.get_running_loop().call_later(0.05, other.execute, "ROLLBACK")
            await rounds(journal, "run1", number, number + 1, f"text {number}")
        other.close()

    asyncio.run(work())
    journal.close()
    texts = [one.text for one in Store(path).entries("session1") if isinstance(one, ToolResult)]
    assert texts == ["sunny", "sunny", *(f"text {number}" for number in range(3, 8))]


def test_what_cannot_be_written_ends_a_run_that_writes_by_itself_too(tmp_path, quick):
    journal = SqliteJournal(tmp_path / "s.db")

    async def work():
        await journal.open(kit.start())
        await rounds(journal, "run1", 1, 3)
        await journal.commit("run1", [Record(9, kit.answer("first"))])
        await journal.commit("run1", [Record(9, kit.answer("again"))])
        for _ in range(2):
            with pytest.raises(SessionError, match="two cannot stand there"):
                await journal.commit("run1", [Record(10, kit.result(kit.call(10), "never"))])

    asyncio.run(work())
    journal.close()
    assert [one.text for one in Store(journal.path).entries("session1")][-1] == "first"


def test_what_was_rolled_back_is_no_parent_of_what_follows(tmp_path, quick):
    """Another's step fails in the same transaction: ours is written again, after what really stands."""
    journal = SqliteJournal(tmp_path / "s.db")

    def fails(connection):
        raise SessionError("no")

    async def work():
        await journal.open(kit.start())
        await rounds(journal, "run1", 1, 3)
        with journal._writer._inbox._lock:
            await journal.commit("run1", [Record(9, kit.answer("said"))])
            journal._submit(fails, urgent=False)
            waiting = asyncio.ensure_future(
                journal.commit("run1", [Record(10, kit.result(kit.call(10), "done"))])
            )
            await asyncio.sleep(0)
        await waiting

    asyncio.run(work())
    journal.close()
    assert [one.text for one in Store(journal.path).entries("session1")][-2:] == ["said", "done"]
    with closing(sqlite3.connect(journal.path)) as connection:
        rows = connection.execute("SELECT entry_id, parent_id FROM entry ORDER BY entry_id").fetchall()
    assert [parent for _, parent in rows] == [None, *(entry for entry, _ in rows[:-1])]


class Interrupted:
    """A connection whose user presses Ctrl-C right after a statement has been executed, once."""

    def __init__(self, connection, statement):
        self._connection = connection
        self._statement = statement

    def execute(self, sql, *values):
        done = self._connection.execute(sql, *values)
        if sql == self._statement:
            self._statement = None
            raise KeyboardInterrupt
        return done

    def __getattr__(self, name):
        return getattr(self._connection, name)


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT"])
@pytest.mark.parametrize("which", ["reply and intent", "result"])
def test_a_ctrl_c_in_the_middle_of_a_write_loses_nothing_and_writes_nothing_twice(
    tmp_path, quick, statement, which
):
    journal = SqliteJournal(tmp_path / "s.db")
    made = kit.call(9)

    async def work():
        await journal.open(kit.start())
        await rounds(journal, "run1", 1, 3)
        await journal.commit("run1", [Record(9, kit.calling(made))])
        await journal.commit("run1", [Record(10, Verdict(made, "ready", made.arguments))])
        file = journal._writer._file
        if which == "result":
            await journal.intend("run1", [kit.intent(10, made)])
        file._connection = Interrupted(file._connection, statement)
        result = [Record(10, kit.result(made, "had"))]
        writing = (
            journal.commit("run1", result)
            if which == "result"
            else journal.intend("run1", [kit.intent(10, made)])
        )
        with pytest.raises(KeyboardInterrupt):
            await writing
        if which != "result":
            await journal.commit("run1", result)
        await journal.commit("run1", [Record(11, kit.answer("It is over."))])
        await journal.finish(RunEnd("run1", "answered", "It is over."))

    asyncio.run(work())
    journal.close()
    store = Store(journal.path)
    assert [one.text for one in store.entries("session1")][-2:] == ["had", "It is over."]
    with closing(sqlite3.connect(journal.path)) as connection:
        rows = connection.execute("SELECT entry_id, parent_id FROM entry ORDER BY entry_id").fetchall()
        (head,) = connection.execute("SELECT head FROM session").fetchone()
    assert [parent for _, parent in rows] == [None, *(entry for entry, _ in rows[:-1])]
    assert head == rows[-1][0]


@pytest.mark.parametrize("also", ["nothing", "something queued", "a failure"])
def test_a_journal_that_is_closed_in_the_middle_of_its_own_write_writes_it_and_what_follows(
    tmp_path, quick, also
):
    """By a signal's handler, or by whatever the garbage collector finds."""
    journal = SqliteJournal(tmp_path / "s.db")

    class Closing(Interrupted):
        def execute(self, sql, *values):
            if sql == self._statement:
                self._statement = None
                if also == "something queued":
                    journal._submit(lambda connection: None, urgent=False)
                journal._writer.close()
                if also == "a failure":
                    raise sqlite3.OperationalError("disk I/O error")
            return self._connection.execute(sql, *values)

    async def work():
        await journal.open(kit.start())
        await rounds(journal, "run1", 1, 3)
        file = journal._writer._file
        file._connection = Closing(file._connection, "COMMIT")
        async with asyncio.timeout(20):
            await journal.commit("run1", [Record(9, kit.result(kit.call(9), "had"))])
            await rounds(journal, "run1", 4, 6)

    asyncio.run(work())
    journal.close()
    assert [one.text for one in Store(journal.path).entries("session1") if isinstance(one, ToolResult)] == [
        "sunny",
        "sunny",
        "had",
        "sunny",
        "sunny",
    ]


def test_a_round_adds_few_pages_to_the_log(tmp_path, quick):
    """Each page that a commit touches is written, synced, and later copied: five and a half a round, new ones included.

    Each run has another id, as in life: what is put in the middle of a tree costs more than what is put at its end.
    """
    path = tmp_path / "s.db"
    journal = SqliteJournal(path)
    log, page = path.with_name("s.db-wal"), 4096 + 24

    async def work():
        sizes = []
        for number in (5, 9, 2, 7, 4, 6):
            await journal.open(kit.start(f"{number}run", f"{number}session"))
            before = log.stat().st_size
            await rounds(journal, f"{number}run", 1, 21)
            sizes.append((log.stat().st_size - before) / page / 20)
            await journal.finish(RunEnd(f"{number}run", "answered", "ok"))
        return sizes

    assert max(asyncio.run(work())) < 6
