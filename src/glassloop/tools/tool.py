"""`@tool` and `Tool`: a function with what a model must know of it. Calls are run in `toolbox.py`."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, overload

from glassloop.core.entries import JSON
from glassloop.core.errors import ToolDefinitionError
from glassloop.core.tools import Effect, ToolSpec
from glassloop.tools import hints, schema
from glassloop.tools.context import ToolContext
from glassloop.tools.inlining import plain

__all__ = ["Tool", "ToolContext", "as_tool", "tool"]

Origin = Literal["code", "builtin", "file", "mcp"]
"""Where a tool comes from: a programmer's code, ready-made, a file loaded with `-T`, or an MCP server."""

Approve = bool | Callable[[Mapping[str, JSON]], bool | str] | None
"""True: ask before each call. False: never ask. A function of the arguments: True or a reason to ask,
or False. None: by origin and effect."""

_NAME = re.compile(r"[\w.:/-]{1,128}")
_EFFECTS = ("read", "idempotent", "once")
MAX_OUTPUT = 20_000
"""Characters, about 5,000 tokens: enough for most files and pages, little enough to be repeated in each round."""
TIMEOUT = 60.0


@dataclass(frozen=True, eq=False)
class Tool:
    """A function that a model may call. Made by `@tool`, or by hand from a raw JSON Schema.

    `parameters` is a JSON Schema of type object; the function gets each argument by name. `timeout` in
    seconds (None: no limit). `max_output` is how many characters of a result the model is shown.
    `sequential` tools never run beside another call. `bind` turns JSON arguments into Python values.
    `context_parameter` is the one annotated `ToolContext`; it is found by itself.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    function: Callable[..., Any] = field(repr=False)
    effect: Effect = "once"
    timeout: float | None = TIMEOUT
    approve: Approve = None
    sequential: bool = False
    max_output: int = MAX_OUTPUT
    origin: Origin = "code"
    bind: Callable[[Mapping[str, JSON]], Mapping[str, Any]] = field(default=dict, repr=False)
    context_parameter: str | None = None

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "parameters", _plain_parameters(self))
        if self.context_parameter is None:  # found now: later the names that an annotation uses may be gone
            object.__setattr__(self, "context_parameter", hints.context_parameter(self.function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, so that a decorated one can still be called and tested."""
        return self.function(*args, **kwargs)

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as the model sees it."""
        return ToolSpec(self.name, self.description, self.parameters, self.effect)

    @cached_property
    def hash(self) -> str:
        """Of the definition: an approval holds for this and is void when anything in it changes."""
        defined = [self.name, self.description, self.parameters, self.effect]
        return hashlib.sha256(json.dumps(defined, sort_keys=True).encode()).hexdigest()

    @cached_property
    def where(self) -> str:
        """Where the function is defined, as `file:line`."""
        return hints.where(self.function)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = TIMEOUT,
    effect: Effect = "once",
    approve: Approve = None,
    sequential: bool = False,
    max_output: int = MAX_OUTPUT,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **options: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: `@tool`, or `@tool(effect="read", timeout=5)`.

    The docstring is the description (Google, numpy or Sphinx style), the annotations are the schema.
    Raises `ToolDefinitionError` at once for anything that could not work.
    """
    if function is None:
        return lambda decorated: _from_function(decorated, **options)
    return _from_function(function, **options)


def as_tool(thing: Tool | Callable[..., Any]) -> Tool:
    """A `Tool` as it is; a function, a bound method or a partial with the default options."""
    return thing if isinstance(thing, Tool) else _from_function(thing)


def _from_function(
    function: Callable[..., Any], *, name: str | None = None, description: str | None = None, **options: Any
) -> Tool:
    if not callable(function):
        raise ToolDefinitionError(f"{function!r} is no tool. Pass a function or a `Tool`.")
    name = name or _name_of(function)
    read = schema.read_signature(function, name, description)
    return Tool(name, read.description, read.schema, function, bind=read.bind, **options)


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _check(tool: Tool) -> None:
    """Refuse what could not work, naming the tool and the place."""
    wrong = functools.partial(schema.mistake, tool.function, tool.name)
    if not _NAME.fullmatch(tool.name):
        raise wrong(
            "a model cannot call it by this name", 'Give it one of letters, digits, `_` and `-`: name="...".'
        )
    if not tool.description.strip():
        raise wrong("it has no description", "Say what it does and when to use it.")
    if not callable(tool.function):
        raise wrong(f"its function is {tool.function!r}", "Pass something that can be called.")
    if tool.effect not in _EFFECTS:
        raise wrong(f"its effect is {tool.effect!r}", f"Choose one of {', '.join(_EFFECTS)}.")
    if tool.timeout is not None and not tool.timeout > 0:
        raise wrong(f"its timeout is {tool.timeout!r}", "Give seconds, or None for no limit.")
    if tool.max_output < 100:
        raise wrong(f"its max_output is {tool.max_output!r}", "Give at least 100 characters.")


def _plain_parameters(tool: Tool) -> Mapping[str, JSON]:
    try:
        parameters = plain(tool.parameters)
        json.dumps(parameters)
        if parameters["type"] != "object":
            raise ValueError("its type is not object")
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        wrong = f"its parameters are not a JSON Schema of type object ({error})"
        raise schema.mistake(
            tool.function, tool.name, wrong, 'Start with {"type": "object", ...}.'
        ) from error
    return parameters
