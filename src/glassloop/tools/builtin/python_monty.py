"""Python code in `pydantic-monty`: a small interpreter without files, network or environment, in a process of its own.

It knows a part of the language and few modules. Used where no sandbox works; no tool of ours is handed to it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from glassloop.tools.builtin import process

NAME = "embedded interpreter without files and network"

_MEMORY = 256 << 20
_START_SECONDS = 10
"""What the process has beyond the code's time, for starting and for telling how it went."""


def is_installed() -> bool:
    """Whether the extra `python` is there. Does not load it."""
    return importlib.util.find_spec("pydantic_monty") is not None


async def run(code: str, seconds: int, progress: Callable[[str], None]) -> process.Ended:
    """Run the code to its end. Its failures, running out of time included, are in the output."""
    program = resources.files(__package__).joinpath("python_monty_child.py").read_text(encoding="utf-8")
    with tempfile.TemporaryFile() as file, tempfile.TemporaryDirectory(prefix="glassloop-") as home:
        file.write(code.encode())
        file.seek(0)
        handle = file.fileno()
        argv = [sys.executable, "-I", "-u", "-c", program, str(handle), str(seconds), str(_MEMORY)]
        limited = process.limited(argv, process.Limits(processes=None), seconds + _START_SECONDS)
        child = process.Child(tuple(limited), Path(home), process.environment(Path(home)), (handle,))
        return await process.run(child, asyncio.timeout(seconds + _START_SECONDS), progress)
