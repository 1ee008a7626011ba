"""Every catalogued quirk of a response, read whole and in pieces."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from tests.wire.reading import TOOLS, catalogue, read_in, ready, wire_bytes

from glassloop.core.entries import Reply
from glassloop.wire.completion import Failure

DECIDED_LATER = {
    "A13": "reasoning becomes the answer only after a retry and a nudge (the error table of the design)",
    "B21": "an unknown name is left as it is; the toolbox answers it",
    "B53": "types are coerced once, in tools/",
    "B55": "types are coerced once, in tools/",
    "C43": "a stream without an end is cut off; the endpoint retries once and then takes the partial text",
    "C77": "an unknown name is left as it is; the toolbox answers it",
    "D72": "the expected content stands for the unchanged text",
    "D73": "an unknown name is left as it is; the toolbox answers it",
}
"""Entries whose outcome is decided in another room, and why."""

ACTIONS_OF_A_FAILURE = {"retry", "raise", "adapt_request"}


def _entries() -> list[Any]:
    try:
        entries = catalogue("ABCDEG")
    except pytest.skip.Exception as absent:
        return [pytest.param([], {}, id="absent", marks=pytest.mark.skip(reason=str(absent)))]
    with_bytes = [(entry, wire_bytes(entry["wire"])) for entry in entries]
    reading = [(entry, writes) for entry, writes in with_bytes if writes and not _of_transport(entry)]
    return [pytest.param(writes, entry, id=entry["id"]) for entry, writes in reading]


def _of_transport(entry: dict[str, Any]) -> bool:
    return entry["family"] == "G" and entry["id"] not in ("G54", "G59")


@pytest.mark.parametrize(("writes", "entry"), _entries())
def test_a_catalogued_response_is_read_as_expected(writes: Sequence[bytes], entry: dict[str, Any]) -> None:
    _, _, outcome = read_in(writes)
    expected = entry["expect"]
    if isinstance(outcome, Failure):
        assert expected["action"] in ACTIONS_OF_A_FAILURE, outcome
        return
    if entry["id"] in DECIDED_LATER:
        return
    assert ready(outcome) == [(call["name"], call["arguments"]) for call in expected["calls"]]
    if expected["content"] is not None:
        assert outcome.text == expected["content"]
    match expected["action"]:
        case "execute":
            assert outcome.tool_calls
            assert all(call.problem is None for call in outcome.tool_calls)
        case "answer":
            assert outcome.text
            assert not outcome.tool_calls
        case "feed_back":
            assert outcome.tool_calls
            assert all(call.problem for call in outcome.tool_calls)
        case "retry" | "adapt_request":
            assert outcome.is_empty


@pytest.mark.parametrize(("writes", "entry"), _entries())
def test_how_the_bytes_were_cut_changes_nothing(writes: Sequence[bytes], entry: dict[str, Any]) -> None:
    body = b"".join(writes)
    whole = read_in([body])
    chance = random.Random(entry["id"])
    for _ in range(5):
        cuts = sorted(chance.choices(range(len(body) + 1), k=chance.randint(1, 30)))
        pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        assert read_in(pieces) == whole
    assert read_in([bytes([byte]) for byte in body]) == whole


@pytest.mark.parametrize("entry_id", sorted(DECIDED_LATER))
def test_what_is_decided_later_loses_nothing_here(entry_id: str) -> None:
    [entry] = [entry for entry in catalogue("ABCD") if entry["id"] == entry_id]
    writes = wire_bytes(entry["wire"])
    assert writes is not None
    text, reasoning, outcome = read_in(writes)
    assert text or reasoning or (isinstance(outcome, Reply) and outcome.tool_calls)
    unknown = [call for call in getattr(outcome, "tool_calls", ()) if call.name not in TOOLS]
    assert all(call.problem is None for call in unknown)


@pytest.mark.parametrize(("writes", "entry"), _entries())
def test_a_body_that_ends_anywhere_runs_no_other_call_than_the_whole(
    writes: Sequence[bytes], entry: dict[str, Any]
) -> None:
    body = b"".join(writes)
    _, _, outcome = read_in([body])
    whole = ready(outcome) if isinstance(outcome, Reply) else []
    chance = random.Random(entry["id"])
    for end in {*chance.choices(range(len(body)), k=20), *range(max(0, len(body) - 20), len(body))}:
        _, _, cut = read_in([body[:end]])
        if isinstance(cut, Failure):
            assert cut.partial is None or ready(cut.partial) == []
        else:
            assert ready(cut) == whole


@pytest.mark.parametrize(("writes", "entry"), _entries())
def test_a_body_with_lost_or_foreign_bytes_is_a_reply_or_a_failure(
    writes: Sequence[bytes], entry: dict[str, Any]
) -> None:
    body = b"".join(writes)
    chance = random.Random(entry["id"])
    for _ in range(8):
        start = chance.randrange(len(body) + 1)
        foreign = chance.choice([b"", b"\0", b"\xff", b'"', b"{", b"]", b"\n\n", b"data: ", b"\\u", body])
        mutant = body[:start] + foreign + body[start + chance.choice([0, 1, 7, 60]) :]
        _, _, outcome = read_in([mutant])
        assert isinstance(outcome, (Reply, Failure))
        failed = outcome if isinstance(outcome, Failure) else None
        assert failed is None or failed.partial is None or ready(failed.partial) == []
