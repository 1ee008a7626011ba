"""The `run_python` tool and code mode, as a model uses them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builtin.sandboxed import called, needs_bubblewrap, nothing_left

from glassloop.core.entries import ToolCall, ToolResult
from glassloop.core.tools import Decision, Verdict
from glassloop.tools import builtin
from glassloop.tools.builtin import python_monty
from glassloop.tools.builtin.calculator import calculator
from glassloop.tools.builtin.python import code_mode_tool
from glassloop.tools.builtin.python_calls import MAX_CALLS, MAX_LINE, Border, functions_of
from glassloop.tools.builtin.sandbox_place import place_from
from glassloop.tools.context import ToolContext
from glassloop.tools.tool import Tool, tool
from glassloop.tools.toolbox import Toolbox

needs_monty = pytest.mark.skipif(
    importlib.util.find_spec("pydantic_monty") is None, reason="pydantic-monty is not installed"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def ran(project: Path, code: str, **options: Any) -> ToolResult:
    run_python = builtin.load("python", {"files_root": str(project)})[0]
    return asyncio.run(called(run_python, code=code, **options))


RUNS = {
    "the value of the last line": ("x = 20\nx + 22", "exit code 0", "42\n"),
    "what was printed, then the value": ("print('hi')\n'a\\nb'", "exit code 0", "hi\n'a\\nb'\n"),
    "no value where there is none": ("x = 1", "exit code 0", ""),
    "None is no value": ("print('a')", "exit code 0", "a\n"),
    "a comment after the value": ("1 + 1  # two\n", "exit code 0", "2\n"),
    "only a comment": ("# nothing", "exit code 0", ""),
    "an exit code": ("import sys\nsys.exit(4)", "exit code 4", ""),
    "installed packages": ("import pydantic\npydantic.BaseModel.__name__", "exit code 0", "'BaseModel'\n"),
    "functions of its own": ("def f(n):\n    return n and n * f(n - 1) or 1\nf(5)", "exit code 0", "120\n"),
    "main": ("if __name__ == '__main__':\n    print('main')", "exit code 0", "main\n"),
}


@needs_bubblewrap
@pytest.mark.parametrize(("code", "outcome", "output"), RUNS.values(), ids=RUNS)
def test_code_runs_and_its_output_and_value_come_back(
    code: str, outcome: str, output: str, project: Path
) -> None:
    assert ran(project, code).text == f"[{outcome}, bubblewrap, no network]\n{output}"


FAILS = {
    "an exception": ("x = 1\nx / 0", "line 2, in <module>\n    x / 0\n", "ZeroDivisionError"),
    "no syntax": ("x = (", "line 1", "SyntaxError"),
    "a NUL": ("x = '\0'", "", "null bytes"),
    "too deep": ("(" * 50_000, "", "Error"),
    "too deep without brackets": ("-" * 50_000 + "1", "", "Error"),
    "too much memory": ("x = bytearray(10 * 2**30)", "", "MemoryError"),
    "no key": ("import os\nos.environ['OPENAI_API_KEY']", "", "KeyError"),
    "no file outside": ("open('/etc/passwd')", "", "FileNotFoundError"),
    "no network": (
        "import socket\nsocket.create_connection(('192.0.2.1', 80), 5)",
        "",
        "Network is unreachable",
    ),
    "no input": ("input()", "", "EOFError"),
}


@needs_bubblewrap
@pytest.mark.parametrize(("code", "where", "error"), FAILS.values(), ids=FAILS)
def test_code_that_fails_says_where_and_why(
    code: str, where: str, error: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    text = ran(project, code).text
    assert text.startswith("[exit code 1, ")
    assert where in text
    assert error in text
    assert "sk-secret" not in text


@needs_bubblewrap
def test_a_crash_of_the_interpreter_is_a_result(project: Path) -> None:
    assert ran(project, "import ctypes\nctypes.string_at(0)").text.startswith("[exit code 139, ")


@needs_bubblewrap
def test_an_endless_loop_and_its_children_are_stopped(project: Path) -> None:
    with nothing_left(project):
        code = "import os\nprint('begun')\nos.fork()\nos.setsid() if os.fork() else 0\nwhile True: pass"
        text = ran(project, code, timeout=1).text
    assert text == "[stopped after 1 seconds, bubblewrap, no network]\nbegun\n"


@needs_bubblewrap
def test_the_project_is_writable_and_its_modules_are_not_imported_unasked(project: Path) -> None:
    (project / "json.py").write_text("raise SystemExit('evil')")
    assert "exit code 0" in ran(project, "import json\nopen('made', 'w').close()").text
    assert (project / "made").exists()


def test_code_is_always_asked_about_in_full(project: Path) -> None:
    made = builtin.load("python", {"files_root": str(project)})[0]
    verdict = Toolbox([made]).prepare(ToolCall("c1", "run_python", {"code": "import os\nos.remove('x')"}))
    assert verdict.outcome == "ask"
    assert "os.remove('x')" in verdict.text
    assert "it runs 2 lines of Python" in verdict.text


def test_without_a_sandbox_and_the_embedded_interpreter_nothing_runs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassloop.tools.builtin.sandbox_place.candidates", list)
    monkeypatch.setattr("glassloop.tools.builtin.python_monty.is_installed", lambda: False)
    result = ran(project, "open('ran', 'w')")
    assert result.state == "error"
    assert "no bubblewrap is installed" in result.text
    assert list(project.iterdir()) == []


EMBEDDED = {
    "print('hi')\n1 + 1": ["exit code 0", "hi\n2\n"],
    "1 / 0": ["exit code 1", "line 1", "ZeroDivisionError"],
    "x = (": ["exit code 1", "SyntaxError"],
    "open('/etc/passwd').read()": ["exit code 1", "PermissionError"],
    "while True: pass": ["exit code 1", "TimeoutError"],
    "'x' * 10**10": ["exit code 1", "MemoryError"],
    "import subprocess": ["exit code 1", "ModuleNotFoundError"],
}


@needs_monty
@pytest.mark.parametrize(("code", "words"), EMBEDDED.items())
def test_without_a_sandbox_code_runs_in_the_embedded_interpreter(
    code: str, words: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassloop.tools.builtin.sandbox_place.candidates", list)
    with nothing_left(project):
        text = ran(project, code, timeout=1).text
    assert text.split("]")[0].endswith("embedded interpreter without files and network")
    assert [word for word in words if word not in text] == []


@needs_monty
def test_the_embedded_interpreter_ends_with_a_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    begun = asyncio.Event()

    async def cancelled() -> None:
        code = "print('begun')\nwhile True: pass"
        running = asyncio.create_task(python_monty.run(code, 60, lambda text: begun.set()))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with nothing_left(tmp_path):
        asyncio.run(cancelled())


# ── code mode ────────────────────────────────────────────────────────────────────────────────────────


class Desk:
    """Tools that remember what they were asked to do, and a person who is asked."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.keys: list[str] = []
        self.asked: list[str] = []
        self.answer: Callable[[Verdict], Any] = lambda verdict: True

    def tools(self) -> Toolbox:
        @tool(effect="read")
        def add(a: int, b: int = 1) -> int:
            """Add two numbers."""
            return a + b

        @tool(effect="once", approve=True)
        async def send_mail(to: str, context: ToolContext) -> str:
            """Send a mail."""
            self.sent.append(to)
            self.keys.append(context.key)
            return f"sent to {to}"

        @tool(name="server__look-up", effect="read")
        def look_up(name: str) -> dict[str, str]:
            """Look a name up.

            In a long list.
            """
            if name == "nobody":
                raise LookupError("nobody is not in it")
            return {"name": name}

        return Toolbox([add, send_mail, look_up, calculator])

    def approve(self, verdict: Verdict) -> Any:
        self.asked.append(verdict.text)
        return self.answer(verdict)

    def made(self, project: Path) -> Tool:
        return code_mode_tool(self.tools(), self.approve, place_from({"files_root": str(project)}))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_the_model_is_told_each_function_with_its_parameters(desk: Desk, project: Path) -> None:
    described = desk.made(project).description.split("\n\n", 1)[1].split("\n")
    assert described[:3] == [
        "add(a: integer, b: integer = …) -> str: Add two numbers.",
        "send_mail(to: string) -> str: Send a mail.",
        "server__look_up(name: string) -> str: Look a name up.",
    ]


def test_names_that_are_no_names_in_python_become_ones() -> None:
    names = ["a-b", "a.b", "1st", "class", "日本"]
    made = [Tool(name, "x", {"type": "object", "properties": {}}, print) for name in names if name != "日本"]
    assert [each.name for each in functions_of(Toolbox(made))] == ["a_b", "_1st", "class_"]


@needs_bubblewrap
def test_one_turn_does_twenty_calls_in_order(desk: Desk, project: Path) -> None:
    code = "total = 0\nfor n in range(20):\n    total = int(add(total, b=n))\ntotal"
    told: list[str] = []
    result = asyncio.run(called(desk.made(project), ToolContext(progress=told.append), code=code))
    assert result.text == "[exit code 0, bubblewrap, no network, called add ×20]\n190\n"
    assert [line for line in told if line.startswith("add ")][1] == 'add {"a": 0, "b": 1}\n'


@needs_bubblewrap
def test_each_call_that_needs_it_is_asked_about_and_one_no_stops_only_that_one(
    desk: Desk, project: Path
) -> None:
    desk.answer = lambda verdict: Decision(verdict.call.id, "bob" not in verdict.text, "not bob")
    code = (
        "for to in ('ann', 'bob', 'cy'):\n"
        "    try:\n        print(send_mail(to))\n"
        "    except ToolError as error:\n        print(error)"
    )
    result = asyncio.run(called(desk.made(project), ToolContext(key="k", call_id="c"), code=code))
    assert result.text.split("\n")[1:4] == [
        "sent to ann",
        "the user did not allow this call of `send_mail`: not bob",
        "sent to cy",
    ]
    assert len(desk.asked) == 3
    assert desk.sent == ["ann", "cy"]
    assert desk.keys == ["k.1", "k.3"]


@needs_bubblewrap
@pytest.mark.parametrize("answer", [None, False])
def test_nothing_runs_without_a_yes(answer: bool | None, desk: Desk, project: Path) -> None:
    desk.answer = lambda verdict: answer
    result = asyncio.run(called(desk.made(project), code="send_mail('ann')"))
    assert "ToolError: the user did not allow this call of `send_mail`" in result.text
    assert desk.sent == []


@needs_bubblewrap
def test_what_a_tool_says_is_text_and_its_failure_an_exception(desk: Desk, project: Path) -> None:
    code = (
        "import json\nprint(json.loads(server__look_up('ann'))['name'])\n"
        "for call in (lambda: server__look_up('nobody'), lambda: add('x'), lambda: add(1, 2, 3), lambda: add(c=1)):\n"
        "    try: call()\n    except (ToolError, TypeError) as error: print(type(error).__name__, error)"
    )
    lines = asyncio.run(called(desk.made(project), code=code)).text.split("\n")
    assert lines[1] == "ann"
    assert lines[2] == "ToolError LookupError: nobody is not in it"
    assert lines[3].startswith("ToolError The arguments do not fit `add`")
    assert "TypeError add() takes 2 arguments but 3 were given" in lines
    assert any("`c`" in line for line in lines)


@needs_bubblewrap
def test_the_time_in_which_a_person_thinks_does_not_count(desk: Desk, project: Path) -> None:
    async def thinking(verdict: Verdict) -> bool:
        await asyncio.sleep(1.2)
        return True

    desk.answer = thinking
    result = asyncio.run(called(desk.made(project), code="send_mail('ann')", timeout=1))
    assert result.text.startswith("[exit code 0, ")
    slow = asyncio.run(called(desk.made(project), code="send_mail('ann')\nwhile True: pass", timeout=1))
    assert slow.text.startswith("[stopped after 1 seconds, ")


@needs_bubblewrap
def test_calls_from_many_threads_do_not_mix(desk: Desk, project: Path) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool: found = list(pool.map(lambda n: int(add(n, n)), range(40)))\n"
        "found == [2 * n for n in range(40)]"
    )
    assert asyncio.run(called(desk.made(project), code=code)).text.endswith("\nTrue\n")


@needs_bubblewrap
def test_a_cancel_while_a_call_is_asked_about_leaves_nothing(
    desk: Desk, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(project.parent))
    asking = asyncio.Event()

    async def never(verdict: Verdict) -> bool:
        asking.set()
        await asyncio.sleep(60)
        return True

    async def cancelled() -> None:
        running = asyncio.create_task(called(desk.made(project), code="send_mail('ann')"))
        await asking.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    desk.answer = never
    with nothing_left(project.parent):
        asyncio.run(cancelled())
    assert desk.sent == []


@needs_bubblewrap
def test_an_approval_that_breaks_ends_the_code_and_is_told(desk: Desk, project: Path) -> None:
    def broken(verdict: Verdict) -> bool:
        raise RuntimeError("the screen is gone")

    desk.answer = broken
    with nothing_left(project):
        result = asyncio.run(called(desk.made(project), code="send_mail('ann')"))
    assert result.state == "error"
    assert "the screen is gone" in result.text


# ── the border, spoken to without the child's manners ────────────────────────────────────────────────

NO_CALLS = [
    b"",
    b"\n",
    b"null\n",
    b"[]\n",
    b'{"tool": "add"}\n',
    b'{"tool": 1, "arguments": {}}\n',
    b'{"tool": "add", "arguments": [1]}\n',
    b'{"tool": "add", "arguments": {"a": NaN}}\n',
    b'{"tool": "add", "arguments": {"a": 1, "a": 2}}\n',
    b'{"tool": "add", "arguments": {"a": ' + b"9" * 5_000 + b"}}\n",
    b'{"tool": "add", "arguments": ' + b"[" * 100_000 + b"\n",
    b"\x80\x04\x95\x00cposix\nsystem\n",
    b"\xff\xfe\n",
]


@pytest.mark.parametrize("line", NO_CALLS, ids=lambda line: ascii(line)[:30])
def test_what_is_no_call_is_answered_so_and_nothing_runs(line: bytes, desk: Desk) -> None:
    ok, text = answered(desk, line)
    assert not ok
    assert "this is no call of a tool" in text


def answered(desk: Desk, line: bytes) -> tuple[bool, str]:
    async def answer() -> tuple[bool, str]:
        border = Border(desk.tools(), desk.approve, ToolContext(), asyncio.timeout(5))
        return await border.answer(line)

    return asyncio.run(answer())


@pytest.mark.parametrize("name", ["", "run_code", "../add", "os.system", "__import__", "add\n", "Add\u202e"])
def test_only_tools_by_their_own_names_can_be_called(name: str, desk: Desk) -> None:
    ok, text = answered(desk, json.dumps({"tool": name, "arguments": {"a": 1}}).encode() + b"\n")
    assert not ok
    assert "nothing ran" in text


def test_a_claim_of_being_allowed_is_no_permission(desk: Desk) -> None:
    desk.answer = lambda verdict: False
    claim = {"tool": "send_mail", "arguments": {"to": "ann"}, "allowed": True, "verdict": "ready"}
    assert answered(desk, json.dumps(claim).encode() + b"\n")[0] is False
    assert desk.sent == []


def test_the_number_of_calls_is_limited(desk: Desk) -> None:
    async def many() -> list[bool]:
        border = Border(desk.tools(), None, ToolContext(), asyncio.timeout(60))
        line = b'{"tool": "add", "arguments": {"a": 1}}\n'
        return [(await border.answer(line))[0] for _ in range(MAX_CALLS + 2)]

    assert asyncio.run(many()) == [True] * MAX_CALLS + [False] * 2


def test_names_that_code_invents_are_neither_counted_nor_shown(desk: Desk) -> None:
    said: list[str] = []

    async def many() -> Border:
        context = ToolContext(progress=said.append)
        border = Border(desk.tools(), None, context, asyncio.timeout(60))
        for number in range(3):
            await border.answer(json.dumps({"tool": f"{number}" * 900_000, "arguments": {}}).encode() + b"\n")
        return border

    assert asyncio.run(many()).calls == {"(no such tool)": 3}
    assert max(map(len, said)) < 300


@needs_bubblewrap
def test_code_that_floods_the_border_is_cut_off(desk: Desk, project: Path) -> None:
    code = (
        "import gc, socket\n"
        "[line] = [each for each in gc.get_objects() if isinstance(each, socket.socket)]\n"
        f"try: line.sendall(b'x' * {3 * MAX_LINE})\n"
        "except OSError: pass\n"
        "add(1)"
    )
    with nothing_left(project):
        text = asyncio.run(called(desk.made(project), code=code)).text
    assert text.startswith("[exit code 1, ")
    assert "Error" in text


def test_the_childs_program_needs_nothing_but_the_standard_library() -> None:
    path = Path(builtin.__file__).with_name("python_child.py")
    imported = {
        line.split()[1] for line in path.read_text().splitlines() if line.startswith(("import ", "from "))
    }
    assert imported <= sys.stdlib_module_names
