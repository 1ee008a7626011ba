"""A run that was killed goes on as it began, with nothing typed again; what may not be taken by itself is named."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.terminal import PROGRAM, environment
from tests.cli.test_sessions import Place, script

from glassloop.cli.options import Options
from glassloop.testing.server import ChatServer, Completion, Request, calls, says


class Killer:
    """A server that asks for a sum, and kills whoever brings the result, once."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None

    def __call__(self, request: Request) -> Completion:
        if request.body["messages"][-1]["role"] != "tool":
            return calls(("calculator", {"expression": "6*7"}))
        if self.child is not None:
            os.kill(self.child.pid, signal.SIGKILL)
            self.child.wait()
            self.child = None
        return says("It is 42.")

    def kill(self, folder: Path, *words: str, env: dict[str, str] | None = None) -> None:
        self.child = child = subprocess.Popen(
            [*PROGRAM, "run", *words, "6*7?"],
            cwd=folder,
            env=environment(folder, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _, told = child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL, told.decode()


@pytest.fixture
def killer() -> Killer:
    return Killer()


@pytest.fixture
def place(
    killer: Killer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    with ChatServer(killer) as server:
        yield Place(tmp_path, server, monkeypatch, capfd)


@pytest.fixture
def own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    with ChatServer(script) as server:
        yield Place(tmp_path, server, monkeypatch, capfd)


TWO = ("-T", "calculator", "-T", "current_time", "--limit", "rounds=7", "--system", "Be brief.")


@pytest.mark.parametrize("command", ["run", "chat"])
def test_a_killed_run_goes_on_with_the_model_and_the_ready_made_tools_that_it_began_with(
    place: Place, killer: Killer, command: str
) -> None:
    killer.kill(place.folder, *place.agent[:2], *TWO)
    done = place.look(command, "-c")
    assert (done.code, done.out) == (0, "It is 42.\n")
    assert f"· the run goes on as it began: -m '{place.agent[1]}' -T calculator -T current_time" in done.err
    before, after = place.server.requests[-2:]
    assert after.body == before.body


def test_a_model_of_an_environment_that_is_gone_is_known_to_the_session(place: Place, killer: Killer) -> None:
    killer.kill(place.folder, env={"GLASSLOOP_MODEL": place.agent[1]})
    done = place.look("run", "-c")
    assert (done.code, done.out) == (0, "It is 42.\n")
    more = place.look("run", "-c", "And half of it?")
    assert "· with the model of the session: " in more.err
    assert more.code == 0


def test_a_new_message_without_the_tools_of_the_last_run_is_told_of_them(place: Place) -> None:
    assert place.look("run", *place.agent[:2], *TWO, "What is it?").code == 0
    more = place.look("run", "-c", "And half of it?")
    assert "· its last run had -T calculator -T current_time: type that again for the same tools" in more.err
    again = place.look("run", "-c", "-T", "calculator", "And half of that?")
    assert "its last run had" not in again.err


def test_a_key_goes_to_no_address_that_only_the_session_names(place: Place, killer: Killer) -> None:
    killer.kill(place.folder, *place.agent[:2])
    (place.folder / ".env").write_text("GLASSLOOP_API_KEY=sk-of-somewhere-else\n", encoding="utf-8")
    asked = len(place.server.requests)
    refused = place.look("run", "-c")
    assert (refused.code, len(place.server.requests)) == (2, asked)
    assert f"name the model yourself: -m {place.server.base_url}#" in refused.err
    (place.folder / ".env").write_text(
        f"GLASSLOOP_API_KEY=sk-of-here-1234\nGLASSLOOP_BASE_URL={place.server.base_url}\n", encoding="utf-8"
    )
    assert place.look("run", "-c").code == 0
    assert place.server.requests[-1].headers["Authorization"] == "Bearer sk-of-here-1234"


def test_a_persons_own_tools_do_not_load_by_themselves_and_the_command_that_works_is_printed(
    own: Place,
) -> None:
    own.killed("look Rom", "look Rom")
    refused = own.look("run", "-c")
    (session,) = own.store.sessions()
    command = f"run -r {session.session_id} -m '{own.agent[1]}' -T tools.py"
    assert (refused.code, f"glassloop {command}\n" in refused.err) == (2, True)
    assert own.log == ["look Rom"]
    done = own.look(*command.replace("'", "").split())
    assert (done.code, done.out) == (0, "told: 18 °C in Rom, key \n")


def test_what_an_answer_from_elsewhere_says_to_type_goes_on_with_the_run(own: Place) -> None:
    own.killed("send it", "send a@b.c")
    (session,) = own.store.sessions()
    told = own.look("approve", session.session_id, "--give-up")
    command = told.err.rpartition("glassloop ")[2].strip()
    assert command == f"run -r {session.session_id} -m '{own.agent[1]}' -T tools.py"
    done = own.look(*command.replace("'", "").split())
    assert (done.code, done.out.startswith("told: Started, then interrupted")) == (0, True)


def test_other_tools_than_a_run_began_with_are_said_with_the_command_that_works(
    place: Place, killer: Killer
) -> None:
    killer.kill(place.folder, *place.agent[:2], *TWO)
    other = place.look("run", "-c", "-T", "weather")
    assert other.code == 1
    assert "! the run began with other tools: " in other.err
    assert "-T calculator -T current_time --system 'Be brief.' --limit rounds=7" in other.err
    assert [line for line in other.err.splitlines() if line[1:5] == "tool"] == [
        *["-tool calculator", "-tool current_time", "+tool weather"]
    ]


def test_what_goes_on_after_repeated_calls_leaves_out_their_limit() -> None:
    assert Options(limits=(("repeats", 2), ("calls", 9))).spelled("repeated_calls") == " --limit calls=9"


def test_a_run_that_a_limit_stopped_says_how_to_go_on(own: Place) -> None:
    stopped = own.run("run", "--limit", "rounds=1", "--limit", "calls=9", "look Rom")
    assert stopped.code == 3
    (session,) = own.store.sessions()
    how = f"glassloop run -r {session.session_id} -m '{own.agent[1]}' -T tools.py --limit calls=9"
    assert "· to go on: " in stopped.err
    assert f'{how} "…"' in stopped.err  # without the limit that stopped it
    nothing = own.run("run", "-c", "--limit", "rounds=9")
    assert (nothing.code, f'run -r {session.session_id} "Go on."' in nothing.err) == (2, True)
    assert "the limit of 1 round. " in " ".join(own.said())
    more = own.run("run", "-c", "--limit", "rounds=9", "look Oslo")
    assert more.out.startswith("told: 18 °C in Oslo")
