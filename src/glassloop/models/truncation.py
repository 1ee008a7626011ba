"""Notices a server that silently drops part of what was sent: it counts far fewer tokens than there were."""

from __future__ import annotations

from collections.abc import Sequence

from glassloop.core.entries import Entry, Usage
from glassloop.core.events import Warned
from glassloop.core.tokens import estimate_entries

_SMALLEST_BODY = 8_000
"""Bytes. Below this no server truncates, and estimates are too rough to accuse anybody."""

_DENSEST = 9
"""Bytes a token. Whole requests come to 3 to 6; only what is denser is worth an estimate."""

_SHARE = 0.5

_FIXES = {
    "ollama": (
        "Ollama's window is small unless it is told otherwise: start it with OLLAMA_CONTEXT_LENGTH=32768, "
        "or make a model with `PARAMETER num_ctx 32768` in its Modelfile."
    ),
    "lmstudio": "In LM Studio, load the model with a larger context length.",
    "llamacpp": "Start llama-server with a larger context: -c 32768.",
    "vllm": "Start vLLM with a larger --max-model-len.",
}
_FIX = "Raise the server's context length, or keep conversations shorter."


def noticed(body: int, entries: Sequence[Entry], usage: Usage, provider: str | None) -> Warned | None:
    """A warning if the server counted less than half of what was sent; `body` is the request's size in bytes."""
    if body < _SMALLEST_BODY:
        return None
    counted = _counted(usage)
    if counted is None or body < counted * _DENSEST:
        return None
    sent = estimate_entries(entries)
    if counted >= sent * _SHARE:
        return None
    return Warned(
        "silent_truncation",
        f"The endpoint counted {counted} prompt tokens where about {sent} were sent: it has probably dropped the "
        f"oldest part of the conversation without saying so. {_FIXES.get(provider or '', _FIX)}",
    )


def _counted(usage: Usage) -> int | None:
    """Prompt tokens; where cached ones are reported beside them and not within, both together."""
    prompt, cached = usage.prompt_tokens, usage.cached_tokens or 0
    if not prompt:
        return None
    return prompt + cached if cached > prompt else prompt
