"""`Endpoint`: a model over HTTP. What is known of the endpoint lives here; `operation.py` asks it one question."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from glassloop.core.entries import JSON, Entry, Reply, Usage
from glassloop.core.errors import AuthenticationFailed, ConfigError, EndpointError, ModelNotFound
from glassloop.core.events import Warned
from glassloop.core.recording import NoRecorder, Recorder
from glassloop.core.secrets import MASK, SECRET_HEADERS, mask
from glassloop.core.setup import EndpointSetup
from glassloop.models import operation
from glassloop.models.answer import Answer
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.http import DEFAULT_LIMIT, Client
from glassloop.models.model import ModelRequest, Said
from glassloop.models.prices import look_up_soon, price_of
from glassloop.models.profiles import Learnt, Lesson, ProfileStore, lesson
from glassloop.models.providers import Provider
from glassloop.models.truncation import noticed
from glassloop.models.urls import (
    endpoint_url,
    host_of,
    is_private_host,
    may_follow,
    normal_base_url,
    root_url,
)
from glassloop.models.window import listed_models, model_id, running_window
from glassloop.wire.judgement import Raise
from glassloop.wire.profile import Profile
from glassloop.wire.request import Encoder

_UNVERIFIED = (
    "The certificate of {host} is not checked (verify=False): anyone in between can read and change all."
)
_DEADLINES = Deadlines()
_RETRIES = Retries()
_PROXY_REFUSES = 407
_LONG_REQUEST = 6_000
"""Bytes from which on it matters how large the window is: no model's is much smaller."""

_SIDE_QUESTION = 2.0
"""Seconds that a server of one's own has to say how large it is."""


class Endpoint:
    """A model at an OpenAI-compatible base URL.

    Args:
        base_url: Where `/chat/completions` is, with or without that ending. Without any path, `/v1` is meant.
        model: The name that the endpoint knows it by.
        key: Sent as a bearer token, to the base URL's origin only.
        headers: Extra headers of every request; they win over ours.
        verify: Whether certificates are checked. Not doing so is said in a warning.
        ca: A file of certificates to trust instead of the system's.
        deadlines: How long each step may take.
        profile: What you know of the endpoint; it wins over what was learned and over the provider's facts.
        tool_mode: "auto" (native until the endpoint refuses tools), "native", or a text family.
        proxy: An HTTP proxy; "" for none. None: the environment's, but never for one's own network.
        retries: How often and after how long a failed request is sent again.
        name: How people know it; the model and the host if not given.
        learned: Where what is learned is kept; the user's data folder if not given.
        provider: Its row of the provider table, whose facts are the lowest layer of the profile.
        stream: Whether replies are asked for as streams.
        about_key: Where the key came from, or where one can be set; said when it is refused.
        limit: The largest body of an answer that is read, in decoded bytes.

    Raises `ConfigError` for a base URL, certificate file, key or profile that cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        verify: bool = True,
        ca: str | Path | None = None,
        deadlines: Deadlines = _DEADLINES,
        profile: Profile | Mapping[str, JSON] | None = None,
        tool_mode: str = "auto",
        proxy: str | None = None,
        retries: Retries = _RETRIES,
        name: str | None = None,
        learned: ProfileStore | None = None,
        provider: Provider | None = None,
        stream: bool = True,
        limit: int = DEFAULT_LIMIT,
        about_key: str = "",
    ) -> None:
        self.base_url = normal_base_url(base_url)
        self.model = model
        self.retries = retries
        self.streamed = stream
        self._questions = endpoint_url(self.base_url, "/chat/completions")
        self.client = Client(deadlines=deadlines, verify=verify, ca=ca, proxy=proxy, limit=limit)
        self.headers = _headers(key, headers or {})
        self._secrets = [value for name, value in self.headers.items() if name.lower() in SECRET_HEADERS]
        self._secrets += [key] if key else []
        self._about_key = about_key or ("" if self._secrets else "No key was sent: pass `key=`.")
        self._name = name or f"{model} at {urlsplit(self.base_url).netloc}"
        self.told = _settings(profile, tool_mode)
        """What you know of the endpoint, as profile changes."""
        self._facts = provider.profile if provider is not None else {}
        self._provider = provider.name if provider is not None else None
        self._truncation_said = self._window_asked = False
        self._priced = not self.is_own_server
        self._store = learned
        self._learnt: Learnt | None = None
        self._encoder: Encoder | None = None
        self._warnings: list[Warned] = []
        if not verify:
            self._warn("unverified_tls", _UNVERIFIED.format(host=host_of(self.base_url)))

    @property
    def name(self) -> str:
        return self._name

    def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        if (asking := getattr(recorder, "asking", None)) is not None:
            asking(self.setup)
        if self._priced:
            look_up_soon()
        return operation.answer(self, request, recorder)

    async def close(self) -> None:
        await self.client.close()

    async def models(self) -> list[str]:
        """The models that the endpoint lists, by the names to ask for. Raises `EndpointError`."""
        names = (model_id(entry) for entry in listed_models(await self.ask("/models")))
        return sorted({name for name in names if name})

    async def ask(self, path: str, *, outside: bool = False, body: JSON = None) -> JSON:
        """The JSON at a path of the API, or of the server `outside` of it; with a `body` it is posted.

        Raises `EndpointError` where there is none.
        """
        url = root_url(self.base_url, path) if outside else endpoint_url(self.base_url, path)
        data = None if body is None else json.dumps(body).encode()
        answer = await self.client.send(
            "GET" if body is None else "POST", url, self.headers, data, NoRecorder()
        )
        try:
            return self._json(await answer.body(), answer)
        finally:
            answer.close()

    # ── what is known of it ──────────────────────────────────────────────

    @property
    def profile(self) -> Profile:
        """Your settings over what was learned over the provider's facts."""
        return self.encoder.profile

    @property
    def encoder(self) -> Encoder:
        """The encoder of the current profile."""
        if self._encoder is None:
            self._encoder = Encoder(self.profile_with(self.learnt))
        return self._encoder

    @property
    def learnt(self) -> Learnt:
        """What was learned of it; read from its file when first needed."""
        if self._learnt is None:
            self._learnt, trouble = self.store.load(self.base_url, self.model)
            self._warn("profile_ignored", trouble)
        return self._learnt

    @property
    def store(self) -> ProfileStore:
        """Where what is learned is kept."""
        if self._store is None:
            self._store = ProfileStore.in_user_folder()
        return self._store

    @property
    def url(self) -> str:
        """Where questions go: to the base URL, or where it redirected them before."""
        url = self._questions
        moved = self.learnt.url
        return moved if moved is not None and may_follow(url, moved) else url

    @property
    def setup(self) -> EndpointSetup:
        """All that decides how a question is put to it and how its answer is read, but for the key."""
        learnt = self.learnt
        return EndpointSetup(
            self._name,
            self.base_url,
            self.model,
            self._provider,
            self.streamed,
            self.retries.attempts,
            self.retries.longest_wait,
            self._facts,
            learnt.profile,
            self.told,
            learnt.url,
            learnt.no_terminal,
        )

    @property
    def is_own_server(self) -> bool:
        """Whether it is in one's own network, where asking around does no harm."""
        return is_private_host(host_of(self.base_url))

    @property
    def context_window(self) -> int | None:
        """The model's window in tokens, where it is known: you said so, it was learned, or the server told."""
        return self.profile.context_window

    async def completed(self, reply: Reply, asked: int) -> Reply:
        """The reply to a request of `asked` bytes, with the window's size, and a price where no cost was reported."""
        if asked >= _LONG_REQUEST and not self._window_asked and self.is_own_server:
            await self._ask_for_window()
        self._priced = self._priced and reply.cost is None
        price = await price_of(self.base_url, self.model, reply.usage) if self._priced else None
        window = self.encoder.profile.context_window
        if window is None and price is None:
            return reply
        return replace(reply, context_window=window, price=price)

    async def _ask_for_window(self) -> None:
        """Once, when conversations get long, and only a server of one's own: it may cut them off without a word."""
        self._window_asked = True
        try:
            async with asyncio.timeout(_SIDE_QUESTION):
                found = await running_window(self)
        except TimeoutError:
            return
        if found:
            words = f"the server's context window is {found} tokens"
            self.learn(lesson("context_window", words), Learnt({"context_window": found}))

    def profile_with(self, learnt: Learnt) -> Profile:
        """What the profile would be if this was all that was learned."""
        return Profile().merged(self._facts).merged(learnt.profile).merged(self.told)

    def learn(self, lesson: Lesson, learnt: Learnt) -> bool:
        """Apply and keep what was learned; False if it was known."""
        taught = dataclasses.replace(learnt, lessons=(lesson,))
        known = self.learnt.plus(learnt)
        if known == self.learnt:
            return False
        self._learnt = self.learnt.plus(taught)
        self._encoder = None if learnt.profile else self._encoder
        self._warn("profile_not_kept", self.store.save(self.base_url, self.model, taught))
        return True

    def forget_move(self, url: str) -> bool:
        """Stop asking where an old redirect led; False if that is not where `url` is."""
        if self.learnt.url != url:
            return False
        self._learnt = dataclasses.replace(self.learnt, url=None)
        return True

    def look_for_truncation(self, body: int, entries: Sequence[Entry], usage: Usage) -> None:
        """Warn, once, if a server seems to have dropped part of a request of `body` bytes."""
        if not self._truncation_said and (warning := noticed(body, entries, usage, self._provider)):
            self._truncation_said = True
            self._warnings.append(warning)

    def warnings(self) -> list[Warned]:
        """What a person should know, each once."""
        said, self._warnings = self._warnings, []
        return said

    def explain(self, error: EndpointError) -> None:
        """Say in the hint where a refused key came from, if one was sent, and what lists the models it might be."""
        if isinstance(error, AuthenticationFailed) and error.status != _PROXY_REFUSES:
            error.hint = f"{self._about_key} {error.hint}".strip() if self._secrets else self._about_key
        if isinstance(error, ModelNotFound):
            error.hint = f"{error.hint} What this endpoint offers: glassloop models {self.base_url}"

    def masked(self, text: str) -> str:
        """Text of the endpoint with the secrets in it masked."""
        return mask(text, self._secrets)

    def _json(self, body: bytes, answer: Answer) -> JSON:
        text = body.decode("utf-8", "replace")
        try:
            payload = json.loads(text)
        except (ValueError, RecursionError):
            payload = None
        if answer.status < 400 and payload is not None:
            return payload
        from glassloop.wire.rejection import Sent, judge

        verdict = judge(answer.status, answer.headers, payload, text, Sent(), now=time.time())
        error = (
            verdict.error if isinstance(verdict, Raise) else EndpointError("The endpoint did not answer this")
        )
        error.provider_text = self.masked(error.provider_text or text[:500])
        error.status, error.url = answer.status, answer.url
        self.explain(error)
        raise error

    def _warn(self, code: str, text: str) -> None:
        if text:
            self._warnings.append(Warned(code, text))


def _headers(key: str | None, extra: Mapping[str, str]) -> dict[str, str]:
    """All headers of a request, the given ones in place of ours. Compressed streams would arrive in lumps."""
    ours = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": "glassloop",
    }
    if key:
        ours["Authorization"] = f"Bearer {key.strip()}"
    given = {name.lower() for name in extra}
    headers = {**{name: value for name, value in ours.items() if name.lower() not in given}, **extra}
    for name, value in headers.items():
        if not (name + value).isprintable() or not (name + value).isascii():
            shown = MASK if name.lower() in SECRET_HEADERS else repr(value)
            raise ConfigError(f"The header {name!r} ({shown}) holds characters that no header can hold")
    return headers


def _settings(profile: Profile | Mapping[str, JSON] | None, tool_mode: str) -> dict[str, JSON]:
    """What the user says of the endpoint, as profile changes. Raises `ConfigError` for what no profile can hold."""
    given = profile.to_json() if isinstance(profile, Profile) else dict(profile or {})
    if tool_mode != "auto":
        given["tool_mode"] = tool_mode
    try:
        Profile().merged(given)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return given
