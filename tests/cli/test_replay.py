"""`glassloop replay`: a session once more, offline, elsewhere; and what would have happened otherwise."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.terminal import PROGRAM, Done, environment, glassloop, glassloop_here

from glassloop import Agent, Endpoint, Limits, background, tool
from glassloop.cli.commands.demo import ANSWER, QUESTION
from glassloop.models.replay import ReplayModel
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.testing.server import ChatServer, Request, calls, events, fails, says

KEY = "gw-live-7f3a9c2e1b8d4f60"
TOOLS = '''
from glassloop import tool
from glassloop.cli.commands import demo
from glassloop.tools.builtin.calculator import calculator

get_weather = tool(effect="read")(demo.get_weather)
read_note = tool(effect="read")(demo.read_note)


@tool(effect="once")
def send(to: str) -> str:
    """Send a mail. Use it to send.

    Args:
        to: The address.
    """
    with open("sent", "a", encoding="utf-8") as log:
        print(to, file=log)
    return f"sent to {to}"
'''
DEMO = [
    calls(
        ("get_weather", {"city": "Tokyo"}),
        ("calculator", {"expression": "(15 + 27) * 3"}),
        text="The weather and the sum do not depend on each other, so I ask for both at once.",
    ),
    calls(("read_note", {"title": "packing"}), text="Now the note."),
    says(ANSWER),
]
LOOK = calls(("get_weather", {"city": "Beijing"}))
SEND = calls(("send", {"to": "ada@example.org"}))
HALF = events('{"choices": [{"index": 0, "delta": {"content": "It is"}}]}', end="reset", done=False)


class Machine:
    """A computer of its own: a working folder, a home, and what is run there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "tools.py").write_text(TOOLS, "utf-8")

    @property
    def store(self) -> Store:
        return Store(self.folder / "home" / "data" / "glassloop" / "sessions.db")

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> Done:
        return glassloop(*arguments, folder=self.folder, env=env)

    def ask(self, server: ChatServer, *arguments: str, tools: tuple[str, ...] = ("-T", "tools.py")) -> Done:
        env = {"GLASSLOOP_BASE_URL": server.base_url, "GLASSLOOP_API_KEY": KEY}
        return self.run("run", "-m", "m", *tools, *arguments, env=env)

    def exported(self) -> Path:
        path = self.folder / "run.jsonl"
        assert self.run("sessions", "export", "--wire", "-o", str(path)).code == 0
        return path


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "here")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Machine:
    """Without the tools, the key, the configuration or the history."""
    machine = Machine(tmp_path / "elsewhere")
    (machine.folder / "tools.py").unlink()
    return machine


def test_the_demos_three_rounds_replay_byte_for_byte_on_another_machine(
    here: Machine, elsewhere: Machine
) -> None:
    with ChatServer(DEMO) as server:
        asked = here.ask(server, f"{QUESTION} My key is {KEY}.")
    assert (asked.code, len(server.requests)) == (0, 3)
    path = here.exported()
    again = elsewhere.run("replay", str(path))
    assert (again.code, again.out) == (0, asked.out)
    assert here.run("replay").out == asked.out  # the last session of its folder
    assert "✓ replayed: 3 requests, byte for byte as recorded" in again.err
    assert '→ calculator(expression="(15 + 27) * 3")' in again.err
    recorded = [json.loads(line) for line in path.read_text("utf-8").split("\n") if '"exchange"' in line]
    sent = [request.raw.decode().replace(KEY, "***") for request in server.requests]
    assert [one["request"] for one in recorded] == sent
    assert [
        path for path in here.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ] == []


STORIES = {
    "overloaded once": ([fails(503, "overloaded", {"retry-after": "0.01"}), LOOK, says("fine")], ()),
    "refused and adapted": ([fails(400, "tools are not supported by this model"), says('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Beijing"}}\n</tool_call>'), says("fine")], ()),
    "in text": ([says('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Beijing"}}\n</tool_call>'), says("fine")], ("--tool-mode", "text")),
    "whole": ([LOOK, says("fine")], ("--no-stream",)),
    "a stream that breaks": ([HALF, LOOK, says("fine")], ()),
    "a call that is denied": ([SEND, says("fine")], ()),
    "a call that is allowed": ([SEND, says("fine")], ("--yes",)),
    "a tool that there is not": ([calls(("fly", {})), calls(("get_weather", {"town": 3})), says("fine")], ()),
    "a limit": ([LOOK, says("fine")], ("--limit", "rounds=1")),
    "the same again and again": ([*[LOOK] * 5, says("fine")], ()),
    "too much time": ([LOOK, says("fine")], ("--limit", "seconds=0.2")),
    "an empty reply": ([says(""), says(""), says("fine")], ()),
    "instructions": ([LOOK, says("fine")], ("--system", "Be brief. 简短。")),
    "refused for good": ([fails(401, f"bad key {KEY}")], ()),
    "too long": ([fails(400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens")] * 9, ()),
}  # fmt: skip


# ── in one process, which is quicker ─────────────────────────────────────────────────────────────────


class Here:
    """A folder with tools, and the program run in it."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._fixtures = monkeypatch, capfd
        (folder / "tools.py").write_text(TOOLS, "utf-8")

    def run(self, *arguments: str) -> Done:
        return glassloop_here(*self._fixtures, self.folder, *arguments)

    def ask(self, script: object, *arguments: str) -> tuple[Done, ChatServer]:
        with ChatServer(script) as server:  # type: ignore[arg-type]
            done = self.run("run", "-m", f"{server.base_url}#m", "-T", "tools.py", *arguments)
        return done, server

    @property
    def store(self) -> Store:
        return Store(self.folder / "home/data/glassloop/sessions.db")

    @property
    def last(self) -> str:
        session = self.store.last()
        assert session is not None
        return session.session_id


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    return Here(tmp_path, monkeypatch, capfd)


def exported(program: Here, *, wire: bool = True) -> Path:
    path = program.folder / "run.jsonl"
    options = ["--wire"] if wire else []
    assert program.run("sessions", "export", program.last, *options, "-o", str(path)).code == 0
    return path


@pytest.mark.parametrize("name", STORIES)
def test_whatever_happened_in_it_a_session_replays(program: Here, name: str) -> None:
    script, options = STORIES[name]
    asked, server = program.ask(script, *options, "How?")
    sent = program.folder / "sent"
    mails = sent.read_text("utf-8") if sent.exists() else ""
    again = program.run("replay", program.last)
    assert again.code == 0, again.err
    assert again.out == asked.out
    assert f"replayed: {len(server.requests)} request" in again.err
    assert (sent.read_text("utf-8") if sent.exists() else "") == mails
    assert ("the run failed, as it did then: " in again.err) == (asked.code == 1)


def test_a_conversation_replays_run_by_run(program: Here) -> None:
    program.ask(DEMO, QUESTION)
    program.ask([LOOK, says("It is clear.")], "-c", "And in Beijing?")
    again = program.run("replay", program.last)
    assert again.code == 0, again.err
    assert again.out.splitlines() == [ANSWER, "It is clear."]
    assert "› And in Beijing?" in again.err
    assert "✓ replayed: 5 requests" in again.err


def test_a_run_that_was_interrupted_replays_up_to_there(program: Here) -> None:
    stalled = events('{"choices": [{"index": 0, "delta": {"content": "It"}}]}', end="stall", done=False)
    with ChatServer([LOOK, stalled]) as server:
        command = [*PROGRAM, "run", "-m", f"{server.base_url}#m", "-T", "tools.py", "How?"]
        process = subprocess.Popen(
            command, cwd=program.folder, env=environment(program.folder), stderr=subprocess.DEVNULL
        )
        while len(server.requests) < 2:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    again = program.run("replay", program.last)
    assert again.code == 0, again.err
    assert "← get_weather: 24 °C, clear" in again.err


TAMPERED = {
    "a request": ('"messages":[{"role":"user","content":"How?"}', '"messages":[{"role":"user","content":"Why?"}', ["messages[0].content", '"How?"', '"Why?"']),
    "a result": ('"text": "24 °C, clear"', '"text": "24 °C, 晴"', ["request 2 of 2", 'recorded: "24 °C, clear"', 'now:      "24 °C, 晴"']),
    "an answer": ("fine", "good", ["led to another end", "recorded: answered: fine", "now:      answered: good"]),
}  # fmt: skip


@tool(approve=True)
def send_it(to: str) -> str:
    """Send it. Use it to send.

    Args:
        to: The address.
    """
    return f"sent to {to}"


@pytest.mark.parametrize("dies_after", [None, "reply", "verdict"])
def test_a_turn_that_was_left_for_another_task_has_the_results_that_it_was_left_with(
    program: Here, dies_after: str | None
) -> None:
    turn = calls(("send_it", {"to": "ada"}), ("send_it", {}), ("fly", {}))
    with ChatServer([turn, says("Something else.")]) as server:
        journal = SqliteJournal(program.store.path)
        agent = Agent(
            Endpoint(server.base_url, "m"),
            tools=[send_it],
            approve=lambda verdict: None,
            journal=journal,
            recorder=journal.wire_log,
        )
        assert agent.run_sync("Send it.", session="s").stop_reason == "waiting_approval"
        journal.close()
        if dies_after is not None:
            _forget_what_followed(program.store.path, dies_after)
        agent.run_sync("Something else?", session="s")
        journal.close()
        background.submit(agent.model.close()).result()
    again = program.run("replay", "s")
    assert again.code == 0, again.err
    assert "replayed: 2 requests" in again.err


def _forget_what_followed(path: Path, kind: str) -> None:
    """The file as it would be had the program been killed right after the first of this kind was written."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (last,) = connection.execute("SELECT min(entry_id) FROM entry WHERE type = ?", (kind,)).fetchone()
        connection.execute("DELETE FROM entry WHERE entry_id > ?", (last,))
        connection.execute("UPDATE session SET head = ?", (last,))
        connection.execute("UPDATE run SET status = 'running', stop_reason = NULL, text = ''")


def test_a_run_that_was_killed_between_its_last_answer_and_its_end_and_then_went_on_replays(
    program: Here,
) -> None:
    with ChatServer([calls(("fly", {})), says("At the limit."), says("Something else.")]) as server:
        journal = SqliteJournal(program.store.path)
        agent = Agent(
            Endpoint(server.base_url, "m"),
            limits=Limits(rounds=1),
            journal=journal,
            recorder=journal.wire_log,
        )
        agent.run_sync("Fly.", session="s")
        journal.close()
        with closing(sqlite3.connect(program.store.path, isolation_level=None)) as connection:
            connection.execute("UPDATE session SET open_run = (SELECT run_id FROM run)")
            connection.execute("UPDATE run SET status = 'running', stop_reason = NULL, text = ''")
        agent.run_sync("Something else?", session="s")
        journal.close()
        background.submit(agent.model.close()).result()
    again = program.run("replay", "s")
    assert again.code == 0, again.err


@pytest.mark.parametrize("deaths", [["task"], ["result"], ["task", "task"], ["task", "result", "result"]])
@pytest.mark.parametrize("goes_on_with", [None, "And now?"])
def test_an_answer_that_died_with_its_process_is_no_part_of_the_replay(
    program: Here, deaths: list[str], goes_on_with: str | None
) -> None:
    def answer(request: Request) -> object:
        number = len(server.requests)
        done = sum(one["role"] == "assistant" for one in request.body["messages"])
        return says(f"answer {number}") if done else calls(("fly", {"number": number}))

    with ChatServer(answer) as server:
        journal = SqliteJournal(program.store.path)
        agent = Agent(Endpoint(server.base_url, "m"), journal=journal, recorder=journal.wire_log)
        agent.run_sync("How?", session="s")
        for last in deaths:
            journal.close()
            _die_after(program.store.path, {"task": "user", "result": "tool_result"}[last])
            result = agent.run_sync(goes_on_with, session="s")
        journal.close()
        background.submit(agent.model.close()).result()
    again = program.run("replay", "s")
    assert (again.code, again.out) == (0, f"{result.text}\n"), again.err
    path = exported(program)
    assert program.run("replay", str(path)).code == 0
    assert len(ReplayModel.from_file(path).unplayed) == int(again.err.split("✓ replayed: ")[1].split()[0])


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_run_that_other_agents_took_up_replays_as_each_of_them_had_it(program: Here, deaths: int) -> None:
    @tool(effect="read")
    def fly(number: int) -> str:
        """Fly. Use it to fly."""
        return f"flown {number} times"

    @tool(effect="read")
    def walk(number: int) -> str:
        """Walk. Use it to walk."""
        return f"walked {number} times"

    definitions = [
        {"tools": [fly], "instructions": "Be brief.", "settings": {"temperature": 0}},
        {"tools": [fly, walk], "instructions": "Take your time. 慢慢来。", "limits": Limits(rounds=9)},
        {"tools": [fly], "instructions": "Be brief.", "settings": {"temperature": 0}},
    ]

    def answer(request: Request) -> object:
        done = sum(one["role"] == "assistant" for one in request.body["messages"])
        return says("There.") if done == 2 else calls(("fly", {"number": done}))

    with ChatServer(answer) as server:
        for death, definition in enumerate(definitions[: 1 + deaths]):
            journal = SqliteJournal(program.store.path, accept_changes=True)
            agent = Agent(
                Endpoint(server.base_url, "m"), journal=journal, recorder=journal.wire_log, **definition
            )
            result = agent.run_sync(None if death else "How?", session="s")
            journal.close()
            background.submit(agent.model.close()).result()
            if death < deaths:
                _die_after(program.store.path, "tool_result")
    asked = [request.body["messages"][0]["content"] for request in server.requests]
    assert len(set(asked)) == 2
    again = program.run("replay", "s")
    assert (again.code, again.out) == (0, f"{result.text}\n"), again.err
    assert program.run("replay", str(exported(program))).code == 0


def _die_after(path: Path, kind: str) -> None:
    """The file as it would be had the program been killed with an answer to what was last of this kind."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (last,) = connection.execute("SELECT max(entry_id) FROM entry WHERE type = ?", (kind,)).fetchone()
        connection.execute("DELETE FROM entry WHERE entry_id > ?", (last,))
        connection.execute("UPDATE session SET head = ?, open_run = (SELECT run_id FROM run)", (last,))
        connection.execute("UPDATE run SET status = 'running', stop_reason = NULL, text = ''")


_AT_THE_SAME_MOMENT = (
    "UPDATE exchange SET started_ms = (SELECT max(at_ms) FROM entry WHERE entry_id <= ?) WHERE n = 3"
)


@pytest.mark.parametrize("how", ["killed", "forked"])
def test_what_was_asked_at_the_very_moment_where_it_breaks_off_has_no_answer_there(
    program: Here, how: str
) -> None:
    program.ask(DEMO, QUESTION)
    session, store = program.last, program.store
    *_, before, last = (step.entry_id for step in store.timeline(session).steps)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        if how == "killed":
            connection.execute("DELETE FROM entry WHERE entry_id = ?", (last,))
            connection.execute("UPDATE session SET head = ?", (before,))
            connection.execute("UPDATE run SET status = 'running', stop_reason = NULL, text = ''")
        connection.execute(_AT_THE_SAME_MOMENT, (before,))
    again = program.run("replay", session if how == "killed" else store.fork(session, before))
    assert again.code == 0, again.err


@pytest.mark.parametrize("name", TAMPERED)
def test_a_recording_that_somebody_changed_does_not_match(program: Here, name: str) -> None:
    before, now, words = TAMPERED[name]
    program.ask([LOOK, says("fine")], "--no-stream", "How?")
    path = exported(program)
    lines = path.read_text("utf-8").split("\n")
    kind = '"entry": "tool_result"' if name == "a result" else '"exchange"'
    escaped = before if name == "a result" else json.dumps(before, ensure_ascii=False)[1:-1]
    at = next(place for place, line in enumerate(lines) if kind in line and escaped in line)
    lines[at] = lines[at].replace(
        escaped, now if name == "a result" else json.dumps(now, ensure_ascii=False)[1:-1]
    )
    path.write_text("\n".join(lines), "utf-8")
    again = program.run("replay", str(path))
    assert again.code == 1
    assert [each for each in words if each not in again.err] == []


def test_what_cannot_be_replayed_says_why(program: Here) -> None:
    program.ask([says("fine")], "How?")
    path = exported(program, wire=False)
    without = program.run("replay", str(path))
    assert (without.code, "--wire" in without.err) == (1, True)
    path.write_text('{"format": "glassloop-recording", "version": 1}\n', "utf-8")
    assert "its test replays it" in program.run("replay", str(path)).err
    path.write_text("hello", "utf-8")
    assert "run.jsonl: line 1 of the export is no JSON" in program.run("replay", str(path)).err
    assert program.run("replay", "nothing-like-this").code == 1
    assert program.run("replay", program.last, "-m", "other").code == 2


def test_events_can_be_had_as_json(program: Here) -> None:
    program.ask([LOOK, says("fine")], "How?")
    again = program.run("replay", program.last, "--json")
    assert [event["type"] for event in again.events][-1] == "finished"
    assert again.events[-1]["text"] == "fine"


# ── what if ──────────────────────────────────────────────────────────────────────────────────────────


def test_from_a_round_on_it_goes_on_live_and_nothing_recorded_changes(program: Here) -> None:
    _, recorded = program.ask(DEMO, QUESTION, "--system", "Be brief.")
    session = program.last
    before = program.store.export_jsonl(session, wire=True)
    with ChatServer([calls(("read_note", {"title": "visa"})), says("Apply by the 3rd.")]) as server:
        other = f"{server.base_url}#other"
        live = program.run("replay", session, "--from-round", "2", "-m", other, "-T", "tools.py")
    assert (live.code, live.out) == (0, "Apply by the 3rd.\n")
    assert "← calculator: (15 + 27) * 3 = 126" in live.err
    rounds = ["· round 1: ", "live from round 2 on", "· round 2: ", "· round 3: ", "2 rounds"]
    places = [live.err.index(words) for words in rounds]
    assert places == sorted(places)
    first, second = (request.body for request in server.requests)
    was = recorded.requests[1].body
    assert first["model"] == "other"
    assert (first["messages"], first["tools"]) == (was["messages"], was["tools"])
    assert second["messages"][-1]["content"] == "Apply by the 3rd."
    assert program.store.export_jsonl(session, wire=True) == before
    assert program.store.info(program.last).forked_from == session
    assert program.run("replay", session).code == 0
    assert program.run("replay", program.last).code == 0


def test_what_needs_a_persons_word_needs_it_there_too(program: Here) -> None:
    program.ask([LOOK, says("fine")], "How?")
    session = program.last
    for options, answer, mails in (((), "No.", False), (("--yes",), "Sent.", True)):
        with ChatServer([SEND, says(answer)]) as server:
            other = f"{server.base_url}#m"
            live = program.run(
                "replay", session, "--from-round", "1", "-m", other, "-T", "tools.py", *options
            )
        assert live.out == f"{answer}\n"
        assert (program.folder / "sent").exists() == mails


def test_a_file_is_imported_before_it_goes_on_live(program: Here) -> None:
    program.ask([LOOK, says("fine")], "How?")
    path = exported(program)
    program.store.delete(program.last)
    with ChatServer([says("otherwise")]) as server:
        live = program.run(
            "replay", str(path), "--from-round", "2", "-m", f"{server.base_url}#m", "--no-tools"
        )
    assert (live.code, live.out) == (0, "otherwise\n")
    assert (
        "! the recorded run had tools that are not here: calculator, get_weather, read_note, send" in live.err
    )
    assert server.requests[0].body["messages"][-1]["content"] == "24 °C, clear"
    assert len(program.store.sessions()) == 2


def test_without_more_said_the_recorded_model_is_asked_with_what_the_folder_gives_it(program: Here) -> None:
    skill = program.folder / ".agents" / "skills" / "pack"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pack\ndescription: How to pack.\n---\nFold it.\n", "utf-8")
    (program.folder / "AGENTS.md").write_text("Be brief. 简短。", "utf-8")
    program.run("trust", "--yes")
    answers = iter([LOOK, says("fine"), says("again")])
    with ChatServer(lambda _: next(answers)) as server:
        program.run("run", "-m", f"{server.base_url}#m", "-T", "tools.py", "How?")
        live = program.run("replay", program.last, "--from-round", "2", "-T", "tools.py")
    assert (live.code, live.out) == (0, "again\n")
    assert server.requests[2].raw == server.requests[1].raw
    assert all(word in server.requests[2].raw.decode() for word in ("read_skill", "Be brief. 简短。"))


def test_the_recorded_ready_made_tools_are_offered_and_no_others(program: Here) -> None:
    answers = iter([says("one"), says("two"), says("three")])
    with ChatServer(lambda _: next(answers)) as server:
        two = ("-T", "current_time", "-T", "calculator")
        program.run("run", "-m", f"{server.base_url}#m", *two, "Hi")
        session = program.last
        program.run("replay", session, "--from-round", "1")
        other = program.run("replay", session, "--from-round", "1", "-T", "basics")
    first, second, _ = (request.body["tools"] for request in server.requests)
    assert second == first
    assert "! the recorded run did not have these tools: weather" in other.err


def test_a_recording_does_not_take_a_key_to_its_own_address(program: Here) -> None:
    with ChatServer([says("one")]) as server:
        program.run("run", "-m", f"{server.base_url}#m", "--no-tools", "Hi")
        (program.folder / ".env").write_text("GLASSLOOP_API_KEY=sk-of-somewhere-else\n", "utf-8")
        refused = program.run("replay", program.last, "--from-round", "1")
    assert (refused.code, len(server.requests)) == (2, 1)
    assert "is not set for that address" in refused.err


def test_a_round_that_there_is_not_is_refused(program: Here) -> None:
    program.ask([LOOK, says("fine")], "How?")
    session = program.last
    refused = program.run("replay", session, "--from-round", "3", "-T", "tools.py")
    assert (refused.code, "has 2 rounds" in refused.err) == (1, True)
    assert program.last == session
