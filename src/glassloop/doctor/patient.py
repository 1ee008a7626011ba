"""The endpoint under examination: asked as an agent would ask it, or with one request as it stands.

Both ways go through the same client and the same reading as every run; nothing is detected here a second time.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from glassloop.core.entries import JSON, Entry, Reply
from glassloop.core.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ContextOverflow,
    EndpointError,
    OutOfCredit,
    RateLimited,
    RequestRejected,
)
from glassloop.core.events import Learned, Retrying, Warned
from glassloop.core.recording import NoRecorder
from glassloop.core.tools import ToolSpec
from glassloop.doctor.tape import Exchange, OutOfBudget, TapedClient, taping
from glassloop.models.attempt import Attempt, Question, Refused
from glassloop.models.endpoint import Endpoint
from glassloop.models.http import Client
from glassloop.models.model import ModelRequest
from glassloop.wire.profile import Profile
from glassloop.wire.rejection import Adapt, Judgement, Raise, Sent, judge
from glassloop.wire.request import Encoder

_QUOTED = 200
_NOBODY_SERVED = frozenset((401, 402, 429))
_NOT_THE_REQUEST = (AuthenticationFailed, ConnectionLost, OutOfCredit, RateLimited)
_TRIES_OF_ONE = 3
_NUDGES = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and all that came of it. `steps` are what was done after each failed attempt, in order;
    `lessons` what else was learned. Either `reply` or `error` is there."""

    exchanges: tuple[Exchange, ...]
    tools: Mapping[str, ToolSpec]
    tool_mode: str
    streamed: bool
    reply: Reply | None = None
    error: EndpointError | None = None
    steps: tuple[Retrying | Learned, ...] = ()
    lessons: tuple[Learned, ...] = ()
    warnings: tuple[Warned, ...] = ()

    @property
    def last(self) -> Exchange:
        return self.exchanges[-1]


@dataclass(frozen=True, slots=True)
class Tried:
    """One request as it stood, without retry or adaptation. `judgement` is None where it was taken."""

    exchange: Exchange
    reply: Reply | None
    judgement: Judgement | None
    words: str

    @property
    def is_unanswered(self) -> bool:
        """Whether nothing came, or no more than that nobody is served now: that says nothing of the request."""
        return self.reply is None and (self.judgement is None or self.exchange.status in _NOBODY_SERVED)


@dataclass(slots=True)
class Spent:
    """What was used so far. `tokens` and `cost` count what the endpoint reported; `costs_known` says whether it
    reported any cost."""

    tokens: int = 0
    cost: float = 0.0
    costs_known: bool = False
    answers: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """Where to stop. None: no such limit. `cost` in US dollars, as the endpoint reports it."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def check(self, spent: Spent) -> None:
        """Raises `OutOfBudget` where nothing more may be asked."""
        if self.tokens is not None and spent.tokens >= self.tokens:
            raise OutOfBudget(f"the limit of {self.tokens} tokens is reached ({spent.tokens} used)")
        if self.cost is None:
            return
        if spent.answers and not spent.costs_known:
            raise OutOfBudget(
                "the endpoint does not say what a request costs, so a cost limit cannot be kept"
            )
        if spent.cost >= self.cost:
            raise OutOfBudget(f"the limit of ${self.cost:g} is reached (${spent.cost:g} spent)")


@dataclass(slots=True)
class Patient:
    """One endpoint. `settings` go with every question, as in the user's own runs."""

    endpoint: Endpoint
    settings: Mapping[str, JSON] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    spent: Spent = field(default_factory=Spent)
    asked: list[Asked] = field(default_factory=list)
    """Of the probe that runs now."""
    tapes: list[list[Exchange]] = field(default_factory=list)
    facts: dict[str, JSON] = field(default_factory=dict)
    """What earlier probes measured."""
    tries: int = 3
    """How often a probe that depends on the model's mood is tried."""
    unanswered: list[str] = field(default_factory=list)
    """The words of the last questions in a row that the endpoint did not take up at all, whatever they were."""
    throttles: bool = False
    """Whether the last of these was refused for its account's sake: too many requests, or no credit."""

    def __post_init__(self) -> None:
        taped = TapedClient(self.endpoint.client, self.budget.requests)
        self.endpoint.client = cast("Client", taped)

    def begin(self) -> None:
        """A new probe."""
        self.asked, self.tapes = [], []

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Of the probe that runs now, in the order in which they were sent."""
        return tuple(sorted((one for tape in self.tapes for one in tape), key=lambda one: one.started))

    async def ask(
        self,
        entries: Sequence[Entry],
        tools: Sequence[ToolSpec] = (),
        *,
        stream: bool = False,
        **settings: JSON,
    ) -> Asked:
        """Ask as an agent would, who also asks again after an overflow and after an empty answer, twice at most."""
        asked = await self._ask(entries, tools, stream, settings)
        for _ in range(_NUDGES):
            if not _says_nothing(asked):
                break
            asked = await self._ask(entries, tools, stream, settings)
        return asked

    async def _ask(
        self, entries: Sequence[Entry], tools: Sequence[ToolSpec], stream: bool, settings: Mapping[str, JSON]
    ) -> Asked:
        self.budget.check(self.spent)
        endpoint, tape = self.endpoint, self._tape()
        endpoint.streamed = stream
        request = ModelRequest(tuple(entries), tuple(tools), {**self.settings, **settings})
        reply, error, said = None, None, list[Retrying | Learned | Warned]()
        try:
            async for event in endpoint.stream(request, NoRecorder()):
                if isinstance(event, Reply):
                    reply = event
                elif isinstance(event, Retrying | Learned | Warned):
                    said.append(event)
        except EndpointError as raised:
            error = raised
        attempts = sum(one.is_question and not _is_redirect(one) for one in tape)
        steps = [one for one in said if isinstance(one, Retrying | Learned)]
        failed = attempts if reply is None else attempts - 1
        encoder = endpoint.encoder
        asked = Asked(
            tuple(tape),
            encoder.offered(request.tools),
            encoder.profile.tool_mode,
            stream,
            reply,
            error,
            tuple(steps[:failed]),
            tuple(one for one in steps[failed:] if isinstance(one, Learned)),
            tuple(one for one in said if isinstance(one, Warned)),
        )
        self.asked.append(asked)
        self._count(reply)
        if isinstance(error, _NOT_THE_REQUEST):
            self._left_unanswered(
                error.provider_text or str(error.args[0]), isinstance(error, (RateLimited, OutOfCredit))
            )
        else:
            self.unanswered.clear()
        return asked

    async def try_once(
        self,
        entries: Sequence[Entry],
        tools: Sequence[ToolSpec] = (),
        *,
        profile: Mapping[str, JSON] | None = None,
        edit: Mapping[str, JSON] | None = None,
        **settings: JSON,
    ) -> Tried:
        """Send one request as it stands, under a changed `profile`, its body's fields replaced by `edit`.

        What may pass (a throttle, an outage) is asked again: only what fails each time is refused.
        """
        endpoint = self.endpoint
        changed = endpoint.profile.merged(profile or {})
        encoder = Encoder(changed)
        body = encoder.encode(
            endpoint.model, entries, tuple(tools), {**self.settings, **settings}, stream=False
        )
        if edit:
            body = json.dumps({**json.loads(body), **edit}, ensure_ascii=False).encode()
        offered = encoder.offered(tuple(tools))
        question = Question(
            endpoint.url, endpoint.headers, body, offered, changed.tool_mode, changed.stream_only
        )
        for attempt in range(1, _TRIES_OF_ONE + 1):
            tried = await self._send(question, changed)
            if tried.reply is not None or _is_plain_refusal(tried.judgement):
                break
            await asyncio.sleep(endpoint.retries.pause(attempt, None))
        if tried.is_unanswered:
            self._left_unanswered(tried.words, tried.exchange.status is not None)
        else:
            self.unanswered.clear()
        return tried

    def _left_unanswered(self, words: str, throttles: bool) -> None:
        self.unanswered.append(words)
        self.throttles = throttles

    async def _send(self, question: Question, profile: Profile) -> Tried:
        self.budget.check(self.spent)
        tape = self._tape()
        attempt = Attempt(self.endpoint.client, question, NoRecorder())
        try:
            await attempt.open()
            while await attempt.more():
                pass
        finally:
            attempt.close()
        outcome, exchange = attempt.outcome, tape[-1]
        if isinstance(outcome, Reply):
            self._count(outcome)
            return Tried(exchange, outcome, None, "")
        if not isinstance(outcome, Refused):
            return Tried(exchange, None, None, exchange.error or "no answer")
        failure, sent = outcome.failure, Sent.of(question.body, profile)
        judgement = judge(
            outcome.status, outcome.headers, failure.payload, failure.text, sent, now=time.time()
        )
        words = words_of(judgement) or failure.text[:_QUOTED]
        return Tried(exchange, None, judgement, self.endpoint.masked(words))

    async def look(self, path: str) -> tuple[JSON, EndpointError | None]:
        """What the server says about itself at a path of its API, or why it does not."""
        self._tape()
        try:
            return await self.endpoint.ask(path), None
        except EndpointError as error:
            return None, error

    def tape(self) -> list[Exchange]:
        """Keeps, from now on, what this task exchanges."""
        return self._tape()

    def _tape(self) -> list[Exchange]:
        tape = taping()
        self.tapes.append(tape)
        return tape

    def _count(self, reply: Reply | None) -> None:
        if reply is None:
            return
        spent, usage = self.spent, reply.usage
        spent.answers += 1
        spent.tokens += usage.total_tokens or (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        if reply.cost is not None:
            spent.cost += reply.cost
            spent.costs_known = True


def _says_nothing(asked: Asked) -> bool:
    if asked.reply is None:
        return isinstance(asked.error, ContextOverflow)
    return asked.reply.is_empty and not asked.reply.refused


def _is_plain_refusal(judgement: Judgement | None) -> bool:
    """Whether the request itself was at fault, and not the moment."""
    if isinstance(judgement, Adapt):
        return True
    return isinstance(judgement, Raise) and type(judgement.error) is RequestRejected


def words_of(judgement: Judgement) -> str:
    """The endpoint's own words in a judgement."""
    error = getattr(judgement, "error", None)
    if isinstance(error, EndpointError):
        return error.provider_text or str(error.args[0])
    return str(getattr(judgement, "words", "") or getattr(judgement, "reason", ""))


def _is_redirect(exchange: Exchange) -> bool:
    return exchange.status is not None and 300 <= exchange.status < 400 and "location" in exchange.answered


def questions_of(asked: Asked) -> list[Exchange]:
    """The exchanges that asked the model, one for each attempt: those that were redirected are left out."""
    return [one for one in asked.exchanges if one.is_question and not _is_redirect(one)]


def redirects_of(asked: Asked) -> list[Exchange]:
    """The exchanges that were redirected."""
    return [one for one in asked.exchanges if _is_redirect(one)]
