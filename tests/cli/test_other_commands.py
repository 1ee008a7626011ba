"""`glassloop demo`, `tools` and `models`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.terminal import WEATHER_TOOLS, glassloop, glassloop_here

from glassloop.testing.server import ChatServer, fails

ANSWER = "You have no note on packing; there are notes on visa and hotel."


@pytest.mark.parametrize("columns", [20, 80])
def test_the_demo_tells_the_whole_story_without_a_key(tmp_path: Path, columns: int) -> None:
    done = glassloop("demo", folder=tmp_path, env={"COLUMNS": str(columns)})
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
    assert "notes" in done.err


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
    ],
    ids=["good", "poor", "unannotated", "syntax error"],
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


def test_the_models_of_an_endpoint_are_listed_one_a_line(tmp_path: Path) -> None:
    listed = {"data": [{"id": "qwen3:4b"}, {"id": "evil\x1b[2J"}]}
    with ChatServer([], gets={"/v1/models": listed}) as server:
        by_url = glassloop("models", "--base-url", server.base_url, folder=tmp_path)
        by_name = glassloop("models", "ollama", folder=tmp_path, env={"OLLAMA_HOST": server.url})
    assert by_url.code == by_name.code == 0
    assert by_url.out == by_name.out == "evil\\x1b[2J\nqwen3:4b\n"


def test_an_endpoint_without_a_list_says_so(tmp_path: Path) -> None:
    with ChatServer(lambda request: fails(404, "none")) as server:
        done = glassloop("models", "--base-url", f"{server.url}/api/v1", folder=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
