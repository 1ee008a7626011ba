"""Every exception. Each says what was wrong, where, and what to do; those of a run carry its partial `result`."""

from __future__ import annotations

from typing import Any, Literal


class GlassloopError(Exception):
    """The root of all. `result` is the run's `Result` up to the failure, where there was a run."""

    result: Any = None


class EndpointError(GlassloopError):
    """The endpoint failed or refused. Quotes the provider.

    `status` is the HTTP status (None before any answer), `provider_text` the provider's own words,
    `request_id` what its support asks for, `hint` what a user can do, `url` where it was sent. `partial`
    is the `Reply` that had begun to arrive, if any of its text had.
    """

    partial: Any = None

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        provider_text: str = "",
        request_id: str | None = None,
        hint: str = "",
        url: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.provider_text = provider_text
        self.request_id = request_id
        self.hint = hint
        self.url = url

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.provider_text and self.provider_text not in lines[0]:
            lines.append(f"The endpoint said: {self.provider_text}")
        facts = [f"HTTP {self.status}" if self.status is not None else "", self.url]
        if self.request_id:
            facts.append(f"request id {self.request_id}")
        if any(facts):
            lines.append("(" + ", ".join(fact for fact in facts if fact) + ")")
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


class AuthenticationFailed(EndpointError):
    """401 or 403: the key is missing, wrong or not allowed to do this."""


class RateLimited(EndpointError):
    """Still throttled after all retries, or told to wait longer than the cap. `wait_seconds` if it was told."""

    wait_seconds: float | None = None


class RequestRejected(EndpointError):
    """The endpoint refuses this request and nothing that we know to change would help."""


class ContextOverflow(EndpointError):
    """The conversation does not fit into the model's window, even after compaction. `window` in tokens if known."""

    window: int | None = None


class EmptyReply(EndpointError):
    """The model answered with nothing, again after a retry and a nudge."""


class StreamStalled(EndpointError):
    """No bytes, or no content, for longer than the deadline."""


class ConnectionLost(EndpointError):
    """The endpoint could not be reached, or hung up before the reply was complete.

    `retries`: how often it is worth trying again, where that is less than usual.
    """

    retries: int | None = None


class ContentFiltered(EndpointError):
    """The provider's filter withheld the answer."""


class OutOfCredit(EndpointError):
    """The account has no credit or quota left; waiting does not help."""


class ModelNotFound(EndpointError):
    """The endpoint does not know this model."""


class OutputInvalid(GlassloopError):
    """The answer does not fit the agent's output type, also after it was sent back. `result.text` has it."""


class ToolDefinitionError(GlassloopError):
    """A tool is defined in a way that cannot work. Raised when it is defined, never during a run."""


class ConfigError(GlassloopError):
    """A setting, a key or an option is missing or contradicts another."""


SessionTrouble = Literal["in_use", "taken_over", "copied", "changed", "damaged", "newer", "gone", "other"]
"""Why a session cannot be used: another process holds it, or has taken it; its file was copied while a run in it
was unfinished; that run was of an agent defined otherwise; the file is damaged, or written by a newer Glassloop;
there is no such session (any more)."""


class SessionError(GlassloopError):
    """A session cannot be opened, continued or written. `kind` says why, where a program must tell it apart."""

    def __init__(self, message: str, kind: SessionTrouble = "other") -> None:
        super().__init__(message)
        self.kind: SessionTrouble = kind


class ReplayMismatch(GlassloopError):
    """A replayed run asked for something else than the recording holds."""
