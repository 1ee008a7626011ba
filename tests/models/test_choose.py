"""From what a person wrote to a model; and which key goes where."""

import pytest

from glassloop.core.errors import ConfigError
from glassloop.models.choose import model_from
from glassloop.models.providers import ALIASES, PROVIDERS, start_hint_at
from glassloop.models.urls import host_of, is_private_host, normal_base_url
from glassloop.wire.profile import Profile

KEY = "k" * 20


def sent(endpoint) -> str | None:
    return endpoint.headers.get("Authorization")


CHOSEN = [
    (
        "openrouter:openai/gpt-oss-120b",
        {"OPENROUTER_API_KEY": KEY},
        "https://openrouter.ai/api/v1",
        "openai/gpt-oss-120b",
        True,
    ),
    ("OpenAI:gpt-5", {"OPENAI_API_KEY": KEY}, "https://api.openai.com/v1", "gpt-5", True),
    ("kimi:kimi-k2", {"MOONSHOT_API_KEY": KEY}, "https://api.moonshot.cn/v1", "kimi-k2", True),
    ("ollama:qwen3:0.6b", {}, "http://localhost:11434/v1", "qwen3:0.6b", False),
    ("ollama:m", {"OLLAMA_HOST": "0.0.0.0"}, "http://localhost:11434/v1", "m", False),
    ("ollama:m", {"OLLAMA_HOST": "0.0.0.0:9999"}, "http://localhost:9999/v1", "m", False),
    ("ollama:m", {"OLLAMA_HOST": ":8888"}, "http://localhost:8888/v1", "m", False),
    ("ollama:m", {"OLLAMA_HOST": "gpu-box"}, "http://gpu-box:11434/v1", "m", False),
    ("ollama:m", {"OLLAMA_HOST": "https://ollama.example.com"}, "https://ollama.example.com/v1", "m", False),
    ("ollama:m", {"OLLAMA_HOST": "[::1]"}, "http://[::1]:11434/v1", "m", False),
    ("http://localhost:8000/v1#meta/Llama-3", {}, "http://localhost:8000/v1", "meta/Llama-3", False),
    (
        "https://api.deepseek.com#deepseek-chat",
        {"DEEPSEEK_API_KEY": KEY},
        "https://api.deepseek.com/v1",
        "deepseek-chat",
        True,
    ),
    ("https://gateway.example/v1#m", {"OPENAI_API_KEY": KEY}, "https://gateway.example/v1", "m", False),
    (
        "https://gateway.example/v1#m",
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://gateway.example/v1"},
        "https://gateway.example/v1",
        "m",
        True,
    ),
    (
        "https://gateway.example/v1#m",
        {"GLASSLOOP_API_KEY": KEY, "GLASSLOOP_BASE_URL": "https://other.example/v1"},
        "https://gateway.example/v1",
        "m",
        False,
    ),
    (
        "openai:gpt-5",
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://gateway.example/v1"},
        "https://gateway.example/v1",
        "gpt-5",
        True,
    ),
]


@pytest.mark.parametrize(("spec", "env", "base_url", "model", "with_key"), CHOSEN)
def test_a_spec_names_an_endpoint_and_its_key_goes_nowhere_else(spec, env, base_url, model, with_key):
    endpoint = model_from(spec, env=env)
    assert (endpoint.base_url, endpoint.model) == (base_url, model)
    assert sent(endpoint) == (f"Bearer {KEY}" if with_key else None)


def test_a_key_of_the_table_is_not_sent_to_an_address_from_elsewhere():
    endpoint = model_from(
        "openai:gpt-5", env={"OPENAI_API_KEY": KEY}, overrides={"base_url": "https://evil.example/v1"}
    )
    assert endpoint.base_url == "https://evil.example/v1"
    assert sent(endpoint) is None


def test_options_are_passed_on():
    endpoint = model_from(
        "openai:gpt-5", env={}, overrides={"key": KEY, "name": "mine", "profile": {"ids": "nine"}}
    )
    assert (sent(endpoint), endpoint.name, endpoint.profile.ids) == (f"Bearer {KEY}", "mine", "nine")
    assert model_from(endpoint) is endpoint
    assert model_from("m", env={}, overrides={"base_url": "http://localhost:1/v1"}).model == "m"


REFUSED = [
    ("openai:gpt-5", "OPENAI_API_KEY"),
    ("zhipu:glm-5", "ZHIPUAI_API_KEY"),
    ("openroutr:x", "openrouter"),
    ("localhost:8080/v1#any", "Did you mean http://localhost:8080/v1#any[?]"),
    ("10.0.0.7:8080", "Did you mean http://10.0.0.7:8080#model-name[?]"),
    ("box:8080/v1", "Did you mean http://box:8080/v1#model-name[?]"),
    ("phi:3", "no provider 'phi'"),
    ("gpt-5", "provider:model"),
    ("openai", "openai:model-name"),
    ("openai:", "openai:model-name"),
    ("", "provider:model"),
    ("https://gateway.example/v1", "#"),
    ("ftp://gateway.example/v1#m", "http"),
]


@pytest.mark.parametrize(("spec", "named"), REFUSED)
def test_what_is_missing_is_named(spec, named):
    with pytest.raises(ConfigError, match=named):
        model_from(spec, env={})


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_each_row_of_the_provider_table_is_sound(provider):
    assert normal_base_url(provider.base_url) == provider.base_url
    assert provider.local == is_private_host(host_of(provider.base_url))
    assert provider.local or provider.base_url.startswith("https://")
    assert provider.local or provider.keys
    assert provider.docs.startswith("https://")
    Profile().merged(provider.profile)


def test_aliases_lead_to_rows():
    assert set(ALIASES.values()) <= set(PROVIDERS)
    assert not set(ALIASES) & set(PROVIDERS)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:11434/v1", "ollama serve"),
        ("http://localhost:1234/v1", "lms server start"),
        ("http://localhost:4321/v1", ""),
        ("http://example.org:11434/v1", ""),
    ],
)
def test_a_local_server_that_does_not_run_is_known_by_its_port(url: str, words: str) -> None:
    assert words in start_hint_at(url)
    assert bool(words) == bool(start_hint_at(url))
