"""One child, without a sandbox: its output, its limits, its end, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builtin.sandboxed import living, nothing_left

from glassloop.tools.builtin.process import Child, Ended, Limits, environment, limited, run
from glassloop.tools.builtin.process_output import HEAD, TAIL


def quiet(text: str) -> None:
    pass


async def ran(
    script: str,
    place: Path,
    seconds: float = 20,
    progress: Callable[[str], None] = quiet,
    limits: Limits | None = None,
) -> Ended:
    argv = limited(["bash", "-c", script], limits or Limits(processes=None), seconds)
    child = Child(tuple(argv), place, environment(place))
    return await run(child, asyncio.timeout(seconds), progress)


async def ran_child(child: Child) -> Ended:
    return await run(child, asyncio.timeout(20), quiet)


def test_output_and_errors_come_in_the_order_of_writing(tmp_path: Path) -> None:
    ended = asyncio.run(ran("echo a; echo b >&2; echo c; exit 3", tmp_path))
    assert ended == Ended(3, "a\nb\nc\n", out_of_time=False)


def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    assert asyncio.run(ran("kill -9 $$", tmp_path)).code == -9


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    assert asyncio.run(ran(r"printf '\xff\xc3\x28ok'", tmp_path)).output == "\ufffd\ufffd(ok"


def test_of_a_gigabyte_of_output_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    told: list[str] = []
    ended = asyncio.run(ran("echo begin; head -c 1G /dev/zero; echo end", tmp_path, progress=told.append))
    assert ended.output.startswith("begin\n")
    assert ended.output.endswith("end\n")
    assert f"{(1 << 30) + 10 - HEAD - TAIL:,} bytes left out" in ended.output
    assert len(ended.output) < HEAD + TAIL + 100
    assert 1 <= len(told) < 1_000
    assert max(map(len, told)) <= 2_000


def test_people_see_output_while_the_command_runs(tmp_path: Path) -> None:
    async def first_word() -> str:
        told: asyncio.Queue[str] = asyncio.Queue()
        running = asyncio.create_task(ran("echo now; sleep 60", tmp_path, progress=told.put_nowait))
        word = await told.get()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return word

    assert asyncio.run(first_word()) == "now\n"


def test_the_environment_is_built_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "SSH_AUTH_SOCK",
        "GIT_SSH_COMMAND",
        "BASH_ENV",
        "ENV",
        "PYTHONPATH",
        "LD_PRELOAD",
    ):
        monkeypatch.setenv(name, "sk-secret")
    ended = asyncio.run(ran("env; cat /proc/self/environ", tmp_path))
    assert "sk-secret" not in ended.output
    assert f"HOME={tmp_path}\n" in ended.output


def test_descriptors_are_closed_and_there_is_no_input(tmp_path: Path) -> None:
    with open(os.devnull) as kept:
        os.set_inheritable(kept.fileno(), True)
        ended = asyncio.run(ran("ls /proc/$$/fd; cat; [ -t 0 ] || echo no terminal", tmp_path))
    assert ended.output.split() == ["0", "1", "2", "no", "terminal"]


LIMITED = {
    "memory": (Limits(memory=200 << 20), "x = bytearray(10 * 2**30)", "MemoryError"),
    "a file": (Limits(file_size=1 << 20), "open('f', 'wb').write(bytes(2 << 20))", "File too large"),
}


@pytest.mark.parametrize(("limits", "code", "error"), LIMITED.values(), ids=LIMITED)
def test_a_child_gets_no_more_than_its_limits(limits: Limits, code: str, error: str, tmp_path: Path) -> None:
    ended = asyncio.run(ran(f'{sys.executable} -c "{code}"', tmp_path, limits=limits))
    assert error in ended.output
    assert ended.code == 1


def test_words_never_reach_the_shell_that_sets_the_limits(tmp_path: Path) -> None:
    word = "$(touch made)`id`;&|\n\u2028 *"
    argv = limited(["printf", "%s", word], Limits(processes=None), 5)
    assert asyncio.run(ran_child(Child(tuple(argv), tmp_path, environment(tmp_path)))).output == word
    assert list(tmp_path.iterdir()) == []


STUBBORN = {
    "sleeps": "sleep 60",
    "ignores the request to end": "trap '' TERM; sleep 60 & sleep 60; sleep 60",
    "has children": "sleep 60 | sleep 60 | sleep 60",
    "left the group": "setsid sleep 60 & setsid setsid sleep 60 & sleep 60",
    "left the group and gave up its output": "setsid sleep 60 >/dev/null 2>&1 & sleep 60",
    "a tree": "tree() { [ $1 -eq 0 ] && sleep 60 || { tree $(($1-1)) & tree $(($1-1)); }; }; tree 4",
}


@pytest.mark.parametrize("script", STUBBORN.values(), ids=STUBBORN)
def test_when_time_is_over_everything_that_was_started_is_ended(script: str, tmp_path: Path) -> None:
    with nothing_left(tmp_path):
        ended = asyncio.run(ran(f"echo begun; {script}", tmp_path, seconds=0.3))
    assert ended.out_of_time
    assert ended.output.startswith("begun\n")


@pytest.mark.parametrize("script", STUBBORN.values(), ids=STUBBORN)
def test_a_cancel_ends_everything_before_it_is_passed_on(script: str, tmp_path: Path) -> None:
    async def cancelled() -> list[str]:
        begun = asyncio.Event()
        running = asyncio.create_task(ran(f"echo begun; {script}", tmp_path, progress=lambda _: begun.set()))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return living(tmp_path)

    with nothing_left(tmp_path):
        asyncio.run(cancelled())


def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    began = time.monotonic()
    with nothing_left(tmp_path):
        ended = asyncio.run(ran("sleep 60 & setsid sleep 60 & echo done", tmp_path))
    assert ended.output == "done\n"
    assert time.monotonic() - began < 30  # and not the 60 seconds for which the pipe would be held open


@pytest.mark.parametrize("steps", range(6))
def test_a_cancel_at_any_step_of_starting_leaves_nothing(steps: int, tmp_path: Path) -> None:
    async def cancelled() -> None:
        running = asyncio.create_task(ran("sleep 60", tmp_path))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with nothing_left(tmp_path):
        asyncio.run(cancelled())


def test_a_program_that_is_not_there_is_an_os_error_and_leaves_nothing(tmp_path: Path) -> None:
    child = Child(("/nowhere/program",), tmp_path, environment(tmp_path))
    with nothing_left(tmp_path), pytest.raises(FileNotFoundError):
        asyncio.run(ran_child(child))
