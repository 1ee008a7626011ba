"""What to change about a request when an endpoint refuses something in it: all rules in their order.

A rule crosses a class of words with something that we did send; it never knows one provider's sentence. Its steps
are tried in order, one a refusal, and a step that changes nothing about the profile is no step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from glassloop.wire import refused_messages, refused_tools
from glassloop.wire.options import demanded_steps, option_steps, placed_steps, tool_choice_steps
from glassloop.wire.rule import Refusal, Step
from glassloop.wire.sent import Sent

_FIRST = (
    *refused_tools.RULES,
    *refused_messages.CALL_RULES,
    *refused_messages.ROLE_RULES,
    *refused_messages.CONTENT_RULES,
)
_LAST = (*refused_messages.LAST_RULES, *refused_tools.LAST_RULES)


def refusal_steps(sent: Sent, text: str, *, param: str, is_refusal: bool) -> Iterator[Step]:
    """Every change that the error text suggests, the likeliest first. `text` is lower-cased.

    `param` and `is_refusal` as in `wire/options`.
    """
    yield from demanded_steps(sent, text)
    yield from tool_choice_steps(sent, text)
    yield from placed_steps(sent, text)
    yield from _steps_of(_FIRST, sent, text)
    yield from option_steps(sent, text, param=param, is_refusal=is_refusal)
    yield from _steps_of(_LAST, sent, text)


def _steps_of(rules: Iterable[Refusal], sent: Sent, text: str) -> Iterator[Step]:
    for rule in rules:
        if not rule.applies(sent) or not rule.words.search(text):
            continue
        if rule.not_words is None or not rule.not_words.search(text):
            yield from rule.steps(sent, text)
