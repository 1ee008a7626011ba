"""Calls that a crash left in doubt, at the terminal: shown, asked about, and resolved from another process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.terminal import glassloop_here
from tests.cli.test_chat import Screen
from tests.cli.test_sessions import Place, script
from tests.sessions.test_doubts import agent_of, crashed, payer, resolutions

from glassloop.cli.reviewing import answer_from
from glassloop.core.resolving import Answer, Done, GiveUp, Retry
from glassloop.sessions.store import Store
from glassloop.testing.server import ChatServer


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    with ChatServer(script) as server:
        yield Place(tmp_path, server, monkeypatch, capfd)


def test_a_call_in_doubt_is_resolved_from_elsewhere_and_the_run_goes_on_with_that(place: Place) -> None:
    place.killed("send it", "send a@b.c")
    waits = place.run("run", "-c")
    (session,) = place.store.sessions()
    assert waits.code == 1
    assert f"glassloop approve {session.session_id}" in waits.err
    listed = place.look("approve")
    assert 'in doubt: send(to="a@b.c")' in listed.out
    asked = place.look("approve", session.session_id)
    assert (asked.code, "--done RESULT, --retry or --give-up" in asked.err) == (2, True)
    resolved = place.look("approve", session.session_id, "--done", "sent, receipt 4711")
    assert (resolved.code, "  done" in resolved.err) == (0, True)
    assert "Nothing waits." in place.look("approve").err
    done = place.run("run", "-c")
    assert (done.code, done.out) == (0, "told: sent, receipt 4711\n")
    assert place.log == ["send a@b.c"]
    assert "It had taken effect (by " in place.look("show").out


def test_on_a_terminal_a_person_is_asked_what_became_of_a_call(place: Place) -> None:
    place.killed("send it", "send a@b.c")
    with Screen(place.folder, "run", *place.agent, "-c") as screen:
        screen.wait_for("nobody knows whether it took", 'send(to="a@b.c")', "later  ", "  ?")
        screen.type("done it arrived\r")
        screen.wait_for("told: it arrived")
        assert screen.leave() == 0
    assert place.log == ["send a@b.c"]


def test_whoever_leaves_the_question_about_a_call_has_decided_nothing_and_is_asked_again(
    place: Place,
) -> None:
    place.killed("send it", "send a@b.c")
    before = _records(place)
    with Screen(place.folder, "chat", *place.agent, "-c") as screen:
        screen.wait_for("later  ", "  ?")
        screen.type("what?" + 60 * "好" + "\r")
        screen.wait_for("no answer: “what?好", "…”", "  ?")
        screen.type("\x03")
        screen.wait_for("! stopped: a call may or may not have taken effect", "glassloop approve", "❯")
        assert (_records(place), len(place.store.doubts())) == (before, 1)
        screen.type("/resume\r")
        screen.wait_for("later  ", "  ?")
        screen.type("retry\r")
        screen.wait_for("told: sent to a@b.c", "❯")
        screen.type("\x04")
        assert screen.leave() == 0
    assert place.log == ["send a@b.c", "send a@b.c"]


def _records(place: Place) -> list[int]:
    (session,) = place.store.sessions()
    return [step.entry_id for step in place.store.timeline(session.session_id).steps]


OUTCOMES = {
    ("--retry",): "retry",
    ("--give-up",): "give_up",
    ("--done", ""): "done",
}


@pytest.mark.parametrize("options", OUTCOMES, ids=" ".join)
def test_what_a_script_says_of_a_call_in_doubt_is_written_down_with_who_said_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    options: tuple[str, ...],
) -> None:
    path = tmp_path / "home" / "data" / "glassloop" / "sessions.db"
    crashed(path, agent_of(payer([])))
    assert glassloop_here(monkeypatch, capfd, tmp_path, "approve", "session1", *options).code == 0
    (found,) = resolutions(path)
    assert (found.outcome, found.by.endswith("glassloop approve")) == (OUTCOMES[options], True)


def test_an_answer_that_nothing_waits_for_is_refused_and_no_answer_says_what_is_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "home" / "data" / "glassloop" / "sessions.db"
    crashed(path, agent_of(payer([])))

    def approve(*words: str) -> tuple[int, str]:
        done = glassloop_here(monkeypatch, capfd, tmp_path, "approve", "session1", *words)
        return done.code, done.err

    code, said = approve("--no")
    assert (code, "waits for that, but for --done RESULT, --retry or --give-up" in said) == (2, True)
    assert "to go on: " in approve("--retry")[1]
    for again in ("--retry", "--give-up", "--yes"):
        code, said = approve(again)
        assert (code, "No call waits in session session1." in said) == (2, True)
    assert "to go on: " in approve()[1]
    Store(path).undo("session1")
    code, said = approve()
    assert (code, said) == (0, "Nothing waits in session1.\n")


def test_of_several_calls_in_doubt_a_script_must_say_which_one_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "home" / "data" / "glassloop" / "sessions.db"
    crashed(path, agent_of(payer([])), calls=2)

    def approve(*words: str) -> tuple[int, str]:
        done = glassloop_here(monkeypatch, capfd, tmp_path, "approve", "session1", *words)
        return done.code, done.err

    code, said = approve("--done", "paid")
    assert (code, "--call, one of call00001, call00002" in said) == (2, True)
    assert approve("--done", "paid", "--call", "call00002")[0] == 0
    assert approve("--done", "paid", "--retry")[0] == 2
    assert approve("--retry", "--call", "call00009")[0] == 2
    assert [one.call_id for one in Store(path).doubts()] == ["call00001"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("done paid 17 €", Done("paid 17 €", "Ann")),
        ("D  it went", Done("it went", "Ann")),
        ("done", Done("Done.", "Ann")),
        ("retry", Retry("Ann")),
        (" r ", Retry("Ann")),
        ("give up", GiveUp("Ann")),
        ("g", GiveUp("Ann")),
        ("retry it please", None),
        ("given", None),
        ("give me a moment", None),
        ("yes", None),
        ("it was done", None),
    ],
)
def test_only_a_clear_word_resolves_a_call_in_doubt(said: str, meant: Answer | None) -> None:
    assert answer_from(said, "Ann", repeatable=True) == meant
    if isinstance(meant, Retry):
        assert answer_from(said, "Ann", repeatable=False) is None
