"""Sessions and other processes: killed, paused, racing. Real ones, one file."""

import asyncio
import os
import random
import signal
import sqlite3
from contextlib import closing, suppress

import pytest
from tests.sessions import kit

from glassloop.core.entries import ToolResult
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store

# Writes rounds for ever, and says each thing once it is acknowledged.
WRITER = """
import asyncio, sys
from pathlib import Path
from glassloop.core.journal import Record
from glassloop.core.tools import Verdict
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    opened = await journal.open(kit.start("run1"))
    print("open", flush=True)
    await journal.commit("run1", [Record(1, kit.task())])
    for number in range(1, 10_000):
        made = kit.call(number)
        verdict = Verdict(made, "ready", made.arguments)
        await journal.commit("run1", [Record(2 * number, kit.calling(made)), Record(2 * number + 1, verdict)])
        await journal.intend("run1", [kit.intent(2 * number + 1, made)])
        print("intent", 2 * number + 1, flush=True)
        await journal.commit("run1", [Record(2 * number + 1, kit.result(made))])
        print("result", 2 * number + 1, flush=True)

asyncio.run(main())
"""

# Waits for the word, then tries to open, and holds what it got until its input ends.
OPENER = """
import asyncio, sys
from pathlib import Path
from glassloop.core.errors import SessionError
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    for line in sys.stdin:
        session = line.strip()
        try:
            await journal.open(kit.start(f"{session}-{sys.argv[2]}", session))
            print("mine", flush=True)
        except SessionError as error:
            print("in use" if "is in use by process" in str(error) else error, flush=True)

asyncio.run(main())
"""


def resumed(path):
    return asyncio.run(SqliteJournal(path).open(kit.start("other")))


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(6, 200))]
)
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path, seed):
    path = tmp_path / "s.db"
    child = kit.program(WRITER, path)
    wanted = random.Random(seed).randint(1, 60)
    acknowledged = [child.stdout.readline().split() for _ in range(wanted)]
    child.send_signal(signal.SIGKILL)
    acknowledged += [line.split() for line in child.communicate()[0].splitlines()]
    opened = resumed(path)
    intended = {int(number) for kind, *rest in acknowledged if kind == "intent" for number in rest}
    results = {int(number) for kind, *rest in acknowledged if kind == "result" for number in rest}
    found = [record.seq for record in opened.records if isinstance(record.value, ToolResult)]
    assert opened.run_id == "run1"
    assert results <= set(found)
    assert len(found) == len(set(found))
    assert intended <= set(found) | {one.seq for one in opened.intents}
    assert not set(found) & {one.seq for one in opened.intents}
    assert [record.seq for record in opened.records] == sorted(record.seq for record in opened.records)


def stop_between_writes(child, path):
    """Whoever is stopped in the middle of a write keeps everybody else from writing: that is another story."""
    while True:
        child.send_signal(signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        busy = suppress(sqlite3.OperationalError)
        with closing(sqlite3.connect(path, timeout=0.1, isolation_level=None)) as connection, busy:
            connection.execute("BEGIN IMMEDIATE")
            return
        child.send_signal(signal.SIGCONT)


def test_a_paused_process_that_was_taken_over_cannot_write_when_it_wakes_up(tmp_path):
    path = tmp_path / "s.db"
    child = kit.program(WRITER, path, stderr=-1)
    for _ in range(5):
        child.stdout.readline()
    stop_between_writes(child, path)
    try:
        with pytest.raises(SessionError, match=f"is in use by process {child.pid} on"):
            resumed(path)
        taker = SqliteJournal(path, take_over=True)

        async def take():
            opened = await taker.open(kit.start("other"))
            await taker.finish(RunEnd(opened.run_id, "cancelled", ""))
            return len(opened.records)

        before = asyncio.run(take())
    finally:
        child.send_signal(signal.SIGCONT)
    said = child.communicate(timeout=20)[1]
    assert "SessionError" in said
    assert "was taken over" in said
    assert len(Store(path).timeline("session1").steps) == before


def test_of_two_processes_that_open_a_session_at_once_exactly_one_gets_it(tmp_path):
    path = tmp_path / "s.db"
    children = [kit.program(OPENER, path, name) for name in "ab"]
    outcomes = []
    for number in range(100):
        for child in random.sample(children, 2):
            child.stdin.write(f"s{number}\n")
            child.stdin.flush()
        outcomes.append(sorted(child.stdout.readline().strip() for child in children))
    for child in children:
        child.communicate()
    assert outcomes == [["in use", "mine"]] * 100


def test_many_processes_write_to_one_file_and_every_run_is_whole(tmp_path):
    path = tmp_path / "s.db"
    code = """
import asyncio, sys
from pathlib import Path
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    await asyncio.gather(*(
        kit.whole_run(journal, f"r{sys.argv[2]}-{n}", f"s{sys.argv[2]}-{n}", rounds=3) for n in range(10)))

asyncio.run(main())
"""
    children = [kit.program(code, path, name) for name in "abcd"]
    assert [child.wait(60) for child in children] == [0] * 4
    for child in children:
        child.communicate()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("SELECT status, count(*) FROM run GROUP BY 1").fetchall() == [("done", 40)]
    assert database.execute("SELECT count(*) FROM entry").fetchall() == [(440,)]
    database.close()


def test_what_a_program_wrote_last_is_on_disk_although_it_never_closes_anything(tmp_path):
    path = tmp_path / "s.db"
    code = """
import asyncio, sys
from pathlib import Path
from glassloop.core.journal import Record
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    await journal.open(kit.start())
    await journal.commit("run1", [Record(1, kit.task("the very last word"))])

asyncio.run(main())
"""
    child = kit.program(code, path)
    child.communicate(timeout=20)
    assert child.returncode == 0
    assert [record.value for record in resumed(path).records] == [kit.task("the very last word")]


def test_a_journal_that_was_closed_before_a_fork_works_in_both_processes(tmp_path):
    path = tmp_path / "s.db"
    code = """
import asyncio, os, sys
from pathlib import Path
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

journal = SqliteJournal(Path(sys.argv[1]))
asyncio.run(kit.whole_run(journal, "parent", "parent"))
journal.close()  # no thread of SQLite's may be at work while a process is copied
if os.fork() == 0:
    asyncio.run(kit.whole_run(journal, "child", "child"))
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    child = kit.program(code, path)
    child.communicate(timeout=20)
    assert child.returncode == 0
    assert {one.session_id for one in Store(path).sessions()} == {"parent", "child"}


def test_a_claim_of_a_process_number_that_was_given_away_again_is_gone(tmp_path):
    """The number lives, but it is another process: its start time tells."""
    path = tmp_path / "s.db"

    async def hold():
        await SqliteJournal(path).open(kit.start("run1"))

    asyncio.run(hold())
    with sqlite3.connect(path) as database:
        database.execute(
            "UPDATE session SET owner = json_set(owner, '$.pid', ?, '$.started', '1')", (os.getppid(),)
        )
    database.close()
    assert resumed(path).run_id == "run1"


@pytest.mark.parametrize(("change", "words"), [
    ("json_set(owner, '$.host', 'elsewhere')", "left open by process .* on elsewhere.*take_over=True"),
    ("json_set(owner, '$.pids', 'pid:[1]')", "nobody can tell whether that still runs"),
    ("json_set(owner, '$.token', json('[]'))", "held by something unreadable"),
    ("'not an owner'", "held by something unreadable"),
    ("json_set(owner, '$.surprise', 1)", "held by something unreadable"),
])  # fmt: skip
def test_an_owner_that_cannot_be_proved_gone_keeps_its_claim(tmp_path, change, words):
    path = tmp_path / "s.db"

    async def hold():
        await SqliteJournal(path).open(kit.start("run1"))

    asyncio.run(hold())
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE session SET owner = {change}")
    database.close()
    with pytest.raises(SessionError, match=words):
        resumed(path)
    taken = asyncio.run(SqliteJournal(path, take_over=True).open(kit.start("other")))
    assert taken.run_id == "run1"


def test_a_machine_that_restarted_has_let_go_of_everything(tmp_path):
    path = tmp_path / "s.db"

    async def hold():
        journal = SqliteJournal(path)
        await journal.open(kit.start("run1"))
        await journal.commit("run1", [Record(1, kit.result(kit.call()))])

    asyncio.run(hold())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE session SET owner = json_set(owner, '$.boot', 'an earlier life')")
    database.close()
    assert len(resumed(path).records) == 1
