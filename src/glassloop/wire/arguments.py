"""The arguments ladder: what arrived as a call's arguments → an object, or the reason why it must not run.

Only syntax is mended here. Types that differ from the schema ("3" for 3) are coerced once, in `tools/`.
What was cut off is never completed: an open string or bracket is a problem on every rung.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from glassloop.core.entries import JSON, Mend
from glassloop.core.values import Value
from glassloop.wire import relaxed, strictjson
from glassloop.wire.names import resolve_name
from glassloop.wire.numbertexts import with_number_texts
from glassloop.wire.strictjson import Forbidden

MAX_DECODINGS = 3
"""How often a string that holds an encoded object is decoded again."""

ARGUMENT_FIELDS = ("arguments", "parameters", "input", "args", "kwargs", "params", "tool_input")
"""What arguments are called, on a call of any shape."""

WRAPPER_KEYS = (*ARGUMENT_FIELDS, "properties")
NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name")


class Arguments(Value, frozen=True):
    """The object that a call's arguments mean, or the problem for which it must not run."""

    value: Mapping[str, JSON] | None
    problem: str | None = None
    mends: tuple[Mend, ...] = ()


def read_arguments(
    raw: JSON, schema: Mapping[str, JSON] | None = None, *, name: str | None = None
) -> Arguments:
    """Read what arrived as arguments: text in any of the forms that endpoints send, an object, or nothing.

    `schema` is the tool's parameters and `name` the tool's name: they decide what a wrapper is, and
    keep a number's own text where a string is declared.
    """
    plain = plain_object(raw, schema) if schema is not None else None
    return Arguments(plain) if plain is not None else by_ladder(raw, schema, name)


def plain_object(raw: JSON, schema: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """The object of arguments in which there is nothing to mend, as they almost always are; None for all others.

    What could hold a deviation (an escape that may be half of a surrogate pair, deep nesting, a number where
    no number is declared, a wrapper) is not looked at twice but left to the ladder.
    """
    if type(raw) is not str or not raw.startswith("{") or "\\u" in raw or strictjson.has_surrogates(raw):
        return None
    value = strictjson.flat_object(raw)
    if not value:
        return value
    declared = schema.get("properties")
    if type(declared) is not dict:
        return None
    try:
        for key, item in value.items():
            if declared[key]["type"] not in _PLAIN_TYPES[type(item)]:
                return None
    except (KeyError, TypeError):
        return None
    return value


_PLAIN_TYPES: Mapping[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
}
"""Types of values that are as declared by any of these JSON Schema types."""


def by_ladder(raw: JSON, schema: Mapping[str, JSON] | None, name: str | None) -> Arguments:
    """The whole ladder."""
    try:
        if isinstance(raw, str):
            read = _from_text(strictjson.without_surrogates(raw), schema)
        else:
            strictjson.refuse_deep_value(raw)
            read = _as_object(raw)
    except Forbidden as error:
        return Arguments(None, f"The arguments cannot be used: {error}.")
    except RecursionError:
        return Arguments(
            None, f"The arguments cannot be used: they nest deeper than {strictjson.MAX_DEPTH} levels."
        )
    if read.value is None:
        return read
    return _without_surrogates(_unwrapped(read, schema or {}, name))


def _from_text(text: str, schema: Mapping[str, JSON] | None) -> Arguments:
    value: JSON = text.strip("\ufeff\0 \t\r\n")
    if not value:
        return Arguments({})
    mends: list[Mend] = []
    for decoding in range(MAX_DECODINGS):
        read = _value_of(value, schema)
        if read.problem is not None:
            return (
                Arguments(None, read.problem) if decoding == 0 or _is_structured(value) else _as_object(value)
            )
        value = read.value
        mends += read.mends
        if not isinstance(value, str):
            break
        value = value.strip()
        mends.append(Mend("encoded_twice", "the arguments were a string that holds an encoded object"))
        if not value:
            return Arguments({}, mends=tuple(mends))
    result = _as_object(value)
    return replace(result, mends=(*mends, *result.mends)) if mends else result


def _is_structured(text: JSON) -> bool:
    return isinstance(text, str) and text.startswith(("{", "["))


class _Read(Value, frozen=True):
    """The value of a text, of whatever type, or a problem."""

    value: JSON = None
    problem: str | None = None
    mends: tuple[Mend, ...] = ()


def _value_of(text: str, schema: Mapping[str, JSON] | None) -> _Read:
    """Strict JSON, else the first rung that can read the whole text."""
    try:
        return _parsed(text, schema, control_characters=False)
    except Forbidden:
        raise
    except ValueError as error:
        complaint = str(error)
    unfenced = _without_fence(text)
    mends = (
        (Mend("fenced_arguments", "a code fence around the arguments was removed"),)
        if unfenced != text
        else ()
    )
    if len(unfenced) > relaxed.MAX_RELAXED and _QUOTED.match(unfenced) and strictjson.is_cut_off(unfenced):
        return _Read(problem=_CUT_OFF)  # each rung would read it all, to find no end
    for rung in (_one_object, _relaxed, _xml):
        read = rung(unfenced, schema)
        if read is not None:
            return replace(read, mends=(*mends, *read.mends))
    return _Read(problem=_complaint(text, complaint))


_QUOTED = re.compile(r'(?:[{\[]\s*)?"')
_CUT_OFF = (
    "The arguments were cut off before the JSON was complete, so the call did not run. Send a shorter call."
)


def _complaint(text: str, complaint: str) -> str:
    if strictjson.is_cut_off(text):
        return _CUT_OFF
    return f"The arguments are not valid JSON: {complaint}."


_FENCE = re.compile(r"[^\"'{}\[\]<>`\\]*+```[\w+-]*[ \t]*\n?")


def _without_fence(text: str) -> str:
    """What stands in a code fence, without the words around it."""
    match = _FENCE.match(text)
    if match is None:
        return text
    inside = text[match.end() :].rstrip()
    end = inside.rfind("```")
    return inside[:end].rstrip() if end >= 0 and _may_be_dropped(inside[end:]) else inside


_LEADING = re.compile(
    r"(?:[^\"'{}\[\]<>`\\]|\[[A-Z_]+\]|<[|｜][^<>\"{}]*[|｜]>|<(?:tool_calls?|function_calls?|arguments?|parameters?|json)>)*+"
    r"(?:\"\"\s*|\[\]\s*)?(?=\{)"
)
"""Words, control tokens and tags before an object, and a placeholder for it that a stream began with."""
_BETWEEN = re.compile(r"(?:[\s,;]|```\w*)*+(?=\{)")


def _one_object(text: str, schema: Mapping[str, JSON] | None) -> _Read | None:
    """The one JSON object in a text that has other text around it, or repeats it. None if that is not clear."""
    match = _LEADING.match(text)
    if match is None:
        return None
    strictjson.refuse_deep(text)
    found: list[str] = []
    position = match.end()
    while True:
        try:
            _, end = strictjson.parse_at(text, position)
        except Forbidden:
            raise
        except ValueError:
            return None
        found.append(text[position:end])
        between = _BETWEEN.match(text, end)
        if between is None:
            break
        position = between.end()
    around = text[: match.end()] + text[end:].strip()
    if not _may_be_dropped(text[end:].strip()):
        return None
    reads = [_parsed(each, schema, control_characters=True) for each in dict.fromkeys(found)]
    filled = [read for read in reads if read.value] or reads[:1]
    if any(read.value != filled[0].value for read in filled):
        return _Read(problem="The arguments hold several different objects. Send one call for each.")
    mends = list(filled[0].mends)
    if around:
        mends.append(
            Mend("text_around_arguments", f"text around the arguments was removed: {_shown(around)}")
        )
    if len(found) > 1:
        mends.append(Mend("repeated_arguments", f"one of {len(found)} objects in the arguments was kept"))
    return _Read(filled[0].value, mends=tuple(mends))


def _parsed(text: str, schema: Mapping[str, JSON] | None, *, control_characters: bool) -> _Read:
    """The text's value, with a number's own text where the schema declares a string ("1.50" stays "1.50")."""
    value = strictjson.parse(text, control_characters=control_characters)
    mends: list[Mend] = []
    if control_characters and relaxed.holds_control_characters(text):
        mends.append(Mend("control_characters", "raw newlines or tabs stood inside strings"))
    exact = value if schema is None else with_number_texts(value, text, schema)
    if exact is not value:
        mends.append(
            Mend("number_as_text", "a number was taken as it was written, since a string is declared")
        )
    return _Read(exact, mends=tuple(mends))


def _may_be_dropped(rest: str) -> bool:
    """Whether what follows an object is no part of it: after one bracket too many, the rest may still be arguments."""
    return not ("{" in rest or '":' in rest or rest.startswith(","))


def _relaxed(text: str, schema: Mapping[str, JSON] | None) -> _Read | None:
    """The text in one of the syntaxes of `relaxed`, also with text before it."""
    leading = _LEADING.match(text)
    candidates = [text, text[leading.end() :]] if leading is not None and leading.end() else [text]
    for candidate in candidates:
        for code, reader in relaxed.READERS:
            try:
                value = reader(candidate)
            except Forbidden:
                raise
            except (ValueError, RecursionError):
                continue
            if value is None or isinstance(value, (dict, list)):
                return _Read(value, mends=(Mend(code, "the arguments were no strict JSON"),))
    return None


def _xml(text: str, schema: Mapping[str, JSON] | None) -> _Read | None:
    """The text as XML-style parameters, which only the schema tells from other markup."""
    try:
        parameters = relaxed.xml_parameters(text, _properties(schema))
    except Forbidden:
        raise
    except ValueError:
        return None
    return _Read(parameters, mends=(Mend("xml_arguments", "the arguments were XML-style parameters"),))


def _properties(schema: Mapping[str, JSON] | None) -> Mapping[str, JSON]:
    properties = (schema or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _as_object(value: JSON) -> Arguments:
    match value:
        case None:
            return Arguments({})
        case dict():
            return Arguments(value)
        case []:
            return Arguments({}, mends=(Mend("empty_list_arguments", "[] was read as no arguments"),))
        case [dict() as only]:
            return Arguments(
                only, mends=(Mend("list_arguments", "a list of one object was read as the object"),)
            )
    return Arguments(None, f"The arguments must be a JSON object, not {_kind(value)}: {_shown(value)}.")


def _kind(value: JSON) -> str:
    kinds = {str: "a string", list: "an array", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "this")


def _shown(value: JSON) -> str:
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= 80 else text[:80] + "…")


# ── wrappers around the object ──────────────────────────────────────────────────────────────────


def _unwrapped(read: Arguments, schema: Mapping[str, JSON], name: str | None) -> Arguments:
    """The object inside {"arguments": {…}}, {"name": this tool, "arguments": {…}} or {this tool: {…}}."""
    declared = _properties(schema)
    for _ in range(2):
        inner = _inner(read.value or {}, declared, name)
        if inner is None:
            return read
        below = read_arguments(inner, schema)
        if below.value is None or not below.value.keys() <= declared.keys():
            return read
        read = Arguments(
            below.value, mends=(*read.mends, Mend("wrapped_arguments", "a wrapper was removed"), *below.mends)
        )
    return read


def _inner(value: Mapping[str, JSON], declared: Mapping[str, JSON], name: str | None) -> JSON:
    if not value or value.keys() & declared.keys():
        return None
    if len(value) == 1:
        (key, inner), *_ = value.items()
        return inner if (key in WRAPPER_KEYS or key == name) and isinstance(inner, (dict, str)) else None
    called = next((value[key] for key in NAME_KEYS if key in value), None)
    if (
        name is None
        or not isinstance(called, str)
        or len(value) > 4
        or resolve_name(called, (name,))[0] != name
    ):
        return None
    inner = next((value[key] for key in WRAPPER_KEYS if key in value), None)
    return inner if isinstance(inner, (dict, str)) else None


def _without_surrogates(read: Arguments) -> Arguments:
    value = strictjson.scrubbed(read.value)
    if value == read.value:
        return read
    mend = Mend("lone_surrogate", "half a surrogate pair was replaced by U+FFFD")
    return replace(read, value=value, mends=(*read.mends, mend))
