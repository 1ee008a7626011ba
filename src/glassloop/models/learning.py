"""What one operation learns from refusals. It is tried at once, and kept when the request was then taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from glassloop.core.entries import JSON
from glassloop.core.events import Learned
from glassloop.models.profiles import Learnt, Lesson, lesson
from glassloop.wire.judgement import Adapt
from glassloop.wire.profile import Profile
from glassloop.wire.request import Encoder

if TYPE_CHECKING:
    from glassloop.models.endpoint import Endpoint

MOST_ADAPTATIONS = 6
"""Changes that one request may be sent again with; each costs a refused request, once per endpoint."""


class Learning:
    """The adaptations of one operation. `tried` are the codes of those, as `wire/rejection` names them."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pending: list[tuple[Lesson, Learnt, bool]] = []
        self._adaptations = 0
        self.tried: set[str] = set()

    def encoder(self) -> Encoder:
        """The endpoint's encoder, or one that also applies what is not yet known to help."""
        if not self._pending:
            return self._endpoint.encoder
        return Encoder(self._profile_with())

    def adapt(self, step: Adapt, sent: Profile) -> Learned | None:
        """Apply a change to the next request. None if it was tried, or changes nothing of what was `sent`.

        It changes nothing where a setting of the user's forbids it: those win over what is learned.
        """
        learnt = Learnt(step.changes)
        if (
            self._adaptations >= MOST_ADAPTATIONS
            or step.code in self.tried
            or self._profile_with(learnt) == sent
        ):
            return None
        self._adaptations += 1
        self.tried.add(step.code)
        words = self._endpoint.masked(step.words)
        taught = lesson(step.code, described(step.changes), words)
        self._pending.append((taught, learnt, step.lasting))
        return Learned(taught.code, taught.change, words)

    def take_back(self) -> None:
        """Undo the last change, which made no difference. It stays among those that were tried."""
        self._pending.pop()
        self._adaptations -= 1

    def keep(self) -> None:
        """The request was taken: what helped is remembered, unless it was for this request alone."""
        pending, self._pending = self._pending, []
        for taught, learnt, lasting in pending:
            if lasting:
                self._endpoint.learn(taught, learnt)

    def _profile_with(self, *more: Learnt) -> Profile:
        pending = [learnt for _, learnt, _ in self._pending]
        return self._endpoint.profile_with(reduce(Learnt.plus, [*pending, *more], self._endpoint.learnt))


def described(changes: Mapping[str, JSON]) -> str:
    """Profile changes in words."""
    return ", ".join(
        f"{name} = {json.dumps(value, ensure_ascii=False, default=list)}" for name, value in changes.items()
    )
