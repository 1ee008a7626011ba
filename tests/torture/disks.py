"""A process on a disk that fails (`faulty_disk.c`), and what it writes there."""

import asyncio
import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path

from tests.sessions import kit

from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.core.tools import Verdict
from glassloop.sessions import branch, database
from glassloop.sessions.claiming import HEAD
from glassloop.sessions.journal import SqliteJournal

HERE = Path(__file__).parent


def shim(folder):
    """The preloaded library, built here. None where there is no compiler, or no Linux."""
    target = folder / "faulty_disk.so"
    try:
        command = [
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-o",
            str(target),
            str(HERE / "faulty_disk.c"),
            "-ldl",
            "-lpthread",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return target if done.returncode == 0 and sys.platform == "linux" else None


def run(library, folder, what, *arguments):
    """Run a function of this module in a process that the shim surrounds. Gives the lines that it printed."""
    code = f"import sys; from tests.torture import disks; disks.{what}(*sys.argv[1:])"
    child = kit.program(
        code,
        folder,
        *arguments,
        stderr=subprocess.PIPE,
        extra={"LD_PRELOAD": str(library), "FAULTY_FILE": str(folder / "s")},
    )
    out, err = child.communicate(timeout=600)
    assert child.returncode == 0, err
    return out.splitlines()


async def _work(path, acknowledged):
    """Two rounds of everything that a run writes. `acknowledged(what, seq)` is told what the journal has accepted."""
    journal = SqliteJournal(path)
    await journal.open(kit.start("run1"))
    await journal.commit("run1", [Record(1, kit.task())])
    acknowledged("user", 1)
    for seq in (2, 4, 6):
        made = kit.call(seq)
        verdict = Verdict(made, "ready", made.arguments)
        await journal.commit("run1", [Record(seq, kit.calling(made)), Record(seq + 1, verdict)])
        await journal.intend("run1", [kit.intent(seq + 1, made)])
        acknowledged("intent", seq + 1)
        acknowledged("reply", seq)
        await journal.commit("run1", [Record(seq + 1, kit.result(made, "x" * 3000 * seq))])
        acknowledged("tool_result", seq + 1)
    await journal.commit("run1", [Record(8, kit.answer())])
    await journal.finish(RunEnd("run1", "answered", "It is sunny."))
    acknowledged("reply", 8)
    journal.close()


def _stored(path):
    """What is there after the disaster, by kind and number. Raises `SessionError` if it cannot be read."""
    with database.opened(path) as connection:
        rows = connection.execute(f"SELECT {HEAD} FROM session").fetchall()
        told = branch.read(connection, branch.path(connection, rows[0][0])) if rows else []
        found = {(row.type, row.seq) for row in (branch.path(connection, rows[0][0]) if rows else [])}
        assert len(found) == len(told)
        found |= {("intent", seq) for (seq,) in connection.execute("SELECT seq FROM entry WHERE attempt > 0")}
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        assert integrity == "ok", integrity
    return found


def _tell_and_work(path, handle):
    asyncio.run(_work(path, lambda what, seq: os.write(handle, f"{what} {seq}\n".encode())))


def lose_power_carelessly(folder, first, last):
    """The same with a journal that does not wait for the disk: to see that the shim would show it."""
    database._PRAGMAS = ("synchronous = NORMAL",)
    lose_power(folder, first, last)


def lose_power(folder, first, last):
    """For each number in the range: a process whose power goes at that sync. Prints what was acknowledged and lost."""
    disk = ctypes.CDLL(None)
    for number in range(int(first), int(last)):
        path, told = Path(folder) / f"s{number}.db", Path(folder) / f"told{number}"
        pid = os.fork()
        if pid == 0:
            handle = os.open(told, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            disk.power_loss(1 + number % 26, number)
            _tell_and_work(path, handle)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        acknowledged = {
            (what, int(seq))
            for what, seq in (line.split() for line in told.read_text(encoding="utf-8").splitlines())
        }
        try:
            lost = acknowledged - _stored(path)
        except SessionError as error:
            lost = {("unreadable", str(error))}
        print(number, os.waitstatus_to_exitcode(status), len(acknowledged), sorted(lost))
        for one in Path(folder).glob(f"s{number}.db*"):
            one.unlink()


def fail_everywhere(folder, error, times, step):
    """Fail each operation of the disk in turn. Prints where the run stopped, with what words, and what is left."""
    disk = ctypes.CDLL(None)
    number, operations = 1, 1
    while number <= operations:
        path = Path(folder) / f"s{number}.db"
        acknowledged, words = [], ""
        disk.fail(number, getattr(errno, error), int(times))
        try:
            asyncio.run(_work(path, lambda *what, kept=acknowledged: kept.append(what)))
        except SessionError as failure:
            words = str(failure)
        operations = max(operations, disk.count())
        disk.fail(0, 0, 0)
        lost = sorted(set(acknowledged) - _stored(path))
        resumed = asyncio.run(_resumed(path))
        print(number, repr(words), len(acknowledged), lost, resumed)
        for one in Path(folder).glob(f"s{number}.db*"):
            one.unlink()
        number += int(step)


async def _resumed(path):
    """Can the session be gone on with afterwards?"""
    journal = SqliteJournal(path, take_over=True)
    opened = await journal.open(kit.start("run2"))
    await journal.commit(opened.run_id, [Record(100, kit.task("Again."))])
    await journal.finish(RunEnd(opened.run_id, "answered", ""))
    journal.close()
    return "resumed"
