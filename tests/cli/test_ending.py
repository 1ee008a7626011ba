"""How the program ends when something will not: stubborn tools, full disks; and what `--json` says last."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.terminal import PROGRAM, Here, environment

from glassloop.testing.server import ChatServer, calls, says

STUBBORN = '''
import asyncio

from glassloop import tool


@tool(effect="read")
async def stay() -> str:
    """Stay. Use it when asked to."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
'''


def test_a_tool_that_ignores_being_cancelled_cannot_keep_ctrl_c_from_ending_the_program(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.py").write_text(STUBBORN)
    with ChatServer([calls(("stay", {}))]) as server:
        child = subprocess.Popen(
            [*PROGRAM, "run", "-m", f"{server.base_url}#m", "-T", "tools.py", "--json", "go"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        while b"tool_started" not in child.stdout.readline():
            pass
        child.send_signal(signal.SIGINT)
        try:
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert b'"stop_reason": "cancelled"' in out
    assert err == b""


def test_the_last_json_line_names_the_session_and_does_not_dump_it(here: Here) -> None:
    with ChatServer([says("hello")]) as server:
        done = here("run", "-m", f"{server.base_url}#m", "--json", "hi there")
    last = json.loads(done.out.splitlines()[-1])
    assert isinstance(last["session"], str)
    assert "hi there" not in json.dumps(last)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_output_that_cannot_be_written_is_one_message(tmp_path: Path, arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"error: No space left on device\n"
