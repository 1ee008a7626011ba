"""What changes between a crash and its resume: the agent, the program's version, the place of the file, the clock."""

import asyncio
import os
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
from tests.sessions import kit
from tests.sessions.test_doubts import crashed

from glassloop import Agent, tool
from glassloop.core.entries import ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.core.resolving import Done
from glassloop.core.tools import Verdict
from glassloop.models.scripted import ScriptedModel
from glassloop.sessions import schema
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.place import default_path
from glassloop.sessions.store import Store

RELEASED = sorted((Path(__file__).parent / "released").glob("schema-*.db"))


# ── another agent ────────────────────────────────────────────────────────────────────────────────────


def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"


def look(city: str) -> str:
    """Look at a city."""
    return f"18 °C in {city}"


def pay_more(to: str, amount: int = 1) -> str:
    """Pay somebody."""
    return f"paid {to}"


def pay_kindly(to: str) -> str:
    """Pay somebody, kindly."""
    return f"paid {to}"


def defined(*tools, instructions="Be brief.", **options):
    return Agent(
        ScriptedModel(["Done."]), tools=list(tools), name="payer", instructions=instructions, **options
    )


CHANGES = {
    "a tool was added": ([pay, look, tool(name="more")(look)], {}, ["+tool more"]),
    "a tool was removed": ([pay], {}, ["-tool look"]),
    "a tool was renamed": ([tool(name="settle")(pay), look], {}, ["-tool pay", "+tool settle"]),
    "the tools were reordered": ([look, pay], {}, ["-tool look", "+tool look"]),
    "a schema changed": ([tool(name="pay")(pay_more), look], {}, ["-tool pay", "+tool pay", "amount"]),
    "a description changed": ([tool(name="pay")(pay_kindly), look], {}, ["+tool pay", "kindly"]),
    "an effect changed": ([tool(effect="read")(pay), look], {}, ["+tool pay", "read"]),
    "the instructions changed": ([pay, look], {"instructions": "Be long."}, ["-instructions", "+instructions", "Be long."]),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_an_unfinished_run_is_refused_with_a_diff_when_its_agent_is_another_one_now(tmp_path, change):
    path = tmp_path / "s.db"
    crashed(path, defined(pay, look))
    tools, options, words = CHANGES[change]
    changed = defined(*tools, journal=SqliteJournal(path), **options)
    with pytest.raises(SessionError, match="defined otherwise") as refused:
        changed.run_sync(None, session="session1")
    assert refused.value.kind == "changed"
    for word in words:
        assert word in str(refused.value)
    assert len(Store(path).doubts()) == 1
    same = defined(pay, look, journal=SqliteJournal(path), review=lambda unknown: Done("paid"))
    assert same.run_sync(None, session="session1").text == "Done."


def test_a_call_that_was_allowed_is_not_run_by_a_tool_that_is_another_one_now(tmp_path):
    path, ran = tmp_path / "s.db", []

    @tool(effect="once", approve=True)
    def act(what: str) -> str:
        """Act."""
        ran.append("old")
        return what

    def script():
        return ScriptedModel([kit.calling(kit.call(1, "act", what="x")), "Done.", "Done."])

    Agent(script(), tools=[act], journal=SqliteJournal(path), approve=lambda verdict: None).run_sync(
        "Go.", session="s1"
    )
    store = Store(path)
    (question,) = store.questions()
    store.answer(question, allowed=True, by="Ann")

    @tool(name="act", effect="once", approve=True)
    def another(what: str, how: str = "well") -> str:
        """Act."""
        ran.append("new")
        return what

    model = ScriptedModel(["Done."])
    agent = Agent(model, tools=[another], journal=SqliteJournal(path, accept_changes=True))
    result = agent.run_sync(None, session="s1")
    assert ran == []
    (refused,) = [one for one in result.entries if isinstance(one, ToolResult)]
    assert (refused.state, "not the tool any more" in refused.text) == ("refused", True)


# ── another version ──────────────────────────────────────────────────────────────────────────────────


def copied(released, folder):
    path = folder / "sessions.db"
    shutil.copy(released, path)
    path.chmod(0o600)
    return path


@tool(effect="once")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_a_file_of_every_released_version_opens_resumes_and_finishes(tmp_path, released):
    path = copied(released, tmp_path)
    store = Store(path)
    assert {one.session_id for one in store.sessions()} == {"finished", "unfinished", "waiting"}
    assert len(store.entries("finished")) == 8
    assert [hit.session_id for hit in store.search("sunny")][:1] == ["finished"]

    def agent(**options):
        model = ScriptedModel(["3 and 7.", "again", "Thanks."])
        return Agent(model, tools=[add], name="adder", journal=SqliteJournal(path), **options)

    result = agent(review=lambda unknown: Done("7", by="Ann")).run_sync(None, session="unfinished")
    assert [one.text for one in result.entries if isinstance(one, ToolResult)] == ["3", "7"]
    assert result.text == "3 and 7."
    (question,) = store.questions()
    store.answer(question, allowed=True, by="Ann")
    answered = agent().run_sync(None, session="waiting")
    assert [one.text for one in answered.entries if isinstance(one, ToolResult)] == ["3"]
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT v FROM meta WHERE k = 'schema_version'").fetchone() == (
        str(schema.VERSION),
    )
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_there_is_a_file_of_every_version_before_this_one():
    assert [path.stem for path in RELEASED] == [f"schema-{number}" for number in range(1, schema.VERSION)]


def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "s.db"
    kit.written(path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE meta SET v = ? WHERE k = 'schema_version'", (str(schema.VERSION + 1),))
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SessionError, match="upgrade Glassloop") as refused:
        Store(path).sessions()
    assert refused.value.kind == "newer"
    assert path.read_bytes() == before


# ── another place, another time ──────────────────────────────────────────────────────────────────────


def test_a_copy_of_a_file_does_not_continue_the_run_that_the_original_continues(tmp_path):
    path, copy = tmp_path / "s.db", tmp_path / "copy.db"
    agent = defined(pay, look)
    crashed(path, agent)
    shutil.copy(path, copy)

    def going_on(file, **options):
        review = lambda unknown: Done("paid", by="Ann")  # noqa: E731
        return defined(pay, look, journal=SqliteJournal(file, **options), review=review)

    with pytest.raises(SessionError, match="is a copy") as refused:
        going_on(copy).run_sync(None, session="session1")
    assert refused.value.kind == "copied"
    assert going_on(path).run_sync(None, session="session1").text == "Done."
    assert going_on(copy, take_over=True).run_sync(None, session="session1").text == "Done."
    crashed(copy, agent, session="session2", run="run2")
    assert going_on(copy).run_sync(None, session="session2").text == "Done."


def test_a_file_that_was_moved_or_copied_with_nothing_unfinished_is_used_like_any_other(tmp_path):
    path, moved, copy = tmp_path / "s.db", tmp_path / "moved.db", tmp_path / "copy.db"
    kit.written(path)
    shutil.copy(path, copy)
    os.rename(path, moved)
    for file in (moved, copy):
        agent = defined(pay, look, journal=SqliteJournal(file))
        crashed(file, agent, session="session2", run="run2")
        agent = defined(pay, look, journal=SqliteJournal(file), review=lambda unknown: Done("paid"))
        assert agent.run_sync(None, session="session2").text == "Done."


@pytest.mark.parametrize("jump", [-86_400, 86_400])
def test_a_clock_that_jumps_a_day_repeats_and_loses_nothing(tmp_path, monkeypatch, jump):
    path, shift = tmp_path / "s.db", [0]
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + shift[0] * 10**9)

    async def work():
        journal = SqliteJournal(path)
        run = (await journal.open(kit.start())).run_id
        await journal.commit(run, [Record(1, kit.task())])
        shift[0] = jump
        made = kit.call()
        await journal.commit(
            run, [Record(2, kit.calling(made)), Record(3, Verdict(made, "ready", made.arguments))]
        )
        await journal.intend(run, [kit.intent(3, made)])
        shift[0] = -jump
        await journal.commit(run, [Record(3, kit.result(made))])
        await journal.finish(RunEnd(run, "waiting_approval", ""))
        shift[0] = jump
        opened = await journal.open(kit.start("other"))
        await journal.finish(RunEnd(opened.run_id, "answered", ""))
        journal.close()
        return opened

    opened = asyncio.run(work())
    assert [one.seq for one in opened.records] == [1, 2, 3, 3]
    assert opened.intents == ()
    told = Store(path).timeline("session1")
    assert [step.record.seq for step in told.steps] == [1, 2, 3, 3]
    assert all(step.took >= 0 for step in told.steps)


def test_the_default_file_is_in_the_folder_that_the_configuration_names(tmp_path, monkeypatch):
    from glassloop.config import data_folder

    for folder in (str(tmp_path / "here"), "~/there", ""):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        monkeypatch.setenv("GLASSLOOP_DATA_DIR", folder)
        assert default_path() == data_folder() / "sessions.db"


def test_a_question_is_on_disk_before_the_model_is_asked(tmp_path):
    path = tmp_path / "s.db"
    seen = []

    def looking(request):
        connection = sqlite3.connect(path)
        seen.extend(connection.execute("SELECT type FROM entry").fetchall())
        connection.close()
        return "Hello."

    agent = Agent(ScriptedModel([looking]), journal=SqliteJournal(path))
    assert isinstance(agent.run_sync("Are you there?").entries[0], User)
    assert seen == [("user",)]
