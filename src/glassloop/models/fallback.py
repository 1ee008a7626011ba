"""`Fallback`: the next model when one fails for reasons that another need not share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from glassloop.core.errors import (
    ConfigError,
    ConnectionLost,
    EndpointError,
    OutOfCredit,
    RateLimited,
    StreamStalled,
)
from glassloop.core.events import Switched, still_shown
from glassloop.core.recording import Recorder
from glassloop.models.model import Model, ModelRequest, Said

_SWITCHING = (ConnectionLost, StreamStalled, RateLimited, OutOfCredit)


class Fallback:
    """Asks the first of `models`; when it cannot be reached, is overloaded, throttled or out of credit, the next.

    Each question starts with the first again. Other errors (a wrong key, a refused request, a context
    overflow) pass: they are to be mended, not avoided. The last model's error is raised as it is.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ConfigError("Fallback needs at least one model")
        self.models = tuple(models)

    @property
    def name(self) -> str:
        return " | ".join(model.name for model in self.models)

    @property
    def context_window(self) -> int | None:
        """The smallest that is known, so that any of the models can take over."""
        known = (getattr(model, "context_window", None) for model in self.models)
        return min((size for size in known if size), default=None)

    async def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        for model, successor in zip(self.models, (*self.models[1:], None), strict=True):
            shown = False
            said = model.stream(request, recorder)
            try:
                async for one in said:
                    shown = still_shown(one, shown)
                    yield one
                return
            except EndpointError as error:
                if successor is None or not _another_may_help(error):
                    raise
                reason = str(error.args[0])
            finally:
                await said.aclose()
            yield Switched(model.name, successor.name, reason, discard=shown)

    async def close(self) -> None:
        for model in self.models:
            await model.close()


def _another_may_help(error: EndpointError) -> bool:
    return isinstance(error, _SWITCHING) or (error.status is not None and error.status >= 500)
