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

from tests.cli.terminal import WEATHER_TOOLS, Here, environment

from glassloop.testing.server import ChatServer, Completion, Raw, Request, calls, fails, says


def test_piped_lines_are_one_conversation(tmp_path: Path, here: Here) -> None:
    script = [says("Hello Ada."), calls(("calculator", {"expression": "6*7"})), says("It is 42, Ada.")]
    lines = "I am Ada\n\nwhat is \\\n6 times 7?\n/usage\nhistory\n/save talk.json\n/nope\n/histroy\n/save no/talk.json\nquit\nnever asked\n"
    with ChatServer(script) as server:
        done = here("chat", "-m", f"{server.base_url}#m", stdin=lines.encode())
    assert (done.code, done.out) == (0, "Hello Ada.\nIt is 42, Ada.\n")
    second = server.requests[1].body["messages"]
    assert [message["content"] for message in second] == ["I am Ada", "Hello Ada.", "what is \n6 times 7?"]
    for said in (
        "             last answer  this chat",
        "model calls            2          3",
        "tool calls             1          1",
        "tokens in             18         27",
        "cost             unknown    unknown",
        "you: I am Ada",
        "→ calculator(",
        "There is no /nope. /help lists what there is.",
        "There is no /histroy. Did you mean /history?",
        "No such file or directory: no/talk.json",
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


def test_clear_begins_a_new_conversation(here: Here) -> None:
    with ChatServer([says("one"), says("two")]) as server:
        done = here("chat", "-m", f"{server.base_url}#m", stdin=b"first\nclear\nsecond\n/exit\n")
    assert done.code == 0
    assert [message["content"] for message in server.requests[1].body["messages"]] == ["second"]


def test_model_switches_and_a_wrong_name_keeps_the_old_one(here: Here) -> None:
    with ChatServer([says("from m"), says("from n")]) as server:
        lines = f"hi\n/model nonsense:x\n/model {server.base_url}#n\nagain\n"
        done = here("chat", "-m", f"{server.base_url}#m", stdin=lines.encode())
    assert done.code == 0
    assert [request.body["model"] for request in server.requests] == ["m", "n"]
    assert len(server.requests[1].body["messages"]) == 3
    assert "nonsense" in done.err


def test_a_failed_answer_leaves_the_conversation_open(here: Here) -> None:
    with ChatServer([fails(400, "no luck"), says("now it works")]) as server:
        done = here("chat", "-m", f"{server.base_url}#m", stdin=b"hi\nagain\n")
    assert (done.code, done.out) == (0, "now it works\n")
    assert "no luck" in done.err


def test_compact_sums_up_with_the_hint_and_nothing_is_lost(tmp_path: Path, here: Here) -> None:
    answers = [says(f"answer {number} " * 60) for number in range(4)]
    script = [*answers, says("GOAL: four answers\nOPEN: nothing"), says("and on")]
    lines = "/compact\none\ntwo\nthree\nfour\n/compact the numbers\n/save talk.json\nfive\nhistory\n"
    with ChatServer(script) as server:
        done = here("chat", "-m", f"{server.base_url}#m", "--no-tools", stdin=lines.encode())
    assert done.code == 0
    assert "Nothing has been said yet." in done.err
    asked, after = (request.body["messages"] for request in server.requests[4:])
    assert "tools" not in server.requests[4].body
    assert "keep this: the numbers" in asked[-1]["content"]
    assert "User: one\n\nAssistant: answer 0" in asked[-1]["content"]
    assert [message["content"] for message in after if message["role"] == "user"][:2] == [
        "one",
        "Summary of the conversation so far (the messages that it stands for are no longer shown):\n\n"
        "GOAL: four answers\nOPEN: nothing",
    ]
    assert after[-1]["content"] == "five"
    assert not any("answer 0" in str(message["content"]) for message in after)
    before, tokens = re.findall(r"history summarised: ([\d,]+) → ([\d,]+) tokens", done.err)[0]
    assert int(tokens.replace(",", "")) < int(before.replace(",", ""))
    assert "GOAL: four answers" not in done.out
    assert len(json.loads((tmp_path / "talk.json").read_text())) == 8
    assert "model: answer 0" in done.err


def test_a_summary_that_cannot_be_had_leaves_the_conversation_as_it_is(here: Here) -> None:
    script = [*(says(f"answer {number} " * 60) for number in range(4)), says(""), says("and on")]
    lines = "one\ntwo\nthree\nfour\n/compact\nfive\n"
    with ChatServer(script) as server:
        done = here("chat", "-m", f"{server.base_url}#m", stdin=lines.encode())
    assert (done.code, done.out.splitlines()[-1]) == (0, "and on")
    assert "all stays as it is: it was empty" in done.err
    assert len(server.requests[5].body["messages"]) == 9


def test_a_long_chinese_chat_is_summed_up_in_chinese_and_goes_on_with_what_was_pinned(here: Here) -> None:
    def answer(request: Request) -> Completion:
        messages = request.body["messages"]
        if "<transcript>" in str(messages[-1]["content"]):
            return says("目标：聊天\n已完成：说了很多")
        return Completion(
            {"role": "assistant", "content": "今天天气很好，我们去公园散步吧。" * 60},
            usage={"prompt_tokens": len(request.raw) // 4, "completion_tokens": 700, "total_tokens": 9},
        )

    lines = "你好\n/pin 一律用公制单位。\n" + "继续说。\n" * 8
    with ChatServer(answer) as server:
        arguments = ("chat", "-m", f"{server.base_url}#m", "--window", "size=4000", "--no-tools")
        done = here(*arguments, stdin=lines.encode())
    assert done.code == 0
    assert "· history summarised: " in done.err
    sums = [one.body["messages"] for one in server.requests if "<transcript>" in one.raw.decode()]
    assert sums
    assert "目标：" in sums[0][-1]["content"]
    last = [message["content"] for message in server.requests[-1].body["messages"]]
    assert last[0] == "你好"
    assert "一律用公制单位。" in last
    assert sum("到目前为止的对话摘要" in text for text in last) == 1
    assert max(len(one.raw) for one in server.requests) < 4 * 4000


def test_cached_tokens_and_reasoning_are_shown_and_a_price_nobody_knows_is_unknown(here: Here) -> None:
    usage = {
        "prompt_tokens": 1200,
        "completion_tokens": 50,
        "total_tokens": 1250,
        "prompt_tokens_details": {"cached_tokens": 1000},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Let me see.\nIt is so."}
    with ChatServer(
        [Completion(message, usage=usage), Completion(message, usage={**usage, "cost": 0.25})]
    ) as server:
        lines = b"is it?\n/compact\n/pin\n/usage\n/reasoning\nreally?\n"
        done = here("chat", "-m", f"{server.base_url}#m", stdin=lines)
    assert done.out == "Yes.\nYes.\n"
    assert "tokens 1,200 in (1,000 cached) + 50 out" in done.err
    assert "There is nothing to summarise yet." in done.err
    assert "/pin TEXT says it" in done.err
    rows = [line.split() for line in done.err.splitlines()]
    assert ["cached", "1,000", "1,000"] in rows
    assert ["reasoning", "40", "40"] in rows
    assert ["cost", "unknown", "unknown"] in rows
    first, second = done.err.split("reasoning is shown from now on")
    assert "Let me see." not in first
    assert "Let me see.\nIt is so." in second


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

    def __init__(self, folder: Path, *arguments: str, columns: int = 80) -> None:
        self._ours, theirs = pty.openpty()
        env = environment(folder, {"COLUMNS": str(columns), "LINES": "24", "PROMPT_TOOLKIT_NO_CPR": "1"})
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

    def wait_for(self, *texts: str) -> None:
        """Read until these have come, one after the other and after what was waited for before."""
        for text in texts:
            self._wait_for(text)

    def _wait_for(self, text: str) -> None:
        """Escape sequences are left out."""
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


def test_an_error_whose_first_word_is_longer_than_the_line_is_called_one_once(tmp_path: Path) -> None:
    data = tmp_path / "home" / "data" / "glassloop"
    data.mkdir(parents=True)
    (data / "sessions.db").write_text("no database " * 500)
    with Screen(tmp_path, "sessions", columns=40) as screen:
        screen.wait_for("error:", ": ")
        assert screen.leave() == 1
        assert screen.seen.count("error:") == 1


def test_on_a_terminal_a_person_is_asked_and_what_was_typed_before_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(WEATHER_TOOLS, encoding="utf-8")
    mail = calls(("send_mail", {"to": "a\x1b[2K@b.c"}))
    with (
        ChatServer([mail, says("not sent"), mail, SLOW, mail]) as server,
        Screen(tmp_path, "chat", "-m", f"{server.base_url}#m", "-T", "tools.py") as screen,
    ):
        screen.wait_for("❯")
        screen.type("mail\ry\r")
        screen.wait_for("or say why not", "  ?")
        screen.type("wrong address\r")
        screen.wait_for("not sent")
        screen.wait_for("❯")
        screen.type("again\r")
        screen.wait_for("or say why not", "  ?")
        screen.type("y\r")
        screen.wait_for("慢 慢")
        screen.type("\x03")
        screen.wait_for("interrupted")
        screen.wait_for("❯")
        screen.type("once more\r")
        screen.wait_for("or say why not", "  ?")
        screen.type("\x03")
        screen.wait_for("interrupted")
        screen.wait_for("❯")
        screen.type("\x04")
        assert screen.leave() == 0
    told = [request.body["messages"][-1]["content"] for request in server.requests]
    assert "wrong address" in told[1]
    assert told[3] == "sent to a\x1b[2K@b.c"
    assert "\\u001b[2K" in screen.seen


def test_on_a_terminal_run_shows_markdown_and_with_v_the_reasoning(tmp_path: Path) -> None:
    with (
        ChatServer([says("Hallo **Welt**", reasoning="tja tja")]) as server,
        Screen(tmp_path, "run", "-v", "-m", f"{server.base_url}#m", "hi") as screen,
    ):
        screen.wait_for("tja tja", "Hallo Welt")
        assert screen.leave() == 0
        assert "**" not in screen.seen
