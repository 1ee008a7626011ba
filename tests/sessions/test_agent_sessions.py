"""An agent on the journal: conversations that go on, here and in the next process."""

import asyncio

from tests.sessions import kit

from glassloop import Agent, tool
from glassloop.core.entries import ToolResult, User
from glassloop.core.journal import Session
from glassloop.models.scripted import ScriptedModel, call, calls
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store


@tool(effect="once")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script():
    return ScriptedModel([calls(call("add", a=1, b=2), call("add", a=3, b=4), text="Adding."), "3 and 7."])


def test_a_conversation_goes_on_in_another_journal_of_the_same_file(tmp_path):
    path = tmp_path / "s.db"
    first = Agent(script(), tools=[add], journal=SqliteJournal(path)).run_sync("Add them.")
    model = ScriptedModel(["You are welcome."])
    journal = SqliteJournal(path)
    second = Agent(model, tools=[add], journal=journal).run_sync(
        "Thanks!", session=Session(first.session.id, journal)
    )
    assert second.text == "You are welcome."
    assert model.requests[0].entries == (*first.entries, User(second.entries[-2].parts))
    assert Store(path).entries(first.session.id) == second.entries


def test_what_the_file_tells_is_what_the_run_told(tmp_path):
    path = tmp_path / "s.db"
    result = Agent(script(), tools=[add], journal=SqliteJournal(path), name="adder").run_sync("Add them.")
    told = Store(path).timeline(result.session.id)
    (run,) = told.runs
    assert (run.agent, run.status, run.stop_reason, run.rounds, run.calls) == (
        "adder",
        "done",
        "answered",
        2,
        2,
    )
    assert Store(path).entries(result.session.id) == result.entries
    assert told.session.title == "Add them."


def test_a_forked_conversation_is_continued_like_any_other(tmp_path):
    path = tmp_path / "s.db"
    result = Agent(script(), tools=[add], journal=SqliteJournal(path)).run_sync("Add them.")
    store = Store(path)
    forked = store.fork(result.session.id)
    agent = Agent(ScriptedModel(["Other answer."]), tools=[add], journal=SqliteJournal(path))
    other = agent.run_sync("And now?", session=forked)
    assert [one.text for one in other.entries if isinstance(one, User)] == ["Add them.", "And now?"]
    assert len(store.entries(result.session.id)) == len(result.entries)


KILLED = """
import os, sys
from pathlib import Path
from glassloop import Agent, tool
from glassloop.sessions.journal import SqliteJournal
from tests.sessions.test_agent_sessions import script

@tool(effect=sys.argv[2])
def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.\"\"\"
    with open(sys.argv[3], "a") as log:
        print(a, file=log, flush=True)
    if a == 3 and os.path.getsize(sys.argv[3]) < 6:
        os.kill(os.getpid(), 9)
    return a + b

journal = SqliteJournal(Path(sys.argv[1]))
agent = Agent(script(), tools=[add], journal=journal, name="killed")
result = agent.run_sync("Add them.", session="session1")
print(result.text)
"""


def test_a_once_call_in_flight_when_the_process_died_is_an_open_intent(tmp_path):
    path, log = tmp_path / "s.db", tmp_path / "log"
    child = kit.program(KILLED, path, "once", log)
    child.communicate(timeout=30)
    assert child.returncode == -9
    opened = asyncio.run(SqliteJournal(path, accept_changes=True).open(kit.start("other")))
    done = [record.value for record in opened.records if isinstance(record.value, ToolResult)]
    started = {one.arguments["a"] for one in opened.intents}
    assert 3 in started
    assert len(done) + len(started) == 2
    assert {line for line in log.read_text().split() if line == "3"} == {"3"}
