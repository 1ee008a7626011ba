"""Structured answers: from a Python type to what the model is told, and from its text to a value of that type."""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from glassloop.core.errors import ConfigError
from glassloop.core.values import Value

T = TypeVar("T")


class Shape(Value, Generic[T], frozen=True, gc=True):
    """What an answer must look like. `adapter` is pydantic's `TypeAdapter` for the type."""

    adapter: Any

    @classmethod
    def of(cls, wanted: type[T]) -> Shape[T]:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        try:
            shape = cls(TypeAdapter(wanted))
            shape.instructions()
        except (PydanticUserError, NameError) as error:
            raise ConfigError(f"output={wanted!r} is no type that JSON can be read as: {error}") from None
        return shape

    def instructions(self) -> str:
        """What the system message says about it. Works on every endpoint, since it asks for nothing but text."""
        schema = json.dumps(self.adapter.json_schema(), ensure_ascii=False, separators=(",", ":"))
        return f"Your final answer must be one JSON value, and nothing else, that fits this JSON Schema:\n{schema}"

    def problem(self, text: str) -> str | None:
        """What is wrong with an answer, in words for the model; None if it fits."""
        from pydantic import ValidationError

        try:
            self.value(text)
        except ValidationError as error:
            found = "; ".join(
                f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}"
                for one in error.errors()[:5]
            )
            return f"Your answer does not fit the JSON Schema ({found}). Answer again with the corrected JSON only."
        return None

    def value(self, text: str) -> T:
        """The answer as a value. Raises pydantic's `ValidationError`."""
        from pydantic import ValidationError

        try:
            value: T = self.adapter.validate_json(text)
        except ValidationError:
            if (inside := _bare_json(text)) == text:
                raise
            value = self.adapter.validate_json(inside)
        return value


def _bare_json(text: str) -> str:
    """The JSON inside an answer: without a code fence around it or a sentence before it."""
    text = text.strip()
    if "```" in text:
        inside = text.split("```")[1]
        text = inside.removeprefix("json").strip()
    start = min((at for at in (text.find("{"), text.find("[")) if at > 0), default=0)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if start and end > start:
        return text[start:end]
    return text
