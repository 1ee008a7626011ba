"""Providers as data: where they are, which variable holds their key, and what is known of their wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glassloop.core.entries import JSON
from glassloop.models.urls import is_loopback_host, origin


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of Chat Completions.

    `keys`: variables that may hold the key, the first that is set wins; its key is sent to this base URL's
    origin only. `address`: variables that move the base URL, read from the same environment as the key.
    `local`: needs no key; `started_by` is what to do where it does not run. `profile`: what differs from the neutral
    profile, from the provider's documents.
    """

    name: str
    base_url: str
    keys: tuple[str, ...] = ()
    address: tuple[str, ...] = ()
    local: bool = False
    profile: Mapping[str, JSON] = field(default_factory=dict)
    docs: str = ""
    started_by: str = ""


_USAGE_IN_STREAMS: Mapping[str, JSON] = {"stream_options": True}

_ALL = (
    Provider(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        profile=_USAGE_IN_STREAMS,
        docs="https://platform.openai.com/docs/api-reference/chat",
    ),
    Provider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        ("OPENROUTER_BASE_URL",),
        docs="https://openrouter.ai/docs/api-reference/overview",
    ),
    Provider(
        "deepseek",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        ("DEEPSEEK_BASE_URL",),
        profile=_USAGE_IN_STREAMS,
        docs="https://api-docs.deepseek.com",
    ),
    Provider(
        "qwen",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        ("DASHSCOPE_BASE_URL",),
        profile=_USAGE_IN_STREAMS,
        docs="https://help.aliyun.com/zh/model-studio/compatibility-of-openai-with-dashscope",
    ),
    Provider(
        "qwen-intl",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        profile=_USAGE_IN_STREAMS,
        docs="https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope",
    ),
    Provider(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        ("ZHIPUAI_API_KEY", "ZHIPU_API_KEY", "BIGMODEL_API_KEY"),
        docs="https://docs.bigmodel.cn",
    ),
    Provider("zai", "https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",), docs="https://docs.z.ai"),
    Provider(
        "moonshot",
        "https://api.moonshot.cn/v1",
        ("MOONSHOT_API_KEY",),
        ("MOONSHOT_BASE_URL",),
        docs="https://platform.moonshot.cn/docs",
    ),
    Provider(
        "moonshot-intl",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY",),
        docs="https://platform.moonshot.ai/docs",
    ),
    Provider(
        "minimax",
        "https://api.minimaxi.com/v1",
        ("MINIMAX_API_KEY",),
        ("MINIMAX_BASE_URL",),
        docs="https://platform.minimaxi.com/docs",
    ),
    Provider(
        "minimax-intl",
        "https://api.minimax.io/v1",
        ("MINIMAX_API_KEY",),
        docs="https://platform.minimax.io/docs",
    ),
    Provider(
        "siliconflow",
        "https://api.siliconflow.cn/v1",
        ("SILICONFLOW_API_KEY",),
        docs="https://docs.siliconflow.cn",
    ),
    Provider(
        "siliconflow-intl",
        "https://api.siliconflow.com/v1",
        ("SILICONFLOW_API_KEY",),
        docs="https://docs.siliconflow.com",
    ),
    Provider(
        "volcengine",
        "https://ark.cn-beijing.volces.com/api/v3",
        ("ARK_API_KEY", "VOLCENGINE_API_KEY"),
        profile=_USAGE_IN_STREAMS,
        docs="https://www.volcengine.com/docs/82379",
    ),
    Provider(
        "groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        profile={"reasoning_back": "never"},
        docs="https://console.groq.com/docs/openai",
    ),
    Provider(
        "mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        profile={"ids": "nine"},
        docs="https://docs.mistral.ai/api",
    ),
    Provider(
        "together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), docs="https://docs.together.ai"
    ),
    Provider(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_KEY",),
        docs="https://docs.fireworks.ai/tools-sdks/openai-compatibility",
    ),
    Provider(
        "cerebras",
        "https://api.cerebras.ai/v1",
        ("CEREBRAS_API_KEY",),
        docs="https://inference-docs.cerebras.ai/resources/openai",
    ),
    Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",), docs="https://docs.x.ai/docs/api-reference"),
    Provider(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        profile=_USAGE_IN_STREAMS,
        docs="https://ai.google.dev/gemini-api/docs/openai",
    ),
    Provider(
        "ollama",
        "http://localhost:11434/v1",
        ("OLLAMA_API_KEY",),
        ("OLLAMA_HOST",),
        local=True,
        profile=_USAGE_IN_STREAMS,
        docs="https://docs.ollama.com/api/openai-compatibility",
        started_by="Is Ollama running? Start it with: ollama serve",
    ),
    Provider(
        "lmstudio",
        "http://localhost:1234/v1",
        ("LM_API_TOKEN",),
        local=True,
        profile=_USAGE_IN_STREAMS,
        docs="https://lmstudio.ai/docs/developer/openai-compat",
        started_by="Is LM Studio's server running? Start it with: lms server start",
    ),
    Provider(
        "llamacpp",
        "http://localhost:8080/v1",
        ("LLAMA_API_KEY",),
        local=True,
        profile=_USAGE_IN_STREAMS,
        docs="https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
        started_by="Is the server running? llama.cpp's is started with: llama-server -m model.gguf --jinja",
    ),
    Provider(
        "vllm",
        "http://localhost:8000/v1",
        ("VLLM_API_KEY",),
        local=True,
        profile=_USAGE_IN_STREAMS,
        docs="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
        started_by="Is the server running? vLLM's is started with: vllm serve MODEL",
    ),
)

PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in _ALL}
"""All providers by name."""

ALIASES: Mapping[str, str] = {
    "dashscope": "qwen",
    "aliyun": "qwen",
    "bigmodel": "zhipu",
    "glm": "zhipu",
    "z.ai": "zai",
    "kimi": "moonshot",
    "ark": "volcengine",
    "doubao": "volcengine",
    "google": "gemini",
    "grok": "xai",
    "lm-studio": "lmstudio",
    "llama.cpp": "llamacpp",
    "llama-server": "llamacpp",
}
"""Other names that people give them."""


def start_hint_at(url: str) -> str:
    """How the server is started that usually listens at this port of one's own machine; "" if none is known."""
    scheme, host, port = origin(url)
    if not is_loopback_host(host):
        return ""
    usual = (one for one in _ALL if one.local and origin(one.base_url)[::2] == (scheme, port))
    return next((one.started_by for one in usual), "")
