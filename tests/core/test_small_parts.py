"""Token estimates, masking, usage, the memory journal, exceptions."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassloop.core import secrets
from glassloop.core.entries import Text, ToolResult, Usage, User, parts_of
from glassloop.core.errors import ConfigError, ContextOverflow, EndpointError, SessionError
from glassloop.core.journal import MemoryJournal, Record, RunEnd, RunStart
from glassloop.core.limits import Limits
from glassloop.core.secrets import MASK, mask
from glassloop.core.tokens import Meter, estimate, estimate_entry


# Counted with the o200k vocabulary.
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 20, 201),
        ("今天天气很好，我们去公园散步吧。" * 20, 240),
        ("今日は天気がいいから散歩しましょう。" * 20, 220),
        ("오늘 날씨가 좋으니 산책하러 갑시다. " * 20, 301),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20, 381),
        ("مرحبا كيف حالك اليوم في المدينة " * 20, 161),
        ('{"name": "get_weather", "arguments": {"city": "Oslo"}}\n' * 20, 360),
        ("def add(a: int, b: int) -> int:\n    return a + b\n\n" * 20, 380),
    ],
)
def test_estimates_are_within_a_third_for_every_script(text: str, tokens: int) -> None:
    assert tokens * 0.66 <= estimate(text) <= tokens * 1.5


@given(st.text(), st.text())
def test_a_longer_text_is_never_estimated_shorter(a: str, b: str) -> None:
    assert estimate(a + b) >= estimate(a)


# Counted with the o200k vocabulary, so that estimates meet a server's own words.
CONVERSATION = {
    "English": ("The quick brown fox jumps over the lazy dog. ", 10),
    "Chinese": ("今天天气很好，我们去公园散步吧。", 12),
    "Japanese": ("今日は天気がいいから散歩しましょう。", 11),
    "Korean": ("오늘 날씨가 좋으니 산책하러 갑시다. ", 15),
    "Russian": ("Съешь же ещё этих мягких французских булок, да выпей чаю. ", 19),
    "code": ("def add(a: int, b: int) -> int:\n    return a + b\n\n", 19),
}


@pytest.mark.parametrize("language", CONVERSATION)
def test_after_the_first_reply_the_estimate_is_within_15_percent(language: str) -> None:
    sentence, each = CONVERSATION[language]
    meter = Meter()
    entries: list[User] = [User(parts_of(sentence * 20))]
    meter.heard(each * 20 + 4, entries)
    entries.append(User(parts_of(sentence * 200)))
    truth = each * 220 + 8
    assert abs(meter.tokens(entries) - truth) <= 0.15 * truth


def test_a_meter_takes_the_servers_word_within_reason() -> None:
    entries = [User(parts_of("word " * 400)) for _ in range(3)]
    meter = Meter()
    meter.heard(500, entries, 1)
    meter.heard(10**9, entries, 2)
    assert meter.scale == 4.0
    meter.heard(0, entries)
    meter.heard(None, entries)
    meter.heard(600, entries)
    assert (meter.counted, meter.upto) == (10**9, 2)


def test_tools_in_the_first_count_do_not_bend_the_scale_and_stay_counted_when_history_changed() -> None:
    entries = [User(parts_of("word " * 400)) for _ in range(3)]
    one = estimate_entry(entries[0])
    meter = Meter()
    meter.heard(one + 5_000, entries, 1)
    assert meter.scale == 1.0
    meter.heard(3 * one + 5_000, entries, 3)
    meter.restart()
    assert abs(meter.tokens(entries[:1]) - (one + 5_000)) <= 5
    assert abs(meter.estimated(one + 5_000) - one) <= 5


@given(st.lists(st.integers(1, 4000), max_size=30), st.integers(0, 29))
def test_a_meter_measures_the_same_however_often_it_is_asked(lengths: list[int], at: int) -> None:
    entries = [User(parts_of("word " * length)) for length in lengths]
    asked, never = Meter(), Meter()
    for upto in range(len(entries)):
        asked.tokens(entries[: upto + 1])
    for meter in (asked, never):
        meter.heard(1_000, entries, min(at, len(entries)))
    assert asked.tokens(entries) == never.tokens(entries)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "sk-or-v1-0123456789abcdef0123456789abcdef",
        "gsk_abcdefghijklmnopqrstuvwx",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789",
        "xoxb-1234567890-abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        "xai-abcdefghijklmnop",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh",
    ],
)
def test_known_key_shapes_are_masked_anywhere(secret: str) -> None:
    for before in ("bad key ", "key=", "密钥", "\n"):
        masked = mask(f'{{"error": "{before}{secret}, sorry"}}')
        assert secret not in masked
        assert masked.endswith(f'{before}{MASK}, sorry"}}')


@pytest.mark.parametrize(
    "before", ["\n", "\t", "\r", "\b", "\f", "\x01", "密", "é", '"', "\\", "/", "\U0001f511"]
)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("escaped", [True, False])
def test_key_shapes_are_masked_in_json_within_json(before: str, depth: int, escaped: bool) -> None:
    text = f"keys:{before}sk-proj-abcdefghijklmnop1234 and more"
    for _ in range(depth):
        text = json.dumps({"text": text}, ensure_ascii=escaped)
    masked = mask(text)
    assert "sk-proj" not in masked
    assert MASK in masked


_BEFORE = ["", "\\n", "\\\\n", "\\u00e9", "\\\\u00e9", '"', "é", "x", "-", "completion_tokens ", "\\"]


@given(st.sampled_from(_BEFORE), st.from_regex(secrets._SHAPES), st.text(max_size=3))
@settings(max_examples=300)
def test_the_quick_look_misses_no_key(before: str, found: str, behind: str) -> None:
    text = before + found + behind
    masked = secrets._RUN.sub(lambda run: secrets._SHAPES.sub(MASK, run.group()), text)
    assert mask(text) == masked
    assert masked == text or secrets.may_hold_a_secret(text.encode())


@given(st.from_regex(secrets._BEARER) | st.from_regex(secrets._URL_PASSWORD), st.text(max_size=3))
def test_the_quick_look_misses_no_token_and_no_password(found: str, behind: str) -> None:
    text = f"Bearer {found}{behind}"
    assert mask(text) == text or secrets.may_hold_a_secret(text.encode())


def test_values_in_use_and_passwords_in_urls_are_masked() -> None:
    text = mask(
        "my-own-secret at http://me:hunter22@host/v1, Bearer abcd1234efgh", ["my-own-secret", "", "abc"]
    )
    assert text == f"{MASK} at http://me:{MASK}@host/v1, Bearer {MASK}"


def test_ordinary_words_are_not_masked() -> None:
    text = "the task-oriented risk-assessment of desk-top-publishing-software, for bearer securities"
    assert mask(text) == text


@given(
    st.builds(Usage, *[st.none() | st.integers(0, 9)] * 5),
    st.builds(Usage, *[st.none() | st.integers(0, 9)] * 5),
)
def test_usage_adds_and_unknown_stays_unknown(a: Usage, b: Usage) -> None:
    assert a + b == b + a
    assert (a + b).prompt_tokens == (
        None
        if a.prompt_tokens is b.prompt_tokens is None
        else (a.prompt_tokens or 0) + (b.prompt_tokens or 0)
    )


def test_a_limit_that_makes_no_sense_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"Limits\(rounds=0\)"):
        Limits(rounds=0)


def test_an_endpoint_error_quotes_the_provider_with_status_and_request_id() -> None:
    error = EndpointError(
        "refused", status=400, provider_text="no such field", request_id="r1", hint="Drop it."
    )
    assert str(error).splitlines() == [
        "refused",
        "The endpoint said: no such field",
        "(HTTP 400, request id r1)",
        "Drop it.",
    ]
    assert ContextOverflow("too long").window is None


def test_a_session_in_use_is_refused_by_name_and_free_again_after_the_run() -> None:
    async def story() -> None:
        journal = MemoryJournal()
        await journal.open(RunStart("run1", "s", "agent", "h"))
        with pytest.raises(SessionError, match="in use by run run1"):
            await journal.open(RunStart("run2", "s", "agent", "h"))
        results = [
            Record(3, ToolResult("b", "t", (Text("2"),))),
            Record(2, ToolResult("a", "t", (Text("1"),))),
        ]
        await journal.commit("run1", [Record(1, User(parts_of("hi"))), *results])
        await journal.finish(RunEnd("run1", "answered", "ok"))
        opened = await journal.open(RunStart("run2", "s", "agent", "h"))
        assert [entry.text for entry in opened.history] == ["hi", "1", "2"]
        assert journal.intents["run2"] == []
        with pytest.raises(KeyError):
            await journal.intend("a run that was not opened", [])

    asyncio.run(story())
