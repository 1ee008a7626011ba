"""Healthy servers with little to give, and servers that end in the middle: what is said of them, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.doctor.healthy import plain
from tests.doctor.ward import examined

from glassloop.doctor.findings import FAULTS, Report
from glassloop.doctor.probes import PROBES
from glassloop.testing.server import ChatServer, Raw, Reply, Request, fails

Script = Callable[[Request], Reply | Awaitable[Reply]]
SERVED = 20


def report_and_requests(script: Script) -> tuple[Report, int]:
    async def examine_it() -> tuple[Report, int]:
        async with ChatServer(script) as server:
            return await examined(server.base_url), len(server.requests)

    return asyncio.run(examine_it())


def one_at_a_time() -> Script:
    busy = 0

    async def script(request: Request) -> Reply:
        nonlocal busy
        if busy:
            return fails(429, "Too many concurrent requests: limit 1")
        busy += 1
        try:
            await asyncio.sleep(0.01)
            return plain(request)
        finally:
            busy -= 1

    return script


def ending_with(reply: Reply) -> Script:
    asked = 0

    def script(request: Request) -> Reply:
        nonlocal asked
        asked += 1
        return plain(request) if asked <= SERVED else reply

    return script


def test_a_server_of_one_request_at_a_time_has_no_fault() -> None:
    report, _ = report_and_requests(one_at_a_time())
    assert report.verdict == "ready"
    assert [one.code for one in report.findings if one.level in FAULTS] == []
    assert "trait:parallel_limit" in {one.code for one in report.findings}
    assert report.diagnoses == ()


@pytest.mark.parametrize(
    ("reply", "verdict", "words"),
    [
        (fails(429, "Rate limit reached: 20 requests a day"), "stopped", "20 requests a day"),
        (fails(402, "Insufficient Balance"), "stopped", "Insufficient Balance"),
        (fails(401, "This key was revoked"), "unusable", "revoked"),
        (Raw([], end="reset"), "unusable", "hung up"),
    ],
    ids=["throttled", "no_credit", "revoked", "dead"],
)
def test_a_server_that_ends_in_the_middle_is_said_to_and_asked_no_more(
    reply: Reply, verdict: str, words: str
) -> None:
    report, requests = report_and_requests(ending_with(reply))
    assert (report.verdict, words in report.why) == (verdict, True), report.why
    assert requests < SERVED + 30
    assert not [one.code for one in report.findings if one.code.startswith("refuses:")]
    assert [one.outcome for one in report.probes].count("skipped") > len(PROBES) // 2
