"""The wire as it is kept: everything but the secrets, and a command that sends it again."""

import asyncio
import json
import sqlite3
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sessions import kit

from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.core.tools import Verdict
from glassloop.sessions import masking
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.sessions.wire_log import curl

KEY = "planted-Zq8x7Vt2Lm4Nk6Rp"
URL = "https://api.example.com/v1/chat/completions"
SENT = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "X-Title": "我的"}


def logged(path, *exchanges, secrets=(KEY,)):
    """A run with these exchanges, each a (request body, answer's chunks, error); read back."""

    async def work():
        journal = SqliteJournal(path, secrets=lambda: secrets)
        await journal.open(kit.start())
        log = journal.wire_log("run1")
        await journal.commit("run1", [Record(1, kit.task())])
        for body, chunks, error in exchanges:
            log.sent("POST", URL, SENT, body)
            log.answered(200, {"content-type": "text/event-stream", "set-cookie": "session=abc"})
            for chunk in chunks:
                log.received(chunk)
            log.ended(error)
        await journal.finish(RunEnd("run1", "answered", ""))
        journal.close()
        assert log.failure is None

    asyncio.run(work())
    return Store(path).exchanges("session1")


def holds_key(path, key=KEY):
    return any(key.encode() in one.read_bytes() for one in path.parent.iterdir() if one.is_file())


def test_an_exchange_is_kept_as_it_went_by(tmp_path):
    body = '{"messages": [{"role": "user", "content": "你好"}]}'.encode()
    (one,) = logged(tmp_path / "s.db", (body, [b"data: {}\n", b"\ndata: [DONE]\n\n"], None))
    assert (one.n, one.method, one.url, one.request, one.status) == (1, "POST", URL, body, 200)
    assert one.response == b"data: {}\n\ndata: [DONE]\n\n"
    assert [size for _, size in one.chunks] == [9, 15]
    assert (one.after, one.epoch) == (1, 1)
    assert one.request_headers["X-Title"] == "我的"
    assert one.request_headers["Authorization"] == "***"
    assert one.response_headers["set-cookie"] == "***"
    assert one.started_ms <= one.ended_ms


def test_requests_that_grow_are_stored_by_what_is_new_and_come_back_whole(tmp_path):
    path = tmp_path / "s.db"
    messages = [{"role": "user", "content": f"message {n} " + "x" * 500} for n in range(60)]
    bodies = [json.dumps({"messages": messages[: n + 1], "tools": []}).encode() for n in range(60)]
    found = logged(path, *((body, [b"ok"], None) for body in bodies))
    assert [one.request for one in found] == bodies
    assert path.stat().st_size < sum(map(len, bodies)) / 4


def test_an_exchange_without_an_end_is_over_when_the_next_begins(tmp_path):
    async def work():
        journal = SqliteJournal(tmp_path / "s.db")
        await journal.open(kit.start())
        log = journal.wire_log("run1")
        await journal.commit("run1", [Record(1, kit.task())])
        log.received(b"nobody asked")
        log.sent("POST", URL, {}, b"1")
        log.sent("POST", URL, {}, b"2")
        log.ended("connection reset")
        await journal.finish(RunEnd("run1", "failed", ""))

    asyncio.run(work())
    found = Store(tmp_path / "s.db").exchanges("session1")
    assert [(one.request, one.status, one.error) for one in found] == [
        (b"1", None, "no end was reported"),
        (b"2", None, "connection reset"),
    ]


def test_one_that_cannot_be_stored_does_not_hurt_the_run_or_the_next(tmp_path):
    path = tmp_path / "s.db"

    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start())
        log = journal.wire_log("run1")
        await journal.commit("run1", [Record(1, kit.task())])
        for number, body in enumerate((b"abc 1", b"abc 2", b"abc 3")):
            log.sent("POST", URL if number != 1 else object(), {}, body)  # a wrong type for once
            log.ended()
        await journal.commit("run1", [Record(2, kit.result(kit.call()))])
        await journal.finish(RunEnd("run1", "answered", ""))
        return log.failure

    assert isinstance(asyncio.run(work()), SessionError)
    assert [one.request for one in Store(path).exchanges("session1")] == [b"abc 1", b"abc 3"]


def in_two_events(place):
    """The key as two pieces of one streamed text."""
    event = 'data: {{"choices": [{{"delta": {{"content": "{}"}}}}]}}\n\n'
    return [event.format(half).encode() for half in (KEY[:place], KEY[place:])]


def in_one_body(place):
    """The key in one text that arrived in two chunks."""
    return [b'{"content": "' + KEY[:place].encode(), KEY[place:].encode() + b'"}']


@given(st.integers(1, len(KEY) - 1))
def test_a_key_cannot_be_put_together_from_the_events_of_a_stream(place):
    stored = masking.body(b"".join(in_two_events(place)), (KEY,)).decode()
    events = [json.loads(line[6:]) for line in stored.split("\n") if line.startswith("data")]
    assert "".join(event["choices"][0]["delta"]["content"] for event in events) == "***"


@pytest.mark.parametrize("pieces", [in_two_events(7), in_one_body(7), in_one_body(1)])
def test_a_key_split_over_two_chunks_is_not_in_the_file(tmp_path, pieces):
    path = tmp_path / "s.db"
    (one,) = logged(path, (KEY.encode(), pieces, f"refused {KEY}"))
    assert b"***" in one.response
    assert (one.request, one.error) == (b"***", "refused ***")
    assert KEY[7:].encode() not in one.response
    assert not holds_key(path)


def test_events_without_a_secret_stay_byte_for_byte(tmp_path):
    body = b'data: {"choices":[{"delta":{"content":"sk"}}]}\r\n\r\ndata:{"a" : 1}\n\n: ping\n\ndata: not json\n\ndata: [DONE]\n\n\xff'
    assert masking.body(body, (KEY,)) == body
    (one,) = logged(tmp_path / "s.db", (b"", [body], None))
    assert one.response == body


@pytest.mark.parametrize(("url", "kept"), [
    ("https://h/v1?key=AbC123&x=1", "https://h/v1?key=***&x=1"),
    ("https://h/v1?api-version=2&api_key=abc", "https://h/v1?api-version=2&api_key=***"),
    ("https://user:secretpass@h/v1", "https://user:***@h/v1"),
    (f"https://h/{KEY}/v1", "https://h/***/v1"),
    ("https://h/v1?monkey=banana", "https://h/v1?monkey=banana"),
])  # fmt: skip
def test_keys_in_addresses_are_masked(url, kept):
    assert masking.address(url, (KEY,)) == kept


def test_a_planted_key_is_nowhere_in_the_file_or_in_what_is_made_of_it(tmp_path):
    path = tmp_path / "s.db"
    made = kit.call(1, "shell", command=f"curl -H 'Authorization: Bearer {KEY}'")

    async def work():
        journal = SqliteJournal(path, secrets=lambda: (KEY,))
        await journal.open(kit.start())
        log = journal.wire_log("run1")
        await journal.commit("run1", [Record(1, kit.task(f"use {KEY} please"))])
        log.sent("POST", f"{URL}?key={KEY}", SENT, json.dumps({"text": KEY}).encode())
        log.answered(401, {"x-echo": KEY})
        log.received(f'{{"error": "bad key {KEY}"}}'.encode())
        log.ended(f"401: {KEY}")
        await journal.commit(
            "run1", [Record(2, kit.calling(made)), Record(3, Verdict(made, "ready", made.arguments))]
        )
        await journal.intend("run1", [kit.intent(3, made)])
        await journal.commit("run1", [Record(3, kit.result(made, f"env: {KEY} " * 9000))])
        await journal.finish(RunEnd("run1", "failed", f"text {KEY}", f"error {KEY}"))
        journal.close()

    asyncio.run(work())
    store = Store(path)
    assert not holds_key(path)
    exported = [
        store.export_jsonl("session1", wire=True),
        store.export_markdown("session1"),
        store.export_html("session1"),
        *map(curl, store.exchanges("session1")),
        repr(store.sessions()),
        repr(store.search("please")),
    ]
    assert [text for text in exported if KEY in text] == []
    assert all("***" in text or "$API_KEY" in text for text in exported[:4])


def test_curl_really_sends_the_same_request_again(tmp_path):
    seen = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            seen.append((self.path, body, dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    body = """{"messages": [{"content": "it's $HOME `id` \\"q\\" 你好 %s \\\\n '''"}]}""".encode()
    log_url = f"http://127.0.0.1:{server.server_port}/v1/chat?key=abc&x='y'"

    async def work():
        journal = SqliteJournal(tmp_path / "s.db")
        await journal.open(kit.start())
        log = journal.wire_log("run1")
        await journal.commit("run1", [Record(1, kit.task())])
        log.sent("POST", log_url, {**SENT, "api-key": "x", "X-Odd": "it's $HOME"}, body)
        log.ended()
        await journal.finish(RunEnd("run1", "answered", ""))

    asyncio.run(work())
    (one,) = Store(tmp_path / "s.db").exchanges("session1")
    done = subprocess.run(
        ["sh", "-c", curl(one, "MY_KEY")],
        env={"MY_KEY": "k1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=20,
    )
    server.shutdown()
    server.server_close()
    assert done.stderr == b""
    ((path, got, headers),) = seen
    assert got == body
    assert path.startswith("/v1/chat?key=k1&x=")
    assert headers["Authorization"] == "Bearer k1"
    assert headers["api-key"] == "k1"
    assert headers["X-Odd"] == "it's $HOME"


def test_the_name_of_the_variable_cannot_be_a_command(tmp_path):
    (one,) = logged(tmp_path / "s.db", (b"{}", [b"ok"], None))
    with pytest.raises(SessionError, match="cannot be the name of a variable"):
        curl(one, "X; rm -rf ~")


def test_a_damaged_exchange_is_said_to_be_damaged(tmp_path):
    path = tmp_path / "s.db"
    logged(path, (b"a", [b"b"], None))
    for column, value in (("request_headers", "[1]"), ("chunks", '"x"'), ("chunks", "{}}"), ("base", 77)):
        database = sqlite3.connect(path)
        with database:
            database.execute(f"UPDATE exchange SET {column} = ?", (value,))
        database.close()
        with pytest.raises(SessionError, match="exchange 1 of run run1 is damaged"):
            Store(path).exchanges("session1")
