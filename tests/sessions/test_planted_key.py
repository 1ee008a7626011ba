"""A key that everything touches is in nothing that is kept or shown: see also tests/cli/test_sessions.py."""

import asyncio
import logging
import warnings

import pytest
from tests.sessions import kit
from tests.sessions.test_doubts import agent_of, crashed, payer

from glassloop import Agent, tool
from glassloop.core.errors import GlassloopError, SessionError
from glassloop.core.journal import Record
from glassloop.core.resolving import Done
from glassloop.models.scripted import ScriptedModel, call, calls
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store

KEY = "gw-live-7f3a9c2e1b8d4f60"


def files_with_key(folder):
    return [one.name for one in folder.rglob("*") if one.is_file() and KEY.encode() in one.read_bytes()]


def journal_of(path):
    return SqliteJournal(path, secrets=lambda: (KEY,))


def test_a_key_in_task_reply_arguments_result_and_error_is_in_no_file_export_log_or_warning(tmp_path, caplog):
    path = tmp_path / "s.db"

    @tool(effect="once")
    def login(key: str) -> str:
        """Log in."""
        raise ValueError(f"{key} is refused")

    model = ScriptedModel(
        [calls(call("login", key=KEY), text=f"I use {KEY}."), f"The key {KEY} does not work."]
    )
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = Agent(model, tools=[login], journal=journal_of(path)).run_sync(f"Try {KEY}.")
    assert KEY in result.text
    store = Store(path)
    session = result.session.id
    told = [
        store.export_jsonl(session, wire=True),
        store.export_markdown(session),
        store.export_html(session),
        str(store.timeline(session)),
        str(store.search("key")),
        str(store.sessions()),
        caplog.text,
        *(str(one.message) for one in warned),
    ]
    assert "***" in told[0]
    assert [text[:80] for text in told if KEY in text] == []
    assert files_with_key(tmp_path) == []


def test_a_key_in_what_somebody_says_of_a_call_in_doubt_is_not_kept(tmp_path):
    path = tmp_path / "s.db"
    crashed(path, agent_of(payer([])))
    store = Store(path)
    store.resolve_doubt(store.doubts()[0], Done(f"paid with {KEY}", by=f"Ann {KEY}"), secrets=(KEY,))
    assert "paid with ***" in str(store.timeline("session1"))
    assert files_with_key(tmp_path) == []


def test_a_key_in_what_cannot_be_written_is_not_in_the_error(tmp_path):
    async def work():
        journal = journal_of(tmp_path / "s.db")
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, object()), Record(2, kit.task(KEY))])

    with pytest.raises(SessionError) as refused:
        asyncio.run(work())
    assert KEY not in str(refused.value)
    assert isinstance(refused.value, GlassloopError)
