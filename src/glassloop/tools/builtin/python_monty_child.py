"""The program around the embedded interpreter. Glassloop never imports it: it hands on its text.

It gets the descriptor of the code, the seconds and the bytes of memory that the code may use. It is a process of its
own so that it can be ended at any time, and so that nothing of the interpreter's threads is left in Glassloop.
"""

import importlib
import os
import sys
from typing import Any


def _show(stream: str, text: str) -> None:
    sys.stdout.write(text)


def main() -> None:
    """Run the code, show what it prints and the value of its last line. The exit code says whether it failed."""
    handle, seconds, memory = map(int, sys.argv[1:])
    with open(handle, encoding="utf-8") as file:
        code = file.read()
    monty: Any = importlib.import_module("pydantic_monty")
    limits = {"max_feed_duration_secs": seconds, "max_memory": memory}
    failed = 0
    with monty.Monty(max_processes=1) as pool, pool.checkout(limits=limits) as session:
        try:
            value = session.feed_run(code, print_callback=_show)
            _show("stdout", "" if value is None else f"{value!r}\n")
        except monty.MontyError as error:
            shown = getattr(error, "display", error.__str__)  # with the place in the code, where there is one
            _show("stdout", f"{shown()}\n")
            failed = 1
    sys.stdout.flush()
    os._exit(failed)  # at a usual exit its threads can outlive the interpreter, and abort


if __name__ == "__main__":
    main()
