"""What `SqliteJournal` promises a run, with the real file."""

import asyncio
import os
import sqlite3
import stat

import pytest
from tests.sessions import kit

from glassloop.core.entries import Reply, Text, ToolResult
from glassloop.core.errors import SessionError
from glassloop.core.journal import Cancelled, ModelFailed, Record, RunEnd
from glassloop.core.tools import Decision, Verdict
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.sessions.writer import WriterClosed, writer_for


@pytest.fixture
def path(tmp_path):
    return tmp_path / "private" / "sessions.db"


@pytest.fixture
def journal(path):
    made = SqliteJournal(path)
    yield made
    made.close()


def query(path, sql, *values):
    database = sqlite3.connect(path)
    try:
        with database:
            return database.execute(sql, values).fetchall()
    finally:
        database.close()


def test_a_second_run_is_told_everything_that_was_said_before(journal):
    async def work():
        first = await kit.whole_run(journal, "run1")
        assert (first.run_id, first.history, first.records, first.intents) == ("run1", (), (), ())
        return await journal.open(kit.start("run2"))

    opened = asyncio.run(work())
    made = kit.call()
    assert opened.run_id == "run2"
    assert opened.history == (kit.task(), kit.calling(made), kit.result(made), kit.answer())
    assert opened.records == opened.intents == ()


def test_an_unfinished_run_is_continued_with_its_records_in_order_and_its_open_intents(path):
    first, second = kit.call(1), kit.call(2)
    records = [
        Record(1, kit.task(), 0.1),
        Record(2, kit.calling(first, second), 0.2, 0.001),
        Record(3, Verdict(first, "ready", first.arguments, "once", tool_hash="t")),
        Record(4, Verdict(second, "ready", second.arguments, "idempotent")),
        Record(4, kit.result(second), 0.5),  # parallel calls end in any order
    ]

    async def crash_and_resume():
        journal = SqliteJournal(path)
        await kit.whole_run(journal, "run0")
        await journal.open(kit.start("run1"))
        await journal.commit("run1", records[:4])
        await journal.intend("run1", [kit.intent(3, first), kit.intent(4, second, "idempotent")])
        await journal.commit("run1", records[4:])
        return await SqliteJournal(path, take_over=True).open(kit.start("run2"))

    opened = asyncio.run(crash_and_resume())
    assert opened.run_id == "run1"
    assert len(opened.history) == 4
    assert opened.records == tuple(records)
    assert opened.intents == (kit.intent(3, first),)


@pytest.mark.parametrize("reason", ["waiting_approval", "needs_review"])
def test_a_suspended_run_is_continued_and_one_that_ended_is_not(journal, reason):
    async def work():
        await journal.open(kit.start("run1"))
        await journal.commit("run1", [Record(1, kit.task())])
        await journal.finish(RunEnd("run1", reason, ""))
        continued = await journal.open(kit.start("run2"))
        await journal.finish(RunEnd("run1", "cancelled", ""))
        return continued, await journal.open(kit.start("run3"))

    continued, new = asyncio.run(work())
    assert (continued.run_id, continued.records) == ("run1", (Record(1, kit.task()),))
    assert (new.run_id, new.history) == ("run3", (kit.task(),))


def test_a_session_in_use_is_refused_by_the_name_of_its_process(journal, path):
    async def work():
        await journal.open(kit.start("run1"))
        await SqliteJournal(path).open(kit.start("run2"))

    with pytest.raises(
        SessionError, match=rf"session1 is in use by process {os.getpid()} on .+: wait for it"
    ):
        asyncio.run(work())


def test_other_sessions_of_the_same_file_are_free(journal):
    async def work():
        names = [f"s{n}" for n in range(20)]
        await asyncio.gather(*(kit.whole_run(journal, f"run-{name}", name, rounds=3) for name in names))
        return [await journal.open(kit.start(f"again-{name}", name)) for name in names]

    assert {len(opened.history) for opened in asyncio.run(work())} == {8}


def test_who_was_taken_over_can_write_nothing_more(journal, path):
    async def work():
        await journal.open(kit.start("run1"))
        await journal.commit("run1", [Record(1, kit.task())])
        taker = SqliteJournal(path, take_over=True)
        opened = await taker.open(kit.start("run2"))
        assert opened.records == (Record(1, kit.task()),)
        for write in (
            journal.intend("run1", [kit.intent(2, kit.call())]),
            journal.commit("run1", [Record(2, kit.result(kit.call()))]),
            journal.decide("run1", [Record(2, Decision("call00001", True))]),
            journal.finish(RunEnd("run1", "answered", "mine")),
        ):
            with pytest.raises(SessionError, match="taken over by process"):
                await write
        await taker.commit("run1", [Record(2, kit.answer())])
        await taker.finish(RunEnd("run1", "answered", "theirs"))

    asyncio.run(work())
    assert query(path, "SELECT status, text FROM run") == [("done", "theirs")]
    assert query(path, "SELECT type FROM entry") == [("user",), ("reply",)]


def test_a_failed_write_stops_all_later_ones_of_its_run_and_no_other(journal, path):
    async def work():
        await journal.open(kit.start("run1", "s1"))
        await journal.open(kit.start("run2", "s2"))
        await journal.commit("run1", [Record(1, kit.answer())])
        await journal.commit(
            "run1", [Record(1, kit.answer())]
        )  # the same place twice: this cannot be written
        await journal.commit("run2", [Record(1, kit.task())])
        with pytest.raises(SessionError, match="has a reply at 1 already"):
            await journal.commit("run1", [Record(2, kit.result(kit.call()))])
        with pytest.raises(SessionError, match="has a reply at 1 already"):
            await journal.finish(RunEnd("run1", "answered", ""))
        await journal.finish(RunEnd("run2", "answered", "fine"))
        return await journal.open(kit.start("run3", "s1"))

    assert asyncio.run(work()).records == (Record(1, kit.answer()),)
    assert query(path, "SELECT status FROM run ORDER BY run_id") == [("running",), ("done",)]


def test_the_first_result_of_a_call_stands_and_a_call_with_a_result_cannot_begin_again(journal):
    made = kit.call()

    async def work():
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, kit.calling(made)), Record(2, Verdict(made, "ready", {}))])
        await journal.intend("run1", [kit.intent(2, made)])
        await journal.commit("run1", [Record(2, kit.result(made, "first"))])
        await journal.commit("run1", [Record(2, kit.result(made, "second", "refused"))])
        with pytest.raises(SessionError, match="has a result already: it must not run again"):
            await journal.intend("run1", [kit.intent(2, made)])

    asyncio.run(work())
    (found,) = [entry for entry in Store(journal.path).entries("session1") if isinstance(entry, ToolResult)]
    assert found.text == "first"


def test_a_call_that_was_not_judged_cannot_be_intended(journal):
    async def work():
        await journal.open(kit.start())
        with pytest.raises(
            SessionError, match="weather at 2 of run run1 was not prepared: commit its verdict first"
        ):
            await journal.intend("run1", [kit.intent(2, kit.call())])

    asyncio.run(work())


def test_an_intent_written_again_is_a_further_attempt(journal, path):
    made = kit.call()

    async def work():
        await journal.open(kit.start())
        await journal.commit("run1", [Record(2, Verdict(made, "ready", {}, "idempotent"))])
        for _ in range(3):
            await journal.intend("run1", [kit.intent(2, made, "idempotent")])

    asyncio.run(work())
    assert query(path, "SELECT attempt, key FROM entry") == [(3, "key-2")]


@pytest.mark.parametrize(("effect", "transactions"), [("once", 2), ("read", 1)])
def test_a_round_takes_two_transactions_and_one_where_nothing_must_be_intended(
    journal, effect, transactions, monkeypatch
):
    monkeypatch.setattr("glassloop.sessions.inbox.LINGER_SECONDS", 60.0)  # however slow this machine is
    made, statements = kit.call(), []

    async def work():
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, kit.result(kit.call(9)))])
        journal._submit(lambda connection: connection.set_trace_callback(statements.append)).result()
        await journal.commit("run1", [Record(2, kit.calling(made))])
        await journal.commit("run1", [Record(3, Verdict(made, "ready", made.arguments, effect))])
        if effect == "once":
            await journal.intend("run1", [kit.intent(3, made)])
        await journal.commit("run1", [Record(3, kit.result(made))])

    asyncio.run(work())
    # The first COMMIT seen is that of the transaction in which the watching began.
    assert statements.count("COMMIT") == 1 + transactions


def test_a_reply_that_nothing_follows_is_written_all_the_same(journal, path):
    async def work():
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, kit.answer())])
        async with asyncio.timeout(20):
            while not query(path, "SELECT seq FROM entry"):
                await asyncio.sleep(0.01)

    asyncio.run(work())


def test_what_nobody_waits_for_is_written_too_where_it_was_queued_while_the_thread_was_woken(path):
    """Its call to the thread may be taken for that of the urgent work before it."""
    writer = writer_for(path)
    for _ in range(20):
        kit.submit(writer, lambda connection: None, urgent=True)
        assert kit.submit(writer, lambda connection: "written", urgent=False).result(timeout=20) == "written"


def test_what_was_queued_when_its_loop_ended_is_written_when_the_journal_is_closed(journal, path):
    async def work():
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, kit.answer())])

    asyncio.run(work())
    journal.close()
    assert query(path, "SELECT seq FROM entry") == [(1,)]


def test_who_gives_work_to_a_writer_that_was_closed_is_told_and_does_not_wait_for_ever(path):
    writer = writer_for(path)
    writer.close()
    with pytest.raises(WriterClosed):
        kit.submit(writer, lambda connection: None, urgent=True)
    assert writer_for(path) is not writer


def test_what_a_cancelled_wait_has_queued_is_written_all_the_same(journal, path):
    async def work():
        await journal.open(kit.start())
        waiting = asyncio.create_task(journal.commit("run1", [Record(1, kit.result(kit.call()))]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await journal.commit("run1", [Record(2, kit.result(kit.call()))])

    asyncio.run(work())
    assert query(path, "SELECT seq FROM entry") == [(1,), (2,)]


def test_an_opening_that_nobody_waits_for_any_more_gives_the_session_back(journal):
    async def work():
        opening = asyncio.create_task(journal.open(kit.start("run1")))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        return await journal.open(kit.start("run2"))

    assert asyncio.run(work()).run_id in {"run1", "run2"}


def test_everything_that_a_loop_is_fed_can_be_stored(journal):
    made = kit.call()
    values = [
        kit.task(),
        ModelFailed("ContextOverflow", "too long", Reply("half"), 4096),
        kit.calling(made),
        Verdict(made, "ask", {"city": "北京"}, "once", "This would look", "tool-hash"),
        Decision(made.id, False, "not now", "me"),
        kit.result(made, "Not run", "refused"),
        Cancelled("enough"),
    ]
    records = tuple(Record(number, value, number / 2) for number, value in enumerate(values, 1))

    async def work():
        await journal.open(kit.start())
        await journal.decide("run1", records)
        return await SqliteJournal(journal.path, take_over=True).open(kit.start("run2"))

    assert asyncio.run(work()).records == records


def test_large_texts_are_stored_once_however_often_they_come_back(journal, path):
    large = "长文本 " * 30_000

    async def work():
        await journal.open(kit.start())
        for number in range(1, 11):
            await journal.commit("run1", [Record(number, kit.result(kit.call(number), large))])
        await journal.finish(RunEnd("run1", "answered", ""))

    asyncio.run(work())
    assert query(path, "SELECT size FROM blob") == [(len(large.encode()),)]
    assert {entry.text for entry in Store(path).entries("session1")} == {large}
    assert path.stat().st_size < 3 * len(large.encode())


def test_an_agent_that_changed_in_the_middle_of_a_run_is_refused_until_the_change_is_accepted(journal, path):
    async def work(**options):
        await journal.open(kit.start("run1", agent_hash="before"))
        return await SqliteJournal(path, take_over=True, **options).open(
            kit.start("run2", agent="other", agent_hash="after")
        )

    with pytest.raises(
        SessionError, match=r"(?s)defined otherwise.*-agent tester.*\+agent other.*accept_changes=True"
    ):
        asyncio.run(work())
    journal.close()
    assert (
        asyncio.run(
            SqliteJournal(path, take_over=True, accept_changes=True).open(
                kit.start("run2", agent="other", agent_hash="after")
            )
        ).run_id
        == "run1"
    )
    assert query(path, "SELECT agent, agent_hash FROM run") == [("other", "after")]


def test_an_agent_may_change_between_runs(journal):
    async def work():
        await kit.whole_run(journal)
        return await journal.open(kit.start("run2", agent_hash="other"))

    assert asyncio.run(work()).run_id == "run2"


@pytest.mark.parametrize(
    "bad", ["", "../x", "a/b", "'; DROP TABLE op;--", ".hidden", "-flag", "x" * 65, "x" * 10_000, "a\nb", "ü"]
)
@pytest.mark.parametrize("which", ["run", "session"])
def test_ids_that_could_be_anything_else_are_refused(journal, bad, which):
    with pytest.raises(SessionError, match=f"{which} id .* will not do"):
        asyncio.run(journal.open(kit.start(**{which: bad})))


def test_the_file_and_its_folder_are_the_owners_alone(journal, path):
    asyncio.run(kit.whole_run(journal))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()} == {0o600}


def test_writing_to_a_run_that_is_not_open_says_so(journal):
    with pytest.raises(SessionError, match="run nobody is not open here"):
        asyncio.run(journal.commit("nobody", [Record(1, kit.task())]))


def test_what_no_json_can_hold_is_refused_and_names_the_place(journal):
    reply = Reply("x", raw={"when": object()})

    async def work():
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, reply)])

    with pytest.raises(
        SessionError, match="a reply cannot be written down: raw: expected JSON, found <object"
    ):
        asyncio.run(work())


def test_lone_surrogates_and_nan_are_stored_as_what_json_can_say(journal):
    async def work():
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, Reply("a\ud800b", raw={"n": float("nan"), "s": ["\udfff"]}))])
        await journal.finish(RunEnd("run1", "answered", "\ud800"))

    asyncio.run(work())
    assert Store(journal.path).entries("session1") == (Reply("a\ufffdb", raw={"n": "NaN", "s": ["\ufffd"]}),)


def test_text_with_nul_and_quotes_comes_back_as_it_was(journal):
    odd = "a\x00b'; DROP TABLE entry;-- \"\\ \u2028 🙂"

    async def work():
        await kit.whole_run(journal, text=odd)
        return await journal.open(kit.start("run2"))

    assert asyncio.run(work()).history[0].parts == (Text(odd),)


@pytest.mark.parametrize(("effect", "started", "state"), [
    ("read", False, "refused"),
    ("once", False, "refused"),
    ("idempotent", True, "unknown"),
    ("once", True, None),
])  # fmt: skip
def test_a_call_whose_secret_was_not_kept_does_not_run_again_without_it(path, effect, started, state):
    made = kit.call(1, "upload", token="planted-secret-1")

    async def work():
        journal = SqliteJournal(path, secrets=lambda: ["planted-secret-1"])
        await journal.open(kit.start())
        verdict = Verdict(made, "ready", made.arguments, effect)
        await journal.commit("run1", [Record(1, kit.calling(made)), Record(2, verdict, 0.5)])
        await journal.decide("run1", [])
        if started:
            await journal.intend("run1", [kit.intent(2, made, effect)])
        return await SqliteJournal(path, take_over=True).open(kit.start("other"))

    opened = asyncio.run(work())
    results = [one.value.state for one in opened.records if isinstance(one.value, ToolResult)]
    assert results == ([state] if state else [])
    assert [one.seq for one in opened.intents] == ([] if state else [2])
    assert "planted-secret-1" not in repr(opened)
