"""Settings that no endpoint could take: what the API's reference says of each field, and whether a value fits it.

A value outside of it is the user's to correct. One inside of it that an endpoint refuses is that endpoint's trait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard

from glassloop.core.entries import JSON

_CHOICES = ("auto", "none", "required", "any")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "auto", "default", "on", "off")


def is_mistaken(field: str, value: JSON) -> bool:
    """Whether no endpoint's `field` could hold the value. False for a field that is not in the API's reference."""
    fits = _FITS.get(field)
    return fits is not None and not fits(value)


def _is_number(value: JSON) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_at_least(least: float) -> Callable[[JSON], bool]:
    return lambda value: _is_number(value) and value >= least


def _is_count(value: JSON) -> bool:
    """Not -1 either, which local servers take for "no limit": where it is refused, a number must be given."""
    return _is_number(value) and value == int(value) and value >= 1


def _is_a(*kinds: type) -> Callable[[JSON], bool]:
    """A number is let through too: gateways take 0 and 1 for switches, and levels of their own for the rest."""
    return lambda value: isinstance(value, kinds) or _is_number(value)


_FITS: Mapping[str, Callable[[JSON], bool]] = {
    "temperature": _is_at_least(0),
    "top_p": _is_at_least(0),
    "min_p": _is_at_least(0),
    "frequency_penalty": _is_number,
    "presence_penalty": _is_number,
    "repetition_penalty": _is_at_least(0),
    "max_tokens": _is_count,
    "max_completion_tokens": _is_count,
    "n": _is_count,
    "top_logprobs": _is_at_least(0),
    "seed": _is_number,
    "logprobs": _is_a(bool),
    "parallel_tool_calls": _is_a(bool),
    "stop": _is_a(str, list),
    "response_format": _is_a(dict),
    "logit_bias": _is_a(dict),
    "stream_options": _is_a(dict),
    "reasoning_effort": lambda value: _is_number(value) or value in _EFFORTS,
    "tool_choice": lambda value: value in _CHOICES or isinstance(value, dict),
}
