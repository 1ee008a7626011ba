"""What a call cost by the price table, and that nothing is fetched or loaded for it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest

from glassloop.core.entries import Usage
from glassloop.models.prices import price_of

USED = Usage(1_000_000, 1_000_000, 2_000_000)


def dollars(base_url: str, model: str, usage: Usage = USED) -> float | None:
    return asyncio.run(price_of(base_url, model, usage))


def test_a_model_of_the_table_has_a_price_and_its_cached_tokens_a_lower_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nothing may be fetched for a price")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    whole = dollars("https://api.openai.com/v1", "gpt-4o")
    cached = dollars("https://api.openai.com/v1", "gpt-4o", Usage(1_000_000, 1_000_000, None, 900_000))
    assert whole is not None
    assert cached is not None
    assert 0 < cached < whole < 1_000


@pytest.mark.parametrize(
    ("base_url", "model", "usage"),
    [
        ("https://api.openai.com/v1", "no-such-model-at-all", USED),
        ("https://gateway.example.org/v1", "gpt-4o", USED),
        ("https://example.org/https://api.openai.com/v1", "gpt-4o", USED),
        ("http://localhost:8080/v1", "gpt-4o", USED),
        ("https://api.openai.com/v1", "gpt-4o", Usage(5, None, 5)),
        ("https://api.openai.com/v1", "gpt-4o", Usage()),
    ],
)
def test_what_nobody_knows_is_unknown_and_never_nothing(base_url: str, model: str, usage: Usage) -> None:
    assert dollars(base_url, model, usage) is None


def test_importing_glassloop_and_an_endpoint_loads_no_price_table() -> None:
    code = "import sys, glassloop; glassloop.Endpoint; print(sorted(sys.modules.keys() & {'genai_prices', 'httpx2'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
