"""The real program in a child process, in a folder and an environment of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from glassloop.cli import main

Here = Callable[..., "Done"]
"""The fixture `here`."""

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = [sys.executable, "-m", "glassloop.cli.main"]
WEATHER_TOOLS = '''
from glassloop import tool


@tool(effect="read")
def get_weather(city: str) -> str:
    """Current weather in a city. Use it whenever the user asks about weather.

    Args:
        city: The city's name.
    """
    if city == "Atlantis":
        raise LookupError("there is no weather station in Atlantis")
    return f"18 °C in {city}"


@tool
def send_mail(to: str) -> str:
    """Send a mail. Use it when asked to.

    Args:
        to: The address.
    """
    return f"sent to {to}"
'''


@dataclass(frozen=True)
class Done:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


def environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the developer's own: no keys, no configuration, no history. Looks for Ollama where there is none."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "PYTHONPATH": str(SOURCE),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        **(extra or {}),
    }


def glassloop(
    *arguments: str,
    folder: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout: float = 90,
) -> Done:
    """Run the program to its end."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=environment(folder, env),
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return Done(done.returncode, out, err)


def glassloop_here(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> Done:
    """The same without a child process, for what needs none: quicker, and nothing else changes."""
    wanted = environment(folder, env)
    for name in [name for name in os.environ if not name.startswith("PYTEST")]:
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    with tempfile.TemporaryFile() as file, io.TextIOWrapper(file, encoding="utf-8") as typed:
        file.write(stdin)
        file.seek(0)
        monkeypatch.setattr(sys, "stdin", typed)
        code = main.run(list(arguments))
    out, err = capfd.readouterr()
    assert "Traceback" not in err, err
    return Done(code, out, err)
