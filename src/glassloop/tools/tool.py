"""`@tool` and `Tool`: a function with what a model must know of it. Calls are run in `toolbox.py`."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args, overload

from glassloop.core.entries import JSON
from glassloop.core.errors import ToolDefinitionError
from glassloop.core.tools import Effect, ToolSpec
from glassloop.tools import hints, schema
from glassloop.tools.context import ToolContext
from glassloop.tools.inlining import plain
from glassloop.tools.running import is_async
from glassloop.tools.targets import Target

__all__ = ["Tool", "ToolContext", "as_tool", "tool"]

Origin = Literal["code", "builtin", "file", "mcp"]
"""Where a tool comes from: a programmer's code, ready-made, a file loaded with `-T`, or an MCP server."""

Need = Literal["network", "exec", "send"]
"""What a tool reaches beyond this process: it fetches from the network, runs programs, or sends something away."""

Approve = bool | Callable[[Mapping[str, JSON]], bool | str] | None
"""True: ask before each call. False: never ask. A function of the arguments: True or a reason to ask,
or False. None: by origin and effect."""

Check = Callable[..., Any]
"""Finds out whether a call took effect that was started before a crash: a function of its idempotency key,
sync or async, which may also take a `ToolContext`. `Done(result)`: it did, and this is its result.
`Retry()`: it did not, so it may run. None, or an exception: that cannot be told."""

UnknownPolicy = Literal["retry", "give_up"]
"""What becomes of such a call where nothing can be found out, without asking anybody."""

_R = TypeVar("_R")
OfArguments = Callable[[Mapping[str, JSON]], _R]
"""A function of a call's arguments, without any effect."""

_NAME = re.compile(r"[\w.:/-]{1,128}")
_EFFECTS = ("read", "idempotent", "once")
MAX_OUTPUT = 20_000
"""Characters, about 5,000 tokens: enough for most files and pages, little enough to be repeated in each round."""
TIMEOUT = 60.0


@dataclass(frozen=True, eq=False, repr=False)
class Tool:
    """A function that a model may call. Made by `@tool`, or by hand from a raw JSON Schema.

    `parameters` is a JSON Schema of type object; the function gets each argument by name. `timeout` in
    seconds (None: no limit). `max_output` is how many characters of a result the model is shown.
    `sequential` tools never run beside another call. `bind` turns JSON arguments into Python values.
    `untrusted`: its results are the words of others (a page, a server), marked so for the model. `needs`
    is what it reaches beyond this process. `check` finds out whether a `once` call took effect that
    a crash left in doubt, and `unknown` says what becomes of it if that cannot be told (None: a person is
    asked). Of a call's arguments: `preview` is what would happen, as text for a person who is asked;
    `targets` what it is aimed at, for rules; `basis` names what it would replace, so that an approved call
    never runs on something else. None of the three may have an effect. `context_parameter` is the one
    annotated `ToolContext`; it is found by itself.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    function: Callable[..., Any]
    effect: Effect = "once"
    timeout: float | None = TIMEOUT
    approve: Approve = None
    sequential: bool = False
    max_output: int = MAX_OUTPUT
    origin: Origin = "code"
    untrusted: bool = False
    needs: Collection[Need] = ()
    check: Check | None = None
    unknown: UnknownPolicy | None = None
    preview: OfArguments[str] | None = None
    targets: OfArguments[Sequence[Target]] | None = None
    basis: OfArguments[str] | None = None
    bind: Callable[[Mapping[str, JSON]], Mapping[str, Any]] = dict
    context_parameter: str | None = None

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "parameters", _plain_parameters(self))
        if self.context_parameter is None:  # found now: later the names that an annotation uses may be gone
            object.__setattr__(self, "context_parameter", hints.context_parameter(self.function))

    def __repr__(self) -> str:
        taken = ", ".join(self.parameters["properties"])
        return f"Tool({self.name}({taken}), {self.effect}, from {self.origin})"

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
    def is_async(self) -> bool:
        """Whether it runs on the event loop; what does not gets a thread of its own."""
        return is_async(self.function)

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
    untrusted: bool = False,
    needs: Collection[Need] = (),
    check: Check | None = None,
    unknown: UnknownPolicy | None = None,
    preview: OfArguments[str] | None = None,
    targets: OfArguments[Sequence[Target]] | None = None,
    basis: OfArguments[str] | None = None,
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
    if isinstance(thing, str):
        raise ToolDefinitionError(
            f"{thing!r} is a name and no tool. A ready-made tool is loaded: "
            f"`from glassloop.tools.builtin import load`, then `tools=load({thing!r})`."
        )
    return thing if isinstance(thing, Tool) else _from_function(thing)


def _from_function(
    function: Callable[..., Any], *, name: str | None = None, description: str | None = None, **options: Any
) -> Tool:
    if not callable(function):
        raise ToolDefinitionError(f"{function!r} is no tool. Pass a function or a `Tool`.")
    name = name or _name_of(function)
    if not isinstance(description, str | None):
        raise schema.mistake(function, name, f"its description is {description!r}", "Give it as text.")
    if unknown := options.keys() - _OPTIONS:
        raise schema.mistake(
            function, name, f"there is no option `{min(unknown)}`", f"Options: {', '.join(sorted(_OPTIONS))}."
        )
    read = schema.read_signature(function, name, description)
    return Tool(name, read.description, read.schema, function, bind=read.bind, **options)


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _is_seconds(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 100


def _one_of(*allowed: str | None) -> Callable[[object], bool]:
    return lambda value: any(value == each for each in allowed)


def _is_rule(value: object) -> bool:
    return value is None or isinstance(value, bool) or callable(value)


def _is_function(value: object) -> bool:
    return value is None or callable(value)


def _are_needs(value: object) -> bool:
    return (
        isinstance(value, Collection)
        and not isinstance(value, str)
        and all(map(_one_of(*get_args(Need)), value))
    )


_IF_CALLABLE = "Pass a function, or leave it away."
_FIELDS: tuple[tuple[str, Callable[[object], bool], str], ...] = (
    ("effect", _one_of(*_EFFECTS), f"Choose one of {', '.join(_EFFECTS)}."),
    ("timeout", _is_seconds, "Give seconds as a number above 0, or None for no limit."),
    ("approve", _is_rule, "Give True (ask), False (do not), or a function of the arguments that says so."),
    ("sequential", lambda value: isinstance(value, bool), "Give True or False."),
    ("max_output", _is_count, "Give a whole number, at least 100 characters."),
    ("untrusted", lambda value: isinstance(value, bool), "Give True or False."),
    ("needs", _are_needs, f"Give a set of {', '.join(get_args(Need))}."),
    ("check", _is_function, "Pass a function of the idempotency key."),
    (
        "unknown",
        _one_of(None, *get_args(UnknownPolicy)),
        'Choose "retry" or "give_up", or leave it away to be asked.',
    ),
    ("preview", _is_function, _IF_CALLABLE),
    ("targets", _is_function, _IF_CALLABLE),
    ("basis", _is_function, _IF_CALLABLE),
)
"""Each option: what it must be, and what to do if it is not."""

_OPTIONS = frozenset(option for option, _, _ in _FIELDS)


def _check(tool: Tool) -> None:
    """Refuse what could not work, naming the tool and the place."""
    wrong = functools.partial(schema.mistake, tool.function, str(tool.name))
    name: object = tool.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise wrong(
            "a model cannot call it by this name", 'Give it one of letters, digits, `_` and `-`: name="...".'
        )
    description: object = tool.description
    if not isinstance(description, str) or not description.strip():
        raise wrong("it has no description", "Say what it does and when to use it.")
    if not callable(tool.function):
        raise wrong(f"its function is {tool.function!r}", "Pass something that can be called.")
    for option, is_right, fix in _FIELDS:
        value = getattr(tool, option)
        if not is_right(value):
            raise wrong(f"its {option} is {value!r}", fix)
    if tool.effect != "once" and (tool.check or tool.unknown):
        raise wrong(
            f"it has a check or an unknown policy, and its effect is {tool.effect!r}, which simply runs again",
            'Leave them away, or say effect="once".',
        )


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
