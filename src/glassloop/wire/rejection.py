"""An error answer → what to do: retry, change the request, compact, read calls out of it, or raise.

Pure: nothing is resent here. What can be changed is in `wire/refusals` and `wire/options`, waits in `wire/waits`.
The order of the table below is the rule: a throttle that speaks of tokens is no overflow, a credit limit under
429 is no throttle, and a template error under 500 is no outage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from glassloop.core.entries import JSON
from glassloop.core.errors import (
    AuthenticationFailed,
    ContentFiltered,
    EndpointError,
    ModelNotFound,
    OutOfCredit,
    RequestRejected,
)
from glassloop.wire import overflow
from glassloop.wire.judgement import Adapt, Judgement, Overflow, Raise, Retry, Salvage
from glassloop.wire.options import mistaken_fields
from glassloop.wire.profile import OUTPUT_LIMITS
from glassloop.wire.refusals import refusal_steps
from glassloop.wire.request_ids import request_id_of
from glassloop.wire.said import Said, said
from glassloop.wire.searched import searched
from glassloop.wire.sent import Sent
from glassloop.wire.vocabulary import (
    AFFORD,
    CREDIT,
    FILTERED,
    KEY,
    NO_ROUTE,
    OUTAGE,
    QUOTED_CALL,
    SAYS_NOTHING,
    SURELY_CREDIT,
    THROTTLED,
    UNKNOWN_MODEL,
    UNREAD_CALL,
    UNREAD_REQUEST,
    VAGUE,
)
from glassloop.wire.waits import in_words, wait_of

__all__ = ["Adapt", "Judgement", "Overflow", "Raise", "Retry", "Salvage", "Sent", "judge"]


@dataclass(frozen=True, slots=True)
class _Case:
    """One error answer. `status` is the HTTP status, or the one in the body where HTTP claims success."""

    status: int | None
    headers: Mapping[str, str]
    words: Said
    text: str
    sent: Sent
    now: float

    @property
    def param(self) -> str:
        """The field that the body itself names."""
        param = self.words.value("param", "parameter", "field")
        return param if isinstance(param, str) else ""

    @property
    def is_refusal(self) -> bool:
        """Whether the status says that the request was at fault."""
        return self.status in (400, 422)

    @property
    def wait(self) -> float | None:
        return wait_of(self.headers, self.words.payload, self.words.text, self.now)


def judge(
    status: int | None,
    headers: Mapping[str, str],
    payload: JSON,
    text: str,
    sent: Sent,
    *,
    now: float,
) -> Judgement:
    """What to do about an error answer.

    `payload` is the body's JSON or None, `text` the whole body, `now` in seconds since 1970. The error that a
    `Raise` carries quotes at most 500 characters of the provider's words; mask secrets in them before showing it.
    """
    words = said(payload, text)
    inner = status is None or status < 400
    case = _Case(
        words.code if inner and words.code is not None else status,
        {name.lower(): value for name, value in headers.items()},
        words,
        searched(words.text, sent),
        sent,
        now,
    )
    for rule in _RULES:
        if (judgement := rule(case)) is not None:
            return judgement
    return _raise(case, RequestRejected, "The endpoint refused the request.")


# ── calls that the endpoint could not read ───────────────────────────────────────────────────────────────────────


def _unread_call(case: _Case) -> Judgement | None:
    written = case.words.value("failed_generation")
    if not isinstance(written, str) and (match := QUOTED_CALL.search(case.words.text)):
        written = match.group(1) or match.group(2)
    if isinstance(written, str) and written.strip() and "salvage" not in case.sent.tried:
        return Salvage(written, case.words.quote)
    if written or UNREAD_CALL.search(case.text):
        return Retry(case.wait, "the endpoint could not read the model's tool call", limit=3)
    return None


# ── money ────────────────────────────────────────────────────────────────────────────────────────────────────────

_LEAST_WORTH_ASKING = 512


def _credit(case: _Case) -> Judgement | None:
    if case.status != 402 and not CREDIT.search(case.text):
        return None
    if (match := AFFORD.search(case.text)) and (
        step := _affordable(case, int(match.group(1).replace(",", "")))
    ):
        return step
    comes_back = in_words(case.text) is not None or case.words.value("retryDelay") is not None
    if case.status == 429 and comes_back and not SURELY_CREDIT.search(case.text):
        return None
    return _raise(
        case, OutOfCredit, "The account has no credit or quota left.", "Add credit, or use another key."
    )


def _affordable(case: _Case, tokens: int) -> Adapt | None:
    worth = tokens - max(64, tokens // 50)
    if worth < _LEAST_WORTH_ASKING:
        return None
    return _shorter_answer(case, worth, lasting=False)


def _shorter_answer(case: _Case, tokens: int, *, lasting: bool) -> Adapt | None:
    """Ask for at most so many tokens, unless that was tried."""
    field = next((each for each in OUTPUT_LIMITS if case.sent.number(each) is not None), None)
    changes: Mapping[str, JSON] = {"max_values": {field: tokens}} if field else {"max_output": tokens}
    return _untried(case, f"max_output:{tokens}", changes, lasting=lasting)


# ── throttling, outages ──────────────────────────────────────────────────────────────────────────────────────────

_TRANSIENT = frozenset((408, 409, 423, 425, 429, 499))
_LIMITS = {409: 2, 423: 2, 499: 2}


def _beyond_any_wait(case: _Case) -> Judgement | None:
    limit = overflow.never_fits(case.text)
    return Overflow(limit, case.words.quote) if limit is not None else None


def _throttled(case: _Case) -> Judgement | None:
    if case.status == 429 or THROTTLED.search(case.text):
        return Retry(case.wait, _reason(case, "rate limited"))
    return None


def _outage(case: _Case) -> Judgement | None:
    if case.status is not None and (case.status in _TRANSIENT or case.status >= 500):
        return Retry(case.wait, _reason(case, f"HTTP {case.status}"), _LIMITS.get(case.status))
    if case.status is None or case.status < 400:
        if OUTAGE.search(case.text) or case.words.payload is None:
            return Retry(case.wait, _reason(case, "the endpoint failed"))
        return None
    if VAGUE.search(case.text):
        return Retry(case.wait, _reason(case, f"HTTP {case.status}"), limit=1)
    return None


def _reason(case: _Case, default: str) -> str:
    return case.words.quote or default


def _unread_request(case: _Case) -> Judgement | None:
    """A server that fails on our request, with nothing left to change: it would fail again, whatever the status."""
    if not UNREAD_REQUEST.search(case.text):
        return None
    return _raise(case, RequestRejected, "The endpoint could not read the request.")


# ── who may, and what ────────────────────────────────────────────────────────────────────────────────────────────


def _filtered(case: _Case) -> Judgement | None:
    if not FILTERED.search(case.text):
        return None
    return _raise(case, ContentFiltered, "The provider's filter refused the request.")


def _unknown_model(case: _Case) -> Judgement | None:
    if not UNKNOWN_MODEL.search(case.text) or (
        case.status is not None and case.status >= 500 and case.status != 503
    ):
        return None
    return _raise(case, ModelNotFound, "The endpoint does not know this model.", "Check the model's name.")


def _key(case: _Case) -> Judgement | None:
    if case.status not in (401, 403, 407) and not (KEY.search(case.text) and (case.status or 0) < 500):
        return None
    if case.status == 403 and not KEY.search(case.text) and (step := _adaptation(case)) is not None:
        return step
    if case.status == 407:
        return _raise(
            case,
            AuthenticationFailed,
            "A proxy on the way asks for credentials.",
            "Check the proxy settings.",
        )
    hint = "Check the API key, and that it belongs to this endpoint and may use this model."
    return _raise(case, AuthenticationFailed, "The endpoint did not accept the API key.", hint)


def _wrong_address(case: _Case) -> Judgement | None:
    """Nothing there speaks Chat Completions."""
    lost = case.status in (404, 405, 410) and (case.words.is_empty or NO_ROUTE.search(case.text))
    if lost or case.words.is_page:
        hint = "Check the base URL; it usually ends in /v1, without /chat/completions."
        return _raise(case, RequestRejected, "There is no Chat Completions endpoint at this address.", hint)
    return None


# ── what is too long, and what can be changed ────────────────────────────────────────────────────────────────────


def _too_long(case: _Case) -> Judgement | None:
    """A shorter answer where that is enough, else a shorter conversation."""
    if not overflow.is_overflow(case.text, case.status):
        return None
    window = overflow.window_of(case.words, case.text)
    asked = next((number for each in OUTPUT_LIMITS if (number := case.sent.number(each)) is not None), None)
    if asked is not None and (step := _fitting_answer(case, window, asked)) is not None:
        return step
    return Overflow(window, case.words.quote)


def _fitting_answer(case: _Case, window: int | None, asked: float) -> Adapt | None:
    """What the conversation leaves of the window, this once: that is less with each turn. A bound of the answer
    alone is kept."""
    prompt = overflow.prompt_of(case.text, asked)
    if prompt is None and window and window <= asked and overflow.names_only(window, asked, case.text):
        prompt = case.sent.size // _FEWEST_BYTES_OF_A_TOKEN
    if not window or prompt is None:
        return None if overflow.is_of_context(window, case.text) else _adaptation(case, only="clamp:")
    left = window - prompt - 16
    return _shorter_answer(case, left, lasting=False) if _LEAST_WORTH_ASKING < left < asked else None


_FEWEST_BYTES_OF_A_TOKEN = 3


def _mistaken(case: _Case) -> Judgement | None:
    """A setting that no endpoint could take. To adapt to it would teach the profile nothing but the mistake."""
    fields = mistaken_fields(case.sent, case.text, param=case.param)
    if not fields:
        return None
    shown = ", ".join(f"{field} = {json.dumps(case.sent.options[field])[:_SHOWN]}" for field in fields)
    return _raise(
        case, RequestRejected, f"The endpoint refuses the setting {shown}.", "Correct it in `settings`."
    )


_SHOWN = 100


def _adapted(case: _Case) -> Judgement | None:
    return _adaptation(case)


def _adaptation(case: _Case, only: str = "") -> Adapt | None:
    if not case.text:
        return None
    steps = refusal_steps(case.sent, case.text, param=case.param, is_refusal=case.is_refusal)
    for code, changes in steps:
        if code.startswith(only) and (step := _untried(case, code, changes)) is not None:
            return step
    return None


def _untried(case: _Case, code: str, changes: Mapping[str, JSON], *, lasting: bool = True) -> Adapt | None:
    if code in case.sent.tried or case.sent.profile.merged(changes) == case.sent.profile:
        return None
    return Adapt(code, changes, case.words.quote, lasting)


_LONG = 20_000


def _wordless(case: _Case) -> Judgement | None:
    """A 400 without a word: leave out what some endpoints don't know, once; a long request may be too long."""
    if not case.is_refusal or not (case.words.is_empty or SAYS_NOTHING.fullmatch(case.text.strip())):
        return None
    sent = case.sent
    bare = {
        "reasoning_back": "never",
        "reasoning_name": None,
        "call_extra": False,
        "tool_name": False,
        "stream_options": False,
    }
    needed = sent.message_fields & _BARE_OF or "stream_options" in sent.options
    if needed and (step := _untried(case, "bare:messages", bare)) is not None:
        return step
    extra = sorted(sent.options.keys() - {"stream", "tool_choice", *OUTPUT_LIMITS})
    if extra and (step := _untried(case, "bare:options", {"drop_fields": extra}, lasting=False)) is not None:
        return step
    return Overflow(None, case.words.quote) if sent.size > _LONG else None


_BARE_OF = frozenset(
    ("name", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "extra_content")
)

_RULES: tuple[Callable[[_Case], Judgement | None], ...] = (
    _unread_call,
    _credit,
    _beyond_any_wait,
    _throttled,
    _filtered,
    _mistaken,
    _too_long,
    _unknown_model,
    _key,
    _adapted,
    _wordless,
    _unread_request,
    _outage,
    _wrong_address,
)

# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _raise(case: _Case, kind: type[EndpointError], message: str, hint: str = "") -> Raise:
    request_id = request_id_of(case.headers)
    if request_id is None and isinstance(stated := case.words.value("request_id", "requestId"), str):
        request_id = stated
    return Raise(
        kind(message, status=case.status, provider_text=case.words.quote, request_id=request_id, hint=hint)
    )
