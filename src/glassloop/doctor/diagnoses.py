"""Likely causes, as data: what several findings together mean to a person, and the command that mends it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from glassloop.doctor.case import Case, owner_of_key, sends_key
from glassloop.doctor.findings import Diagnosis
from glassloop.models.providers import PROVIDERS
from glassloop.models.urls import host_of, origin

_SKEW = 300
"""Seconds from which on signatures and certificates begin to fail."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """`when` it applies, what it means, and the command. Words may name what `_names` has."""

    code: str
    when: Callable[[Case], bool]
    words: str
    fix: str


def _tools_refused(case: Case, words: str) -> bool:
    return re.search(words, case.said) is not None


def _error(case: Case, *names: str) -> bool:
    return case.facts.get("error") in names


_RULES: tuple[_Rule, ...] = (
    _Rule(
        "ollama_window",
        lambda case: case.server == "ollama" and case.small_window,
        "Ollama gives a model a small window unless it is told otherwise, and drops what does not fit without a word.",
        "OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
    ),
    _Rule(
        "vllm_tool_parser",
        lambda case: _tools_refused(case, r"enable-auto-tool-choice|tool-call-parser"),
        "vLLM takes tools only when it is started with a parser for the model's calls.",
        "vllm serve {model} --enable-auto-tool-choice --tool-call-parser hermes",
    ),
    _Rule(
        "llamacpp_jinja",
        lambda case: _tools_refused(case, r"--jinja|jinja flag"),
        "llama.cpp's server takes tools only when it uses the model's own chat template.",
        "llama-server -m MODEL.gguf --jinja",
    ),
    _Rule(
        "llamacpp_window",
        lambda case: case.server == "llamacpp" and case.small_window,
        "The window that llama-server was started with is small for an agent, which sends tools and results.",
        "llama-server -m MODEL.gguf --jinja -c 32768",
    ),
    _Rule(
        "lmstudio_context",
        lambda case: case.server == "lmstudio" and case.small_window,
        "LM Studio loaded the model with a smaller context than the model can do.",
        "lms load {model} --context-length 32768",
    ),
    _Rule(
        "wrong_path",
        lambda case: (
            not case.facts.get("answered")
            and re.search(
                r"no chat completions endpoint|web page|page not found|not found|cannot post", case.said
            )
            is not None
            and not _error(case, "ModelNotFound", "AuthenticationFailed")
        ),
        "Something answers at {url}, but not Chat Completions: the path of the base URL is probably wrong.",
        "glassloop doctor --base-url {other} -m {model}",
    ),
    _Rule(
        "foreign_key",
        lambda case: _error(case, "AuthenticationFailed") and bool(owner_of_key(case)),
        "The key that is sent looks like one of {owner}, which is not asked here.",
        "export {variable}=…",
    ),
    _Rule(
        "no_key",
        lambda case: _error(case, "AuthenticationFailed") and not sends_key(case),
        "No key is sent.",
        "export {variable}=…",
    ),
    _Rule(
        "wrong_key",
        lambda case: _error(case, "AuthenticationFailed") and sends_key(case) and not owner_of_key(case),
        "The key is wrong, or may not use this model.",
        "glassloop run --verbose --base-url {url} -m {model} hello   # says where the key comes from",
    ),
    _Rule(
        "proxy",
        lambda case: (
            case.has("transport:proxy") or re.search(r"\bproxy\b|squid|zscaler", case.said) is not None
        ),
        "A proxy stands in the way.",
        "NO_PROXY={host} glassloop doctor --base-url {url} -m {model}",
    ),
    _Rule(
        "model_misspelt",
        lambda case: _error(case, "ModelNotFound"),
        "The endpoint does not know the model {model}. Nearest: {near}.",
        "glassloop doctor --base-url {url} -m {first}",
    ),
    _Rule(
        "free_tier",
        lambda case: (
            case.has("throttled", "error:RateLimited", "error:OutOfCredit")
            or _error(case, "RateLimited", "OutOfCredit")
        ),
        "The account's limits are reached: free tiers allow a few requests a minute and a small number a day.",
        "Wait, add credit, or ask another model: glassloop models {url}",
    ),
    _Rule(
        "tls_interception",
        lambda case: case.has("transport:certificate") and not _is_about_time(case),
        "The certificate that came is not {host}'s own: a company proxy or a virus scanner probably opens TLS.",
        "SSL_CERT_FILE=/path/to/that-ca.pem glassloop doctor --base-url {url} -m {model}",
    ),
    _Rule(
        "clock_skew",
        lambda case: _is_about_time(case) or abs(case.facts.get("clock_ahead_seconds") or 0) > _SKEW,
        "This machine's clock is wrong ({seconds} s against the server's): certificates and waits depend on it.",
        "sudo timedatectl set-ntp true",
    ),
    _Rule(
        "http_for_https",
        lambda case: (
            case.url.startswith("http://")
            and (
                case.facts.get("speaks_tls") is True
                or case.has("transport:no_http")
                or re.search(
                    r"http request (?:was )?sent to https|client sent an http request to an https", case.said
                )
                is not None
            )
        ),
        "The server speaks HTTPS there, and is asked with http://.",
        "glassloop doctor --base-url {https} -m {model}",
    ),
    _Rule(
        "https_for_http",
        lambda case: (
            case.url.startswith("https://") and re.search(r"does not speak tls", case.said) is not None
        ),
        "The server speaks plain HTTP there, and is asked with https://.",
        "glassloop doctor --base-url {http} -m {model}",
    ),
    _Rule(
        "text_tools",
        lambda case: (
            case.has("refused:tool_mode")
            and not _tools_refused(case, r"enable-auto-tool-choice|tool-call-parser|--jinja|jinja flag")
        ),
        "This model is served without tools. Glassloop describes them in text, which works, but less well.",
        "Choose a model that is made for tools: glassloop models {url}",
    ),
    _Rule(
        "tools_dropped",
        lambda case: case.has("tools_dropped"),
        "The server takes tools and drops them: its chat template probably knows none. The model cannot call what it "
        "never sees.",
        "glassloop run --tool-mode text -m {model} --base-url {url} hello",
    ),
    _Rule(
        "imagination",
        lambda case: (
            case.facts.get("calls_by_itself") == 0
            and not case.has("tools_dropped")
            and "tool_mode" not in (case.report.profile or {})
        ),
        "The model answers from imagination in place of calling a tool: the endpoint took the tools, the model did not "
        "use them.",
        "Choose a model that is made for tools: glassloop models {url}",
    ),
)


def _is_about_time(case: Case) -> bool:
    return case.has("transport:certificate") and re.search(r"not yet valid|expired", case.said) is not None


def diagnosed(case: Case) -> tuple[Diagnosis, ...]:
    """Every diagnosis that fits, with its words filled in. What a server named is quoted in commands."""
    names = _names(case)
    quoted = {name: value if name == "variable" else shlex.quote(value) for name, value in names.items()}
    return tuple(
        Diagnosis(rule.code, rule.words.format_map(names), rule.fix.format_map(quoted))
        for rule in _RULES
        if rule.when(case)
    )


def _names(case: Case) -> dict[str, str]:
    """What the words may name."""
    url, facts = case.url, case.facts
    near: list[str] = facts.get("nearest_models") or (facts.get("models") or [])[:5]
    provider = next((one for one in PROVIDERS.values() if origin(one.base_url) == origin(url)), None)
    return {
        "url": url,
        "host": host_of(url),
        "model": case.report.model,
        "near": ", ".join(near) or "none is listed",
        "first": near[0] if near else "MODEL",
        "owner": owner_of_key(case),
        "variable": provider.keys[0] if provider and provider.keys else "GLASSLOOP_API_KEY",
        "seconds": str(abs(facts.get("clock_ahead_seconds") or 0)),
        "other": _other_path(url),
        "https": url.replace("http://", "https://", 1),
        "http": url.replace("https://", "http://", 1),
    }


def _other_path(url: str) -> str:
    """The base URL with `/v1` where it has none; without the rest of the path where it has one."""
    parts = urlsplit(url)
    path = "/v1" if parts.path != "/v1" else "/api/v1"
    return parts._replace(path=path, query="").geturl()
