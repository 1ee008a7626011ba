"""`glassloop demo`, `tools` and `models`."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import PROGRAM, WEATHER_TOOLS, Here, environment, glassloop_here

from glassloop import Agent, ScriptedModel
from glassloop.cli.tables import print_table
from glassloop.sessions.journal import SqliteJournal
from glassloop.testing.server import ChatServer, fails
from glassloop.tools.loading import load_tools

ANSWER = "You have no note on packing; there are notes on visa and hotel."


@pytest.mark.parametrize("columns", [20, 80])
def test_the_demo_tells_the_whole_story_without_a_key(here: Here, columns: int) -> None:
    done = here("demo", env={"COLUMNS": str(columns)})
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= columns for line in done.out.splitlines())
    told = " ".join(done.out.split())
    wanted = [
        *[
            "request 1",
            "How is the weather in Tokyo",
            "reply 1",
            "start",
            "(15 + 27) * 3 = 126",
            "18 °C, light rain",
        ],
        *["request 2", "reply 2", "error", "there is no note 'packing'", "request 3", "reply 3", ANSWER],
    ]
    at = 0
    for words in wanted:
        at = told.find(words, at)
        assert at >= 0, words


def test_the_demo_is_kept_as_a_session_where_that_is_asked_for(here: Here) -> None:
    assert here("demo", "--fast").code == 0
    assert here("sessions").out == ""
    kept = here("demo", "--fast", "--keep")
    assert kept.code == 0
    again = here(*kept.err.split()[-2:])
    assert again.code == 0
    assert ANSWER in again.out
    assert "3 requests, byte for byte" in again.err
    shown = here("show", "--wire")
    assert (shown.code, shown.out.count("· round "), shown.out.count("> POST ")) == (0, 3, 3)
    assert here("show", "--round", "2", "--curl").out.startswith("printf ")


def test_a_session_without_a_wire_says_so(tmp_path: Path, here: Here) -> None:
    store = tmp_path / "home" / "data" / "glassloop" / "sessions.db"
    store.parent.mkdir(parents=True)
    Agent(ScriptedModel(["Hello."]), journal=SqliteJournal(store, folder=str(tmp_path))).run_sync("Hi")
    for command in (["replay"], ["show", "--wire"], ["show", "--curl"]):
        assert "a scripted model sends nothing" in here(*command).err.lower(), command


def test_the_tools_are_listed_one_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.py").write_text(WEATHER_TOOLS, encoding="utf-8")
    done = glassloop_here(monkeypatch, capfd, tmp_path, "tools", "-T", "tools.py")
    assert done.code == 0
    rows = [line.split("\t") for line in done.out.splitlines()]
    effects = {row[0]: row[1] for row in rows}
    assert len(effects) == len(rows)
    for name, effect in {
        "calculator": "read",
        "weather": "read",
        "get_weather": "read",
        "send_mail": "once",
    }.items():
        assert effects[name] == effect
    own = [row[2] for row in rows].index("tools.py")
    assert own == 0
    assert {row[0] for row in rows if row[2] == "files"} >= {"read_file", "write_file"}
    assert "!" not in done.err
    assert done.err.count("search_notes") == 1


def test_what_is_listed_can_be_given_with_t(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    listed = glassloop_here(monkeypatch, capfd, tmp_path, "tools").out
    names = {cell for line in listed.splitlines() for cell in line.split("\t")[0:3:2] if cell}
    assert {"read_file", "files", "search_notes", "basics"} <= names
    for name in names:
        assert load_tools(name, {"notes_folder": "notes"})


def test_a_narrow_table_is_paragraphs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(["tool", "effect", "set", "what"], [("read_file", "read", "", "Read a text file, slowly.")])
    assert capsys.readouterr().out == "read_file (read)\n  Read a text file,\n  slowly.\n"


GOOD = WEATHER_TOOLS
POOR = '''
def process(data: str) -> str:
    """Process."""
    return data
'''
BROKEN = '''
from glassloop import tool


@tool
def search(text):
    """Search for a text. Use it to find things."""
    return text
'''


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (GOOD, 0, ["get_weather: good"]),
        (POOR, 0, ["process: ", "does not say when to use it", "`data`"]),
        (BROKEN, 1, ["tools.py", "text"]),
        ("def broken(:\n", 1, ["tools.py", "line 1"]),
        (
            POOR + "\ndef bare(text: str) -> str:\n    return text\n",
            0,
            ["bare is no tool: it has no docstring"],
        ),
        (GOOD + '\ndef other() -> None:\n    """Other."""\n', 0, ["other is no tool: it is not marked"]),
        ("def bare() -> None: ...\n", 2, ["has no tools", "`bare` is none: it has no docstring"]),
    ],
    ids=["good", "poor", "unannotated", "syntax error", "undocumented", "unmarked", "none"],
)
def test_tools_check_advises_and_fails_only_on_what_cannot_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    source: str,
    code: int,
    words: list[str],
) -> None:
    (tmp_path / "tools.py").write_text(source, encoding="utf-8")
    done = glassloop_here(monkeypatch, capfd, tmp_path, "tools", "check", "tools.py")
    assert done.code == code
    for word in words:
        assert word in done.out + done.err


@pytest.mark.parametrize("command", [["run", "-m", "ollama:x", "hi", "-T"], ["tools", "check"]], ids=" ".join)
def test_a_tool_file_that_was_named_without_its_ending_is_recognised(
    tmp_path: Path, here: Here, command: list[str]
) -> None:
    (tmp_path / "my_tools.py").write_text(WEATHER_TOOLS, encoding="utf-8")
    done = here(*command, "my_tools")
    assert (done.code, done.out) == (2, "")
    assert "Did you mean my_tools.py?" in done.err
    assert "todo" not in done.err


def test_a_file_that_is_not_there_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    done = glassloop_here(monkeypatch, capfd, tmp_path, "tools", "check", "nowhere.py")
    assert done.code == 2
    assert "nowhere.py does not exist" in done.err


NO_CATALOGUES = {
    "no JSON": ("127.0.0.1 localhost\n", "line 1 is no JSON"),
    "no object": ("3\n", "line 1 is no quirk: it is no object"),
    "no text": ('{"id": 1}\n', "its `id` is no text"),
    "no wire": (
        '{"id": "a", "family": "b", "name": "c", "wire": {"mode": "json"}}\n',
        "no object with status",
    ),
    "no action": (
        '{"id": "a", "family": "b", "name": "c", "wire": {"mode": "json", "status": 200}, "expect": {"action": "d"}}\n',
        "its `expect.action` is none of answer, execute",
    ),
    "nothing": ("\n", "holds no quirks"),
}


@pytest.mark.parametrize("command", ["play", "serve"])
@pytest.mark.parametrize("case", NO_CATALOGUES)
def test_a_file_that_is_no_catalogue_is_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    case: str,
    command: str,
) -> None:
    text, words = NO_CATALOGUES[case]
    (tmp_path / "hosts").write_text(text)
    done = glassloop_here(monkeypatch, capfd, tmp_path, "quirks", command, "hosts")
    assert done.code == 2
    assert words in done.err
    assert "mistake in Glassloop" not in done.err


def test_the_catalogue_of_the_documentation_plays(here: Here, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "endpoints.md").read_text("utf-8")
    (example,) = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "mine.jsonl").write_text(example, "utf-8")
    done = here("quirks", "play", "mine.jsonl")
    assert (done.code, "2 of 2 right" in done.out) == (0, True)


def test_quirks_are_served_with_a_command_to_try_and_no_id_is_made_up(here: Here, tmp_path: Path) -> None:
    catalogue = Path(__file__).parents[1] / "quirks" / "rejecting.jsonl"
    command = [*PROGRAM, "quirks", "serve", str(catalogue)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(tmp_path)
    ) as served:
        assert served.stdout is not None
        assert served.stderr is not None
        url = served.stdout.readline().split("\t")[0]
        assert f'run "hi" -m {url}#m' in served.stderr.readline() + served.stderr.readline()
        wrong = here("run", "hi", "-m", f"{url.removesuffix('/H1/v1')}/ZZZ/v1#m")
        right = here("run", "hi", "-m", f"{url}#m")
        served.send_signal(signal.SIGINT)
    assert (right.code, right.out) == (0, "Done.\n")
    assert wrong.code == 1
    assert "no quirk 'ZZZ' is served here; there are " in wrong.err


def test_the_models_of_an_endpoint_are_listed_one_a_line(here: Here) -> None:
    listed = {"data": [{"id": "qwen3:4b"}, {"id": "evil\x1b[2J"}]}
    with ChatServer([], gets={"/v1/models": listed}) as server:
        by_url = here("models", "--base-url", server.base_url)
        by_address = here("models", server.base_url)
        by_model = here("models", f"{server.base_url}#m")
        by_name = here("models", "ollama", env={"OLLAMA_HOST": server.url})
        twice = here("models", server.base_url, "--base-url", server.base_url)
    assert by_url.code == by_address.code == by_model.code == by_name.code == 0
    assert by_url.out == by_address.out == by_model.out == by_name.out == "evil\\x1b[2J\nqwen3:4b\n"
    assert (twice.code, "Give one address" in twice.err) == (2, True)


@pytest.mark.parametrize("named", ["provider", "own provider", "URL", "base URL"])
def test_what_lists_the_models_where_one_is_unknown_is_a_command_that_works(
    tmp_path: Path, here: Here, named: str
) -> None:
    listed = {"data": [{"id": "qwen3:4b"}]}
    with ChatServer(
        lambda request: fails(404, "The model `nope` does not exist"), gets={"/v1/models": listed}
    ) as server:
        own = f'[providers.my-gate]\nbase_url = "{server.base_url}"\napi_key = "gw-secret-1"\n'
        (tmp_path / "glassloop.toml").write_text(own)
        asked, env = {
            "provider": (["-m", "ollama:nope"], {"OLLAMA_HOST": server.url}),
            "own provider": (["-m", "my-gate:nope"], {}),
            "URL": (["-m", f"{server.base_url}#nope"], {}),
            "base URL": (["-m", "nope", "--base-url", server.base_url], {}),
        }[named]
        failed = here("run", *asked, "hi", env=env)
        command = re.search(r"What this endpoint offers: glassloop (models .*)", failed.err)
        assert command, failed.err
        # Another model may be set: what is asked is still the endpoint that does not know this one.
        done = here(
            *shlex.split(command[1]), env={**env, "GLASSLOOP_MODEL": "groq:x", "GROQ_API_KEY": "gsk_1"}
        )
        assert (done.code, done.out) == (0, "qwen3:4b\n")
        sent = {request.headers.get("Authorization") for request in server.requests}
        assert sent == {"Bearer gw-secret-1" if named == "own provider" else None}


def test_an_address_that_is_none_is_quoted_as_it_was_typed(here: Here) -> None:
    done = here("models", "ftp://x/v1")
    assert (done.code, "ftp://x/v1" in done.err, "#" in done.err, ":?" in done.err) == (2, True, False, False)


def test_an_endpoint_without_a_list_says_so(here: Here) -> None:
    with ChatServer(lambda request: fails(404, "none")) as server:
        done = here("models", "--base-url", f"{server.url}/api/v1")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")


@pytest.mark.parametrize("group", ["mcp", "quirks"])
def test_a_group_without_a_command_shows_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], group: str
) -> None:
    done = glassloop_here(monkeypatch, capfd, tmp_path, group)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Usage: glassloop {group} ")
    assert "error" not in done.err
