"""Every block of code in the READMEs really runs, against a real server that plays the model."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from glassloop.testing.server import ChatServer, Completion, Request, calls, says

ROOT = Path(__file__).parents[1]
READMES = ["README.md", "README.zh-CN.md"]


def blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for name in READMES:
        text = (ROOT / name).read_text("utf-8")
        found += [
            (name, code) for code in re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        ]
    return found


def play(request: Request) -> Completion:
    """A model that uses each tool that it is offered once, then answers."""
    messages = request.body["messages"]
    if "JSON Schema" in messages[0]["content"]:
        return says('{"name": "Paris", "country": "France"}')
    if messages[-1]["role"] == "tool":
        return says(f"I found: {messages[-1]['content']}")
    arguments = {
        "get_weather": {"city": "Tokyo"},
        "calculator": {"expression": "(15 + 27) * 3"},
        "current_time": {},
    }
    names = [tool["function"]["name"] for tool in request.body.get("tools", [])]
    wanted = [(name, arguments[name]) for name in names]
    return calls(*wanted) if wanted else says("hello")


def run(command: list[str], server: ChatServer, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
        "OLLAMA_HOST": f"127.0.0.1:{server.port}",
        "GLASSLOOP_MODEL": "ollama:qwen3",
        "GLASSLOOP_DATA_DIR": str(folder / "data"),
        "GLASSLOOP_CONFIG_DIR": str(folder / "config"),
    }
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, env=environment)


@pytest.mark.parametrize(("name", "code"), blocks("python"))
def test_a_python_block_runs_as_it_stands(name: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "block.py").write_text(code, "utf-8")
    with ChatServer(play) as server:
        ran = run([sys.executable, "block.py"], server, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "20 °C" in ran.stdout or "126" in ran.stdout or "Paris" in ran.stdout


@pytest.mark.parametrize(("name", "code"), blocks("sh"))
def test_a_shell_block_runs_as_it_stands(name: str, code: str, tmp_path: Path) -> None:
    with ChatServer(play) as server:
        for line in code.splitlines():
            command = shlex.split(line)
            assert command[0] == "glassloop"
            ran = run([sys.executable, "-m", "glassloop", *command[1:]], server, tmp_path)
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout.startswith("I found: ")
            assert "calculator" in ran.stderr
    results = [m["content"] for m in json.loads(server.requests[-1].raw)["messages"] if m["role"] == "tool"]
    assert results[0] == "(15 + 27) * 3 = 126"


@pytest.mark.parametrize(("name", "code"), blocks("toml"))
def test_a_configuration_block_is_read(name: str, code: str, tmp_path: Path) -> None:
    assert tomllib.loads(code)["model"].count(":") == 1
    (tmp_path / "glassloop.toml").write_text(code, "utf-8")
    with ChatServer(play) as server:
        ran = run([sys.executable, "-m", "glassloop", "tools"], server, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "calculator" in ran.stdout


def test_there_are_blocks_to_run() -> None:
    assert len(blocks("python")) >= 4
    assert len(blocks("sh")) == 2
    assert len(blocks("toml")) == 1
