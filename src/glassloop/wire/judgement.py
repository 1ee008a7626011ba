"""What can come of judging an error answer."""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.entries import JSON
from glassloop.core.errors import EndpointError
from glassloop.core.values import Value


class Retry(Value, frozen=True):
    """The same request again, `after` seconds if that was told. `limit`: at most so often for this reason."""

    after: float | None
    reason: str
    limit: int | None = None


class Adapt(Value, frozen=True):
    """The request again under `profile.merged(changes)`. `code` belongs into `Sent.tried` from now on.

    `words` are the provider's. `lasting`: it is a trait of the endpoint and worth remembering; else it holds for
    this request alone.
    """

    code: str
    changes: Mapping[str, JSON]
    words: str
    lasting: bool = True


class Overflow(Value, frozen=True):
    """The conversation must become shorter first. `window` in tokens, if it was named."""

    window: int | None
    words: str


class Salvage(Value, frozen=True):
    """The endpoint could not read the call that the model wrote; `text` is what it wrote. Try to read it here.

    If that fails, judge again with "salvage" in `Sent.tried`.
    """

    text: str
    words: str


class Raise(Value, frozen=True, gc=True):
    """Nothing that we know to change would help."""

    error: EndpointError


Judgement = Retry | Adapt | Overflow | Salvage | Raise
