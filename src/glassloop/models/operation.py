"""One model operation: ask, read, and on failure retry, adapt or raise, until there is a reply.

What a refusal means is `wire/rejection`'s business; what is done about it is decided here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from glassloop.core.entries import Mend, Reply
from glassloop.core.errors import (
    ConnectionLost,
    ContentFiltered,
    ContextOverflow,
    EndpointError,
    RequestRejected,
)
from glassloop.core.events import Learned, Retrying, Warned
from glassloop.core.recording import Recorder
from glassloop.models.attempt import Attempt, Broken, Question, Refused
from glassloop.models.learning import Learning
from glassloop.models.model import ModelRequest, Said
from glassloop.models.outcomes import (
    BROKEN_BODIES,
    QUOTED,
    could_be_whole,
    is_debris,
    overflow_error,
    says_nothing,
    still_failing,
    taken_as_whole,
)
from glassloop.models.patience import Patience
from glassloop.models.profiles import Learnt, lesson
from glassloop.models.window import context_window
from glassloop.wire.calls import withheld
from glassloop.wire.judgement import Adapt, Judgement, Overflow, Raise, Retry, Salvage
from glassloop.wire.names import with_unique_ids
from glassloop.wire.request import Encoder
from glassloop.wire.textcalls import find_calls

if TYPE_CHECKING:
    from glassloop.models.endpoint import Endpoint


async def answer(endpoint: Endpoint, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
    """Ask until there is a reply; the events on the way, and the reply last. Raises `EndpointError`."""
    operation = _Operation(endpoint, request)
    shown = False
    while True:
        attempt = operation.attempt(recorder)
        try:
            await attempt.open()
            while deltas := await attempt.more():
                shown = True
                for delta in deltas:
                    yield delta
        finally:
            attempt.close()
        try:
            step = operation.next_step(attempt)
        except ContextOverflow as overflow:
            await operation.learn_window(overflow)
            raise
        for event in operation.events():
            yield event
        if isinstance(step, Reply):
            yield await endpoint.completed(step, operation.asked)
            return
        yield replace(step, discard=shown)
        shown = False
        if isinstance(step, Retrying) and step.wait_seconds:
            await asyncio.sleep(step.wait_seconds)


class _Operation:
    """The state of one operation: what was tried, what it taught, and the best that came of it."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        self._endpoint = endpoint
        self._request = request
        self._learning = Learning(endpoint)
        self._patience = Patience(endpoint.retries)
        self._encoder: Encoder
        self._question: Question
        self._partial: Reply | None = None
        self._ended_early = False
        self._had_hole = False
        self._garbled = False  # a streamed call was debris
        self._whole = False  # ask without streaming
        self._events: list[Learned] = []

    def attempt(self, recorder: Recorder) -> Attempt:
        """The next request, with all that is known by now."""
        endpoint = self._endpoint
        self._encoder = encoder = self._learning.encoder()
        body, streamed = self._encoded(encoder)
        tools = encoder.offered(self._request.tools)
        mode = encoder.profile.tool_mode
        self._question = Question(endpoint.url, endpoint.headers, body, tools, mode, streamed)
        return Attempt(endpoint.client, self._question, recorder)

    def _encoded(self, encoder: Encoder) -> tuple[bytes, bool]:
        """The body of the next request, and whether it asks for a stream."""
        endpoint, request = self._endpoint, self._request
        tools = request.tools
        streamed = encoder.profile.streams(endpoint.streamed and not self._whole, tools=bool(tools))
        body = encoder.encode(endpoint.model, request.entries, tools, request.settings, stream=streamed)
        return body, streamed

    @property
    def asked(self) -> int:
        """The size of the last request's body."""
        return len(self._question.body)

    def events(self) -> list[Warned | Learned]:
        """What is to be said beside the step itself."""
        learned, self._events = self._events, []
        return [*self._endpoint.warnings(), *learned]

    def next_step(self, attempt: Attempt) -> Reply | Retrying | Learned:
        """The reply, or what is announced before the next attempt. Raises `EndpointError`."""
        outcome = attempt.outcome
        assert outcome is not None, "the attempt was not read to its end"
        try:
            match outcome:
                case Reply():
                    return self._replied(outcome, attempt)
                case Broken(error, partial):
                    self._keep(partial)
                    limit = error.retries if isinstance(error, ConnectionLost) else None
                    return self._again(str(error.args[0]), error, limit=limit)
                case Refused():
                    self._keep(outcome.failure.partial)
                    return self._refused(outcome, attempt)
        except EndpointError as error:
            self._complete(error, attempt)
            raise

    # ── a reply ──────────────────────────────────────────────────────────

    def _replied(self, reply: Reply, attempt: Attempt) -> Reply | Retrying:
        if reply.refused and reply.is_empty:
            raise ContentFiltered(
                f"The provider's filter withheld the answer (finish reason {reply.finish_reason})"
            )
        offered = self._question.tools
        garbled = any(is_debris(call.name) for call in reply.tool_calls if call.name not in offered)
        if garbled and self._question.streamed:
            self._whole = self._garbled = True
            return Retrying("a streamed tool call came garbled; asking without streaming", 1)
        self._learning.keep()
        if attempt.url != self._question.url:
            self._learn("redirect", f"requests go to {attempt.url}", Learnt(url=attempt.url))
        if self._garbled and reply.tool_calls and not garbled:
            change = Learnt({"stream_with_tools": False})
            self._learn("streamed_calls", "replies are not streamed where there are tools", change)
        self._endpoint.look_for_truncation(len(self._question.body), self._request.entries, reply.usage)
        return self._finished(reply, attempt)

    def _finished(self, reply: Reply, attempt: Attempt) -> Reply:
        """The reply with the tools' real names, and with an id for each call that lacks one, or has another's."""
        calls = reply.tool_calls
        if calls:
            back = self._encoder.names_back
            named = [
                call if back.get(call.name, call.name) == call.name else replace(call, name=back[call.name])
                for call in calls
            ]
            calls = with_unique_ids(named, len(self._request.entries), ())
            if self._request.settings.get("tool_choice") == "none":
                calls, mend = withheld(calls)
                reply = replace(reply, mends=(*reply.mends, mend))
        response_id = reply.response_id or attempt.request_id
        if response_id == reply.response_id and calls == reply.tool_calls:
            return reply
        return replace(reply, tool_calls=calls, response_id=response_id)

    async def learn_window(self, overflow: ContextOverflow) -> None:
        """Keep how large the window is: from the refusal, from what is known, or from the server itself."""
        endpoint = self._endpoint
        known = overflow.window or endpoint.profile.context_window
        overflow.window = known or await context_window(endpoint)
        if overflow.window:
            change = Learnt({"context_window": overflow.window})
            words = f"the context window is {overflow.window} tokens"
            endpoint.learn(lesson("context_window", words, overflow.provider_text), change)

    def _keep(self, partial: Reply | None) -> None:
        """Of all attempts that broke off, keep the longest text."""
        if partial is not None and (self._partial is None or len(partial.text) > len(self._partial.text)):
            self._partial = partial

    def _longest(self, partial: Reply) -> Reply:
        """This or an earlier attempt's text, whichever is longer; what has calls stands for itself."""
        kept = self._partial
        return partial if kept is None or kept.tool_calls or partial.tool_calls else kept

    # ── no reply ─────────────────────────────────────────────────────────

    def _refused(self, refused: Refused, attempt: Attempt) -> Reply | Retrying | Learned:
        failure, status = refused.failure, refused.status
        if failure.reason == "cut_off":
            return self._cut_off(refused, attempt)
        if failure.reason == "broken_chunk":
            return self._holed(status)
        verdict = self._judged(refused)
        if status < 400 and failure.reason in BROKEN_BODIES and says_nothing(verdict):
            words, kind, limit = BROKEN_BODIES[failure.reason]
            return self._again(
                words, kind(words, status=status, provider_text=failure.text[:QUOTED]), limit=limit
            )
        match verdict:
            case Retry(after, reason, limit):
                return self._again(reason, still_failing(refused, verdict), asked=after, limit=limit)
            case Adapt():
                return self._adapted(verdict, status) or self._refused(refused, attempt)
            case Salvage():
                return self._salvaged(verdict, attempt) or self._refused(refused, attempt)
            case Overflow(window, words):
                self._learning.keep()
                raise overflow_error(window, words, status)
            case Raise(error):
                if status in (404, 405, 410) and self._endpoint.forget_move(self._question.url):
                    return Retrying(
                        "nothing is where requests were redirected to; asking the base URL again", 1
                    )
                raise error

    def _judged(self, refused: Refused) -> Judgement:
        """What `wire/rejection` says. A turn that ended in an error holds only the model's words, no provider's."""
        failure = refused.failure
        if failure.reason == "error_finish":
            return Retry(None, "the model's turn ended in an error")
        # Here: its tables of words take half the time of a cold start, and most runs are never refused.
        from glassloop.wire.rejection import Sent, judge

        sent = Sent.of(self._question.body, self._encoder.profile, self._learning.tried)
        return judge(refused.status, refused.headers, failure.payload, failure.text, sent, now=time.time())

    def _cut_off(self, refused: Refused, attempt: Attempt) -> Reply | Retrying:
        """A body that ended in order, but before its reply did. Twice in a row, it is how this endpoint ends them."""
        partial = refused.failure.partial
        if self._question.streamed and partial is not None and could_be_whole(partial):
            if self._ended_early or self._endpoint.learnt.no_terminal:
                self._learn(
                    "no_terminal", "streams may end without a finish reason", Learnt(no_terminal=True)
                )
                return self._finished(taken_as_whole(self._longest(partial)), attempt)
            self._ended_early = True
        words = "The answer ended before it was complete"
        return self._again(words, ConnectionLost(words, status=refused.status))

    def _holed(self, status: int) -> Retrying:
        """A chunk that could not be read. Twice, it may be how this endpoint streams; a whole answer has no chunks."""
        self._whole = self._whole or self._had_hole
        self._had_hole = True
        words = "A chunk of the answer could not be read"
        return self._again(words, ConnectionLost(words, status=status))

    def _adapted(self, verdict: Adapt, status: int) -> Learned | None:
        """The change that was made to the next request; None if it would be the same again, byte for byte."""
        learned = self._learning.adapt(verdict, self._encoder.profile)
        if learned is None:
            words = "The endpoint refuses this request, also after it was changed as it asked"
            raise RequestRejected(words, status=status, provider_text=verdict.words)
        body, _ = self._encoded(self._learning.encoder())
        if body == self._question.body:
            self._learning.take_back()
            return None
        return learned

    def _salvaged(self, verdict: Salvage, attempt: Attempt) -> Reply | None:
        """The endpoint could not read the model's call and quotes it; None if we cannot either."""
        self._learning.tried.add("salvage")
        found = find_calls(verdict.text, self._question.tools)
        if not found.calls:
            return None
        mend = Mend(
            "refused_generation", "the endpoint could not read the model's call; it was read from the error"
        )
        reply = Reply(
            found.content, tool_calls=found.calls, finish_reason="tool_calls", mends=(*found.mends, mend)
        )
        return self._finished(reply, attempt)

    def _again(
        self, reason: str, error: EndpointError, *, asked: float | None = None, limit: int | None = None
    ) -> Retrying:
        return self._patience.again(self._endpoint.masked(reason), error, asked=asked, limit=limit)

    def _learn(self, code: str, change: str, learnt: Learnt) -> None:
        """Keep something that no refusal taught, and say so unless it was known."""
        if self._endpoint.learn(lesson(code, change), learnt):
            self._events.append(Learned(code, change))

    def _complete(self, error: EndpointError, attempt: Attempt) -> None:
        """Put into the error all that is known of the exchange, secrets masked, and what came of the reply."""
        masked = self._endpoint.masked
        error.args = (masked(str(error.args[0])),)
        error.provider_text = masked(error.provider_text)
        error.request_id = error.request_id or attempt.request_id
        error.url = attempt.url
        self._endpoint.explain(error)
        if self._partial is not None and not self._partial.is_empty:
            error.partial = self._partial
