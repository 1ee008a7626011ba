"""Conversations that are kept: continued after a kill, refused where another process has them, shown, searched, given away."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import PROGRAM, Done, environment, glassloop, glassloop_here

from glassloop import Agent
from glassloop.config import load
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.testing.server import ChatServer, Completion, Request, calls, says
from glassloop.tools.loading import load_tools
from glassloop.tools.rules import rules
from glassloop.tools.toolbox import Toolbox

KEY = "gw-live-7f3a9c2e1b8d4f60"
TOOLS = '''
import os
import resource
import signal
import sqlite3
import time
from contextlib import closing

from glassloop import tool


def _wait_for_the_disk() -> None:
    """Before a reading tool nothing has to be on disk yet; what is to be resumed has to be."""
    path = os.environ["XDG_DATA_HOME"] + "/glassloop/sessions.db"
    with closing(sqlite3.connect(path)) as connection:
        while not connection.execute("SELECT 1 FROM entry WHERE type = 'reply'").fetchone():
            time.sleep(0.01)


def _done(what: str) -> None:
    with open("log", "a", encoding="utf-8") as log:
        print(what, file=log)
    if os.environ.get("DIE_IN") == what:
        _wait_for_the_disk()
        os.kill(os.getpid(), signal.SIGKILL)


@tool(effect="read")
def look(city: str) -> str:
    """Look at a city. Use it to look.

    Args:
        city: Its name.
    """
    _done(f"look {city}")
    while os.path.exists("wait"):
        time.sleep(0.02)
    return f"18 °C in {city}, key {os.environ.get('GLASSLOOP_API_KEY', '')}"


@tool(effect="once")
def send(to: str) -> str:
    """Send a mail. Use it to send.

    Args:
        to: The address.
    """
    _done(f"send {to}")
    return f"sent to {to}"


@tool(effect="read")
def fill() -> str:
    """Fill the disk. Use it to fill."""
    _done("fill")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    return "full"
'''


def script(request: Request) -> Completion:
    """Does what the last message says, and tells it back."""
    last = request.body["messages"][-1]
    text = str(last["content"])
    if text == "full" and "send" in str(request.body["messages"][-3]["content"]):
        return calls(("send", {"to": "a@b.c"}))
    if last["role"] == "tool":
        return says(f"told: {text}")
    if text.startswith("look"):
        return calls(("look", {"city": text.removeprefix("look ")}))
    if text.startswith("fill"):
        return calls(("fill", {}))
    if text.startswith("send"):
        return calls(("send", {"to": "a@b.c"}))
    return says(f"heard {text}")


class Place:
    """A folder with tools and a server, where the program is run."""

    def __init__(
        self,
        folder: Path,
        server: ChatServer,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        (folder / "tools.py").write_text(TOOLS, encoding="utf-8")
        self.folder = folder
        self.server = server
        self._pytest = monkeypatch, capfd
        self.agent = ["-m", f"{server.base_url}#m", "-T", "tools.py", "--yes"]

    def run(self, *words: str, **more: Any) -> Done:
        """Run a command of the agent, in this process, which is quicker."""
        command, *rest = words
        return glassloop_here(*self._pytest, self.folder, command, *self.agent, *rest, **more)

    def look(self, *words: str) -> Done:
        """Run a command that asks no model, or another agent."""
        return glassloop_here(*self._pytest, self.folder, *words)

    def killed(self, question: str, in_call: str) -> None:
        """Ask, and be killed while a tool runs."""
        done = subprocess.run(
            [*PROGRAM, "run", *self.agent, question],
            cwd=self.folder,
            env=environment(self.folder, {"DIE_IN": in_call}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()

    @property
    def log(self) -> list[str]:
        """What the tools really did."""
        return (self.folder / "log").read_text(encoding="utf-8").splitlines()

    @property
    def store(self) -> Store:
        return Store(self.data / "sessions.db")

    @property
    def data(self) -> Path:
        return self.folder / "home" / "data" / "glassloop"

    def said(self, number: int = -1) -> list[str]:
        """The texts of one request's messages."""
        return [str(one["content"]) for one in self.server.requests[number].body["messages"]]


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    with ChatServer(script) as server:
        yield Place(tmp_path, server, monkeypatch, capfd)


# ── Going on ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_killed_in_a_reading_tool_goes_on_and_ends_right(place: Place) -> None:
    place.killed("look 北京", "look 北京")
    done = place.run("run", "-c")
    assert done.code == 0
    assert done.out.startswith("told: 18 °C in 北京")
    assert place.log == ["look 北京", "look 北京"]
    over = place.run("run", "-c")
    assert over.code == 2
    assert "Say what comes next" in over.err


def test_a_call_that_may_have_taken_effect_is_shown_and_never_runs_again(place: Place) -> None:
    place.killed("send it", "send a@b.c")
    shown = place.run("run", "-c")
    assert shown.code == 1
    (session,) = place.store.sessions()
    for words in ('send(to="a@b.c")', "nobody knows", f"glassloop run -r {session.session_id} -m"):
        assert words in shown.err
    done = place.run("run", "-c", "It was sent.")
    assert (done.code, done.out) == (0, "heard It was sent.\n")
    assert "unknown" in place.said()[-2]
    assert place.log == ["send a@b.c"]


def test_a_chat_takes_up_the_run_that_broke_off(place: Place) -> None:
    place.killed("look Oslo", "look Oslo")
    done = place.run("chat", "-c", stdin=b"and now?\n")
    assert done.code == 0
    assert done.out.splitlines()[0].startswith("told: 18 °C in Oslo")
    assert done.out.splitlines()[1] == "heard and now?"
    (session,) = place.store.sessions()
    assert f"glassloop chat -r {session.session_id} -m" in done.err


def test_an_unfinished_run_is_not_continued_by_another_agent_unless_that_is_accepted(place: Place) -> None:
    place.killed("look Rom", "look Rom")
    model = place.agent[:2]
    other = place.look("run", *model, "-T", "calculator", "-c")
    assert other.code == 1
    assert "-tool look\n" in other.err
    assert "--accept-changes" in other.err
    assert place.look("run", *model, "-c", "--accept-changes").code == 0


def test_a_session_is_continued_by_the_beginning_of_its_id_and_by_words_said_in_it(place: Place) -> None:
    place.run("run", "我想去东京看樱花")
    place.run("run", "second")
    first = place.store.search("樱花")[0].session_id
    for number, reference in enumerate((first[:7], "东京看"), 1):
        assert place.run("run", "-r", reference, f"word {number}").code == 0
        assert place.said()[0] == "我想去东京看樱花"
        assert len(place.said()) == 2 * number + 1
    unknown = place.run("run", "-r", "nowhere", "hi")
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.startswith("error: there is no session 'nowhere'")
    assert "glassloop sessions list" in unknown.err
    several = place.run("run", "-r", "heard", "hi")
    assert several.code == 1
    assert first in several.err


def test_a_session_in_use_is_refused_by_the_name_of_its_process(place: Place) -> None:
    (place.folder / "wait").touch()
    first = subprocess.Popen(
        [*PROGRAM, "run", *place.agent, "look Rom"],
        cwd=place.folder,
        env=environment(place.folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        until = time.monotonic() + 60
        while not (place.folder / "log").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        second = place.run("run", "-c", "me too")
        assert second.code == 1
        assert second.err.startswith("error: session ")
        assert f"in use by process {first.pid}" in second.err
        assert "--take-over" in second.err
        (place.folder / "wait").unlink()
        out, _ = first.communicate(timeout=60)
    finally:
        first.kill()
    assert out.startswith(b"told: 18")
    assert place.run("run", "-c", "me too").out == "heard me too\n"


def test_a_call_that_waits_is_allowed_from_elsewhere_and_then_runs(place: Place) -> None:
    path = place.data / "sessions.db"
    tools = Toolbox(load_tools(str(place.folder / "tools.py")), policy=rules(ask=["send"]))
    model = f"{place.server.base_url}#m"
    agent = Agent(model, tools=tools, journal=SqliteJournal(path), approve=lambda verdict: None)
    waiting = agent.run_sync("send it")
    assert waiting.stop_reason == "waiting_approval"
    listed = place.look("approve")
    assert listed.out.startswith(f"{waiting.session.id}\t")
    assert "a@b.c" in listed.out
    for option in (["--yes"], ["--no", "--reason", "x"], ["--done", ""], ["--retry"], ["--call", "a"]):
        unnamed = place.look("approve", *option)
        assert (unnamed.code, unnamed.out) == (2, listed.out)
        assert "say which session is meant" in unnamed.err
    assert place.look("approve", waiting.session.id).code == 2
    assert place.look("approve", waiting.session.id, "--yes").code == 0
    done = place.run("run", "-r", waiting.session.id)
    assert (done.code, done.out) == (0, "told: sent to a@b.c\n")


def test_what_is_not_to_be_saved_is_nowhere(place: Place) -> None:
    assert place.run("run", "--no-save", "a secret plan").code == 0
    assert not (place.data / "sessions.db").exists()
    assert place.run("run", "--no-save", "-c", "more").code == 2


# ── Disks that fail ──────────────────────────────────────────────────────────────────────────────────


def test_without_a_usable_file_the_conversation_is_had_in_memory_and_that_is_said(place: Place) -> None:
    place.data.mkdir(parents=True)
    (place.data / "sessions.db").write_bytes(b"not a database, " * 999)
    (place.data / "sessions.db").chmod(0o600)
    lines = b"one\n/fork\ntwo\n"
    done = place.run("chat", stdin=lines)
    assert (done.code, done.out) == (0, "heard one\nheard two\n")
    assert place.said() == ["one", "heard one", "two"]
    for words in (
        "sessions.db: it is not a database",
        "in memory only, and ends",
        "where that cannot be done",
    ):
        assert words in done.err
    refused = place.run("run", "-c", "hi")
    assert (refused.code, refused.out) == (1, "")
    assert "not a database" in refused.err


def test_a_disk_that_fills_up_ends_the_keeping_and_not_the_conversation(place: Place) -> None:
    child = subprocess.Popen(
        [*PROGRAM, "chat", *place.agent],
        cwd=place.folder,
        env=environment(place.folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(b"one\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"heard one\n"
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        out, err = child.communicate(b"two\nlook Rom\nsend it\n", timeout=60)
    finally:
        child.kill()
    assert out.decode().splitlines()[:2] == ["heard two", "told: 18 °C in Rom, key "]
    assert place.said()[:3] == ["one", "heard one", "two"]
    assert b"in memory only" in err
    assert place.run("run", "-c", "three").code == 0
    assert place.said() == ["one", "heard one", "three"]


def test_a_disk_that_fills_up_in_a_run_lets_it_end_but_starts_nothing_that_must_be_written_first(
    place: Place,
) -> None:
    done = glassloop("run", *place.agent, "fill", folder=place.folder)
    assert (done.code, done.out) == (0, "told: full\n")
    assert "The session on disk ends before it" in done.err
    stopped = glassloop("run", *place.agent, "fill and send", folder=place.folder)
    assert stopped.code == 1
    assert "is not started" in stopped.err
    assert place.log == ["fill", "fill"]
    assert place.run("run", "-c", "free again").out == "heard free again\n"


# ── Looking and giving away ──────────────────────────────────────────────────────────────────────────


def test_a_planted_key_is_nowhere_in_file_exports_and_screens(place: Place) -> None:
    (place.folder / ".env").write_text(
        f"GLASSLOOP_API_KEY={KEY}\nGLASSLOOP_BASE_URL={place.server.base_url}\n"
    )
    env = {"GLASSLOOP_API_KEY": KEY}
    place.run("run", "look Rom", env=env)
    place.run("run", "-c", f"my key is {KEY}, keep it", env=env)
    assert place.server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    shown = [
        place.look("show", "--wire").out,
        place.look("show", "--curl").out,
        *(
            place.look("sessions", "export", "--format", kind, *wire).out
            for kind, wire in (("jsonl", ["--wire"]), ("md", []), ("html", []))
        ),
    ]
    assert all("my key is ***" in text for text in shown)
    files = [one for one in place.data.rglob("*") if one.is_file()]
    assert any(one.name == "sessions.db" for one in files)
    assert not [one.name for one in files if KEY.encode() in one.read_bytes()]
    assert not [text for text in shown if KEY in text]


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENROUTER_API_KEY", True),
        ("GLASSLOOP_API_KEY", True),
        ("MY_SEARCH_APIKEY", True),
        ("GITHUB_TOKEN", True),
        ("DB_PASSWORD", True),
        ("aws_secret_access_key", True),
        ("TOKENIZERS_PARALLELISM", False),
        ("KEYBOARD_LAYOUT", False),
        ("GLASSLOOP_MODEL", False),
    ],
)
def test_what_is_masked_is_told_by_the_names_of_variables(tmp_path: Path, name: str, secret: bool) -> None:
    environ = {name: "planted-value", "SHORT_TOKEN": "abc", "GLASSLOOP_CONFIG_DIR": str(tmp_path)}
    assert load(folder=tmp_path, environ=environ).secrets == (("planted-value",) if secret else ())


def test_the_curl_command_sends_the_same_bytes_with_the_key_from_a_variable(place: Place) -> None:
    place.run("run", "look 'Rom' \"$HOME\"", env={"GLASSLOOP_API_KEY": KEY})
    command = place.look("show", "--round", "2", "--curl").out
    bin_folder = place.folder / "bin"
    bin_folder.mkdir()
    fake = bin_folder / "curl"
    fake.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word" >> words; done\ncat > body\n')
    fake.chmod(0o755)
    env = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "GLASSLOOP_API_KEY": KEY}
    subprocess.run(["/bin/sh", "-c", command], cwd=place.folder, env=env, check=True, timeout=30)
    sent = (place.folder / "body").read_bytes()
    assert sent == place.server.requests[1].raw.replace(KEY.encode(), b"***")
    words = (place.folder / "words").read_text().splitlines()
    assert f"Authorization: Bearer {KEY}" in words
    assert f"{place.server.base_url}/chat/completions" in words


def test_show_tells_the_rounds_with_their_calls_results_and_bytes(place: Place) -> None:
    place.run("run", "look 北京")
    whole = place.look("show")
    for words in (
        "you: look 北京",
        "· round 1: ",
        '→ look(city="北京")',
        "← look: 18 °C in 北京",
        "· round 2: ",
    ):
        assert words in whole.out
    one = place.look("show", "--round", "2", "--wire")
    assert "told: 18" in one.out
    assert "you: look" not in one.out
    assert f"> POST {place.server.base_url}/chat/completions" in one.out
    assert place.server.requests[1].raw.decode() in one.out
    assert place.server.requests[0].raw.decode() not in one.out.splitlines()
    missing = place.look("show", "--round", "7")
    assert missing.code == 1
    assert "2 rounds" in missing.err


def test_sessions_are_listed_searched_named_exported_imported_and_deleted(
    place: Place,
) -> None:
    place.run("run", "去京都看红叶")
    place.run("run", "other")

    def sessions(*arguments: str) -> Done:
        return place.look("sessions", *arguments)

    listed = sessions().out.splitlines()
    assert [line.split("\t")[2:] for line in listed] == [["idle", "other"], ["idle", "去京都看红叶"]]
    told = [json.loads(line) for line in sessions("list", "--json").out.splitlines()]
    assert [(one["title"], one["labels"]) for one in told] == [("other", []), ("去京都看红叶", [])]
    (hit,) = [json.loads(line) for line in sessions("search", "红叶", "--json", "-n", "1").out.splitlines()]
    kyoto = hit["session_id"]
    assert "红叶" in hit["snippet"]
    assert sessions("search", "冬天").code == 1

    assert sessions("rename", "红叶", "秋", "trip").code == 0
    assert "has no name now" in sessions("rename", "other", "").err
    assert sessions("label", "秋 trip", "#travel").code == 0
    assert sessions("list", "--label", "travel").out.split("\t")[3] == "秋 trip: 去京都看红叶 #travel\n"

    for name in ("talk.jsonl", "talk.md", "talk.html"):
        assert sessions("export", "秋 trip", "-o", name).code == 0
        assert "去京都看红叶" in (place.folder / name).read_text(encoding="utf-8")
    unknown = sessions("export", "秋 trip", "-o", "talk.PDF")
    assert (unknown.code, ".jsonl, .md, .markdown, .html, .htm" in unknown.err) == (2, True)
    assert not (place.folder / "talk.PDF").exists()
    taken = sessions("export", "秋 trip", "-o", "tools.py", "--format", "md")
    assert (taken.code, "tools.py exists: give another name, or --force." in taken.err) == (2, True)
    assert (place.folder / "tools.py").read_text(encoding="utf-8") == TOOLS
    assert sessions("export", "秋 trip", "-o", "talk.md", "--force").code == 0
    imported = sessions("import", "talk.jsonl").out.strip()
    assert place.store.entries(imported) == place.store.entries(kyoto)

    assert sessions("delete", imported).code == 2  # nobody can be asked
    assert sessions("delete", "红叶", "--yes").code == 1  # words are no name
    assert sessions("delete", imported, "--yes").code == 0
    assert len(sessions("prune", "--older-than", "0h", "--dry-run").out.splitlines()) == 1
    assert sessions("prune", "--older-than", "0h", "--yes").code == 0
    assert [one.session_id for one in place.store.sessions()] == [kyoto]


# ── In the chat ──────────────────────────────────────────────────────────────────────────────────────


def test_a_chat_goes_back_forks_and_changes_between_conversations(place: Place) -> None:
    lines = "one\ntwo\nthree\n/rewind 2\n/fork 另一个\nfour\n/sessions\n/resume one\nfive\n/undo\n/name 第一\nsix\n/usage\n"
    done = place.run("chat", stdin=lines.encode())
    assert done.code == 0
    asked = [[one for one in place.said(n) if not one.startswith("heard")] for n in range(6)]
    assert asked == [
        ["one"],
        ["one", "two"],
        ["one", "two", "three"],
        ["one", "two", "four"],
        ["one", "two", "five"],
        ["one", "two", "six"],
    ]
    first, fork = place.store.info("第一"), place.store.info("另一个")
    assert fork.forked_from == first.session_id
    assert f"{fork.session_id}  2" in done.err
    assert "taken back: three" in done.err
    assert "taken back: five" in done.err
    table = {row[0]: row[1:] for line in done.err.splitlines() if len(row := re.split(" {2,}", line)) == 3}
    assert table[""] == ["last answer", "this chat"]
    assert table["model calls"] == ["1", "6"]
    assert table["tokens in"] == ["9", "54"]


def test_show_without_a_name_means_the_last_session_of_this_folder(place: Place) -> None:
    place.run("run", "hi")
    other = place.folder / "other"
    other.mkdir()
    shown = glassloop("show", folder=other, env={"XDG_DATA_HOME": str(place.folder / "home" / "data")})
    assert (shown.code, shown.out) == (1, "")
    assert "There is no session of this folder yet." in shown.err


def test_a_chat_is_not_saved_over_what_is_there(place: Place) -> None:
    lines = "one\n/save tools.py\n/save talk.json\ntwo\n/save talk.json\n"
    done = place.run("chat", stdin=lines.encode())
    assert "tools.py exists: give another name" in done.err
    assert (place.folder / "tools.py").read_text(encoding="utf-8") == TOOLS
    saved = json.loads((place.folder / "talk.json").read_text(encoding="utf-8"))
    assert [one["content"] for one in saved] == ["one", "heard one", "two", "heard two"]
    assert "talk.json exists" in place.run("chat", stdin=b"three\n/save talk.json\n").err


def test_the_chats_commands_say_what_they_did_and_what_they_take(place: Place) -> None:
    lines = (
        "one\n/undo\nlook Rom\n/undo\ntwo\nthree\n/rewind 9\n/rewind 2\n/name\n/name 甲\n/name\n/fork 乙\n"
    )
    told = place.run("chat", stdin=lines.encode()).err
    taken_back, acted = told.index("taken back: one"), told.index("taken back: look Rom")
    assert taken_back < acted < told.index("What its tools did outside is not undone.")
    assert told.count("not undone") == 1
    for words in (
        "N is a number from 0 to 2",
        "All 2 questions are kept",
        "it has no name",
        "named 甲",
        "it is named 甲",
        "now, named 乙; the one before is",
    ):
        assert words in told
    assert {one.name for one in place.store.sessions()} == {"甲", "乙"}


# ── Limits and beginning ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("limits", "reached"), [("rounds=1", "rounds"), ("rounds=none calls=1", "tool calls")]
)
def test_a_limit_on_the_command_line_stops_the_run(place: Place, limits: str, reached: str) -> None:
    words = [word for limit in limits.split() for word in ("--limit", limit)]
    done = place.run("run", *words, "look Rom")
    assert done.code == 3
    assert f"! stopped: the limit of {reached}" in done.err


@pytest.mark.parametrize("limit", ["round=3", "rounds", "rounds=0", "rounds=1.5", "cost=nan", "seconds=x"])
def test_a_limit_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], limit: str
) -> None:
    done = glassloop_here(
        monkeypatch, capfd, tmp_path, "run", "-m", "http://127.0.0.1:9/v1#m", "--limit", limit, "x"
    )
    assert done.code == 2
    assert repr(limit) in done.err


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--fast"]])
def test_what_needs_no_session_does_not_load_the_database(tmp_path: Path, arguments: list[str]) -> None:
    probe = (
        "import sys; from glassloop.cli.main import run; run(sys.argv[1:]); print('sqlite3' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *arguments],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"
