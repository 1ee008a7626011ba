"""Every block of code in the READMEs and in docs/usage.md really runs, against a real server that plays the model."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from glassloop import Endpoint, Limits
from glassloop.cli.app import app
from glassloop.cli.chat_commands import COMMANDS
from glassloop.cli.commands.chat import command as chat_command
from glassloop.cli.commands.run import command as run_command
from glassloop.config.sources import _FIELDS
from glassloop.models.providers import PROVIDERS
from glassloop.testing.server import ChatServer, Completion, Request, calls, says
from glassloop.tools import builtin

ROOT = Path(__file__).parents[1]
READMES = ["README.md", "README.zh-CN.md"]
USAGE = "docs/usage.md"


TOOL_FILE = "# my_tools.py"
"""How a block begins that is a file of tools for the commands of its page."""


def blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for name in (*READMES, USAGE):
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
        "send_mail": {"to": "ada@example.org"},
    }
    names = [tool["function"]["name"] for tool in request.body.get("tools", [])]
    wanted = [(name, arguments[name]) for name in names]
    return calls(*wanted) if wanted else says("hello")


def run(command: list[str], server: ChatServer, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
        "OLLAMA_HOST": f"127.0.0.1:{server.port}",
        "GLASSLOOP_MODEL": "ollama:qwen3",
        "GATEWAY_URL": server.base_url,
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
    words = ("20 °C", "126", "Paris", "sent to ada")
    assert code.startswith(TOOL_FILE) or any(word in ran.stdout for word in words)


@pytest.mark.parametrize(("name", "code"), blocks("sh"))
def test_a_shell_block_runs_as_it_stands(name: str, code: str, tmp_path: Path) -> None:
    for file, block in blocks("python"):
        if file == name and block.startswith(TOOL_FILE):
            (tmp_path / TOOL_FILE.removeprefix("# ")).write_text(block, "utf-8")
    with ChatServer(play) as server:
        for line in code.splitlines():
            command = shlex.split(line)
            assert command[0] == "glassloop"
            ran = run([sys.executable, "-m", "glassloop", *command[1:]], server, tmp_path)
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout.startswith("I found: " if command[1] == "run" else "get_weather: good")
    results = [m["content"] for m in json.loads(server.requests[-1].raw)["messages"] if m["role"] == "tool"]
    assert results[0] == ("Tokyo: 20 °C, clear" if name == USAGE else "(15 + 27) * 3 = 126")


@pytest.mark.parametrize(("name", "code"), blocks("toml"))
def test_a_configuration_block_is_read(name: str, code: str, tmp_path: Path) -> None:
    assert tomllib.loads(code)["model"].count(":") == 1
    (tmp_path / "glassloop.toml").write_text(code, "utf-8")
    with ChatServer(play) as server:
        ran = run([sys.executable, "-m", "glassloop", "tools"], server, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "calculator" in ran.stdout


def test_there_are_blocks_to_run() -> None:
    for language, count in {"python": 12, "sh": 3, "toml": 3}.items():
        assert len(blocks(language)) == count


def test_both_readmes_have_the_same_parts() -> None:
    english, chinese = ((ROOT / name).read_text("utf-8") for name in READMES)
    for part in (r"^## ", r"^```\w*$", r"^\|"):
        assert len(re.findall(part, english, re.MULTILINE)) == len(re.findall(part, chinese, re.MULTILINE)), (
            part
        )


def spellings(command: click.Command) -> list[str]:
    """The shortest way to write each option."""
    options = [one for one in command.params if isinstance(one, click.Option)]
    return [min(one.opts, key=len) for one in options]


NAMES = {
    "setting": tuple(_FIELDS),
    "limit": Limits.__struct_fields__,
    "provider": tuple(PROVIDERS),
    "variable of a provider": tuple(name for provider in PROVIDERS.values() for name in provider.keys),
    "tool": tuple(builtin.TOOLS),
    "set": tuple(builtin.SETS),
    "command": tuple(f"glassloop {name}" for name in app.list_commands(click.Context(app))),
    "command of the chat": tuple(f"/{name}" for name, (_, what) in COMMANDS.items() if what),
    "option": tuple(option for command in (run_command, chat_command) for option in spellings(command)),
    "endpoint's option": tuple(
        set(inspect.signature(Endpoint).parameters) - {"learned", "provider", "limit"}
    ),
}


@pytest.mark.parametrize("kind", NAMES)
def test_the_usage_page_names_all_there_is(kind: str) -> None:
    text = (ROOT / USAGE).read_text("utf-8")
    assert [
        name for name in NAMES[kind] if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    ] == []


def test_the_usage_page_links_to_what_is_there() -> None:
    for page in (*READMES, USAGE):
        text = (ROOT / page).read_text("utf-8")
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        assert links
        assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
