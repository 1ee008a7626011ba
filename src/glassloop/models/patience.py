"""How often one operation tries again, and what it raises when that was often enough."""

from __future__ import annotations

from glassloop.core.errors import EndpointError, RateLimited
from glassloop.core.events import Retrying
from glassloop.models.deadlines import Retries

_LONGEST_BELIEVABLE = 31 * 86400.0
"""No limit is longer than a month: more seconds than this are a wrong clock or a wrong unit, and no wait."""


class Patience:
    """Counts the retries of one operation, all together and by reason."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._count = 0
        self._by_reason: dict[str, int] = {}

    def again(
        self, reason: str, error: EndpointError, *, asked: float | None = None, limit: int | None = None
    ) -> Retrying:
        """Announce the same request once more.

        `asked`: the seconds that the endpoint asks for. `limit`: at most so often for this reason. Raises `error`
        when that was tried often enough, and `RateLimited` when the wait is longer than anybody would want.
        """
        retries = self._retries
        if asked is not None and asked > _LONGEST_BELIEVABLE:
            asked = None
        if asked is not None and asked > retries.longest_wait:
            raise _too_long(error, asked, retries.longest_wait)
        times = self._by_reason[reason] = self._by_reason.get(reason, 0) + 1
        if self._count >= retries.attempts or (limit is not None and times > limit):
            raise error
        self._count += 1
        return Retrying(reason, self._count, retries.pause(self._count, asked))


def _too_long(error: EndpointError, asked: float, longest: float) -> RateLimited:
    late = RateLimited(
        f"The endpoint asks to wait {asked:.0f} s, longer than the {longest:g} s of Retries.longest_wait",
        status=error.status,
        provider_text=error.provider_text,
        request_id=error.request_id,
        url=error.url,
        hint="Ask again later, or allow a longer wait.",
    )
    late.wait_seconds = asked
    return late
