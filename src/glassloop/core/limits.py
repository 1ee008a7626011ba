"""How far a run may go, and how far it has gone. One `Spent` is shared by an agent and its sub-agents' work."""

from __future__ import annotations

from glassloop.core.entries import Reply, Usage
from glassloop.core.errors import ConfigError
from glassloop.core.journal import StopReason
from glassloop.core.values import Value

MOST_CALLS_IN_ONE_REPLY = 128


class Limits(Value, frozen=True):
    """When a run must stop. None means no limit. At a limit the model is asked for one last answer without tools.

    `rounds`: model turns that may use tools (default 25). `calls`: tool calls. `tokens`: prompt and
    completion tokens of all model calls together. `cost`: US dollars. `seconds`: since the run began;
    it is looked at between steps, so a step that has begun is bounded by its own deadline, not by this.
    `repeats`: the same call with the same result this often earns the model a note; two more, and
    tools are withdrawn (default 3).
    """

    rounds: int | None = 25
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    repeats: int | None = 3

    def __post_init__(self) -> None:
        for name in ("rounds", "calls", "tokens", "cost", "seconds", "repeats"):
            value = getattr(self, name)
            if value is not None and not _is_limit(value, 0 if name == "calls" else 1e-9):
                raise ConfigError(f"Limits({name}={value!r}): give a number above 0, or None for no limit")

    def bounds_without_cost(self) -> bool:
        """Is there a limit besides `cost` that was set on purpose? (Rounds always have one.)"""
        return any(limit is not None for limit in (self.calls, self.tokens, self.seconds))


class Spent(Value, frozen=True):
    """What a run has used. `cost` is None as soon as one model call's cost is unknown: never guessed, never 0."""

    rounds: int = 0
    calls: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    seconds: float = 0.0

    def after_reply(self, reply: Reply, cost: float | None, *, counts: bool) -> Spent:
        """With one more model call. `counts`: it was a round (an empty reply that is asked again is none)."""
        total = None if cost is None or self.cost is None else self.cost + cost
        return Spent(self.rounds + counts, self.calls, self.usage + reply.usage, total, self.seconds)

    def after_calls(self, calls: int) -> Spent:
        """With so many more tool calls."""
        return Spent(self.rounds, self.calls + calls, self.usage, self.cost, self.seconds)

    def after(self, seconds: float) -> Spent:
        """So many seconds after the run began, or later where time is known to have gone on."""
        return Spent(self.rounds, self.calls, self.usage, self.cost, max(self.seconds, seconds))

    @property
    def tokens(self) -> int:
        """All tokens that endpoints reported; what they did not report is not counted."""
        usage = self.usage
        if usage.total_tokens is not None:
            return usage.total_tokens
        return (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)


def _is_limit(value: object, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least  # NaN is not


def limit_reached(limits: Limits, spent: Spent) -> StopReason | None:
    """The first limit that is used up, if any."""
    used: tuple[tuple[StopReason, float | None, float | None], ...] = (
        ("rounds", spent.rounds, limits.rounds),
        ("calls", spent.calls, limits.calls),
        ("tokens", spent.tokens, limits.tokens),
        ("cost", spent.cost, limits.cost),
        ("seconds", spent.seconds, limits.seconds),
    )
    for reason, amount, limit in used:
        if limit is not None and amount is not None and amount >= limit:
            return reason
    return None


def describe(limits: Limits, reason: StopReason) -> str:
    """The limit in words, for the model and for people: "the limit of 25 rounds"."""
    words = {
        "rounds": f"the limit of {_counted(limits.rounds, 'round')}",
        "calls": f"the limit of {_counted(limits.calls, 'tool call')}",
        "tokens": f"the limit of {_counted(limits.tokens, 'token')}",
        "cost": f"the limit of {limits.cost} US dollars",
        "seconds": f"the limit of {limits.seconds} seconds",
        "repeated_calls": "the limit on repeating the same call",
    }
    return words[reason]


def _counted(count: int | None, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
