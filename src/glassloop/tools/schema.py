"""A function's signature and docstring → the JSON Schema that the model sees, and back to Python values.

Definition mistakes are found here. What a model sends is fitted to the schema in `coerce.py`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from glassloop.core.entries import JSON
from glassloop.core.errors import ToolDefinitionError
from glassloop.core.values import Value
from glassloop.tools.context import ToolContext
from glassloop.tools.docstrings import Described, described
from glassloop.tools.hints import hints_of, innermost, modern, open_parameters, where
from glassloop.tools.wording import shorten

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class BadArguments(Exception):
    """Arguments that fit the schema, but not the Python types behind it. `problems` has one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Signature(Value, frozen=True, gc=True):
    """What the model may send for one function: `schema`, and `bind` to turn it into Python arguments."""

    description: str
    schema: Mapping[str, JSON]
    bind: Callable[[Mapping[str, JSON]], Mapping[str, Any]]


class _Parameter(Value, frozen=True, gc=True):
    name: str
    hint: Any
    default: Any
    required: bool
    description: str


def mistake(function: Callable[..., Any], name: str, wrong: str, fix: str) -> ToolDefinitionError:
    """A definition mistake, said in full: which tool, where, what is wrong, what to do."""
    return ToolDefinitionError(f"Tool `{name}` ({where(function)}): {wrong}. {fix}")


def read_signature(function: Callable[..., Any], name: str, description: str | None) -> Signature:
    """The function as a tool; `description` stands in for the docstring's text. Raises `ToolDefinitionError`."""
    wrong = partial(mistake, function, name)
    from pydantic.fields import FieldInfo

    documented = described(inspect.getdoc(innermost(function)) or "")
    text = description if description is not None else documented.text
    if not text.strip():
        raise wrong(
            "it has no docstring", "Say in one what it does and when to use it; the model sees nothing else."
        )
    _refuse_odd_kinds(innermost(function), wrong)
    hints = _hints(function, wrong)
    known = set(inspect.signature(innermost(function)).parameters)
    for documented_name in documented.parameters:
        if documented_name not in known:
            raise wrong(
                f"its docstring describes a parameter `{documented_name}` that it does not have",
                f"Its parameters are: {', '.join(sorted(known)) or 'none'}.",
            )
    parameters = [
        _parameter(raw, hints, documented, wrong)
        for raw in open_parameters(function)
        if hints.get(raw.name) is not ToolContext
    ]
    adapter = _adapter(parameters, wrong)
    made = [each for each in parameters if isinstance(each.default, FieldInfo)]
    return Signature(text.strip(), _schema(adapter, parameters, wrong), partial(_bind, adapter, made))


# ── reading the signature ──────────────────────────────────────────────────────────────────────────


_Mistake = Callable[[str, str], ToolDefinitionError]


def _refuse_odd_kinds(inner: Any, mistake: _Mistake) -> None:
    if inspect.isclass(inner):
        raise mistake("it is a class", "Pass a function, or a method of an instance.")
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise mistake("it is a generator", "Return the whole result, a list for instance.")
    try:
        inspect.signature(inner)
    except (TypeError, ValueError) as error:
        raise mistake("Python does not know its parameters", "Wrap it in a function of your own.") from error


def _hints(function: Callable[..., Any], mistake: _Mistake) -> dict[str, Any]:
    try:
        return hints_of(function)
    except Exception as error:  # any expression may stand in an annotation
        raise mistake(
            f"an annotation cannot be read ({type(error).__name__}: {error})",
            "Import or define the type where the function is defined.",
        ) from error


def _parameter(
    raw: inspect.Parameter, hints: Mapping[str, Any], documented: Described, mistake: _Mistake
) -> _Parameter:
    if raw.kind in (raw.VAR_POSITIONAL, raw.VAR_KEYWORD):
        star = "*" if raw.kind is raw.VAR_POSITIONAL else "**"
        raise mistake(
            f"it takes {star}{raw.name}", "Name each parameter: a model can only send what is named."
        )
    if raw.kind is raw.POSITIONAL_ONLY:
        raise mistake(f"`{raw.name}` is positional-only", "Remove the `/`: arguments arrive by name.")
    if raw.name not in hints:
        if raw.name in ("self", "cls"):
            raise mistake(
                f"it takes `{raw.name}`",
                "Pass the bound method, as in tools=[thing.method], not the class's.",
            )
        raise mistake(
            f"`{raw.name}` has no type annotation", f"Write `{raw.name}: str`, or what type it has."
        )
    from pydantic.fields import FieldInfo

    hint, default = modern(hints[raw.name]), raw.default
    required = default is raw.empty
    if isinstance(default, FieldInfo):
        hint, required = Annotated[hint, default], default.is_required()
    notes = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)]
    text = notes[0] if notes else documented.parameters.get(raw.name, "")
    return _Parameter(raw.name, hint, default, required, text)


# ── to and from pydantic ───────────────────────────────────────────────────────────────────────────


def _adapter(parameters: list[_Parameter], mistake: _Mistake) -> TypeAdapter[Any]:
    """One validator for all parameters. A TypedDict takes any name; a model would forbid `json` or `_x`."""
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict

    fields = {each.name: each.hint if each.required else typing.NotRequired[each.hint] for each in parameters}
    try:
        return TypeAdapter(TypedDict("Arguments", fields))  # type: ignore[operator]
    except Exception as error:
        raise _unsupported(parameters, error, mistake) from error


def _unsupported(parameters: list[_Parameter], error: Exception, mistake: _Mistake) -> ToolDefinitionError:
    """Name the parameter that pydantic cannot handle, by trying each alone."""
    from pydantic import TypeAdapter

    for each in parameters:
        try:
            TypeAdapter(each.hint).json_schema()
        except Exception as alone:
            reason = str(alone).strip().splitlines()[0]
            hint = inspect.formatannotation(each.hint)
            return mistake(
                f"`{each.name}: {hint}` is of a type that JSON cannot carry ({reason})",
                "Use str, int, float, bool, list, dict, Literal, Enum, a dataclass, TypedDict or pydantic model.",
            )
    return mistake(f"its parameters cannot be described ({error})", "Use simpler types.")


def _schema(adapter: TypeAdapter[Any], parameters: list[_Parameter], mistake: _Mistake) -> dict[str, JSON]:
    from glassloop.tools.inlining import plain

    try:
        generated = adapter.json_schema()
    except Exception as error:
        raise _unsupported(parameters, error, mistake) from error
    properties = dict(generated.get("properties", {}))
    for each in parameters:
        if each.name not in properties:
            raise mistake(
                f"`{each.name}` has an alias", "Give the parameter itself the name that a model shall use."
            )
        described = dict(properties[each.name])
        if each.description and "description" not in described:
            described["description"] = each.description
        if not each.required:
            described["default"] = _default(each, mistake)
        properties[each.name] = described
    return plain({**generated, "properties": properties})


def _default(parameter: _Parameter, mistake: _Mistake) -> JSON:
    from pydantic.fields import FieldInfo
    from pydantic_core import to_jsonable_python

    value = parameter.default
    if isinstance(value, FieldInfo):
        value = value.get_default(call_default_factory=True, validated_data={})
    try:
        return to_jsonable_python(value)
    except Exception as error:
        raise mistake(
            f"the default of `{parameter.name}` cannot be shown to a model ({error})",
            f"Write `{parameter.name}: ... | None = None` and put the real default into the function.",
        ) from error


def _bind(
    adapter: TypeAdapter[Any], made: list[_Parameter], arguments: Mapping[str, JSON]
) -> Mapping[str, Any]:
    """Python values for the arguments. What was not sent keeps the function's own default, or the `made` one."""
    try:
        values: dict[str, Any] = adapter.validator.validate_python(dict(arguments))
    except ValueError as error:
        if problems := _complaints(error):
            raise BadArguments(problems) from error
        raise
    for each in made:
        if each.name not in values:
            values[each.name] = each.default.get_default(call_default_factory=True, validated_data={})
    return values


def _complaints(error: ValueError) -> list[str]:
    """What validation found; nothing where a function of the user's own failed."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return []
    return [_complaint(dict(each)) for each in error.errors(include_url=False)]


def _complaint(error: dict[str, Any]) -> str:
    place = ".".join(str(step) for step in error["loc"])
    return f"`{place}`: {error['msg']}; you sent {shorten(error['input'])}"
