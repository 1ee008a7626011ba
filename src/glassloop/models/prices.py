"""What a model call cost by a price table, where the endpoint does not say. Nothing is fetched for it.

The table is the one that `genai-prices` brings along (the extra `prices`). Its lookups are offline: only its
`UpdatePrices` would go to the network, and nobody here starts that.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from concurrent.futures import Future
from functools import cache
from typing import Any

from glassloop.core.entries import Usage


async def price_of(base_url: str, model: str, usage: Usage) -> float | None:
    """US dollars; None where the endpoint counted no tokens, the table lacks the model, or there is no table."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    table = await asyncio.wrap_future(_table())
    if table is None:
        return None
    tokens = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
    if usage.cached_tokens:
        tokens["cache_read_tokens"] = min(usage.cached_tokens, usage.prompt_tokens)
    try:
        priced = table.calc_price(table.Usage(**tokens), model, provider_api_url=base_url)
    except Exception:  # no such provider or model, or counts that cannot be: then the price is not known
        return None
    return float(priced.total_price)


@cache
def _table() -> Future[Any]:
    """The library, imported once, in a thread of its own: it takes half a second, which streams need not wait for."""
    found: Future[Any] = Future()

    def load() -> None:
        try:
            found.set_result(importlib.import_module("genai_prices"))
        except Exception:  # it is not installed, or does not fit to what else is
            found.set_result(None)

    threading.Thread(target=load, name="glassloop-prices", daemon=True).start()
    return found


def look_up_soon() -> None:
    """Begin to load the table, while a model is thinking."""
    _table()
