"""The rest of the fault list: owners that were stopped, results of every size, files that are busy, many processes at once."""

import asyncio
import json
import math
import signal
import sqlite3
import subprocess
import time

import pytest
from tests.cli.terminal import PROGRAM, environment
from tests.sessions import kit
from tests.simulator.sendable import problems

from glassloop import Agent, tool
from glassloop.core.entries import ToolResult
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.core.resolving import Done
from glassloop.models.scripted import ScriptedModel, call, calls
from glassloop.sessions import database
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.testing.server import ChatServer, says
from glassloop.testing.server import calls as wire_calls

WAITING_TOOL = '''
import os
import time

from glassloop import tool


@tool(effect="once", timeout=None)
def act() -> str:
    """Act. Use it to act."""
    with open("log", "a", encoding="utf-8") as log:
        print("start", file=log, flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        print("did", file=log, flush=True)
    return "acted"

'''


def script(request):
    last = request.body["messages"][-1]
    return says(f"told: {last['content']}") if last["role"] == "tool" else wire_calls(("act", {}))


@pytest.mark.torture
def test_an_owner_that_was_stopped_and_taken_over_is_locked_out_and_the_call_happened_once(tmp_path):
    (tmp_path / "tools.py").write_text(WAITING_TOOL, encoding="utf-8")
    log = tmp_path / "log"
    with ChatServer(script) as server:

        def start(*words):
            return subprocess.Popen(
                [*PROGRAM, "run", "-m", f"{server.base_url}#m", "-T", "tools.py", "--yes", *words],
                cwd=tmp_path,
                env=environment(tmp_path),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        first = start("Act.")
        while not log.exists():
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
        try:
            _, refused = start("-c").communicate(timeout=60)
            assert f"in use by process {first.pid}" in refused
            second = start("-c", "--take-over")
            _, said = second.communicate(timeout=60)
            assert second.returncode == 1
            assert "nobody knows whether it took effect" in said
            (tmp_path / "go").touch()
        finally:
            first.send_signal(signal.SIGCONT)
        _, fenced = first.communicate(timeout=60)
        assert first.returncode == 1
        assert "was taken over" in fenced
        store = Store(tmp_path / "home" / "data" / "glassloop" / "sessions.db")
        (doubt,) = store.doubts()
        store.resolve_doubt(doubt, Done("acted", by="Ann"))
        out, _ = start("-c").communicate(timeout=60)
    assert out == "told: acted\n"
    assert log.read_text(encoding="utf-8").split() == ["start", "did"]


SIZES = {
    "nothing": "",
    "64 KiB": "x" * 65_536,
    "a little more": "ü" * 65_537,
    "10 MB": "0123456789" * 1_000_000,
    "NUL": "a\x00b",
    "lone surrogates": "a\ud800b\udfff",
    "NaN": {"value": math.nan, "more": [math.inf]},
    "deep": json.loads("[" * 900 + "]" * 900),
}


def of_size(path, value):
    @tool(effect="read", max_output=200_000_000)
    def give() -> object:
        """Give it."""
        return value

    agent = Agent(ScriptedModel([calls(call("give")), "Thanks."]), tools=[give], journal=SqliteJournal(path))
    result = agent.run_sync("Go.", session="s1")
    stored = Store(path).entries("s1")
    assert [one.text for one in stored] == [
        one.text.replace("\ud800", "�").replace("\udfff", "�") for one in result.entries
    ]
    assert not problems(stored)
    return result


@pytest.mark.parametrize("size", SIZES)
def test_a_result_of_any_size_and_kind_is_stored_or_is_a_clear_error(tmp_path, size):
    assert of_size(tmp_path / "s.db", SIZES[size]).text == "Thanks."


@pytest.mark.torture
def test_a_result_of_a_hundred_megabytes_is_stored(tmp_path):
    assert of_size(tmp_path / "s.db", "0123456789" * 10_000_000).text == "Thanks."


def test_a_value_nested_ten_thousand_deep_is_told_in_words_and_the_run_goes_on(tmp_path):
    deep = []
    for _ in range(10_000):
        deep = [deep]
    result = of_size(tmp_path / "s.db", deep)
    assert result.text == "Thanks."
    assert [one.state for one in result.entries if isinstance(one, ToolResult)] in (["ok"], ["error"])


def test_a_file_grows_with_what_is_in_it_and_no_faster(tmp_path):
    def size(rounds):
        path = tmp_path / f"{rounds}.db"

        async def work():
            journal = SqliteJournal(path)
            run = (await journal.open(kit.start())).run_id
            made = [kit.call(number) for number in range(rounds)]
            said = [Record(2 * n, kit.calling(one)) for n, one in enumerate(made)]
            came = [Record(2 * n + 1, kit.result(one, "a word " * 300)) for n, one in enumerate(made)]
            await journal.commit(run, [*said, *came])
            await journal.finish(RunEnd(run, "answered", ""))
            journal.close()

        asyncio.run(work())
        return path.stat().st_size

    empty = size(0)
    assert size(800) - empty <= 25 * (size(40) - empty)


def test_a_file_that_another_program_keeps_busy_stops_the_run_in_words_and_nothing_runs(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    path, ran = tmp_path / "s.db", []
    kit.written(path)
    held = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def hold(request):
        held.execute("BEGIN IMMEDIATE")
        return calls(call("act"))

    @tool(effect="once")
    def act() -> str:
        """Act."""
        ran.append(1)
        return "acted"

    agent = Agent(ScriptedModel([hold, "Done."]), tools=[act], journal=SqliteJournal(path))
    with pytest.raises(SessionError, match="another process has been writing to it for too long") as busy:
        agent.run_sync("Act.", session="s1")
    assert busy.value.kind == "in_use"
    assert ran == []
    held.execute("ROLLBACK")
    held.close()
    again = Agent(
        ScriptedModel([calls(call("act")), "Done."]), tools=[act], journal=SqliteJournal(path, take_over=True)
    )
    assert again.run_sync(None, session="s1").text == "Done."
    assert ran == [1]


@pytest.mark.torture
def test_five_hundred_runs_of_four_processes_in_one_file_are_all_whole(tmp_path):
    path = tmp_path / "s.db"
    code = """
import asyncio, sys
from pathlib import Path
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    for first in range(0, 125, 5):
        await asyncio.gather(*(
            kit.whole_run(journal, f"r{sys.argv[2]}-{n}", f"s{sys.argv[2]}-{n}", rounds=5)
            for n in range(first, first + 5)))

asyncio.run(main())
"""
    children = [kit.program(code, path, name) for name in "abcd"]
    assert [child.wait(300) for child in children] == [0] * 4
    for child in children:
        child.communicate()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("SELECT status, count(*) FROM run GROUP BY 1").fetchall() == [("done", 500)]
    results = "SELECT count(*) FROM entry WHERE type = 'tool_result'"
    assert (
        connection.execute(results).fetchone()
        == connection.execute("SELECT count(*) FROM entry WHERE attempt > 0").fetchone()
    )
    connection.close()
