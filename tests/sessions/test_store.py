"""What people do with their sessions."""

import asyncio
import json
import math
import sqlite3

import pytest
from tests.sessions import kit
from tests.simulator.sendable import problems

from glassloop.core.entries import Reply, Text, ToolResult, User
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record, RunEnd
from glassloop.core.tools import Decision, Verdict
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.db"


def conversation(path, *texts, session="session1"):
    """One session in which these were the tasks, each answered with "answer to …"."""

    async def work():
        journal = SqliteJournal(path)
        for number, text in enumerate(texts):
            await kit.whole_run(
                journal, f"{session}-run{number}", session, text=text, reply=f"answer to {text}"
            )
        journal.close()

    asyncio.run(work())
    return Store(path)


def opened(path, session="session1", run="next"):
    async def work():
        journal = SqliteJournal(path)
        found = await journal.open(kit.start(run, session))
        await journal.finish(RunEnd(found.run_id, "answered", ""))
        return found

    return asyncio.run(work())


def tasks(entries):
    return [entry.text for entry in entries if isinstance(entry, User)]


def count(path, table):
    database = sqlite3.connect(path)
    try:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    finally:
        database.close()


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def test_sessions_are_listed_the_last_used_first_with_what_tells_them_apart(path):
    kit.written(path, "a", "b", "c", folder="/home/me/project")
    store = Store(path)
    store.rename("b", "the  weather")
    store.set_labels("b", ["work", "keep", "work"])
    assert [one.session_id for one in store.sessions()] == ["c", "b", "a"]
    found = store.info("b")
    assert (found.name, found.labels, found.folder, found.runs, found.state) == (
        "the weather", ("keep", "work"), "/home/me/project", 1, "idle",
    )  # fmt: skip
    assert found.title == "What is the weather in 北京?"
    assert [one.session_id for one in store.sessions(label="keep")] == ["b"]
    assert store.last("/home/me/project").session_id == "c"
    assert store.last("/elsewhere") is None


@pytest.mark.parametrize(("said", "meant"), [("abc-1", "abc-1"), ("abd", "abd-1"), ("my name", "abc-2")])
def test_a_session_is_named_by_its_id_the_beginning_of_it_or_its_name(path, said, meant):
    store = kit.written(path, "abc-1", "abc-2", "abd-1")
    store.rename("abc-2", "my name")
    assert store.resolve(said) == meant


@pytest.mark.parametrize(("said", "words"), [
    ("abc", "is the beginning of several sessions: abc-2, abc-1"),
    ("x", "there is no session 'x'"),
    ("", "there is no session ''"),
    ("%", "there is no session '%'"),
])  # fmt: skip
def test_a_reference_to_none_or_several_says_so(path, said, words):
    store = kit.written(path, "abc-1", "abc-2")
    with pytest.raises(SessionError, match=words):
        store.resolve(said)


def test_two_sessions_cannot_have_one_name(path):
    store = kit.written(path, "a", "b")
    store.rename("a", "same")
    with pytest.raises(SessionError, match="another session is named 'same'"):
        store.rename("b", "same")
    store.rename("a", "")
    store.rename("b", "same")
    with pytest.raises(SessionError, match="printable"):
        store.rename("b", "bell \a")


def test_a_timeline_tells_rounds_times_tokens_and_cost(path):
    found = kit.written(path).timeline("session1")
    assert [(step.kind, step.round) for step in found.steps] == [
        ("user", 0), ("reply", 1), ("verdict", 1), ("tool_result", 1), ("reply", 2),
    ]  # fmt: skip
    (run,) = found.runs
    assert (run.rounds, run.calls, run.usage.total_tokens, run.model) == (2, 1, 39, "m-1")
    assert run.cost == pytest.approx(0.003)
    assert (run.status, run.stop_reason) == ("done", "answered")
    assert [step.kind for step in found.round(1)] == ["reply", "verdict", "tool_result"]
    assert found.round(3) == ()


def test_rounds_are_counted_through_the_session_wherever_they_are_shown(path):
    store = conversation(path, "first", "second")
    found = store.timeline("session1")
    assert [step.round for step in found.steps if step.kind == "reply"] == [1, 2, 3, 4]
    assert {step.run_id for step in found.round(3)} == {"session1-run1"}
    assert "## Round 3" in store.export_markdown("session1")
    assert "Round 3<" in store.export_html("session1")


SAID = {
    "chinese": "明天上海的天气怎么样？请用中文回答。",
    "english": "Where is Café Müller? Ask the concierge about lighthouses.",
    "wide": "ＡＢＣ　ｔｅｓｔ と ﾃｽﾄ",
    "korean": "서울의 날씨를 알려 주세요",
    "thai": "อากาศที่กรุงเทพ",
    "code": "def compute_total(items): return sum(items)",
}


@pytest.mark.parametrize(("query", "found"), [
    ("天气", ["chinese"]),
    ("上海", ["chinese"]),
    ("海上", []),
    ("上海 回答", ["chinese"]),
    ("天", ["chinese"]),
    ("cafe muller", ["english"]),
    ("light", ["english"]),
    ("concierge 天气", []),
    ("abc test", ["wide"]),
    ("テスト", ["wide"]),
    ("날씨", ["korean"]),
    ("กรุงเทพ", ["thai"]),
    ("compute_total", ["code"]),
    ("sum(items)", ["code"]),
    ("", []),
    ("?!", []),
])  # fmt: skip
def test_every_word_of_a_query_is_found_in_any_script(tmp_path_factory, query, found):
    store = _said(tmp_path_factory)
    assert sorted({hit.session_id for hit in store.search(query)}) == found


_made: list[Store] = []


def _said(tmp_path_factory):
    if not _made:
        path = tmp_path_factory.mktemp("search") / "s.db"

        async def work():
            journal = SqliteJournal(path)
            for name, text in SAID.items():
                await kit.whole_run(journal, f"run-{name}", name, text=text)
            journal.close()

        asyncio.run(work())
        _made.append(Store(path))
    return _made[0]


def test_calls_results_and_answers_are_searched_and_a_hit_shows_where(path):
    store = conversation(path, "first " + "filler " * 100 + "needle in it", "second")
    hits = store.search("needle")
    assert sorted(hit.kind for hit in hits) == ["reply", "user"]
    hit = next(hit for hit in hits if hit.kind == "user")
    assert hit.session_id == "session1"
    assert "filler needle in it" in hit.snippet
    assert hit.snippet.startswith("… ")
    assert {hit.kind for hit in store.search("weather 北京")} == {"reply"}
    assert {hit.kind for hit in store.search("21")} == {"tool_result"}


def test_what_was_said_a_moment_ago_is_found_although_the_run_goes_on(path):
    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start())
        await journal.commit(
            "run1", [Record(1, kit.task("urgent matter")), Record(2, kit.result(kit.call()))]
        )
        return Store(path).search("urgent")

    assert len(asyncio.run(work())) == 1


# ── branches ─────────────────────────────────────────────────────────────────────────────────────────


def test_undo_goes_back_before_the_last_task_and_gives_its_text(path):
    store = conversation(path, "one", "two", "three")
    assert store.undo("session1") == "three"
    assert tasks(store.entries("session1")) == ["one", "two"]
    assert store.undo("session1", 2) == "one"
    assert store.entries("session1") == ()
    with pytest.raises(SessionError, match="has 0 tasks: cannot go back by 1"):
        store.undo("session1")


def test_what_was_undone_stays_as_a_branch_and_can_be_gone_back_to(path):
    store = conversation(path, "one", "two")
    before = store.entries("session1")
    store.undo("session1")
    opened(path)
    conversation(path, "other", session="session2")
    first, second = store.branches("session1")
    assert [(one.last_task, one.head) for one in (second, first)] == [("two", False), ("one", True)]
    store.rewind("session1", second.entry_id)
    assert store.entries("session1") == before


def test_a_fork_shares_what_was_said_and_goes_its_own_way(path):
    store = conversation(path, "one", "two")
    forked = store.fork("session1")
    assert store.entries(forked) == store.entries("session1")
    rows = count(path, "entry")
    opened(path, forked)

    async def work():
        journal = SqliteJournal(path)
        await kit.whole_run(journal, "elsewhere", forked, text="three")
        journal.close()

    asyncio.run(work())
    assert tasks(store.entries(forked)) == ["one", "two", "three"]
    assert tasks(store.entries("session1")) == ["one", "two"]
    assert count(path, "entry") == rows + 5
    assert store.info(forked).forked_from == "session1"


def test_a_fork_or_a_rewind_never_ends_between_a_call_and_its_result(path):
    store = conversation(path, "one", "two")
    for step in store.timeline("session1").steps:
        entries = store.entries(store.fork("session1", step.entry_id))
        asked = [call.id for one in entries if isinstance(one, Reply) for call in one.tool_calls]
        answered = [one.call_id for one in entries if isinstance(one, ToolResult)]
        assert asked == answered


def test_only_entries_of_the_sessions_own_tree_can_be_gone_to(path):
    conversation(path, "one")
    store = conversation(path, "other", session="session2")
    with pytest.raises(SessionError, match="session1 has no entry 7"):
        store.rewind("session1", 7)
    with pytest.raises(SessionError, match="has no entry 999"):
        store.fork("session1", 999)


def test_a_fork_of_an_unfinished_run_does_not_continue_it(path):
    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start("run1"))
        await journal.commit("run1", [Record(1, kit.task("one")), Record(2, kit.calling(kit.call()))])
        await journal.decide("run1", [])
        forked = Store(path).fork("session1", new_id="forked")
        return await journal.open(kit.start("run2", forked))

    found = asyncio.run(work())
    assert (found.run_id, found.records) == ("run2", ())
    assert found.history == (kit.task("one"),)


def test_a_rewind_ends_a_run_that_was_suspended(path):
    async def work():
        journal = SqliteJournal(path)
        await kit.whole_run(journal, "run0", text="zero")
        await journal.open(kit.start("run1"))
        await journal.commit("run1", [Record(1, kit.task("one")), Record(2, kit.result(kit.call()))])
        await journal.finish(RunEnd("run1", "needs_review", ""))
        journal.close()

    asyncio.run(work())
    store = Store(path)
    assert store.info("session1").state == "needs_review"
    assert store.undo("session1") == "one"
    assert store.info("session1").state == "idle"
    found = opened(path)
    assert (found.run_id, tasks(found.history)) == ("next", ["zero"])


def test_a_session_in_use_can_be_read_and_forked_but_not_moved_or_deleted(path):
    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, kit.task("one")), Record(2, kit.result(kit.call()))])
        store = Store(path)
        assert store.info("session1").state == "running"
        assert store.info("session1").holder.startswith("process ")
        assert tasks(store.entries("session1")) == ["one"]
        store.fork("session1")
        for act in (
            lambda: store.undo("session1"),
            lambda: store.rewind("session1", 1),
            lambda: store.delete("session1"),
        ):
            with pytest.raises(SessionError, match="session session1 is in use by process"):
                act()

    asyncio.run(work())


# ── deleting ─────────────────────────────────────────────────────────────────────────────────────────


def test_deleting_leaves_nothing_of_a_session(path):
    store = conversation(path, "secret plan " + "x" * 100_000)
    conversation(path, "other", session="session2")
    assert count(path, "blob") == 2
    store.delete("session1")
    assert [one.session_id for one in store.sessions()] == ["session2"]
    assert (count(path, "blob"), count(path, "blob_use")) == (0, 0)
    assert store.search("secret") == []
    assert len(store.search("other")) == 2
    conversation(path, "new words", session="session3")
    assert len(store.search("words")) == 2


def test_deleting_a_session_keeps_what_its_forks_share_with_it(path):
    store = conversation(path, "one", "two")
    steps = store.timeline("session1").steps
    forked = store.fork("session1", steps[4].entry_id, "forked")
    again = store.fork(forked, new_id="again")
    store.delete("session1")
    assert tasks(store.entries(forked)) == ["one"]
    assert {hit.session_id for hit in store.search("one")} == {"forked"}
    assert store.search("two") == []
    store.delete(forked)
    assert tasks(store.entries(again)) == ["one"]
    assert store.info(again).forked_from == ""
    store.delete(again)
    assert [count(path, table) for table in ("session", "run", "entry", "words")] == [0] * 4


def test_pruning_spares_what_somebody_cares_for(path):
    store = kit.written(path, "old1", "old2", "named", "labelled", "waiting", "recent")
    store.rename("named", "mine")
    store.set_labels("labelled", ["keep"])

    async def suspend():
        journal = SqliteJournal(path)
        await journal.open(kit.start("w", "waiting"))
        await journal.finish(RunEnd("w", "waiting_approval", ""))
        await kit.whole_run(journal, "r", "recent")
        journal.close()

    asyncio.run(suspend())
    later = store.info("recent").updated_ms + 1
    would = store.prune(before_ms=later, keep=1, dry_run=True)
    assert [one.session_id for one in would] == ["old2", "old1"]
    assert len(store.sessions()) == 6
    assert store.prune(before_ms=later, keep=1) == would
    assert sorted(one.session_id for one in store.sessions()) == ["labelled", "named", "recent", "waiting"]
    assert store.prune(before_ms=0) == []


# ── questions ────────────────────────────────────────────────────────────────────────────────────────


def asking(path, *, reason="waiting_approval"):
    """A run that asked about a call and was suspended."""
    made = kit.call(1, "send_mail", to="you")

    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start())
        verdict = Verdict(made, "ask", made.arguments, "once", "send a mail to you", "tool-hash")
        await journal.commit(
            "run1", [Record(1, kit.task()), Record(2, kit.calling(made)), Record(3, verdict, 1.5)]
        )
        await journal.finish(RunEnd("run1", reason, ""))
        journal.close()

    asyncio.run(work())
    return Store(path)


@pytest.mark.parametrize("allowed", [True, False])
def test_an_answer_given_while_nobody_runs_is_used_when_the_run_goes_on(path, allowed):
    store = asking(path)
    (question,) = store.questions()
    assert (question.shown, question.seq, question.session_id) == ("send a mail to you", 3, "session1")
    store.answer(question, allowed=allowed, by="me", reason="because")
    store.answer(question, allowed=allowed, by="me again")
    assert store.questions() == []
    found = opened(path)
    assert found.run_id == "run1"
    assert found.records[-1] == Record(3, Decision("call00001", allowed, "because", "me"), 1.5)


def test_an_answer_is_used_once(path):
    store = asking(path)
    store.answer(store.questions()[0], allowed=True, by="me")

    async def work():
        journal = SqliteJournal(path)
        for _ in range(3):
            found = await journal.open(kit.start("again"))
            await journal.finish(RunEnd("run1", "needs_review", ""))
        return found

    decisions = [one for one in asyncio.run(work()).records if isinstance(one.value, Decision)]
    assert len(decisions) == 1


def test_a_live_run_is_answered_where_it_asks(path):
    store = asking(path)
    (question,) = store.questions()

    async def work():
        await SqliteJournal(path).open(kit.start("again"))
        with pytest.raises(SessionError, match="in use by process"):
            store.answer(question, allowed=True, by="me")

    asyncio.run(work())


def test_a_very_long_task_has_a_title_all_the_same(path):
    assert (
        conversation(path, "Look at this: " + "x" * 200_000)
        .info("session1")
        .title.startswith("Look at this: xx")
    )


def test_answers_that_do_not_fit_are_refused(path):
    store = asking(path)
    (question,) = store.questions()
    for changed in ("args_hash", "tool_hash"):
        other = type(question)(
            **{name: getattr(question, name) for name in question.__slots__} | {changed: "other"}
        )
        with pytest.raises(SessionError, match="about other arguments or another tool"):
            store.answer(other, allowed=True, by="me")
    store.answer(question, allowed=False, by="me")
    with pytest.raises(SessionError, match="was decided already: deny"):
        store.answer(question, allowed=True, by="me")


def test_a_run_that_is_over_takes_no_answers(path):
    store = asking(path)
    (question,) = store.questions()
    store.undo("session1")
    assert store.questions() == []
    with pytest.raises(SessionError, match="run run1 is over: it takes no more answers"):
        store.answer(question, allowed=True, by="me")


# ── export ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_export_is_read_back_into_an_equal_session(path, tmp_path):
    store = conversation(path, "one " + "长" * 40_000, "two")
    text = store.export_jsonl("session1")
    first, *rest = text.splitlines()
    assert first.startswith('{"format": "glassloop-session", "version": 1,')
    other = Store(tmp_path / "other.db")
    imported = other.import_jsonl(text.splitlines())
    assert imported == "session1"
    assert other.entries(imported) == store.entries("session1")
    assert other.export_jsonl(imported).splitlines()[1:] == rest
    again = other.import_jsonl(text.splitlines())
    assert again != imported
    assert other.entries(again) == store.entries("session1")
    assert opened(other.path, again).history == store.entries("session1")
    assert {hit.session_id for hit in other.search("answer two")} == {imported, again}


@pytest.mark.parametrize(("lines", "words"), [
    ([], "no exported session"),
    (["{}"], "no exported session"),
    (["not json"], "line 1 of the export is no JSON"),
    (["[]"], "line 1 of the export is no object"),
    (["[" * 100_000], "line 1 of the export is no JSON"),
    (['{"format": "glassloop-session", "version": 2}'], "version 2; this Glassloop reads version 1"),
    (['{"format": "glassloop-session", "version": 1}', '{"entry": "user"}'], "line 2"),
    (['{"format": "glassloop-session", "version": 1}', '{"run": "r"}', '{"entry": "os.system", "run": "r", "seq": 1, "value": {}}'], "line 3 .*unknown type"),
    (['{"format": "glassloop-session", "version": 1}', '{"run": "r"}', '{"entry": "user", "run": "r", "seq": "x", "value": {"parts": []}}'], "line 3"),
    (['{"format": "glassloop-session", "version": 1}', '{"run": "r"}', '{"entry": "user", "run": "r", "seq": 1, "value": {"parts": [{"type": "text", "text": {"blob": "x"}}]}}'], "an export holds none"),
    (['{"format": "glassloop-session", "version": 1}', '{"run": "r", "started_ms": "soon"}', '{"entry": "user", "run": "r", "seq": 1e400, "value": {"parts": []}}'], "line 3"),
])  # fmt: skip
def test_what_is_no_export_is_refused_by_its_line_and_leaves_nothing(path, lines, words):
    store = Store(path)
    with pytest.raises(SessionError, match=words):
        store.import_jsonl(lines)
    assert store.sessions() == []


def test_hostile_ids_in_an_export_become_new_ones(path):
    lines = [
        '{"format": "glassloop-session", "version": 1, "session_id": "../../x", "title": "t"}',
        '{"run": "\'; DROP TABLE run;--", "status": "running"}',
        '{"entry": "user", "run": "\'; DROP TABLE run;--", "seq": 1, "value": {"parts": [{"type": "text", "text": "hi"}]}}',
    ]
    store = Store(path)
    made = store.import_jsonl(lines)
    assert made.isalnum()
    found = store.timeline(made)
    assert [run.status for run in found.runs] == ["cancelled"]
    assert tasks(store.entries(made)) == ["hi"]


def exported(*entries):
    """An export of one run, by what is said in it: (type, seq, value), and what stands beside them."""
    lines = [{"format": "glassloop-session", "version": 1}, {"run": "r"}]
    lines += [
        {"entry": kind, "run": "r", "seq": seq, "value": value, **rest} for kind, seq, value, rest in entries
    ]
    return [json.dumps(line) for line in lines]


def said(seq, **rest):
    return "user", seq, {"parts": [{"type": "text", "text": "hi"}]}, rest


def asked(seq, *ids):
    made = [{"id": one, "name": "act", "arguments": {}, "text": "{}"} for one in ids]
    return "reply", seq, {"text": "Calling.", "tool_calls": made}, {}


def judged(seq, made, outcome="ready", effect="once"):
    named = {"id": made, "name": "act", "arguments": {}, "text": "{}"}
    return "verdict", seq, {"call": named, "outcome": outcome, "effect": effect}, {}


def allowed(seq, made):
    return "decision", seq, {"call_id": made, "allowed": True}, {}


def had(seq, made):
    return "tool_result", seq, {"call_id": made, "name": "act", "parts": [{"type": "text", "text": "ok"}]}, {}


@pytest.mark.parametrize(("entries", "states"), [
    ([said(1), asked(2, "a", "b"), judged(3, "a"), judged(4, "b", effect="read")], ["unknown", "refused"]),
    ([said(1), asked(2, "a", "b"), judged(3, "a", "ask"), judged(4, "b", "ask"), allowed(4, "b")], ["refused", "unknown"]),
    ([said(1), asked(2, "a", "b"), judged(3, "a"), had(4, "b")], ["unknown", "ok"]),
    ([said(1), asked(2, "a", "b"), had(3, "b")], ["ok", "refused"]),
    ([asked(-3, "a"), said(1), asked(2, "b"), had(3, "b"), said(4)], ["refused", "ok"]),
    ([said(1), asked(2, "a"), had(3, "a"), asked(4, "b")], ["ok", "refused"]),
])  # fmt: skip
def test_a_call_that_was_open_where_a_session_was_exported_has_the_result_that_is_true_of_it(
    path, entries, states
):
    store = Store(path)
    made = store.import_jsonl(exported(*entries))
    found = store.entries(made)
    assert [one.state for one in found if isinstance(one, ToolResult)] == states
    assert problems(found) == []
    again = store.import_jsonl(store.export_jsonl(made).splitlines())
    assert store.entries(again) == found


@pytest.mark.parametrize(("entries", "words"), [
    ([said(1), had(2, "a")], "line 4 .*the result of no open call"),
    ([said(1), asked(2, "a"), had(3, "a"), had(4, "a")], "line 6 .*the result of no open call"),
    ([said(3), asked(4, "a"), had(2, "a")], "line 5 .*the result of no open call"),
    ([said(1), asked(2, "a"), said(5), had(6, "a")], "line 6 .*the result of no open call"),
    ([said(1), asked(2, "a"), said(3)], "line 5 .*between a call and its result"),
    ([said(1), asked(2, "a", "a")], "line 4 .*have the same id"),
    ([said(1.5)], "line 3 .*a whole number"),
    ([said(2**62)], "line 3 .*a whole number"),
    ([said(1, seconds=math.inf)], "line 3 .*is no number"),
    ([said(1, cost=-math.inf)], "line 3 .*is no number"),
    ([said(1, cost="1")], "line 3"),
])  # fmt: skip
def test_an_export_that_no_run_could_have_left_is_refused_by_its_line(path, entries, words):
    store = Store(path)
    with pytest.raises(SessionError, match=words):
        store.import_jsonl(exported(*entries))
    assert store.sessions() == []


def test_an_import_masks_what_it_brings(path):
    lines = [
        '{"format": "glassloop-session", "version": 1, "title": "my-secret-value"}',
        '{"run": "r", "error": "my-secret-value"}',
        '{"entry": "user", "run": "r", "seq": 1, "value": {"parts": [{"type": "text", "text": "my-secret-value"}]}}',
    ]
    store = Store(path)
    made = store.import_jsonl(lines, secrets=["my-secret-value"])
    assert "my-secret-value" not in repr(store.timeline(made))


def test_text_that_looks_like_a_fence_stays_inside_its_block(path):
    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start())
        made = kit.call()
        hostile = "```\n# not a heading\n````\n</details>"
        await journal.commit(
            "run1",
            [Record(1, kit.task()), Record(2, kit.calling(made)), Record(3, kit.result(made, hostile))],
        )
        await journal.finish(RunEnd("run1", "cancelled", ""))

    asyncio.run(work())
    told = Store(path).export_markdown("session1")
    assert "`````\n```\n# not a heading\n````\n</details>\n`````" in told


def test_a_file_text_and_pictures_survive_the_way_through_every_export(path):
    store = conversation(path, "one")
    for told in (store.export_markdown("session1"), store.export_html("session1")):
        for words in ("one", "weather", "北京", "sunny, 21 °C", "answer to one", "m-1"):
            assert words in told


def test_parts_other_than_text_are_named(path):
    from glassloop.core.entries import File, Image

    picture = Image("image/png", b"\x89PNG....")
    parts = (Text("look"), picture, Image(url="https://x/y.png"), File("a.pdf", "application/pdf", b"1234"))

    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, User(parts))])
        await journal.finish(RunEnd("run1", "answered", ""))

    asyncio.run(work())
    store = Store(path)
    assert "[file: a.pdf, application/pdf, 4 bytes]" in store.export_markdown("session1")
    told = store.export_html("session1")
    assert 'src="data:image/png;base64,iVBORy4uLi4="' in told
    assert "a.pdf" in told
    assert "<img" in told
    assert told.count("<img") == 1
