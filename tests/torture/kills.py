"""The real program on a real disk, killed at random moments: a folder with tools that act on an outside log, an endpoint
that plays five rounds of two calls, and somebody who looks after each crash.
"""

import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.terminal import PROGRAM, environment

from glassloop.core.entries import Reply, ToolResult, User
from glassloop.core.resolving import Done, Resolution, Retry
from glassloop.sessions.store import Store
from glassloop.testing.server import calls, says

ROUNDS = 5
TOOLS = '''
import os
import time

from glassloop import ToolContext, tool


def _note(line: str) -> None:
    """What is outside is outside: on disk at once, whatever becomes of this process."""
    handle = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, line.encode() + b"\\n")
    os.fsync(handle)
    os.close(handle)


@tool(effect="once")
def book(number: int, context: ToolContext) -> str:
    """Book a seat.

    Args:
        number: Its number.
    """
    _note(f"start book {number}")
    time.sleep(0.01)
    _note(f"did book {number}")
    time.sleep(0.01)
    return f"booked {number}"


@tool(effect="idempotent")
def put(number: int, context: ToolContext) -> str:
    """Put a file in its place.

    Args:
        number: Its number.
    """
    _note(f"start put {number}")
    time.sleep(0.01)
    _note(f"did put {number} {context.key}")
    return f"put {number}"


@tool(effect="read")
def look(number: int) -> str:
    """Look at something.

    Args:
        number: Its number.
    """
    _note(f"start look {number}")
    time.sleep(0.01)
    return f"looked {number}"
'''


def script(request, text=""):
    """Five rounds of two calls, whichever come next, below a text; then the answer, which names all results."""
    messages = request.body["messages"]
    done = sum(one["role"] == "assistant" for one in messages)
    if done < ROUNDS:
        return calls(("book", {"number": done}), (("put", "look")[done % 2], {"number": done}), text=text)
    results = [str(one["content"]) for one in messages if one["role"] == "tool"]
    return says("all done: " + ", ".join(results))


@dataclass
class Scene:
    """One run in a folder of its own. `kills` counts those that hit a living process."""

    folder: Path
    server: object
    chance: random.Random
    kills: int = 0
    words: list = field(default_factory=list)

    def __post_init__(self):
        self.folder.mkdir()
        (self.folder / "tools.py").write_text(TOOLS, encoding="utf-8")
        self._agent = ["-m", f"{self.server.base_url}#m", "-T", "tools.py", "--yes"]

    @property
    def log(self):
        path = self.folder / "log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    @property
    def store(self):
        return Store(self.folder / "home" / "data" / "glassloop" / "sessions.db")

    def start(self, *words):
        return self._program("run", *self._agent, *words)

    def replayed(self):
        """The exit code of a replay, and what it said."""
        child = self._program("replay", self.store.last().session_id)
        _, err = child.communicate(timeout=60)
        return child.returncode, err

    def _program(self, *words):
        return subprocess.Popen(
            [*PROGRAM, *words],
            cwd=self.folder,
            env=environment(self.folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def events(self):
        """What the outside has seen so far: requests, and what tools did."""
        return len(self.server.requests) + len(self.log)

    def kill(self, child):
        """SIGKILL after a random number of events that the outside sees, and a little. False: it had ended."""
        until = self.events() + self.chance.randint(0, 12)
        while self.events() < until and child.poll() is None:
            time.sleep(0.004)
        if self.events() == 0:
            time.sleep(self.chance.random() * 0.8)  # while it starts
        time.sleep(self.chance.random() * 0.016)
        alive = child.poll() is None
        child.kill()
        child.communicate()
        self.kills += alive
        return alive and child.returncode == -signal.SIGKILL

    def resume(self):
        """What a person types next: the question where nothing is known of it, `-c` where something is."""
        if self.has_task():
            self.look_after()
            return self.start("-c")
        return self.start("Do it all.")

    def has_task(self):
        return self.store.path.exists() and any(
            isinstance(one, User)
            for info in self.store.sessions(limit=1)
            for one in self.store.entries(info.session_id)
        )

    def look_after(self):
        """Somebody looks at the outside, and says of each call in doubt what is true."""
        for doubt in self.store.doubts():
            number = doubt.arguments["number"]
            happened = f"did book {number}" in self.log
            self.store.resolve_doubt(
                doubt, Done(f"booked {number}", "a person") if happened else Retry("a person")
            )
            self.words.append("done" if happened else "retry")

    def to_the_end(self):
        """Until the answer is there. Gives it."""
        for _ in range(8):
            child = self.resume()
            out, err = child.communicate(timeout=60)
            assert "Traceback" not in err, err
            if child.returncode == 0:
                return out.strip()
        raise AssertionError(f"no answer after eight resumes: {err}")


def play(seed, folder, server, *, deep):
    """A run that is killed, and killed again while it is resumed, up to so many times. Checks what must hold."""
    scene = Scene(folder, server, random.Random(seed), 0)
    server.requests.clear()
    for _ in range(scene.chance.randint(1, deep)):
        if not scene.kill(scene.resume()):
            break
    over = scene.has_task() and scene.store.sessions(limit=1)[0].state == "idle"
    answer = None if over else scene.to_the_end()
    check(scene, answer)
    return scene


def check(scene, answer):
    """No completed operation repeated, none lost, `once` at most once, the answer right."""
    log = scene.log
    did = Counter(line for line in log if line.startswith("did book"))
    assert did == {f"did book {number}": 1 for number in range(ROUNDS)}, log
    keys = {
        number: {line for line in log if line.startswith(f"did put {number} ")}
        for number in range(0, ROUNDS, 2)
    }
    assert all(len(found) == 1 for found in keys.values()), log
    starts = Counter(line for line in log if line.startswith("start"))
    assert all(times <= 1 + scene.kills for times in starts.values()), log
    session = scene.store.sessions(limit=1)[0].session_id
    entries = scene.store.entries(session)
    results = [one.text for one in entries if isinstance(one, ToolResult)]
    wanted = [
        text
        for number in range(ROUNDS)
        for text in (f"booked {number}", f"{('put', 'looked')[number % 2]} {number}")
    ]
    assert results == wanted, results
    assert sum(isinstance(one, User) for one in entries) == 1
    assert entries[-1].text == "all done: " + ", ".join(wanted)
    assert isinstance(entries[-1], Reply)
    assert answer in (None, entries[-1].text)
    steps = scene.store.timeline(session).steps
    retried = Counter(
        step.record.value.call_id
        for step in steps
        if isinstance(step.record.value, Resolution) and step.record.value.outcome == "retry"
    )
    for number in range(ROUNDS):
        again = starts[f"start book {number}"] - 1
        assert again <= sum(retried.values()), log
    _nothing_completed_began_again(log)


def _nothing_completed_began_again(log):
    """The rounds come one after the other: what belongs to an earlier one never starts once a later one has begun."""
    furthest = 0
    for line in log:
        number = int(line.split()[2])
        assert number >= furthest, f"{line!r} after round {furthest} had begun: {log}"
        furthest = max(furthest, number)
