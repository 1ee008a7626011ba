"""What a diagnosis may look at: a report, what was measured, and whose server and key these seem to be. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from glassloop.core.entries import JSON
from glassloop.core.secrets import SECRET_HEADERS
from glassloop.doctor.findings import Report
from glassloop.doctor.tape import Exchange
from glassloop.models.providers import PROVIDERS
from glassloop.models.urls import host_of, is_private_host, origin

_SMALL_WINDOW = 8192
"""Tokens: an agent's tools and first results do not fit into less for long."""

_TOLD = 600
"""Bytes of a model list that are searched for the server's name."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a diagnosis may look at. `headers` are those that are sent, keys included: never shown."""

    report: Report
    headers: Mapping[str, str]
    facts: Mapping[str, JSON]

    @property
    def url(self) -> str:
        return self.report.base_url

    @property
    def said(self) -> str:
        """Everything the endpoint said of itself, in lower case."""
        probes = self.report.probes
        words = [f"{one.seen} {one.words} {one.code}" for probed in probes for one in probed.findings]
        words += [probed.seen for probed in probes if probed.outcome == "failed"]
        words += [str(self.facts.get("error_words") or ""), str(self.facts.get("models_error") or "")]
        return "\n".join(words).lower()

    def has(self, *codes: str) -> bool:
        """Whether there is a finding whose code begins with one of these."""
        return any(one.code.startswith(codes) for one in self.report.findings)

    @property
    def server(self) -> str:
        """Which server it seems to be, "" if nothing tells."""
        exchanges = [one for probed in self.report.probes for one in probed.exchanges]
        told = "\n".join(map(_told_by, exchanges)).lower()
        return next((name for name, is_it in _SERVERS if is_it(self.url, told)), "")

    @property
    def small_window(self) -> bool:
        """Whether the window is too small for an agent, by what was told or by what was lost."""
        window = self.facts.get("window") or (self.report.profile or {}).get("context_window")
        return bool(window and window < _SMALL_WINDOW) or self.has("silent_truncation", "overflow")


def _told_by(exchange: Exchange) -> str:
    """What an answer's header and, where the server was asked about itself, its body say of it."""
    about_itself = b"" if exchange.is_question else exchange.body[:_TOLD]
    return f"{exchange.answered.get('server', '')} {about_itself.decode('utf-8', 'replace')}"


def _on_port(port: int, words: str) -> Callable[[str, str], bool]:
    return lambda url, told: (
        (urlsplit(url).port == port and is_private_host(host_of(url))) or re.search(words, told) is not None
    )


_SERVERS: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
    ("ollama", _on_port(11434, r'"owned_by":\s*"library"|ollama')),
    ("lmstudio", _on_port(1234, r"organization_owner|lm[ _-]?studio")),
    ("llamacpp", _on_port(-1, r"llama\.?cpp")),
    ("vllm", _on_port(-1, r'"owned_by":\s*"vllm"')),
)


_KEYS: tuple[tuple[str, str], ...] = (
    ("sk-or-", "openrouter"),
    ("gsk_", "groq"),
    ("sk-ant-", "anthropic"),
    ("AIza", "gemini"),
    ("nvapi-", "nvidia"),
    ("xai-", "xai"),
    ("csk-", "cerebras"),
    ("hf_", "huggingface"),
    ("fw_", "fireworks"),
    ("tgp_", "together"),
    ("sk-proj-", "openai"),
)
"""How keys begin, and whose they are."""


def sends_key(case: Case) -> bool:
    """Whether any header carries a secret."""
    return any(name.lower() in SECRET_HEADERS for name in case.headers)


def owner_of_key(case: Case) -> str:
    """Whose key is sent, where it is not this endpoint's; "" if that cannot be told."""
    sent = next((value for name, value in case.headers.items() if name.lower() == "authorization"), "")
    key = sent.removeprefix("Bearer ").strip()
    owner = next((name for start, name in _KEYS if key.startswith(start)), "")
    provider = PROVIDERS.get(owner)
    return "" if provider is None or origin(provider.base_url) == origin(case.url) else owner
