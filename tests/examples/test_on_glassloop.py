"""The examples that stand on Glassloop, run as a person would run them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from glassloop.models.scripted import ScriptedModel, call, calls

EXAMPLES = Path(__file__).parents[2] / "examples"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_four_parts_gives_126_and_the_time_with_every_part_replaced() -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "four_parts.py"], capture_output=True, text=True, check=True, timeout=60
    )
    lines = ran.stdout.splitlines()
    assert "audit: calculator({'expression': '(15 + 27) * 3'}) -> ok" in lines
    assert "journal: 3 Verdict, 4 Verdict" in lines
    answer = next(line for line in lines if line.startswith("(15"))
    assert answer.startswith("(15 + 27) * 3 = 126 It is ")
    assert answer.endswith("You are welcome.")
    assert lines[-1] == "The quota of this month is used up. You are welcome."


def test_day2_chat_is_short_and_chats_with_all_four_tools(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len((EXAMPLES / "day2_chat.py").read_text("utf-8").splitlines()) < 60
    day2 = module("day2_chat")
    model = ScriptedModel(
        [
            calls(call("calculator", expression="(15 + 27) * 3"), call("current_time")),
            "It is 126.",
            calls(call("search_notes", query="部署")),
            "On Monday.",
        ]
    )
    agent = day2.make_agent(model)
    assert {spec.name for spec in agent.tools.specs} == {
        "weather",
        "calculator",
        "search_notes",
        "current_time",
    }
    lines = iter(
        ["(15 + 27) * 3, and what time is it?", "history", "clear", "history", "什么时候部署？", "quit"]
    )
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    day2.chat(agent)
    shown = capsys.readouterr().out
    assert "[calculator: (15 + 27) * 3 = 126]" in shown
    assert "It is 126." in shown
    assert "项目.md" in shown
    assert shown.count("user: ") == 1
    assert len(model.requests[2].entries) == 2


def test_day2_chat_without_a_key_says_so_in_a_line(tmp_path: Path) -> None:
    kept = {
        name: value
        for name, value in os.environ.items()
        if "_API_KEY" not in name and name != "GLASSLOOP_MODEL"
    }
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "day2_chat.py")],
        cwd=tmp_path, env={**kept, "GLASSLOOP_CONFIG_DIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "set OPENROUTER_API_KEY" in done.stderr
