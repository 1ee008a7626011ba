"""The context window is learned from the overflow, or asked for where the refusal does not name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassloop import Agent, Endpoint
from glassloop.models.profiles import ProfileStore
from glassloop.testing.server import ChatServer, Completion, Raw, Request, fails, says

NAMED = "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens."
UNNAMED = "the request exceeds the available context size, try increasing it"
LISTED = {"/v1/models": {"data": [{"id": "m", "max_model_len": 4096}]}}
PROPS = {"/props": {"default_generation_settings": {"n_ctx": 4096}}}


def refusing_what_is_long(words: str):
    def play(request: Request) -> Completion | Raw:
        return fails(400, words) if len(request.raw) > 16_000 else says("short enough")

    return play


@pytest.mark.parametrize(
    ("words", "gets"),
    [(NAMED, {}), (UNNAMED, LISTED), (UNNAMED, PROPS)],
    ids=["named in the refusal", "told by the model list", "told by llama.cpp"],
)
def test_the_window_is_known_after_an_overflow_and_history_fits_it(
    words: str, gets: dict, tmp_path: Path
) -> None:
    with ChatServer(refusing_what_is_long(words), gets=gets) as server:
        endpoint = Endpoint(server.base_url, "m", learned=ProfileStore(tmp_path))
        result = Agent(endpoint).run_sync("The quick brown fox jumps over the lazy dog. " * 900)
        assert result.text == "short enough"
        again = Endpoint(server.base_url, "m", learned=ProfileStore(tmp_path))
        assert again.profile.context_window == 4096
    assert len(server.requests) == 2
    assert 8_000 < len(server.requests[1].raw) < 16_000
