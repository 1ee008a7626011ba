import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.reading import event

from glassloop.wire.sse import ServerEvent, SSEDecoder


def _events(*reads: bytes) -> list[tuple[str, str]]:
    decoder = SSEDecoder()
    events: list[ServerEvent] = []
    for read in reads:
        events += decoder.feed(read)
    return [*events, *decoder.finish()]


A, B = '{"a": 1}', '{"b": 2}'


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (f"data: {A}\n\ndata: {B}\n\n", [("", A), ("", B)]),
        (f"data: {A}\r\n\r\ndata: {B}\r\n\r\n", [("", A), ("", B)]),
        (f"data: {A}\r\rdata: {B}\r\r", [("", A), ("", B)]),
        (f"data: {A}\r\n\ndata: {B}\n\r\n", [("", A), ("", B)]),
        (f"\ufeffdata: {A}\n\n", [("", A)]),
        (f"data:{A}\n\n", [("", A)]),
        (f"data: {A}", [("", A)]),
        (f"data: {A}\n", [("", A)]),
        (f"data: {A}\ndata: {B}\n", [("", A), ("", B)]),
        (f"data: {A}\ndata: [DONE]\n", [("", A), ("", "[DONE]")]),
        (f"data: data: {A}\n\n", [("", A)]),
        (f" data: {A}\n\n", [("", A)]),
        (f": keep-alive\n\n:\ndata: {A}\n: x\n\n", [("", A)]),
        (f"id: 1\nretry: 3\nevent: message\ndata: {A}\n\n", [("message", A)]),
        (f"event: error\ndata: {A}\nevent: x\ndata: {B}\n\n", [("error", A), ("x", B)]),
        (f"event: ping\n\ndata: {A}\n\n", [("", A)]),
        ('data: {\ndata:   "a": 1\ndata: }\n\n', [("", '{\n  "a": 1\n}')]),
        ("data: one\ndata: two\n\n", [("", "one\ntwo")]),
        ("data\n\ndata:\n\nnonsense\n\n", [("", "")]),
        (f"{A}\n{B}\n", [("", A), ("", B)]),
        (f"{A}\n\n{B}", [("", A), ("", B)]),
        ('data: 1\n\n{\n  "error": 2\n}\n', [("", "1"), ("", '{\n  "error": 2\n}')]),
    ],
)  # fmt: skip
def test_events_are_found_however_they_are_written(body: str, events: list[tuple[str, str]]) -> None:
    data = body.encode()
    assert _events(data) == events
    assert _events(*(bytes([byte]) for byte in data)) == events


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: 1\n") == []
    assert decoder.feed(b"\ndata: 2\n\ndata") == [("", "1"), ("", "2")]
    assert decoder.feed(b": 3\n\n") == [("", "3")]


def test_characters_split_over_reads_are_joined_and_invalid_bytes_are_shown() -> None:
    data = "data: 北京\n\n".encode()
    assert _events(data[:7], data[7:8], data[8:]) == [("", "北京")]
    assert _events(b"data: a\xffb\n\n") == [("", "a\ufffdb")]


def test_a_line_may_be_of_any_length() -> None:
    text = "x" * 3_000_000
    assert _events(
        *[f"data: {text}"[start : start + 4096].encode() for start in range(0, 3_000_006, 4096)]
    ) == [("", text)]


_LINES = st.sampled_from(
    [
        "data: " + A,
        "data:" + B,
        A,
        "{",
        "}",
        "event: x",
        ": c",
        "",
        "data: [DONE]",
        "id: 1",
        "data: {",
        "[",
        "]",
        "é",
        " data: 1",
    ]
)


@given(st.lists(st.tuples(_LINES, st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))), st.data())
def test_how_the_bytes_were_cut_changes_nothing(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    body = "".join(line + ending for line, ending in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert _events(*pieces) == _events(body)


@given(
    st.lists(st.sampled_from([": c\n", "\n", ": a: b\n\n", "retry: 1\n\n"])),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_comments_and_line_endings_change_nothing(comments: list[str], ending: str) -> None:
    chunk = event({"content": "x"}).decode()
    body = "".join(comment + chunk for comment in comments).replace("\n", ending)
    assert _events(body.encode()) == [("", chunk[6:].strip())] * len(comments)
