"""Python code in `pydantic-monty`: a small interpreter without files, network or environment, in a worker of its own.

It knows a part of the language and few modules. Used where no sandbox works; nothing of ours is handed to it.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

_NAME = "pydantic_monty"

_MEMORY = 256 << 20
_PRINTED = 512 << 10
"""Bytes."""


def is_installed() -> bool:
    """Whether the extra `python` is there. Does not load it."""
    return importlib.util.find_spec(_NAME) is not None


async def run(code: str, seconds: float, progress: Callable[[str], None]) -> str:
    """What the code printed, and the value of its last line. Failures of the code are text."""
    monty: Any = importlib.import_module(_NAME)

    limits = monty.ResourceLimits(max_feed_duration_secs=seconds, max_memory=_MEMORY)
    printed = monty.CollectString(_PRINTED)
    async with monty.AsyncMonty(max_processes=1) as pool, pool.checkout(limits=limits) as session:
        try:
            value = await session.feed_run(code, print_callback=printed)
            outcome, last = "ended", "" if value is None else f"{value!r}\n"
        except monty.MontyError as error:
            outcome, last = "failed", f"{error}\n"
    progress(printed.output)
    return f"[{outcome}, embedded interpreter without files and network]\n{printed.output}{last}"
