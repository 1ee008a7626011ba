"""What a model sent → what the schema asks for. The one place where types are coerced.

Each conversion is one that can only have been meant: "3" for an integer, one value for a list of
them. What is cut off, ambiguous or merely similar is a problem, told in words that a model can act on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from glassloop.core.entries import JSON
from glassloop.tools.values import (
    NUMBER,
    READERS,
    SCALARS,
    WORDS_FOR_NULL,
    NoFit,
    Path,
    is_a,
    is_written_null,
    member,
    read_json,
    without_surrogates,
)
from glassloop.tools.wording import (
    MOMENTS,
    NEVER_EMPTY,
    broken_bound,
    dotted,
    expected,
    folded,
    item_schema,
    nearest,
    options_of,
    shorten,
)

_MAX_DEPTH = 100
_NOTHING: tuple[JSON, ...] = (None, "", {}, [])


_WORDS = frozenset(("title", "description", "default", "examples"))
"""Keywords that say nothing about which values fit."""
_PLAIN_OBJECT = _WORDS | {"type", "properties", "required", "additionalProperties"}
_PLAIN_VALUE = _WORDS | {"type"}
_TYPES: Mapping[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
}


def is_as_declared(sent: JSON, schema: Mapping[str, Any]) -> bool:
    """Whether plain values were sent exactly as declared, as they almost always are: nothing is then to be fitted."""
    if type(sent) is not dict or not schema.keys() <= _PLAIN_OBJECT:
        return False
    properties = schema.get("properties", {})
    for name, value in sent.items():
        part = properties.get(name)
        if type(part) is not dict or not part.keys() <= _PLAIN_VALUE:
            return False
        if part.get("type") not in _TYPES.get(type(value), ()):
            return False
        if type(value) is str and without_surrogates(value) != value:
            return False
    return sent.keys() >= set(schema.get("required", ()))


@dataclass(slots=True)
class Fitting:
    """One attempt to fit a value. `problems` says what does not fit, `changes` what was coerced.

    `literals` gives the source text of a number by its path, so that 1.10 stays "1.10" in a string.
    """

    literals: Callable[[], Mapping[Path, str]] = dict
    problems: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def fit(self, value: JSON, schema: Any, path: Path = ()) -> JSON:
        """The value as `schema` has it. Where that is impossible, the value as it was and a problem."""
        if len(path) > _MAX_DEPTH:
            return self._problem(path, "is nested too deeply", value)
        if not isinstance(schema, Mapping):
            return value if schema is not False else self._problem(path, "must not be given", value)
        if isinstance(value, str):
            value = without_surrogates(value)
        if "allOf" in schema:
            for part in schema["allOf"]:
                value = self.fit(value, part, path)
        if options := options_of(schema):
            return self._fit_one_of(value, options, schema, path)
        try:
            fitted = self._convert(value, schema, path)
        except (NoFit, ValueError, OverflowError, RecursionError):
            return self._problem(path, f"expected {expected(schema)}", value)
        if broken := broken_bound(fitted, schema):
            return self._problem(path, broken, value)
        return self._descend(fitted, schema, path)

    def _fit_one_of(self, value: JSON, options: list[Any], schema: Mapping[str, Any], path: Path) -> JSON:
        """The first option that takes the value as it is, else the first that takes it coerced."""
        if is_written_null(value, options):
            return self._changed(path, value, None)
        coerced: tuple[JSON, Fitting] | None = None
        for option in options:
            attempt = Fitting(self.literals)
            fitted = attempt.fit(value, option, path)
            if attempt.problems:
                continue
            if not attempt.changes:
                return fitted
            coerced = coerced or (fitted, attempt)
        if coerced is None:
            return self._problem(path, f"expected {expected(schema)}", value)
        self.changes += coerced[1].changes
        return coerced[0]

    def _convert(self, value: JSON, schema: Mapping[str, Any], path: Path) -> JSON:
        members = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if members is not None:
            return self._changed(path, value, member(value, members))
        wanted = schema.get("type") or ("object" if "properties" in schema else None)
        if wanted is None or is_a(wanted, value):
            return self._normal(value, wanted, schema, path)
        if isinstance(value, list) and len(value) == 1 and wanted in SCALARS and is_a(wanted, value[0]):
            return self._changed(path, value, value[0])
        if wanted == "array":
            return self._changed(path, value, self._listed(value, schema, path))
        if wanted == "string":
            return self._changed(path, value, self._text(value, schema, path))
        return self._changed(path, value, READERS[wanted](value))

    def _normal(self, value: JSON, wanted: str | None, schema: Mapping[str, Any], path: Path) -> JSON:
        """A value that already has its type: 3.0 becomes the integer that it is; 1715 is no date."""
        if wanted == "integer" and isinstance(value, float):
            return self._changed(path, value, int(value))
        if wanted == "string" and not _has_format(value.strip(), schema.get("format")):
            raise NoFit
        return value

    def _text(self, value: JSON, schema: Mapping[str, Any], path: Path) -> str:
        """A number or a truth value as text: the very digits that the model wrote."""
        if schema.get("format") in MOMENTS or value is None:
            raise NoFit
        if isinstance(value, bool):
            return json.dumps(value)
        if not isinstance(value, (int, float)):
            raise NoFit
        literal = self.literals().get(path)
        return literal if literal is not None and json.loads(literal) == value else json.dumps(value)

    def _listed(self, value: JSON, schema: Mapping[str, Any], path: Path) -> list[JSON]:
        """A list written as text, or one value where a list of such values is wanted."""
        if isinstance(value, str) and value.lstrip().startswith("["):
            inner = read_json(value)
            if isinstance(inner, list):
                return inner
        if value in _NOTHING or (isinstance(value, str) and value.strip().lower() in WORDS_FOR_NULL):
            raise NoFit
        attempt = Fitting(self.literals)
        fitted = attempt.fit(value, schema.get("items", True), path)
        if attempt.problems:
            raise NoFit
        return [fitted]

    def _descend(self, value: JSON, schema: Mapping[str, Any], path: Path) -> JSON:
        if isinstance(value, list):
            return [
                self.fit(item, item_schema(schema, index), (*path, index)) for index, item in enumerate(value)
            ]
        if isinstance(value, Mapping):
            return self._fit_object(value, schema, path)
        return value

    def _fit_object(self, sent: Mapping[str, JSON], schema: Mapping[str, Any], path: Path) -> JSON:
        """Fit every property. Where some are declared others are mistakes, unless the schema allows them."""
        properties: Mapping[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        others = schema.get("additionalProperties", not properties or "patternProperties" in schema)
        values = self._spelled(sent, properties, path)
        unknown = [name for name in values if name not in properties] if others is False else []
        missing = [name for name in properties if name in required and name not in values]
        self._name_problems(unknown, missing, properties, sent, path)
        fitted: dict[str, JSON] = {}
        for name, value in values.items():
            if name in unknown:
                continue
            part = properties.get(name, others)
            if name not in required and self._means_absent(value, part):
                self.changes.append(f"{dotted((*path, name))}: {shorten(value)} left out")
                continue
            fitted[without_surrogates(name)] = self.fit(value, part, (*path, name))
        return fitted

    def _spelled(
        self, sent: Mapping[str, JSON], properties: Mapping[str, Any], path: Path
    ) -> dict[str, JSON]:
        """Names that differ from the only such parameter in case or separators alone, put right."""
        values = {name: value for name, value in sent.items() if name in properties}
        for name, value in sent.items():
            if name in properties:
                continue
            same = [declared for declared in properties if folded(declared) == folded(name)]
            if len(same) == 1 and same[0] not in values:
                self.changes.append(f"{dotted((*path, name))} read as {same[0]}")
                name = same[0]
            values[name] = value
        return values

    def _name_problems(
        self,
        unknown: list[str],
        missing: list[str],
        properties: Mapping[str, Any],
        sent: Mapping[str, JSON],
        path: Path,
    ) -> None:
        explained = set()
        for name in missing:
            alone = unknown if len(missing) == len(unknown) == 1 else nearest(name, unknown)
            close = [each for each in alone if each not in explained]
            hint = f"; you sent `{shorten(close[0], quoted=False)}`" if close else ""
            explained.update(close[:1])
            self.problems.append(
                f"missing parameter `{dotted((*path, name))}` ({expected(properties[name])}){hint}"
            )
        for name in unknown:
            if name in explained:
                continue
            if sent.get(name) in _NOTHING:
                self.changes.append(f"{dotted((*path, name))}: empty and unknown, left out")
                continue
            close = nearest(name, [each for each in properties if each not in sent])
            hint = f"; did you mean `{close[0]}`?" if close else ""
            self.problems.append(f"unknown parameter `{shorten(dotted((*path, name)), quoted=False)}`{hint}")

    def _means_absent(self, value: JSON, schema: Any) -> bool:
        """null, or an empty text, for an optional parameter that cannot be that."""
        if value is not None and not (isinstance(value, str) and value.strip().lower() in WORDS_FOR_NULL):
            return False
        attempt = Fitting(self.literals)
        attempt.fit(value, schema)
        return bool(attempt.problems)

    def _changed(self, path: Path, before: JSON, after: JSON) -> JSON:
        if type(before) is not type(after) or before != after:
            self.changes.append(f"{dotted(path)}: {shorten(before)} read as {shorten(after)}")
        return after

    def _problem(self, path: Path, what: str, value: JSON) -> JSON:
        self.problems.append(f"`{dotted(path)}`: {what}, you sent {shorten(value)}")
        return value


def _has_format(text: str, name: str | None) -> bool:
    """Only what a validator after us would read wrongly: a bare number as a moment, nothing as something."""
    return bool(text or name not in NEVER_EMPTY) and not (name in MOMENTS and NUMBER.fullmatch(text))
