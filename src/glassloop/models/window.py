"""The context window of an endpoint's model, where its server tells it. When that is asked is for others to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from glassloop.core.entries import JSON
from glassloop.core.errors import GlassloopError

if TYPE_CHECKING:
    from glassloop.models.endpoint import Endpoint

_IN_MODEL_LISTS = (
    "loaded_context_length",  # LM Studio: as loaded
    "context_length",  # OpenRouter, Together, DeepInfra
    "max_model_len",  # vLLM, SGLang
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio: what the model could do
    "context_size",
    "inputTokenLimit",  # Gemini
    "input_token_limit",
)


async def context_window(endpoint: Endpoint) -> int | None:
    """The window in tokens that the server gives this model, None if it does not say.

    Asked as in `running_window`, and of Ollama also `/api/show`: the window set in the Modelfile, not what the
    model could do.
    """
    window = await running_window(endpoint)
    return window if window is not None or not endpoint.is_own_server else await _from_modelfile(endpoint)


async def running_window(endpoint: Endpoint) -> int | None:
    """The same by reading alone, which is enough once the model has answered.

    Asked in turn: the model list (vLLM, OpenRouter, Groq, …), and on a server of one's own also llama.cpp's
    `/props`, LM Studio's `/api/v0/models` and Ollama's `/api/ps` (as loaded).
    """
    window = await _from_list(endpoint, "/models")
    if window is not None or not endpoint.is_own_server:
        return window
    return (
        await _from_props(endpoint)
        or await _from_list(endpoint, "/api/v0/models", outside=True)
        or await _from_loaded(endpoint)
    )


async def _from_list(endpoint: Endpoint, path: str, *, outside: bool = False) -> int | None:
    entry = _model_entry(await _ask(endpoint, path, outside=outside), endpoint.model)
    if entry is None:
        return None
    places = (entry, _map(entry.get("meta")), _map(entry.get("top_provider")), _map(entry.get("limits")))
    return next(
        (found for name in _IN_MODEL_LISTS for place in places if (found := _count(place.get(name)))), None
    )


async def _from_props(endpoint: Endpoint) -> int | None:
    """llama.cpp: the context of one slot, which is what a request can use."""
    props = _map(await _ask(endpoint, "/props", outside=True))
    settings = _map(props.get("default_generation_settings"))
    return _count(settings.get("n_ctx")) or _count(props.get("n_ctx"))


async def _from_loaded(endpoint: Endpoint) -> int | None:
    """Ollama: the context that the loaded model runs with."""
    running = _model_entry(await _ask(endpoint, "/api/ps", outside=True), endpoint.model)
    return _count(running.get("context_length")) if running is not None else None


async def _from_modelfile(endpoint: Endpoint) -> int | None:
    shown = _map(await _ask(endpoint, "/api/show", outside=True, body={"model": endpoint.model}))
    lines = str(shown.get("parameters") or "").splitlines()
    return next(
        (_count(line.split()[1]) for line in lines if line.split()[:1] == ["num_ctx"] and line.split()[1:]),
        None,
    )


async def _ask(endpoint: Endpoint, path: str, *, outside: bool, body: JSON = None) -> JSON:
    try:
        return await endpoint.ask(path, outside=outside, body=body)
    except GlassloopError:  # also a replayed run's, which holds no answer to this
        return None


def listed_models(answer: JSON) -> list[Mapping[str, JSON]]:
    """The models of a list in any of its shapes: a list, or one under `data`, `models` or `result`."""
    if isinstance(answer, Mapping):
        answer = next(
            (answer[name] for name in ("data", "models", "result") if isinstance(answer.get(name), list)), []
        )
    if not isinstance(answer, list):
        return []
    return [{"id": one} if isinstance(one, str) else one for one in answer if isinstance(one, (str, Mapping))]


def model_id(entry: Mapping[str, JSON]) -> str:
    """The name by which a listed model is asked for."""
    found = next(
        (entry[name] for name in ("id", "model", "name", "key") if isinstance(entry.get(name), str)), ""
    )
    return str(found)


def _model_entry(answer: JSON, model: str) -> Mapping[str, JSON] | None:
    """The listed model of this name (Ollama's `:latest` and Gemini's `models/` may be left out); or the only one."""
    entries = listed_models(answer)
    wanted = _plain(model)
    for entry in entries:
        if _plain(model_id(entry)) == wanted:
            return entry
    return entries[0] if len(entries) == 1 else None


def _plain(name: str) -> str:
    return name.removeprefix("models/").removesuffix(":latest")


def _map(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, Mapping) else {}


def _count(value: JSON) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return (
        int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None
    )
