"""The program in which a model's code runs, inside the sandbox. Glassloop never imports it: it hands on its text.

It knows nothing of Glassloop. It gets the code, and the functions that stand for tools, as one line of JSON from
the descriptor that its argument names. A call of such a function is a line of JSON out and one back, and no more:
what a call may do is decided on the other side.
"""

import ast
import code
import json
import linecache
import socket
import sys
import threading
from typing import Any, TextIO

_NAME = "<code>"


class ToolError(Exception):
    """A tool did not run, or failed; the message says why."""


class _Interpreter(code.InteractiveInterpreter):
    """One that remembers whether the code failed."""

    failed = False

    def showtraceback(self) -> None:
        self.failed = True
        super().showtraceback()

    def showsyntaxerror(self, *names: Any, **sources: Any) -> None:
        self.failed = True
        super().showsyntaxerror(*names, **sources)


class _Channel:
    """Lines of JSON to and from the other side, one call at a time."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines
        self._one_at_a_time = threading.Lock()

    def receive(self) -> Any:
        line = self._lines.readline()
        if not line:
            raise ToolError("nobody answers any more")
        return json.loads(line)

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        line = json.dumps({"tool": tool, "arguments": arguments}, allow_nan=False)
        with self._one_at_a_time:
            self._lines.write(line + "\n")
            self._lines.flush()
            answer = self.receive()
        if not answer["ok"]:
            raise ToolError(answer["text"])
        return str(answer["text"])


def _function(channel: _Channel, name: str, tool: str, parameters: list[str]) -> Any:
    """The function that stands for a tool. Positional arguments are named in the order of its parameters."""

    def call(*positional: Any, **named: Any) -> str:
        if len(positional) > len(parameters):
            raise TypeError(f"{name}() takes {len(parameters)} arguments but {len(positional)} were given")
        given = dict(zip(parameters, positional, strict=False))
        if twice := given.keys() & named.keys():
            raise TypeError(f"{name}() got multiple values for argument {min(twice)!r}")
        return channel.call(tool, {**given, **named})

    call.__name__ = call.__qualname__ = name
    return call


def _run(source: str, names: dict[str, Any]) -> bool:
    """Run the code; show the value of its last line as an interactive Python does. False if it failed."""
    linecache.cache[_NAME] = (len(source), None, source.splitlines(keepends=True), _NAME)
    interpreter = _Interpreter(names)
    try:
        body = ast.parse(source, _NAME).body
        last = [body.pop()] if body and isinstance(body[-1], ast.Expr) else []
        steps = [
            compile(ast.Module(body, []), _NAME, "exec"),
            compile(ast.Interactive(list[ast.stmt](last)), _NAME, "single"),
        ]
    except (SyntaxError, ValueError):
        interpreter.showsyntaxerror(_NAME)
        return False
    except (RecursionError, MemoryError):
        interpreter.showtraceback()
        return False
    for step in steps:
        interpreter.runcode(step)
        if interpreter.failed:
            return False
    return True


def main() -> None:
    """Run the code that comes through the descriptor. The exit code says whether it failed."""
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        lines = connection.makefile("rw", encoding="utf-8")
        channel = _Channel(lines)
        task = channel.receive()
        sys.argv[:] = [_NAME]
        names: dict[str, Any] = {"__name__": "__main__", "ToolError": ToolError}
        for each in task["functions"]:
            names[each["name"]] = _function(channel, **each)
        succeeded = _run(task["code"], names)
    sys.exit(0 if succeeded else 1)


if __name__ == "__main__":
    main()
