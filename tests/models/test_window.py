"""What an endpoint tells of its models: their names, and their context window."""

import asyncio

import pytest
from tests.models.asking import quick

from glassloop.core.errors import AuthenticationFailed, EndpointError
from glassloop.models.window import context_window
from glassloop.testing.server import ChatServer, fails


def ask_server(gets, question):
    async def story():
        async with ChatServer(lambda request: fails(404, "not here"), gets=gets) as server:
            endpoint = quick(server)
            try:
                return await question(endpoint)
            finally:
                await endpoint.close()

    return asyncio.run(story())


LISTS = {
    "OpenAI": {"object": "list", "data": [{"id": "b"}, {"id": "a"}]},
    "a plain list": [{"id": "a"}, {"name": "b"}],
    "names only": ["a", "b"],
    "Ollama": {"models": [{"name": "a", "model": "a"}, {"model": "b"}]},
    "oddities": {"data": [{"id": "a"}, None, 3, {"id": None}, {"id": "b"}, {"id": "a"}]},
}


@pytest.mark.parametrize("name", LISTS)
def test_models_are_listed_whatever_the_lists_shape(name):
    assert ask_server({"/v1/models": LISTS[name]}, lambda endpoint: endpoint.models()) == ["a", "b"]


def test_an_endpoint_without_a_list_is_a_clear_error():
    async def story():
        async with ChatServer([]) as server:
            endpoint = quick(server, base_url=server.url + "/elsewhere")
            try:
                await endpoint.models()
            finally:
                await endpoint.close()

    with pytest.raises(EndpointError, match="404"):
        asyncio.run(story())


def test_a_refused_key_is_said_when_models_are_listed():
    async def story():
        async with ChatServer([fails(401, "Incorrect API key provided: " + "k" * 20)]) as server:
            endpoint = quick(server, key="k" * 20)
            try:
                await endpoint.ask("/anything", body={})
            finally:
                await endpoint.close()

    with pytest.raises(AuthenticationFailed) as refused:
        asyncio.run(story())
    assert "k" * 20 not in str(refused.value)


ONE = {"/v1/models": {"data": [{"id": "m"}, {"id": "other"}]}}
WINDOWS = {
    "vLLM": ({"/v1/models": {"data": [{"id": "m", "max_model_len": 32768}]}}, 32768),
    "OpenRouter": (
        {"/v1/models": {"data": [{"id": "x", "context_length": 1}, {"id": "m", "context_length": 131072}]}},
        131072,
    ),
    "the provider's own limit": (
        {"/v1/models": {"data": [{"id": "m", "top_provider": {"context_length": 9000}}]}},
        9000,
    ),
    "llama.cpp": ({**ONE, "/props": {"default_generation_settings": {"n_ctx": 4096}}}, 4096),
    "LM Studio": (
        {
            **ONE,
            "/api/v0/models": {
                "data": [{"id": "m", "max_context_length": 131072, "loaded_context_length": 8192}]
            },
        },
        8192,
    ),
    "Ollama, loaded": ({**ONE, "/api/ps": {"models": [{"name": "m:latest", "context_length": 4096}]}}, 4096),
    "Ollama, configured": (
        {**ONE, "/api/ps": {"models": []}, "/api/show": {"parameters": "stop x\nnum_ctx   16384"}},
        16384,
    ),
    "nobody says": (ONE, None),
    "nonsense": (
        {"/v1/models": {"data": [{"id": "m", "context_length": "many"}]}, "/props": [1], "/api/ps": 3},
        None,
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_the_window_is_read_where_the_server_tells_it(name):
    gets, expected = WINDOWS[name]
    assert ask_server(gets, context_window) == expected
