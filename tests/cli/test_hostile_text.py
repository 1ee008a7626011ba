"""Whatever a model, a tool or an endpoint says: no view of it lets a control character through to the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.terminal import Done, glassloop_here

from glassloop.testing.server import ChatServer, calls, fails, says

EVIL = (
    "\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x9b1A\rover"
    "\u202egnp.exe\u2066\u200b\U000e0041\ufeff"
)
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\ufeff\U000e0000-\U000e007f]"
)
TOOLS = f'''
from glassloop import tool


@tool
def look(where: str) -> str:
    """Look{EVIL!r} around. Use it to look."""
    return {EVIL!r} * 3


@tool(approve=True)
def send(where: str) -> str:
    """Send. Use it to send."""
    raise RuntimeError({EVIL!r})
'''


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")

    def go(*arguments: str) -> Done:
        done = glassloop_here(monkeypatch, capfd, tmp_path, *arguments)
        assert not HIDDEN.search(done.out), (arguments, HIDDEN.search(done.out))
        assert not HIDDEN.search(done.err), (arguments, HIDDEN.search(done.err))
        return done

    return go


def test_no_view_of_a_conversation_lets_a_control_character_through(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    turn = calls(("look", {"where": EVIL}), ("send", {"where": EVIL}), (f"no{EVIL}such", {"where": "x"}))
    script = [turn, says(f"# Title{EVIL}\nanswer {EVIL}"), turn, fails(400, f"refused {EVIL}")]
    with ChatServer(script) as server:
        agent = ("-m", f"{server.base_url}#m", "-T", "tools.py")
        first = run("run", *agent, f"question {EVIL}", "--yes")
        assert "answer \\x1b]0;owned\\x07" in first.out
        failed = run("run", *agent, f"again {EVIL}", "--yes")
        assert "refused \\x1b" in failed.err
    listed = run("sessions")
    session = listed.out.split()[0]
    for view in (
        ("show", session),
        ("sessions", "search", "question"),
        ("sessions", "export", session, "--format", "md"),
        ("sessions", "export", session, "--format", "html"),
        ("approve",),
        ("tools", "-T", "tools.py"),
        ("tools", "check", "tools.py"),
    ):
        done = run(*view)
        assert done.code == 0, done
