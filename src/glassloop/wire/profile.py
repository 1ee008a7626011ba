"""What one endpoint and model accept, as plain data. Where profiles come from and are kept is `models/`' business."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from glassloop.core.entries import JSON

System = Literal["system", "developer", "user"]
CallContent = Literal["", "omit", "null", "blank", "words"]
Ids = Literal["any", "safe", "nine"]
Names = Literal["plain", "strict"]
Arguments = Literal["text", "object"]
ReasoningBack = Literal["loop", "never", "always"]
UserAfterTool = Literal["separate", "fold"]
NoProperties = Literal["keep", "omit"]

DEEPEST_DIET = 4
OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")
"""The fields that bound an answer's length; endpoints know one or the other."""
REQUEST_FIELDS = frozenset(("model", "messages", "tools", "stream"))
"""Fields of every request that are filled in from elsewhere, and that no setting can hold."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The wire's dialect of one endpoint + model. `Profile()` is neutral: what most endpoints take.

    Transport
        tool_mode: "native", or the name of a text family in `wire/textcalls` for endpoints without tools.
        stream: whether streaming works at all; `stream_with_tools`: whether it works when tools are sent.
        stream_only: whether only streaming works.
        stream_options: ask for usage in streams. Off, as nothing optional is sent unasked.

    Request fields
        drop_fields: top-level fields never sent, whatever the settings say.
        set_fields: fields that this endpoint insists on; they win over the settings.
        rename_fields: the settings' name of a field → the endpoint's.
        max_values, min_values: numbers are clamped to these, by the endpoint's name of the field.
        max_output: sent as the output limit where the settings set none (in tokens).
        tool_choice: the spelling of "auto", "none", "required" and "function" (a forced tool); "" drops it.

    Messages
        system: the role of the instructions; "user" folds them into the first user message.
        call_content: content of an assistant turn that only has calls: "", left out, null, " " or a few words.
        tool_name: send `name` on tool messages.
        parallel_calls: an assistant turn may hold several calls; else each is a turn of its own.
        ids: call ids as received, as `[A-Za-z0-9_-]{1,40}`, or as nine alphanumerics.
        arguments: of past calls, as JSON text or as an object.
        call_extra: send back a call's extra fields and a message's structured reasoning.
        call_index: number the past calls of a turn.
        signature: give past calls that have no thought signature the placeholder Google documents.
        reasoning_back: send reasoning back on turns with calls ("loop"), on none, or on all. Turns keep what
            they were sent with, so that prompt caches keep hitting; servers drop what is of no use to them.
        reasoning_name: send it under this name, and blank where a turn with calls has none. None: as it came.
        alternate: user and assistant turns must alternate strictly, and neighbours are merged.
        user_after_tool: a user message after tool results stands for itself, or joins the last result.
        images, files: whether these are taken at all; `images_in_tools`: whether tool messages may hold images.

    Tools
        names: `[A-Za-z0-9_-]{1,64}`, or "strict": a letter, then letters, digits and `_`, at most 48.
        max_tools: how many tools may be sent.
        max_description: tools' descriptions are cut to so many characters.
        no_properties: an object schema without properties is sent as it is, or "omit": a tool without parameters
            is sent without `parameters`, and an object inside as a text that holds JSON.
        calls_need_tools: past calls are only taken along with `tools`; where none are sent, the past ones are
            named and forbidden.
        schema_diet: how much of JSON Schema is left out, 0 to 4 (`wire/diet`).

    Facts
        context_window: in tokens, if known.
    """

    tool_mode: str = "native"
    stream: bool = True
    stream_with_tools: bool = True
    stream_only: bool = False
    stream_options: bool = False
    drop_fields: tuple[str, ...] = ()
    set_fields: Mapping[str, Any] = field(default_factory=dict)
    rename_fields: Mapping[str, str] = field(default_factory=dict)
    max_values: Mapping[str, float] = field(default_factory=dict)
    min_values: Mapping[str, float] = field(default_factory=dict)
    max_output: int | None = None
    tool_choice: Mapping[str, str] = field(default_factory=dict)
    system: System = "system"
    call_content: CallContent = ""
    tool_name: bool = True
    parallel_calls: bool = True
    ids: Ids = "any"
    arguments: Arguments = "text"
    call_extra: bool = True
    call_index: bool = False
    signature: bool = False
    reasoning_back: ReasoningBack = "loop"
    reasoning_name: str | None = None
    alternate: bool = False
    user_after_tool: UserAfterTool = "separate"
    images: bool = True
    files: bool = True
    images_in_tools: bool = False
    names: Names = "plain"
    max_tools: int | None = None
    max_description: int | None = None
    no_properties: NoProperties = "keep"
    calls_need_tools: bool = False
    schema_diet: int = 0
    context_window: int | None = None

    @property
    def text_tools(self) -> bool:
        """Whether calls travel as text."""
        return self.tool_mode != "native"

    def streams(self, wanted: bool, *, tools: bool) -> bool:
        """Whether a request is streamed, if streaming is `wanted`."""
        able = self.stream and (self.stream_with_tools or self.text_tools or not tools)
        return self.stream_only or (wanted and able)

    def merged(self, changes: Mapping[str, JSON]) -> Profile:
        """This profile with `changes` on top. A mapping or a list adds to what is there, else the value replaces it.

        Raises ValueError naming the field, the value and what is allowed.
        """
        checked = {name: _checked(name, value) for name, value in changes.items()}
        return dataclasses.replace(
            self, **{name: _joined(getattr(self, name), value) for name, value in checked.items()}
        )

    def to_json(self) -> dict[str, JSON]:
        """What differs from the neutral profile, as plain JSON."""
        neutral = Profile()
        return {
            name: _plain(value)
            for name in _FIELDS
            if (value := getattr(self, name)) != getattr(neutral, name)
        }

    @staticmethod
    def from_json(value: JSON) -> Profile:
        """The profile that `to_json` wrote, or that a person wrote. Raises ValueError as `merged` does."""
        if not isinstance(value, Mapping):
            raise ValueError(f"a profile must be an object of fields, not {value!r}")
        return Profile().merged(value)


_FIELDS = tuple(each.name for each in dataclasses.fields(Profile))
_TYPES = get_type_hints(Profile)


def _joined(old: Any, new: Any) -> Any:
    if isinstance(new, dict):
        return {**old, **new}
    if isinstance(new, tuple):
        return tuple(dict.fromkeys((*old, *new)))
    return new


def _plain(value: Any) -> JSON:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _checked(name: str, value: JSON) -> Any:
    if name not in _TYPES:
        raise ValueError(f"a profile has no field {name!r}; it has {', '.join(_FIELDS)}")
    taken = _taken(_TYPES[name], value)
    if taken is not _REFUSED and (ours := sorted(REQUEST_FIELDS.intersection(_sent_as(name, taken)))):
        raise ValueError(f"profile field {name!r} cannot hold {', '.join(ours)}, which every request has")
    if taken is _REFUSED or (name == "schema_diet" and not 0 <= value <= DEEPEST_DIET):
        raise ValueError(f"profile field {name!r} cannot be {value!r}; {_allowed(name)}")
    return taken


def _sent_as(name: str, taken: Any) -> Iterable[str]:
    """The request fields that a profile field adds."""
    if name == "set_fields":
        return tuple(taken)
    return tuple(taken.values()) if name == "rename_fields" else ()


_REFUSED = object()


def _taken(kind: Any, value: JSON) -> Any:
    """The value as the field's type has it, or `_REFUSED`."""
    origin = get_origin(kind)
    if origin is Literal:
        return value if isinstance(value, str) and value in get_args(kind) else _REFUSED
    if origin in (Union, types.UnionType):
        taken = (_taken(option, value) for option in get_args(kind))
        return next((each for each in taken if each is not _REFUSED), _REFUSED)
    if origin is tuple:
        return _taken_list(value)
    if origin is not None:
        return _taken_map(get_args(kind)[1], value)
    if kind is Any:
        return value if _is_json(value) else _REFUSED
    if kind is float:
        is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        return value if is_number and not isinstance(value, bool) else _REFUSED
    if kind is int:
        return value if isinstance(value, int) and not isinstance(value, bool) else _REFUSED
    return value if isinstance(value, kind) else _REFUSED


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _taken_list(value: JSON) -> Any:
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        return _REFUSED
    return tuple(value)


def _taken_map(kind: Any, value: JSON) -> Any:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        return _REFUSED
    if any(_taken(kind, each) is _REFUSED for each in value.values()):
        return _REFUSED
    return dict(value)


_WORDS = {
    Any: "JSON",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "null",
}


def _allowed(name: str) -> str:
    if name == "schema_diet":
        return f"allowed: a whole number from 0 to {DEEPEST_DIET}"
    return f"allowed: {_described(_TYPES[name])}"


def _described(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return ", ".join(repr(option) for option in get_args(kind))
    if origin in (Union, types.UnionType):
        return " or ".join(_described(option) for option in get_args(kind))
    if origin is tuple:
        return "a list of texts"
    if origin is not None:
        return f"an object whose values are {_described(get_args(kind)[1])}"
    return _WORDS[kind]
