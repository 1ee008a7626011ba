"""What a replay needs is kept beside a run, goes along when it is given away, and holds no secret."""

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.sessions import kit

from glassloop.core.entries import System
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.core.limits import Limits
from glassloop.core.setup import AgentSetup, EndpointSetup
from glassloop.core.tools import ToolSpec
from glassloop.core.window import Window
from glassloop.sessions import schema, setups
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.replaying import recorded_runs
from glassloop.sessions.store import Store

KEY = "planted-Zq8x7Vt2Lm4Nk6Rp"
URL = "https://h/v1/chat/completions"
ENDPOINT = EndpointSetup(
    "gate:m", "https://h/v1", "m", "gate", learnt={"tool_mode": "text"}, told={"extra": ["a"]}
)
OTHER = EndpointSetup("gate:n", "https://h/v1", "n")
AGENT = AgentSetup(
    (System(f"Be brief. {KEY}"),),
    (ToolSpec("look", "Look at 北京.", {"type": "object", "properties": {"b": {}, "a": {}}}, "read"),),
    {"temperature": 0, "stop": ["x"]},
    Limits(rounds=7, tokens=900),
    Window("trim", size=9000),
    9000,
)


def recorded(path, endpoints, secrets=(KEY,)):
    """A run of as many rounds as endpoints; each is told of before its request goes out."""

    async def work():
        journal = SqliteJournal(path, secrets=lambda: secrets)
        await journal.open(kit.start())
        log = journal.wire_log("run1")
        log.began(AGENT)
        for number, endpoint in enumerate(endpoints):
            log.asking(endpoint)
            log.sent("POST", URL, {"Authorization": KEY}, f'{{"messages": [], "n": {number}}}'.encode())
            log.answered(200, {"content-type": "text/event-stream"})
            log.received("data: 北".encode()[:7])
            log.received("data: 北".encode()[7:] + b"\xff")
            log.ended()
        await kit.whole_run(_Opened(journal), rounds=len(endpoints) - 1)
        journal.close()
        return log.failure

    assert asyncio.run(work()) is None
    return Store(path)


class _Opened:
    """A journal whose run is open already."""

    def __init__(self, journal):
        self._journal = journal

    def __getattr__(self, name):
        return getattr(self._journal, name)

    async def open(self, start):
        return start


@pytest.fixture
def store(tmp_path):
    return recorded(tmp_path / "s.db", [ENDPOINT, ENDPOINT, OTHER])


def test_an_endpoint_is_stored_where_it_is_new_and_known_of_each_exchange(store):
    known = [EndpointSetup.from_json(json.loads(one.endpoint)) for one in store.exchanges("session1")]
    assert known == [ENDPOINT, ENDPOINT, OTHER]
    exported = [json.loads(line) for line in store.export_jsonl("session1", wire=True).split("\n") if line]
    assert [bool(one["endpoint"]) for one in exported if "exchange" in one] == [True, False, True]


def test_an_agent_comes_back_as_it_was_without_its_secrets(store):
    (run,) = recorded_runs(store.path, "session1")
    assert run.agent.preface == (System("Be brief. ***"),)
    assert run.agent.tools == AGENT.tools
    assert list(run.agent.tools[0].parameters["properties"]) == ["b", "a"]
    rest = (run.agent.settings, run.agent.limits, run.agent.window, run.agent.size, run.agent.hint)
    assert rest == (AGENT.settings, AGENT.limits, AGENT.window, AGENT.size, None)
    assert KEY.encode() not in b"".join(path.read_bytes() for path in store.path.parent.iterdir())


def test_an_export_with_its_wire_is_the_same_once_it_was_imported(store, tmp_path):
    text = store.export_jsonl("session1", wire=True)
    other = Store(tmp_path / "other.db")
    imported = other.import_jsonl(text.split("\n"))
    assert other.exchanges(imported) == store.exchanges("session1")
    assert other.export_jsonl(imported, wire=True).split("\n")[1:] == text.split("\n")[1:]
    again = other.import_jsonl(text.split("\n"))
    assert [one.request for one in other.exchanges(again)] == [
        one.request for one in store.exchanges("session1")
    ]
    assert recorded_runs(other.path, again)[0].records == recorded_runs(store.path, "session1")[0].records


def test_an_import_masks_what_went_over_the_wire(store, tmp_path):
    other = Store(tmp_path / "other.db")
    text = store.export_jsonl("session1", wire=True).replace("data: ", "secret-of-mine")
    imported = other.import_jsonl(text.split("\n"), secrets=["secret-of-mine", "gate:m"])
    for one in other.exchanges(imported):
        assert b"secret-of-mine" not in one.response
        assert "gate:m" not in one.endpoint
        assert sum(size for _, size in one.chunks) == len(one.response)


BAD = {
    "an endpoint that is none": ('"endpoint": {"name": "gate:m"', '"endpoint": {"nome": "gate:m"', "no field 'nome'"),
    "a body that is none": ('"response": {"base64"', '"response": {"base46"', "base64"),
    "an exchange of no place": ('"after": 0', '"later": 0', "after"),
    "an exchange of no epoch": ('"epoch": 1', '"epoch": "x"', "a whole number, not 'x'"),
    "an agent that is none": ('"limits": {"rounds"', '"limits": {"rondes"', "rondes"),
    "a run that is not there": ('"exchange": 1, "run": "run1"', '"exchange": 1, "run": "run9"', "run9"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_imported(store, tmp_path, name):
    before, now, words = BAD[name]
    text = store.export_jsonl("session1", wire=True)
    assert before in text
    other = Store(tmp_path / "other.db")
    with pytest.raises(SessionError, match=rf"line \d+ of the export cannot be read: .*{words}"):
        other.import_jsonl(text.replace(before, now, 1).split("\n"))
    assert other.sessions() == []


def test_a_session_of_an_older_glassloop_can_be_shown_but_not_replayed(tmp_path):
    shutil.copy(Path(__file__).parent / "released" / "schema-1.db", tmp_path / "s.db")
    (tmp_path / "s.db").chmod(0o600)  # which a clone does not keep
    store = Store(tmp_path / "s.db")
    for session in store.sessions():
        assert all(one.endpoint == "" for one in store.exchanges(session.session_id))
        with pytest.raises(SessionError, match="can be shown, not replayed"):
            recorded_runs(store.path, session.session_id)


def test_what_an_older_glassloop_recorded_is_told_apart_by_its_clock_and_its_beginnings(tmp_path):
    """Two entries; an exchange before each of them, and one that a process which died left behind."""
    path = tmp_path / "s.db"
    kit.written(path)
    exchange = (
        "INSERT INTO exchange(run_id, n, method, url, request_headers, base, shared, request, response_headers, "
        "response, chunks, started_ms, ended_ms) VALUES ('run1', ?, 'POST', '', '{}', ?, 0, x'', '{}', x'', '[]', ?, 0)"
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE entry SET at_ms = 100 * seq")
        for column in ("after_seq", "epoch", "agent"):
            connection.execute(f"ALTER TABLE exchange DROP COLUMN {column}")
        connection.execute("ALTER TABLE run DROP COLUMN command")
        for column in ("attempt", "key", "epoch", "started_ms"):
            connection.execute(f"ALTER TABLE entry DROP COLUMN {column}")
        connection.execute(next(one for one in schema.MIGRATIONS[0] if "CREATE TABLE op(" in one))
        for number, (base, started) in enumerate([(None, 110), (None, 120), (2, 310)], 1):
            connection.execute(exchange, (number, base, started))
        connection.execute("UPDATE meta SET v = '2' WHERE k = 'schema_version'")
    assert [(one.after, one.epoch) for one in Store(path).exchanges("session1")] == [(1, 1), (1, 2), (3, 2)]


def test_a_stored_agent_that_is_damaged_is_said_to_be(store):
    with pytest.raises(SessionError, match="a run's stored agent is damaged"):
        setups.agent_of('{"preface": [], "tools": [{"nome": 1}]}')


def test_a_definition_that_no_json_can_hold_does_not_hurt_the_run(tmp_path):
    async def work():
        journal = SqliteJournal(tmp_path / "s.db")
        await journal.open(kit.start())
        log = journal.wire_log("run1")
        log.began(AgentSetup(settings={"temperature": float("nan"), "odd": {1, 2}}))
        await kit.whole_run(_Opened(journal))
        journal.close()
        return log.failure

    assert isinstance(asyncio.run(work()), SessionError)
    assert len(Store(tmp_path / "s.db").entries("session1")) == 4


def test_an_agent_that_took_a_run_up_is_stored_though_its_first_exchange_could_not_be(tmp_path, monkeypatch):
    path = tmp_path / "s.db"

    def fails(*_):
        raise sqlite3.OperationalError("disk I/O error")

    async def exchange(log):
        log.sent("POST", URL, {}, b"{}")
        log.answered(200, {})
        log.ended()

    async def work():
        journal = SqliteJournal(path, accept_changes=True)
        await journal.open(kit.start())
        journal.wire_log("run1").began(AGENT)
        await journal.finish(RunEnd("run1", "waiting_approval", ""))
        await journal.open(kit.start(agent_hash="hash2"))
        log = journal.wire_log("run1")
        log.began(AgentSetup(hint="another"))
        with monkeypatch.context() as broken:
            broken.setattr("glassloop.sessions.wire_log.insert", fails)
            await exchange(log)
            await journal.decide("run1", [Record(1, kit.task())])
        await exchange(log)
        await exchange(log)
        journal.close()

    asyncio.run(work())
    assert [bool(one.agent) for one in Store(path).exchanges("session1")] == [True, True]
