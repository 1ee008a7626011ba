"""`examples/minimal.py`: the loop with the standard library alone."""

import ast
import runpy
import subprocess
import sys
import threading
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "minimal.py"


@pytest.fixture
def minimal():
    return runpy.run_path(str(EXAMPLE), run_name="minimal")


def call(name, arguments, call_id="call_1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_it_tells_its_story_without_a_key():
    done = subprocess.run([sys.executable, "-I", EXAMPLE], capture_output=True, encoding="utf-8", timeout=30)
    assert done.returncode == 0, done.stderr
    question, weather, sum_, note, answer = done.stdout.splitlines()
    assert "(15 + 27) * 3" in question
    assert weather.endswith("-> 18 °C, light rain")
    assert sum_.endswith("-> (15 + 27) * 3 = 126")
    assert "Error: LookupError: there is no note 'packing'" in note
    assert "126" in answer
    assert "no note on packing" in answer


def test_it_is_short_and_needs_only_the_standard_library():
    text = EXAMPLE.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert imported <= sys.stdlib_module_names


def test_calls_of_one_turn_run_at_the_same_time_and_keep_their_order(minimal):
    both_are_running = threading.Barrier(2, timeout=20)

    def meet(who):
        both_are_running.wait()
        return who

    minimal["TOOLS"]["meet"] = meet
    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("meet", '{"who": "a"}', "1"), call("meet", '{"who": "b"}', "2")],
    }
    messages = [{"role": "user", "content": "Meet."}]
    minimal["run_agent"](minimal["scripted"](asked, {"role": "assistant", "content": "Met."}), messages)
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [(m["tool_call_id"], m["content"]) for m in messages[2:4]] == [("1", "a"), ("2", "b")]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("get_weather", '{"city": "Tokyo"}', "18 °C, light rain"),
        ("get_wether", '{"city": "Tokyo"}', "Error: there is no tool 'get_wether'. There are: get_weather"),
        ("get_weather", '{"city": "Tok', "Error: the arguments are not valid JSON"),
        ("get_weather", "", "Error: the arguments are not valid JSON"),
        ("get_weather", '{"town": "Tokyo"}', "Error: TypeError: get_weather() got an unexpected keyword"),
        ("get_weather", '["Tokyo"]', "Error: TypeError"),
        ("calculate", '{"expression": "1 / 0"}', "Error: ZeroDivisionError"),
        ("calculate", '{"expression": "__import__(\'os\')"}', "Error: ValueError: only numbers"),
        ("read_note", '{"title": "packing"}', "Error: LookupError: there is no note 'packing'"),
    ],
)
def test_every_call_gets_one_result_whatever_goes_wrong(minimal, name, arguments, says):
    result = minimal["run_call"](call(name, arguments))
    assert result["role"] == "tool"
    assert result["tool_call_id"] == "call_1"
    assert result["content"].startswith(says)


def test_a_model_that_never_stops_asking_is_asked_for_an_answer_without_tools(minimal):
    offered = []

    def insatiable(messages, tools):
        offered.append(bool(tools))
        if tools:
            return {
                "role": "assistant",
                "content": None,
                "tool_calls": [call("calculate", '{"expression": "1 + 1"}')],
            }
        return {"role": "assistant", "content": "Two, I think."}

    assert minimal["run_agent"](insatiable, [], max_rounds=3) == "Two, I think."
    assert offered == [True, True, True, False]
