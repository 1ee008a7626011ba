"""A conversation to write down, and ways to write it: here, or in a process that is killed."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from glassloop.core.entries import Reply, Text, ToolCall, ToolResult, Usage, User
from glassloop.core.journal import Intent, Record, RunEnd, RunStart
from glassloop.core.tools import Verdict
from glassloop.sessions.inbox import Job
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.sessions.writer import Task

ROOT = Path(__file__).parents[2]


def start(run="run1", session="session1", *, agent="tester", agent_hash="hash1"):
    return RunStart(run, session, agent, agent_hash)


def task(text="What is the weather in 北京?"):
    return User((Text(text),))


def call(number=1, name="weather", **arguments):
    return ToolCall(f"call{number:05}", name, arguments or {"city": "北京"}, '{"city": "北京"}')


def calling(*calls):
    return Reply(
        "Let me see.", tool_calls=calls, finish_reason="tool_calls", usage=Usage(10, 5, 15), model="m-1"
    )


def answer(text="It is sunny."):
    return Reply(text, finish_reason="stop", usage=Usage(20, 4, 24), model="m-1")


def result(made, text="sunny, 21 °C", state="ok"):
    return ToolResult(made.id, made.name, (Text(text),), state, 0.2)


def intent(seq, made, effect="once"):
    return Intent(seq, made, made.arguments, effect, f"key-{seq}")


async def whole_run(
    journal,
    run="run1",
    session="session1",
    *,
    text="What is the weather in 北京?",
    rounds=1,
    reply="It is sunny.",
):
    """A task, some rounds with one call each, an answer, the end."""
    opened = await journal.open(start(run, session))
    run = opened.run_id
    await journal.commit(run, [Record(1, task(text))])
    seq = 2
    for number in range(rounds):
        made = call(number + 1)
        await journal.commit(run, [Record(seq, calling(made), seq / 10, 0.001)])
        await journal.commit(run, [Record(seq + 1, Verdict(made, "ready", made.arguments))])
        await journal.intend(run, [intent(seq + 1, made)])
        await journal.commit(run, [Record(seq + 1, result(made), (seq + 1) / 10)])
        seq += 2
    await journal.commit(run, [Record(seq, answer(reply), seq / 10, 0.002)])
    await journal.finish(RunEnd(run, "answered", reply))
    return opened


def written(path, *sessions, **options):
    """A file with whole runs in it, one for each session named, and its `Store`."""

    async def write():
        journal = SqliteJournal(path, **options)
        for number, session in enumerate(sessions or ("session1",), 1):
            await whole_run(journal, f"run{number}", session)
        journal.close()

    asyncio.run(write())
    return Store(path)


def program(code, *arguments, extra=None, **options):
    """A Python process that runs `code` with the package and this kit at hand. `extra`: more variables for it."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **(extra or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def submit(writer, act, *, urgent):
    """Queue what is to be done in a writer's thread. The future is done when it is on disk, or has failed."""
    task = Task(act)
    writer.put(Job(task), urgent=urgent)
    return task.future
