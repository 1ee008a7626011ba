"""What a function's annotations say, under decorators, partials and methods. What it means is `schema.py`'s."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable
from functools import partial
from types import FrameType, UnionType
from typing import Annotated, Any

from glassloop.tools.context import ToolContext


def where(function: Callable[..., Any]) -> str:
    """Where a function is defined, for messages: `file:line`."""
    inner = innermost(function)
    code = getattr(inner, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else getattr(inner, "__module__", "") or "?"


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter that is annotated `ToolContext`, if there is one."""
    try:
        hints = hints_of(function)
    except Exception:  # unresolvable hints are `read_signature`'s to report; a raw tool needs none
        return None
    return next((name for name, hint in hints.items() if hint is ToolContext and name != "return"), None)


def innermost(function: Any) -> Any:
    """The function under decorators, partials and method binding."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif not (inspect.isroutine(function) or inspect.isclass(function)):
            function = type(function).__call__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif hasattr(function, "__func__"):
            function = function.__func__
        else:
            return function


def open_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that a caller may still give: what a partial fixed is settled and stays hidden."""
    fixed = set(function.keywords) if isinstance(function, partial) else set()
    return [raw for name, raw in inspect.signature(function).parameters.items() if name not in fixed]


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    inner = innermost(function)
    try:
        hints = typing.get_type_hints(inner, include_extras=True)
    except NameError:
        hints = typing.get_type_hints(inner, localns=_local_names(inner), include_extras=True)
    return {name: _without_none(hint, ToolContext) for name, hint in hints.items()}


def _local_names(function: Any) -> dict[str, Any]:
    """Names of the function in which this one is being defined: types local to a test or a factory."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == function.__code__.co_filename:
            return dict(frame.f_locals)
        frame = frame.f_back
    return {}


def _without_none(hint: Any, wanted: type) -> Any:
    """`ToolContext | None` means `ToolContext`."""
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    return wanted if options == [wanted] else hint


def modern(hint: Any) -> Any:
    """`typing.TypedDict` as pydantic wants it: before Python 3.12, as the one of `typing_extensions`."""
    if sys.version_info >= (3, 12):
        return hint
    import typing_extensions

    if typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        fields = {
            name: modern(field) for name, field in typing.get_type_hints(hint, include_extras=True).items()
        }
        optional = typing_extensions.NotRequired
        return typing_extensions.TypedDict(  # type: ignore[operator]
            hint.__name__,
            {
                name: field if name in hint.__required_keys__ else optional[_bare(field)]
                for name, field in fields.items()
            },
        )
    arguments = typing.get_args(hint)
    renewed = tuple(modern(argument) for argument in arguments)
    if renewed == arguments or typing.get_origin(hint) is typing.Literal:
        return hint
    if typing.get_origin(hint) is Annotated:
        return Annotated[(renewed[0], *hint.__metadata__)]
    if isinstance(hint, UnionType):
        return typing.Union[renewed]  # noqa: UP007 (built from values)
    return hint.copy_with(renewed) if hasattr(hint, "copy_with") else typing.get_origin(hint)[renewed]


def _bare(field: Any) -> Any:
    """A TypedDict field without its `Required[]` or `NotRequired[]`."""
    marked = typing.get_origin(field) in (typing.Required, typing.NotRequired)
    return typing.get_args(field)[0] if marked else field
