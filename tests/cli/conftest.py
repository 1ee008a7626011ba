"""What most tests of the terminal need: the program, in a folder and an environment of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.cli.terminal import Here, glassloop_here


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    """Runs the program in this process, in `tmp_path`: `here("run", "hi", stdin=b"", env={})`."""
    return partial(glassloop_here, monkeypatch, capfd, tmp_path)
