"""`glassloop chat`, piped and on a real (pseudo) terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tests.cli.terminal import WEATHER_TOOLS, environment, glassloop

from glassloop.testing.server import ChatServer, Raw, calls, fails, says


def test_piped_lines_are_one_conversation(tmp_path: Path) -> None:
    script = [says("Hello Ada."), calls(("calculator", {"expression": "6*7"})), says("It is 42, Ada.")]
    lines = "I am Ada\n\nwhat is \\\n6 times 7?\n/usage\nhistory\n/save talk.json\n/nope\nquit\nnever asked\n"
    with ChatServer(script) as server:
        done = glassloop("chat", "-m", f"{server.base_url}#m", folder=tmp_path, stdin=lines.encode())
    assert (done.code, done.out) == (0, "Hello Ada.\nIt is 42, Ada.\n")
    second = server.requests[1].body["messages"]
    assert [message["content"] for message in second] == ["I am Ada", "Hello Ada.", "what is \n6 times 7?"]
    for said in (
        "3 model calls, tokens 27 in + 27 out",
        "you: I am Ada",
        "→ calculator(",
        "There is no /nope",
    ):
        assert said in done.err
    saved = json.loads((tmp_path / "talk.json").read_text())
    assert [message["role"] for message in saved] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_clear_begins_a_new_conversation(tmp_path: Path) -> None:
    with ChatServer([says("one"), says("two")]) as server:
        done = glassloop(
            "chat", "-m", f"{server.base_url}#m", folder=tmp_path, stdin=b"first\nclear\nsecond\n/exit\n"
        )
    assert done.code == 0
    assert [message["content"] for message in server.requests[1].body["messages"]] == ["second"]


def test_model_switches_and_a_wrong_name_keeps_the_old_one(tmp_path: Path) -> None:
    with ChatServer([says("from m"), says("from n")]) as server:
        lines = f"hi\n/model nonsense:x\n/model {server.base_url}#n\nagain\n"
        done = glassloop("chat", "-m", f"{server.base_url}#m", folder=tmp_path, stdin=lines.encode())
    assert done.code == 0
    assert [request.body["model"] for request in server.requests] == ["m", "n"]
    assert len(server.requests[1].body["messages"]) == 3
    assert "nonsense" in done.err


def test_a_failed_answer_leaves_the_conversation_open(tmp_path: Path) -> None:
    with ChatServer([fails(400, "no luck"), says("now it works")]) as server:
        done = glassloop("chat", "-m", f"{server.base_url}#m", folder=tmp_path, stdin=b"hi\nagain\n")
    assert (done.code, done.out) == (0, "now it works\n")
    assert "no luck" in done.err


SLOW = Raw(
    ['data: {"choices":[{"index":0,"delta":{"content":"慢 "}}]}\n\n'.encode()] * 600,
    headers={"content-type": "text/event-stream"},
    pause=0.05,
)
_ON_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # now Ctrl-C typed there reaches this process
from glassloop.cli.main import main
main()
"""


class Screen:
    """The program on a pseudo terminal."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        env = environment(folder, {"COLUMNS": "80", "LINES": "24", "PROMPT_TOOLKIT_NO_CPR": "1"})
        self.child = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, *arguments],
            cwd=folder,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""
        self._came = b""
        self._at = 0

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self._ours)

    def wait_for(self, text: str) -> None:
        """Read until `text` has come after what was waited for before, escape sequences left out."""
        until = time.monotonic() + 60
        while (found := self.seen.find(text, self._at)) < 0:
            assert time.monotonic() < until, self.seen[self._at :]
            if select.select([self._ours], [], [], 0.2)[0]:
                self._came += os.read(self._ours, 65536)
                self.seen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._came.decode(errors="ignore"))
        self._at = found + len(text)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def leave(self) -> int:
        """The exit code, once the program has ended."""
        until = time.monotonic() + 60
        while self.child.poll() is None:
            assert time.monotonic() < until
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    os.read(self._ours, 65536)
                except OSError:
                    break
        return self.child.wait(10)


def test_on_a_terminal_ctrl_c_stops_the_answer_and_twice_leaves(tmp_path: Path) -> None:
    with (
        ChatServer([says("Hallo **Welt**"), SLOW, says("still here")]) as server,
        Screen(tmp_path, "chat", "-m", f"{server.base_url}#m") as screen,
    ):
        screen.wait_for("❯")
        screen.type("hi\r")
        screen.wait_for("Hallo Welt")
        screen.wait_for("❯")
        screen.type("tell me\r")
        screen.wait_for("慢 慢")
        screen.type("\x03")
        screen.wait_for("interrupted")
        screen.wait_for("❯")
        screen.type("and now?\r")
        screen.wait_for("still here")
        screen.wait_for("❯")
        screen.type("\x03")
        screen.wait_for("Ctrl-C again leaves")
        screen.wait_for("❯")
        screen.type("\x03")
        assert screen.leave() == 0
    asked = [
        message["content"] for message in server.requests[2].body["messages"] if message["role"] == "user"
    ]
    assert asked == ["hi", "tell me", "and now?"]


def test_on_a_terminal_a_person_is_asked_and_what_was_typed_before_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(WEATHER_TOOLS, encoding="utf-8")
    mail = calls(("send_mail", {"to": "a\x1b[2K@b.c"}))
    with (
        ChatServer([mail, says("not sent"), mail, SLOW, mail]) as server,
        Screen(tmp_path, "chat", "-m", f"{server.base_url}#m", "-T", "tools.py") as screen,
    ):
        screen.wait_for("❯")
        screen.type("mail\ry\r")
        screen.wait_for("or say why not:")
        screen.type("wrong address\r")
        screen.wait_for("not sent")
        screen.wait_for("❯")
        screen.type("again\r")
        screen.wait_for("or say why not:")
        screen.type("y\r")
        screen.wait_for("慢 慢")
        screen.type("\x03")
        screen.wait_for("interrupted")
        screen.wait_for("❯")
        screen.type("once more\r")
        screen.wait_for("or say why not:")
        screen.type("\x03")
        screen.wait_for("interrupted")
        screen.wait_for("❯")
        screen.type("\x04")
        assert screen.leave() == 0
    told = [request.body["messages"][-1]["content"] for request in server.requests]
    assert "wrong address" in told[1]
    assert told[3] == "sent to a\x1b[2K@b.c"
    assert "\\u001b[2K" in screen.seen
