"""Token counts and cost, in every shape in which endpoints report them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from glassloop.core.entries import JSON, Usage

_Path = tuple[str, ...]

_COUNTS: Mapping[str, tuple[_Path, ...]] = {
    "prompt_tokens": (("prompt_tokens",), ("input_tokens",), ("promptTokens",), ("prompt_eval_count",)),
    "completion_tokens": (("completion_tokens",), ("output_tokens",), ("completionTokens",), ("eval_count",)),
    "total_tokens": (("total_tokens",), ("totalTokens",)),
    "cached_tokens": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("prompt_cache_hit_tokens",),
        ("cache_read_input_tokens",),
        ("cached_tokens",),
        ("num_cached_tokens",),
    ),
    "reasoning_tokens": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
        ("reasoning_tokens",),
    ),
}

_PLAIN = frozenset(("prompt_tokens", "completion_tokens", "total_tokens"))

_COSTS: tuple[_Path, ...] = (("cost",), ("cost", "total_cost"), ("total_cost",), ("estimated_cost",))
_COST_FIELDS = frozenset(path[0] for path in _COSTS)


def usage_object(body: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """The object that holds the counts: of the body, a vendor's corner of it, a choice, or the body itself."""
    usage = body.get("usage")
    if type(usage) is dict and type(usage.get("prompt_tokens")) is int:  # as nearly always
        return usage
    candidates = [usage] if usage is not None else []
    if "x_groq" in body:
        candidates.append(_at(body, ("x_groq", "usage")))
    choices = body.get("choices")
    if isinstance(choices, list):
        candidates += [
            choice["usage"] for choice in choices if isinstance(choice, dict) and "usage" in choice
        ]
    if "prompt_eval_count" in body or "eval_count" in body:
        candidates.append({key: body[key] for key in ("prompt_eval_count", "eval_count") if key in body})
    for candidate in candidates:
        if isinstance(candidate, dict) and any(value is not None for value in candidate.values()):
            return candidate
    return None


def read_usage(counts: Mapping[str, JSON] | None) -> Usage:
    """The counts that an endpoint reported; what it did not report stays None."""
    if not counts:
        return Usage()
    if counts.keys() == _PLAIN:  # as from most servers
        prompt, completion, total = (
            counts["prompt_tokens"],
            counts["completion_tokens"],
            counts["total_tokens"],
        )
        if type(prompt) is type(completion) is type(total) is int and min(prompt, completion, total) >= 0:
            return Usage(prompt, completion, total)
    numbers = {name: _first_number(counts, paths) for name, paths in _COUNTS.items()}
    return Usage(**{name: None if number is None else int(number) for name, number in numbers.items()})


def read_cost(counts: Mapping[str, JSON] | None) -> float | None:
    """The cost in US dollars, where the endpoint reports one."""
    if not counts or _COST_FIELDS.isdisjoint(counts):
        return None
    return _first_number(counts, _COSTS)


def _first_number(counts: Mapping[str, JSON], paths: tuple[_Path, ...]) -> float | None:
    for path in paths:
        if path[0] in counts and (number := _number(_at(counts, path))) is not None:
            return number
    return None


def _at(value: JSON, path: _Path) -> JSON:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _number(value: JSON) -> float | None:
    """A count or an amount: not negative, finite, and possibly written as a string."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) and number >= 0 else None
