"""Waits: every form in which endpoints say how long, and which one counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.wire.waits import in_words, wait_of

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:27:30 GMT"}, 30),
        ({"retry-after": "Wed, 21 Oct 2020 07:28:00 GMT"}, 0),
        ({"retry-after": "2s"}, 2),
        ({"x-ratelimit-reset-requests": "6s", "x-ratelimit-reset-tokens": "1.57s"}, 1.57),
        (
            {
                "x-ratelimit-reset-requests": "1m30.5s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "57ms",
                "x-ratelimit-remaining-tokens": "12",
            },
            90.5,
        ),
        ({"x-ratelimit-reset": str(int(NOW) + 20)}, 20),
        ({"x-ratelimit-reset": str((int(NOW) + 20) * 1000)}, 20),
        ({"ratelimit-reset": "12"}, 12),
        ({"anthropic-ratelimit-tokens-reset": "2026-09-21T14:13:50Z"}, 30),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_headers_say_how_long(headers, wait):
    found = wait_of(headers, None, "", NOW)
    assert found == (pytest.approx(wait) if wait is not None else None)


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("Please try again in 1.2s.", 1.2),
        ("Please try again in 1m2.5s. Visit us.", 62.5),
        ("Please try again in 850ms", 0.85),
        ("retry after 30 seconds", 30),
        ("Try again in 2 minutes and 5 seconds", 125),
        ("Please wait 3 hours", 10800),
        ("Please retry in 32.43s.", 32.43),
        ("请在 5 秒后重试", 5),
        ("Daily limit reached, try again tomorrow.", 86400),
        ("今日额度已用完，请明天再试", 86400),
        ("You waited too long", None),
        ("Limit 30, used 12", None),
    ],
)
def test_prose_says_how_long(text, wait):
    assert in_words(text) == (pytest.approx(wait) if wait is not None else None)


@pytest.mark.parametrize(
    ("payload", "wait"),
    [
        (
            {
                "error": {
                    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "32s"}]
                }
            },
            32,
        ),
        ({"retry_after": 4}, 4),
        ({"error": {"retry_after_ms": 250}}, 0.25),
        ({"error": {"metadata": {"headers": {"X-RateLimit-Reset": str((int(NOW) + 9) * 1000)}}}}, 9),
        ({"retry_after": None}, None),
        ({"retry": True}, None),
    ],
)
def test_bodies_say_how_long(payload, wait):
    assert wait_of({}, payload, "", NOW) == wait


@given(
    st.dictionaries(
        st.sampled_from(["Retry-After", "date", "x-ratelimit-reset", "retry-after-ms"]), st.text(max_size=30)
    ),
    st.text(max_size=60),
)
def test_whatever_is_said_a_wait_is_none_or_a_number_from_zero(headers, text):
    wait = wait_of(headers, {"retry_after": text}, f"try again in {text}", NOW)
    assert wait is None or 0 <= wait < float("inf")
