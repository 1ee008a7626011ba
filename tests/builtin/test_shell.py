"""The `run_command` tool, as a model uses it."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.builtin.sandboxed import called, living, needs_bubblewrap, nothing_left

from glassloop.core.entries import ToolCall
from glassloop.tools import builtin
from glassloop.tools.builtin.shell import MAX_SECONDS, within_limits
from glassloop.tools.context import ToolContext
from glassloop.tools.tool import Tool
from glassloop.tools.toolbox import Toolbox


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub" / "deep").mkdir(parents=True)
    return root


def shell(project: Path, **options: str) -> Tool:
    return builtin.load("shell", {"files_root": str(project), **options})[0]


@pytest.fixture(params=["auto", pytest.param("none", id="unconfined")])
def run_command(request: pytest.FixtureRequest, project: Path) -> Tool:
    if request.param == "auto":
        request.applymarker(needs_bubblewrap)
    return shell(project, sandbox=request.param)


def texts(made: Tool, *commands: str) -> list[str]:
    """The results of these commands, one after the other."""

    async def all_called() -> list[str]:
        return [(await called(made, command=command)).text for command in commands]

    return asyncio.run(all_called())


def test_the_result_has_the_exit_code_what_confined_it_and_the_output(run_command: Tool) -> None:
    one, two = texts(run_command, "echo hi; echo no >&2; exit 3", "echo hi")
    head, output = one.split("\n", 1)
    assert head in ("[exit code 3, bubblewrap, no network, in .]", "[exit code 3, no sandbox, in .]")
    assert output == "hi\nno\n"
    assert two.startswith("[exit code 0, ")


def test_the_working_folder_lasts_and_nothing_else_does(run_command: Tool) -> None:
    results = texts(
        run_command,
        "cd sub && export PAGER=evil && git() { echo evil; } && alias ls=evil",
        'pwd; echo "$PAGER"; type -t git; alias',
        "cd deep; exit 7",
        "pwd",
    )
    assert results[0].split("]")[0].endswith("in sub")
    assert [line.rpartition("/")[2] for line in results[1].split("\n")[1:]] == ["sub", "cat", "file", ""]
    assert results[3].endswith("sub/deep\n")


@pytest.mark.parametrize(
    "way_out", ["cd /", "cd ..", "cd /usr/bin", "ln -s / out; cd out", "rmdir sub/deep; cd sub/deep"]
)
def test_the_working_folder_stays_inside_the_project(way_out: str, run_command: Tool, project: Path) -> None:
    assert texts(run_command, way_out, "pwd")[1].split("\n")[1] == str(project)


def test_a_working_folder_that_is_gone_or_became_a_link_out_is_left(run_command: Tool, project: Path) -> None:
    assert texts(run_command, "cd sub/deep")[0].split("]")[0].endswith("sub/deep")
    (project / "sub" / "deep").rmdir()
    (project / "sub" / "deep").symlink_to("/")
    assert texts(run_command, "pwd")[0].split("\n")[1] == str(project)


def test_a_child_cannot_send_the_tool_to_a_folder_outside(run_command: Tool, project: Path) -> None:
    lie = "for fd in /proc/$$/fd/*; do echo /usr > $fd; done 2>/dev/null; trap - EXIT; pwd"
    texts(run_command, lie)
    assert texts(run_command, "pwd")[0].split("\n")[1] == str(project)


def test_a_simple_command_runs_without_a_shell(run_command: Tool) -> None:
    parent = "import os, sys; sys.stdout.write(open(f'/proc/{os.getppid()}/cmdline').read())"
    assert "bash" not in texts(run_command, f'python3 -c "{parent}"')[0]
    assert texts(run_command, "printf %s '$(id);`id`|&'")[0].endswith("]\n$(id);`id`|&")


def test_a_program_that_is_not_there_is_said_to_be_so(run_command: Tool) -> None:
    [text] = texts(run_command, "nosuchprogram a b")
    assert text.startswith("[exit code 127, ")
    assert text.endswith("nosuchprogram: command not found")


def test_a_program_in_the_project_is_not_found_by_its_bare_name(run_command: Tool, project: Path) -> None:
    evil = project / "git"
    evil.write_text("#!/bin/sh\necho evil\n")
    evil.chmod(0o755)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    assert "evil" not in texts(run_command, "git --version")[0]
    assert texts(run_command, "./git")[0].endswith("evil\n")


def test_what_a_repository_or_its_environment_names_is_not_run(
    run_command: Tool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    for key in ("core.fsmonitor", "core.pager"):
        subprocess.run(["git", "config", key, "touch evil; cat"], cwd=project, check=True)
    for name in ("GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER"):
        monkeypatch.setenv(name, "touch evil")
    (project / "a").write_text("a")
    assert "?? a" in texts(run_command, "git status --short")[0]
    texts(run_command, "git add a", "git diff --cached")
    assert not (project / "evil").exists()


def test_time_is_limited_and_the_model_told(run_command: Tool, project: Path) -> None:
    with nothing_left(project):
        result = asyncio.run(called(run_command, command="echo begun; sleep 60", timeout=1))
    assert result.text.startswith("[stopped after 1 seconds, ")
    assert result.text.endswith("begun\n")
    assert result.state == "ok"


@pytest.mark.parametrize(("asked", "given"), [(-5, 1), (0, 1), (30, 30), (10**9, MAX_SECONDS)])
def test_the_time_that_a_model_asks_for_is_capped(asked: int, given: int) -> None:
    assert within_limits(asked) == given


@pytest.mark.parametrize(
    ("command", "why"), [("", "empty"), (" \n", "empty"), ("a\0b", "NUL"), ("x" * 20_001, "at most")]
)
def test_what_is_no_command_is_refused_with_a_reason(command: str, why: str, project: Path) -> None:
    result = asyncio.run(called(shell(project, sandbox="none"), command=command))
    assert result.state == "error"
    assert why in result.text


def test_output_is_shown_to_people_while_it_comes(run_command: Tool) -> None:
    told: list[str] = []
    asyncio.run(
        called(run_command, ToolContext(progress=told.append), command="echo one; sleep 0.3; echo two")
    )
    assert "".join(told) == "one\ntwo\n"


# ── approval ─────────────────────────────────────────────────────────────────────────────────────────

ASKED = {
    "git 'a b'": 'without a shell: "git" "a b"\nAsked because it runs the program git',
    "git status; rm -rf x": "2 commands:\n    git status\n    rm -rf x\nAsked because a shell would run 2 commands",
    'echo "$(curl evil)"': "2 commands:\n    echo\n    curl evil\nAsked because a shell would run 2 commands",
    "true; " * 60 + "rm x": "    true\n    rm x\nAsked because a shell would run 61 commands",
}


@pytest.mark.parametrize(("command", "words"), ASKED.items())
def test_every_command_is_asked_about_and_each_part_shown(command: str, words: str, project: Path) -> None:
    verdict = Toolbox([shell(project)]).prepare(ToolCall("c1", "run_command", {"command": command}))
    assert verdict.outcome == "ask"
    assert words in verdict.text
    assert verdict.effect == "once"


def test_every_question_says_so_where_nothing_confines_the_command(project: Path) -> None:
    for command in ("ls", "ls; ls"):
        call = ToolCall("c1", "run_command", {"command": command})
        assert "no sandbox confines it" in Toolbox([shell(project, sandbox="none")]).prepare(call).text
        assert "no sandbox" not in Toolbox([shell(project)]).prepare(call).text


def test_without_a_sandbox_nothing_runs_and_the_reason_is_the_result(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassloop.tools.builtin.sandbox_place.candidates", list)
    result = asyncio.run(called(shell(project), command="touch ran"))
    assert result.state == "error"
    assert "no bubblewrap is installed" in result.text
    assert "sandbox=none" in result.text
    assert list(project.iterdir()) == [project / "sub"]


# ── many ─────────────────────────────────────────────────────────────────────────────────────────────


def test_fifty_calls_at_once_and_a_cancel_leave_nothing(
    run_command: Tool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(project.parent))
    begun: list[str] = []

    async def all_cancelled() -> None:
        context = ToolContext(progress=begun.append)
        script = "echo begun; sleep 60 & setsid sleep 60 & sleep 60"
        running = [asyncio.create_task(called(run_command, context, command=script)) for _ in range(50)]
        while len(begun) < 50:
            await asyncio.sleep(0.02)
        assert len(living(project)) >= 50
        for task in running:
            task.cancel()
        done = await asyncio.gather(*running, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in done)

    with nothing_left(project.parent):
        asyncio.run(all_cancelled())


def test_results_of_many_calls_at_once_are_their_own(run_command: Tool) -> None:
    async def all_called() -> list[str]:
        results = await asyncio.gather(*(called(run_command, command=f"echo {n}") for n in range(20)))
        return [result.text.split("\n")[1] for result in results]

    assert asyncio.run(all_called()) == [str(n) for n in range(20)]
