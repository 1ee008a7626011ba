"""`glassloop run`, as people and scripts use it: the real program against a real server."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.terminal import PROGRAM, WEATHER_TOOLS, Here, environment, glassloop, glassloop_here

from glassloop.testing.server import ChatServer, Completion, Raw, calls, fails, says

STORY = [
    calls(("get_weather", {"city": "Tokyo"}), ("get_weather", {"city": "北京"}), text="Two at once."),
    calls(("get_weather", {"city": "Atlantis"})),
    says("Tokyo and 北京 have 18 °C; Atlantis has no station."),
]


def model(server: ChatServer) -> list[str]:
    return ["-m", f"{server.base_url}#m"]


@pytest.mark.parametrize("extra", [[], ["--no-stream"]], ids=["stream", "no-stream"])
def test_the_story_runs_end_to_end_with_the_answer_alone_on_stdout(tmp_path: Path, extra: list[str]) -> None:
    (tmp_path / "tools.py").write_text(WEATHER_TOOLS, encoding="utf-8")
    with ChatServer(STORY) as server:
        done = glassloop("run", *model(server), "-T", "tools.py", *extra, "weather?", folder=tmp_path)
    assert done.code == 0
    assert done.out == "Tokyo and 北京 have 18 °C; Atlantis has no station.\n"
    for said in (
        '→ get_weather(city="Tokyo")',
        '→ get_weather(city="北京")',
        "← get_weather: 18 °C in 北京",
        "✗ get_weather: ",
        "there is no weather station in Atlantis",
        "· round 1: ",
        "· 3 rounds, 3 tool calls, tokens 27 in + 27 out",
    ):
        assert said in done.err
    assert [message["role"] for message in server.requests[2].body["messages"]] == [
        *["user", "assistant", "tool", "tool", "assistant", "tool"]
    ]
    assert bool(server.requests[0].body.get("stream")) == (not extra)


@pytest.mark.parametrize(
    ("reply", "what"),
    [(says(""), "was empty"), (says("", reasoning="Hm."), "held nothing but reasoning")],
    ids=["empty", "reasoning"],
)
def test_an_empty_reply_is_never_asked_again_in_silence(here: Here, reply: Completion, what: str) -> None:
    with ChatServer([reply, says("ok"), reply, says("ok")]) as server:
        told = here("run", *model(server), "--no-tools", "hi")
        events = here("run", *model(server), "--no-tools", "--json", "hi").events
    assert f"~ mended empty_reply: the reply {what}; asked again" in told.err
    assert "(an empty reply)" in here("show").out
    assert [event["mend"]["code"] for event in events if event["type"] == "mended"] == ["empty_reply"]


def test_a_refusal_is_told_in_sentences_and_what_was_done_then(here: Here) -> None:
    too_long = fails(400, "This model's maximum context length is 8192 tokens. However, it is 9000 tokens")
    with ChatServer([too_long, says("ok")]) as server:
        done = here("run", *model(server), "--no-tools", "hi")
    assert done.code == 0
    assert "context window. The endpoint said: " in done.err
    assert "9000 tokens. (HTTP 400" in done.err
    assert "↻ asking again" in done.err


def test_a_refused_key_says_whether_one_was_sent_and_where_it_came_from(here: Here, tmp_path: Path) -> None:
    key = "sk-live-4f60a9c2e1b8d7f3"
    (tmp_path / ".env").write_text("", "utf-8")
    with ChatServer(lambda request: fails(401, "Incorrect API key provided")) as server:
        without = here("run", *model(server), "hi")
        with_one = here("run", *model(server), "hi", env={"GLASSLOOP_API_KEY": key})
        listing = here("models", "--base-url", f"{server.base_url}/none", env={"GLASSLOOP_API_KEY": key})
    assert "No key was sent: set GLASSLOOP_API_KEY in the environment or in .env." in without.err
    assert "The key came from GLASSLOOP_API_KEY (the environment)." in with_one.err
    assert key not in with_one.err + listing.err


def test_what_is_wrong_with_the_configuration_is_said_alone(here: Here, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.", "utf-8")
    for wrong in (["-m", "deepseek:deepseek-chat"], ["-m", "http://127.0.0.1:9/v1#m", "-T", "nothing"]):
        done = here("run", *wrong, "hi")
        assert (done.code, "is not trusted yet" in done.err) == (2, False), done.err
    with ChatServer([says("ok")]) as server:
        assert here("run", *model(server), "hi").err.count("AGENTS.md is not trusted yet") == 1


def test_https_at_a_plain_port_is_told_to_be_written_as_http(here: Here) -> None:
    with ChatServer([says("ok")]) as server:
        done = here("run", "-m", f"{server.base_url.replace('http', 'https')}#m", "hi")
        assert server.requests == []
    assert done.code == 1
    assert "It speaks plain HTTP: write http:// in place of https://." in done.err
    assert "[SSL" not in done.err


def test_piped_text_stands_below_the_question(tmp_path: Path, here: Here) -> None:
    with ChatServer([says("ok"), says("ok")]) as server:
        both = glassloop(
            "run", *model(server), "Sum", "this up:", folder=tmp_path, stdin="\ufeff一\r\n".encode()
        )
        alone = here("run", *model(server), stdin=b"only piped\xff")
    assert (both.code, alone.code) == (0, 0)
    asked = [request.body["messages"][-1]["content"] for request in server.requests]
    assert asked == ["Sum this up:\n\n一", "only piped\ufffd"]


def test_json_writes_every_event_as_one_line(tmp_path: Path, here: Here) -> None:
    (tmp_path / "tools.py").write_text(WEATHER_TOOLS, encoding="utf-8")
    script = [calls(("get_weather", {"city": "A\u202eB"})), says("two words \x1b[31m")]
    with ChatServer(script) as server:
        done = here("run", *model(server), "-T", "tools.py", "--json", "go")
    assert done.code == 0
    assert not {"\x1b", "\u202e"} & set(done.out)
    events = done.events
    kinds = [event["type"] for event in events if event["type"] != "text_delta"]
    assert kinds == [
        *["run_started", "model_started", "model_finished", "tool_started", "tool_finished"],
        *["model_started", "model_finished", "finished"],
    ]
    assert (
        "".join(str(event["text"]) for event in events if event["type"] == "text_delta")
        == "two words \x1b[31m"
    )
    assert events[3]["arguments"] == {"city": "A\u202eB"}
    last = events[-1]
    assert (last["text"], last["stop_reason"], last["error"]) == ("two words \x1b[31m", "answered", None)
    assert last["usage"]["total_tokens"] == 36  # type: ignore[index]


def test_what_a_model_says_cannot_steer_the_terminal(here: Here) -> None:
    with ChatServer([says("\x1b]0;owned\x07 a\u202eb \r\nend 👩\u200d💻")]) as server:
        done = here("run", *model(server), "hi")
    assert done.out == "\\x1b]0;owned\\x07 a\\u202eb \nend 👩\u200d💻\n"


def test_without_a_terminal_a_call_that_needs_approval_is_refused_with_a_reason(
    tmp_path: Path, here: Here
) -> None:
    (tmp_path / "tools.py").write_text(WEATHER_TOOLS, encoding="utf-8")
    script = [calls(("send_mail", {"to": "a@b.c"})), says("done")] * 2
    with ChatServer(script) as server:
        refused = here("run", *model(server), "-T", "tools.py", "mail")
        allowed = here("run", *model(server), "-T", "tools.py", "--yes", "mail")
    assert (refused.code, allowed.code) == (0, 0)
    told = [request.body["messages"][-1]["content"] for request in server.requests]
    assert "nobody can be asked here" in told[1]
    assert told[3] == "sent to a@b.c"


def test_a_limit_ends_with_an_answer_and_exit_code_3(tmp_path: Path, here: Here) -> None:
    (tmp_path / "glassloop.toml").write_text("[limits]\nrounds = 1\n")
    with ChatServer([calls(("calculator", {"expression": "1+1"})), says("so far: 2")]) as server:
        done = here("run", *model(server), "count")
    assert (done.code, done.out) == (3, "so far: 2\n")
    assert "the limit of rounds is reached" in done.err


def test_ctrl_c_ends_the_run_with_exit_code_130(tmp_path: Path) -> None:
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
    slow = Raw([chunk] * 600, headers={"content-type": "text/event-stream"}, pause=0.1)
    with ChatServer([slow]) as server:
        child = subprocess.Popen(
            [*PROGRAM, "run", *model(server), "--json", "go"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        while b"text_delta" not in child.stdout.readline():
            pass
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b'"stop_reason": "cancelled"' in out
    assert b"Traceback" not in err


@pytest.mark.parametrize("extra", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_leaves_early_is_no_news(tmp_path: Path, extra: list[str]) -> None:
    with ChatServer([says("first line\n" + "and more\n" * 20_000)]) as server:
        child = subprocess.Popen(
            [*PROGRAM, "run", *model(server), *extra, "go"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stdout.readline()
        child.stdout.close()
        _, err = child.communicate(timeout=60)
    assert b"Traceback" not in err
    assert b"Broken" not in err
    assert b"error" not in err


@pytest.mark.parametrize(
    ("redirection", "code", "words"),
    [
        (">/dev/full", 1, "No space left on device"),
        (">&-", 0, "· round 1"),
        ("2>&-", 0, ""),
        ("<&-", 0, "· round 1"),
    ],
)
def test_odd_standard_streams_are_no_mistake_of_glassloop(
    tmp_path: Path, here: Here, redirection: str, code: int, words: str
) -> None:
    with ChatServer([says("ok")]) as server:
        line = f'exec "$@" {redirection}'
        done = subprocess.run(
            ["/bin/sh", "-c", line, "sh", *PROGRAM, "run", *model(server), "hi"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=90,
        )
    assert done.returncode == code
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


# ── Bad input ────────────────────────────────────────────────────────────────────────────────────────

HTML = Raw(
    [b"<!DOCTYPE html><html><title>Welcome to nginx</title></html>"], headers={"content-type": "text/html"}
)
BAD_ANSWERS = {
    "wrong key": (fails(401, "Incorrect API key provided: sk-12"), 1, ["Incorrect API key", "401", "key"]),
    "html": (HTML, 1, ["HTML", "base URL"]),
    "no such model": (fails(404, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}), 1, ["does not exist", "glassloop models"]),
    "out of credit": (fails(402, "Insufficient Balance"), 1, ["Insufficient Balance", "credit"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_a_bad_answer_gives_one_clear_message(here: Here, case: str) -> None:
    answer, code, words = BAD_ANSWERS[case]
    with ChatServer(lambda request: answer) as server:
        done = here("run", *model(server), "hi")
    assert (done.code, done.out) == (code, "")
    assert done.err.count("error: ") == 1
    for word in words:
        assert word.lower() in done.err.lower()


BAD_COMMAND_LINES = {
    "empty question": (["run", "-m", "ollama:x", "  "], 2, ["empty", 'glassloop run "']),
    "unknown provider": (["run", "-m", "opnrouter:x", "hi"], 2, ["opnrouter", "openrouter"]),
    "no key": (["run", "-m", "deepseek:x", "hi"], 2, ["DEEPSEEK_API_KEY"]),
    "url without model": (["run", "-m", "http://localhost:1/v1", "hi"], 2, ["names no model", "#"]),
    "bad url": (["run", "--base-url", "ftp://x", "-m", "m", "hi"], 2, ["ftp://x", "--base-url"]),
    "unknown option": (["run", "--modle", "x", "hi"], 2, ["--modle", "--model"]),
    "unknown command": (["rnu"], 2, ["rnu", "'run'", "--help"]),
    "missing tool file": (["run", "-m", "ollama:x", "-T", "none.py", "hi"], 2, ["none.py", "does not exist"]),
    "unknown tool": (["run", "-m", "ollama:x", "-T", "calculater", "hi"], 2, ["calculater", "calculator"]),
    "tool file with a syntax error": (
        ["run", "-m", "ollama:x", "-T", "broken.py", "hi"],
        2,
        ["broken.py", "line 2"],
    ),
    "a limit that is no number": (["run", "--limit", "rounds=x", "hi"], 2, ["rounds=x", "a whole number"]),
    "a window that is no number": (["run", "--window", "size=x", "hi"], 2, ["size=x", "a whole number"]),
    "a missing root": (["run", "--root", "nowhere", "hi"], 2, ["--root nowhere", "no such folder"]),
    "missing notes": (
        ["run", "-m", "ollama:x", "--notes", "nowhere", "hi"],
        2,
        ["nowhere", "does not exist"],
    ),
}


@pytest.mark.parametrize("case", BAD_COMMAND_LINES)
def test_a_bad_command_line_gives_one_clear_message_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], case: str
) -> None:
    (tmp_path / "broken.py").write_text("import os\ndef broken(:\n    pass\n")
    arguments, code, words = BAD_COMMAND_LINES[case]
    done = glassloop_here(monkeypatch, capfd, tmp_path, *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.count("error: ") == 1
    for word in words:
        assert word in done.err


def test_an_unreachable_host_is_named_with_what_to_do(here: Here) -> None:
    done = here("run", "-m", "http://127.0.0.1:9/v1#m", "hi")
    assert (done.code, done.out) == (1, "")
    assert "127.0.0.1:9" in done.err
    assert "Is the server running" in done.err


def test_a_question_of_5_mb_is_remarked_upon_and_the_endpoint_decides(here: Here) -> None:
    words = "This model's maximum context length is 8192 tokens. However, you requested 1250012 tokens."
    overflow = fails(400, words)
    with ChatServer(lambda request: overflow) as server:
        done = here("run", *model(server), "Sum up:", stdin=b"words " * 870_000)
    assert (done.code, done.out) == (1, "")
    assert "5,22" in done.err
    assert "larger context window" in done.err
    assert len(done.err) < 3000


def test_a_notes_folder_with_odd_files_is_searched_all_the_same(tmp_path: Path, here: Here) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plan.md").write_text("# 会议\n下周三开会讨论预算。\n", encoding="utf-8")
    (notes / "picture.md").write_bytes(bytes(range(256)) * 40)
    (notes / "gone.md").symlink_to(tmp_path / "nowhere.md")
    with ChatServer([calls(("search_notes", {"query": "预算"})), says("Wednesday")]) as server:
        done = here("run", *model(server), "--notes", "notes", "when?")
    assert (done.code, done.out) == (0, "Wednesday\n")
    assert "plan.md" in server.requests[1].body["messages"][-1]["content"]


def test_a_dotenv_from_any_editor_is_understood(tmp_path: Path, here: Here) -> None:
    with ChatServer([says("ok")]) as server:
        text = f"export GLASSLOOP_BASE_URL='{server.base_url}'\r\nGLASSLOOP_API_KEY=\"sk-1\" # mine\r\nGLASSLOOP_MODEL=m\r\n"
        (tmp_path / ".env").write_bytes(b"\xef\xbb\xbf" + text.encode())
        done = here("run", "hi")
    assert (done.code, done.out) == (0, "ok\n")
    assert server.requests[0].headers["Authorization"] == "Bearer sk-1"


def test_a_terminal_of_20_columns_gets_lines_of_20_columns(here: Here) -> None:
    script = [calls(("calculator", {"expression": "12345678 * 87654321"})), says("一")]
    with ChatServer(script) as server:
        done = here("run", *model(server), "hi", env={"COLUMNS": "20"})
    assert done.code == 0
    marked = [line for line in done.err.splitlines() if line.startswith(("→", "←"))]
    assert len(marked) == 2
    assert all(len(line) <= 20 for line in marked)


def test_stdin_that_stays_open_is_waited_for_and_said(tmp_path: Path) -> None:
    with ChatServer([says("ok")]) as server:
        child = subprocess.Popen(
            [*PROGRAM, "run", *model(server), "hi"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stderr is not None
        assert b"waiting for the piped input" in child.stderr.readline()
        out, _ = child.communicate(b"more", timeout=30)
    assert out == b"ok\n"
    assert server.requests[0].body["messages"][-1]["content"] == "hi\n\nmore"


# ── Nothing configured ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", [["run", "hi"], ["chat"], ["models"]], ids=lambda command: command[0])
def test_with_nothing_configured_three_ways_are_shown(here: Here, command: list[str]) -> None:
    done = here(*command, env={"OLLAMA_HOST": "127.0.0.1:9"})
    assert (done.code, done.out) == (2, "")
    for words in ("1. ", "2. ", "3. ", "OPENROUTER_API_KEY", "glassloop demo"):
        assert words in done.err


def test_an_ollama_that_runs_is_offered_with_its_models_and_a_key_with_its_provider(
    tmp_path: Path, here: Here
) -> None:
    listed = {"object": "list", "data": [{"id": "qwen3:4b"}, {"id": "llama3.2"}]}
    (tmp_path / ".env").write_text("GROQ_API_KEY=gsk_1\n")
    with ChatServer([], gets={"/v1/models": listed}) as server:
        done = here("run", "hi", env={"OLLAMA_HOST": f"127.0.0.1:{server.port}"})
    assert done.code == 2
    assert f"Ollama is running at {server.base_url}." in done.err
    assert "glassloop run -m ollama:qwen3:4b" in done.err
    assert "llama3.2" in done.err
    assert "glassloop models groq" in done.err
    assert "gsk_1" not in done.err


def test_the_version_comes_without_the_heavy_libraries(tmp_path: Path) -> None:
    probe = (
        "import atexit, sys; sys.argv = ['glassloop', '--version']; "
        "atexit.register(lambda: print(sorted(sys.modules))); "
        "from glassloop.cli.main import main; main()"
    )
    done = subprocess.run(
        [PROGRAM[0], "-c", probe],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    version, modules = done.stdout.splitlines()
    assert version.startswith("glassloop ")
    for heavy in ("click", "aiohttp", "pydantic", "rich", "prompt_toolkit", "dotenv", "asyncio"):
        assert f"'{heavy}'" not in modules
