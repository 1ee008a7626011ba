"""The library's messages in the terminal's words."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import Here, glassloop_here

from glassloop.cli.wording import in_terminal_words, program, start_hint
from glassloop.models.providers import PROVIDERS

REWORDED = {
    "nothing listens": (
        "localhost could not be reached (Connection refused)",
        "localhost could not be reached",
    ),
    "the system's reason stays": (
        "box could not be reached (No route to host)",
        "box could not be reached (No route to host)",
    ),
    "a number of the system's": (
        "The host box is not known ([Errno -2] Name or service not known)",
        "The host box is not known (Name or service not known)",
    ),
    "a deadline": ("No answer within 60 s (Deadlines.first_byte)", "No answer within 60 s"),
    "a long wait": (
        "The endpoint asks to wait 90 s, longer than the 60 s of Retries.longest_wait\n"
        "Ask again later, or allow a longer wait.",
        "The endpoint asks to wait 90 s, longer than 60 s\nAsk again later, or choose another model with -m.",
    ),
    "a certificate": (
        "Pass `ca=` with your own CA, or `verify=False`.",
        "If you trust it, set SSL_CERT_FILE to a file with its certificate.",
    ),
    "a limit": (
        "Limits(rounds=0): give a number above 0, or None for no limit",
        "limit rounds = 0: give a number above 0, or None for no limit",
    ),
    "the file of a session that is not at fault": (
        "/home/a b/sessions.db: session s1 is in use: take it over (take_over=True)",
        "session s1 is in use: take it over (--take-over)",
    ),
    "the file that is at fault": (
        "/home/a/sessions.db: it is damaged",
        "/home/a/sessions.db: it is damaged",
    ),
    "anything else": ("The model `x` (a=1) is not there.", "The model `x` (a=1) is not there."),
}


@pytest.mark.parametrize("case", REWORDED)
def test_what_one_cannot_type_is_reworded(case: str) -> None:
    said, shown = REWORDED[case]
    assert in_terminal_words(said) == shown


def test_a_local_server_that_does_not_run_is_told_how_to_start() -> None:
    hints = {provider.name: start_hint(provider.base_url) for provider in PROVIDERS.values()}
    assert "ollama serve" in hints["ollama"]
    assert {name for name, hint in hints.items() if hint} == {
        one.name for one in PROVIDERS.values() if one.local
    }


@pytest.mark.parametrize("command", [["run", "-m", "ollama:qwen3", "hi"], ["models", "ollama"]], ids=" ".join)
def test_nothing_listening_is_said_without_the_clients_spelling_and_with_what_to_do(
    here: Here, command: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    done = here(*command, env={"OLLAMA_HOST": address})
    assert done.code == 1
    assert done.err.count("ollama serve") == 1
    assert not re.search("ssl:|Connect call|server running", done.err)


def test_the_program_is_named_as_it_can_be_typed_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for called, name in {
        ".venv/bin/glassloop": ".venv/bin/glassloop",
        "x/__main__.py": "python -m glassloop",
    }.items():
        monkeypatch.setattr(sys, "argv", [called])
        assert program() == name
    (tmp_path / "glassloop").touch(mode=0o755)
    assert program() == "glassloop"


NO_MODEL = {
    "no key": (
        ["run", "-m", "groq:x", "hi"],
        ["No key for groq: set GROQ_API_KEY in the environment or in .env"],
    ),
    "an address without a model": (
        ["run", "--base-url", "http://localhost:9/v1", "hi"],
        ["Add -m NAME", "models --base-url http://localhost:9/v1"],
    ),
    "profile show": (["profile", "show"], ["quickest ways"]),
    "profile forget": (["profile", "forget"], ["quickest ways"]),
}


@pytest.mark.parametrize("case", NO_MODEL)
def test_what_is_missing_is_said_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], case: str
) -> None:
    command, words = NO_MODEL[case]
    done = glassloop_here(monkeypatch, capfd, tmp_path, *command)
    assert done.code == 2
    assert all(word in done.err for word in words)
    assert "key=" not in done.err


def test_a_profile_is_shown_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    done = glassloop_here(monkeypatch, capfd, tmp_path, "profile", "show", "-m", "groq:x")
    assert done.code == 0
    assert "the provider table" in done.out
