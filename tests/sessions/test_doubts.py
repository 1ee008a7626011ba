"""Calls that were started before a crash: who says what became of them, what then happens, and what is written down."""

import asyncio
import hashlib
import sqlite3
from contextlib import closing

import pytest
from tests.sessions import kit

from glassloop import Agent, tool
from glassloop.core.entries import ToolResult
from glassloop.core.errors import SessionError, ToolDefinitionError
from glassloop.core.journal import Intent, MemoryJournal, Record, RunEnd, RunStart, Session
from glassloop.core.resolving import Done, GiveUp, Resolution, Retry
from glassloop.models.scripted import ScriptedModel
from glassloop.sessions import owner as owners
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store
from glassloop.tools.context import ToolContext
from glassloop.tools.toolbox import Toolbox


def payer(started, **options):
    """A tool that pays, and notes under which key."""

    @tool(effect="once", **options)
    def pay(to: str, context: ToolContext) -> str:
        """Pay somebody."""
        started.append(context.key)
        return f"paid {to}"

    return pay


def agent_of(*tools, journal=None, says=("All is paid.",), **options):
    model = ScriptedModel(list(says))
    return Agent(model, tools=list(tools), journal=journal, name="payer", **options)


async def left_in_doubt(journal, agent, *, calls=1, session="session1", run="run1", effect="once"):
    """A run whose process died while its calls ran: the journal as it stands then."""
    digest = hashlib.sha256(agent.definition.encode()).hexdigest()
    run = (await journal.open(RunStart(run, session, agent.name, digest, agent.definition))).run_id
    made = [kit.call(number + 1, "pay", to=f"shop {number}") for number in range(calls)]
    verdicts = [agent.tools.prepare(one) for one in made]
    await journal.commit(run, [Record(1, kit.task("Pay."))])
    await journal.commit(run, [Record(2, kit.calling(*made))])
    await journal.commit(run, [Record(3 + i, one) for i, one in enumerate(verdicts)])
    await journal.intend(
        run, [Intent(3 + i, one.call, one.arguments, effect, f"key{i}") for i, one in enumerate(verdicts)]
    )
    return run


def crashed(path, agent, **options):
    """The same in a file, whose process is no more."""

    async def work():
        journal = SqliteJournal(path)
        run = await left_in_doubt(journal, agent, **options)
        for claim in journal._claims.values():
            owners.release(claim.claimed.owner)
        journal.close()
        return run

    return asyncio.run(work())


def resolutions(path):
    return [
        step.record.value
        for step in Store(path).timeline("session1").steps
        if isinstance(step.record.value, Resolution)
    ]


def results(outcome):
    return [(one.state, one.text) for one in outcome.entries if isinstance(one, ToolResult)]


PAID = [("ok", "paid shop 0")]
RECEIPT = [("ok", "receipt 17")]
WAYS = {
    "its check found it": ({"check": lambda key: Done("receipt 17")}, None, RECEIPT, 0, "done", "the check of pay"),
    "its check found it, with any value": ({"check": lambda key: Done({"receipt": 17})}, None, [("ok", '{"receipt": 17}')], 0, "done", "the check of pay"),
    "its check found that it never happened": ({"check": lambda key: Retry()}, None, PAID, 1, "retry", "the check of pay"),
    "its policy is to retry": ({"unknown": "retry"}, None, PAID, 1, "retry", "the policy of pay"),
    "its policy is to give up": ({"unknown": "give_up"}, None, None, 0, "give_up", "the policy of pay"),
    "its check cannot tell, so its policy decides": ({"check": lambda key: None, "unknown": "retry"}, None, PAID, 1, "retry", "the policy of pay"),
    "its check fails, so its policy decides": ({"check": lambda key: 1 / 0, "unknown": "give_up"}, None, None, 0, "give_up", "the policy of pay"),
    "a person says it happened": ({}, Done("receipt 17", by="Ann"), RECEIPT, 0, "done", "Ann"),
    "a person has it run again": ({}, Retry(by="Ann"), PAID, 1, "retry", "Ann"),
    "a person gives up": ({}, GiveUp(), None, 0, "give_up", "review"),
    "its check cannot tell, so a person decides": ({"check": lambda key: None}, Retry("Ann"), PAID, 1, "retry", "Ann"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_call_in_doubt_is_settled_by_check_policy_or_person_and_that_is_written_down(tmp_path, way):
    options, said, outcome, runs, decided, by = WAYS[way]
    path, started = tmp_path / "s.db", []
    review = None if said is None else (lambda unknown: said)
    agent = agent_of(payer(started, **options), journal=SqliteJournal(path), review=review)
    crashed(path, agent)
    result = agent.run_sync(None, session="session1")
    assert result.stop_reason == "answered"
    if outcome is None:
        ((state, text),) = results(result)
        assert state == "unknown"
        assert "Check before repeating" in text
    else:
        assert results(result) == outcome
    assert len(started) == runs
    ((found),) = resolutions(path)
    assert (found.outcome, found.by, found.attempt) == (decided, by, 1)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT attempt FROM entry WHERE attempt > 0").fetchall() == [(1 + runs,)]
    connection.close()


def test_a_call_that_somebody_left_without_its_key_is_damage_and_is_not_run(tmp_path):
    path, started = tmp_path / "s.db", []
    agent = agent_of(payer(started), journal=SqliteJournal(path))
    crashed(path, agent)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE entry SET key = NULL, started_ms = NULL")
    assert [one.started_ms for one in Store(path).doubts()] == [0]
    with pytest.raises(SessionError, match="was started without a key") as refused:
        agent.run_sync(None, session="session1")
    assert (refused.value.kind, started) == ("damaged", [])


def test_where_nobody_can_say_the_run_waits_and_is_asked_anew(tmp_path):
    path, started, asked = tmp_path / "s.db", [], []

    def review(unknown):
        asked.append(unknown)
        return

    def check(key):
        raise TimeoutError("the bank is closed")

    agent = agent_of(payer(started, check=check), journal=SqliteJournal(path), review=review)
    crashed(path, agent)
    for _ in range(2):
        assert agent.run_sync(None, session="session1").stop_reason == "needs_review"
    assert [(one.key, one.attempt, one.arguments) for one in asked] == [("key0", 1, {"to": "shop 0"})] * 2
    assert asked[0].why == "the check of pay failed: TimeoutError: the bank is closed"
    assert started == []
    assert resolutions(path) == []


@pytest.mark.parametrize("kind", ["async", "with context", "slow"])
def test_a_check_may_be_async_take_the_context_and_is_bounded_by_the_tools_time(tmp_path, kind):
    seen = []

    async def async_check(key):
        await asyncio.sleep(0)
        return Done(f"found {key[:4]}")

    def with_context(key, context: ToolContext):
        seen.append((context.run_id, context.seq, context.key == key))
        return Done("found")

    async def slow(key):
        await asyncio.sleep(60)

    checks = {"async": async_check, "with context": with_context, "slow": slow}
    asked = []
    pay = payer([], check=checks[kind], timeout=0.2)
    path = tmp_path / "s.db"
    agent = agent_of(pay, journal=SqliteJournal(path), review=lambda unknown: asked.append(unknown.why))
    crashed(path, agent)
    result = agent.run_sync(None, session="session1")
    if kind == "slow":
        assert result.stop_reason == "needs_review"
        assert asked == ["the check of pay had not ended after 0.2 seconds"]
    else:
        assert results(result)[0][1].startswith("found")
        assert seen == ([("run1", 3, True)] if kind == "with context" else [])


@pytest.mark.parametrize("given", [True, False, "yes", 0])
def test_a_check_that_gives_no_clear_answer_decides_nothing(tmp_path, given):
    path, started, asked = tmp_path / "s.db", [], []
    pay = payer(started, check=lambda key: given)
    agent = agent_of(pay, journal=SqliteJournal(path), review=lambda unknown: asked.append(unknown.why))
    crashed(path, agent)
    assert agent.run_sync(None, session="session1").stop_reason == "needs_review"
    assert asked == [
        f"the check of pay gave {type(given).__name__}, and neither Done(result), Retry() nor None"
    ]
    assert started == []


def test_a_retry_counts_for_one_attempt_and_after_another_crash_it_is_in_doubt_again(tmp_path):
    path, started = tmp_path / "s.db", []
    agent = agent_of(payer(started), journal=SqliteJournal(path))
    run = crashed(path, agent)
    store = Store(path)
    (doubt,) = store.doubts()
    store.resolve_doubt(doubt, Retry("Ann"))
    assert store.doubts() == []

    async def die_again():
        journal = SqliteJournal(path)
        digest = hashlib.sha256(agent.definition.encode()).hexdigest()
        opened = await journal.open(RunStart("x", "session1", "payer", digest, agent.definition))
        (intent,) = opened.intents
        await journal.intend(run, [intent])
        for claim in journal._claims.values():
            owners.release(claim.claimed.owner)
        journal.close()

    asyncio.run(die_again())
    assert agent.run_sync(None, session="session1").stop_reason == "needs_review"
    (again,) = store.doubts()
    assert again.attempt == 2
    with pytest.raises(SessionError, match="started again since"):
        store.resolve_doubt(doubt, Done("x", "Ann"))
    store.resolve_doubt(again, Done("receipt 18", "Bob"))
    assert results(agent.run_sync(None, session="session1")) == [("ok", "receipt 18")]
    assert [(one.attempt, one.outcome, one.by) for one in resolutions(path)] == [
        (1, "retry", "Ann"),
        (2, "done", "Bob"),
    ]
    assert started == []


def test_an_answer_from_another_process_is_used_once_and_a_second_one_refused(tmp_path):
    path, started = tmp_path / "s.db", []
    agent = agent_of(payer(started), journal=SqliteJournal(path))
    crashed(path, agent)
    store = Store(path)
    (doubt,) = store.doubts()
    assert (doubt.name, doubt.arguments, doubt.attempt) == ("pay", {"to": "shop 0"}, 1)
    store.resolve_doubt(doubt, Done("receipt 17", "Ann"))
    store.resolve_doubt(doubt, Done("receipt 17", "Ann"))
    with pytest.raises(SessionError, match=r"resolved already: done \(by Ann\)"):
        store.resolve_doubt(doubt, Retry("Bob"))
    assert results(agent.run_sync(None, session="session1")) == RECEIPT
    with pytest.raises(SessionError, match="nothing about it is in doubt"):
        store.resolve_doubt(doubt, Retry("Bob"))
    assert started == []


def test_of_several_calls_in_doubt_what_is_known_is_kept_until_all_are(tmp_path):
    path, started = tmp_path / "s.db", []
    answers = {"shop 0": Done("receipt 0"), "shop 2": GiveUp()}
    agent = agent_of(
        payer(started),
        journal=SqliteJournal(path),
        review=lambda unknown: answers.get(unknown.arguments["to"]),
    )
    crashed(path, agent, calls=3)
    assert agent.run_sync(None, session="session1").stop_reason == "needs_review"
    assert started == []
    (doubt,) = Store(path).doubts()
    answers.clear()
    answers[doubt.arguments["to"]] = Retry()
    result = agent.run_sync(None, session="session1")
    assert [text for _, text in results(result)][:2] == ["receipt 0", "paid shop 1"]
    assert [state for state, _ in results(result)] == ["ok", "ok", "unknown"]
    assert len(started) == 1


def test_whoever_says_something_else_leaves_what_was_settled_with_its_result(tmp_path):
    path, started = tmp_path / "s.db", []
    agent = agent_of(payer(started), journal=SqliteJournal(path))
    crashed(path, agent, calls=2)
    store = Store(path)
    store.resolve_doubt(store.doubts()[0], Done("receipt 17", "Ann"))
    result = agent.run_sync("Never mind.", session="session1")
    assert [state for state, _ in results(result)] == ["ok", "unknown"]
    assert results(result)[0][1] == "receipt 17"
    assert started == []


def test_a_call_whose_arguments_held_a_secret_is_not_run_again_whoever_wants_it(tmp_path):
    path, started, asked = tmp_path / "s.db", [], []

    def review(unknown):
        asked.append(unknown.repeatable)
        return Retry()

    def journal():
        return SqliteJournal(path, secrets=lambda: ["shop 0"])

    agent = agent_of(payer(started, unknown="retry"), journal=journal(), review=review)

    async def work():
        disk = journal()
        await left_in_doubt(disk, agent)
        for claim in disk._claims.values():
            owners.release(claim.claimed.owner)
        disk.close()

    asyncio.run(work())
    store = Store(path)
    with pytest.raises(SessionError, match="cannot be run again"):
        store.resolve_doubt(store.doubts()[0], Retry("Ann"))
    result = agent.run_sync(None, session="session1")
    assert asked == [False]
    assert [state for state, _ in results(result)] == ["unknown"]
    assert started == []


def test_tools_of_ones_own_without_a_say_leave_it_to_the_person(tmp_path):
    started = []

    class Audited:
        """The four methods that `Tools` must have, around a toolbox."""

        def __init__(self, inner):
            self.specs, self.prepare = inner.specs, inner.prepare
            self.execute, self.is_sequential = inner.execute, inner.is_sequential

    journal = MemoryJournal()
    tools = Audited(Toolbox([payer(started, unknown="retry")]))
    agent = Agent(
        ScriptedModel(["Paid."]), tools=tools, name="payer", review=lambda unknown: Done("receipt 17")
    )

    async def work():
        run = await left_in_doubt(journal, agent)
        await journal.finish(RunEnd(run, "needs_review", ""))
        return await agent.run(None, session=Session("session1", journal))

    assert results(asyncio.run(work())) == RECEIPT
    assert started == []


def test_a_tool_that_is_another_one_now_has_no_say_in_what_the_old_one_did(tmp_path):
    path, started = tmp_path / "s.db", []
    crashed(path, agent_of(payer(started)))

    @tool(effect="once", unknown="retry", check=lambda key: Done("mine"))
    def pay(to: str, currency: str = "EUR") -> str:
        """Pay somebody, in a currency."""
        started.append(to)
        return "paid"

    asked = []
    agent = agent_of(
        pay,
        journal=SqliteJournal(path, accept_changes=True),
        review=lambda unknown: asked.append(unknown.why),
    )
    assert agent.run_sync(None, session="session1").stop_reason == "needs_review"
    assert asked == ["`pay` is not the tool any more that was called"]
    assert started == []


def test_what_was_decided_is_told_by_every_view_of_the_session(tmp_path):
    path = tmp_path / "s.db"
    agent = agent_of(
        payer([]), journal=SqliteJournal(path), review=lambda unknown: Done("receipt 17", by="Ann")
    )
    crashed(path, agent)
    agent.run_sync(None, session="session1")
    store = Store(path)
    assert "It had taken effect (by Ann)" in store.export_markdown("session1")
    assert "It had taken effect (by Ann)" in store.export_html("session1")
    copied = Store(tmp_path / "copy.db")
    copy = copied.import_jsonl(store.export_jsonl("session1").splitlines())
    assert [type(step.record.value) for step in copied.timeline(copy).steps].count(Resolution) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check": "find"}, "its check is 'find'"),
        ({"unknown": "always"}, "its unknown is 'always'"),
        ({"unknown": "retry", "effect": "read"}, "which simply runs again"),
    ],
)
def test_a_check_or_policy_that_could_not_work_is_refused_at_once(options, words):
    with pytest.raises(ToolDefinitionError, match=words):

        @tool(**{"effect": "once", **options})
        def pay() -> str:
            """Pay."""
            return ""


def test_an_answer_about_a_call_that_is_none_is_an_error_and_not_a_guess(tmp_path):
    path, started = tmp_path / "s.db", []
    agent = agent_of(payer(started), journal=SqliteJournal(path), review=lambda unknown: True)
    crashed(path, agent)
    with pytest.raises(TypeError, match="no answer about pay"):
        agent.run_sync(None, session="session1")
    assert started == []


@pytest.mark.parametrize("effect", ["once", "idempotent"])
def test_a_call_that_is_taken_up_keeps_the_key_that_was_written_down_for_it(tmp_path, effect):
    """The other side knows it by that key, however this Glassloop makes keys."""
    keys, path = [], tmp_path / "s.db"

    def check(key):
        keys.append(key)
        return Retry()

    def pay(to: str, context: ToolContext) -> str:
        """Pay somebody."""
        keys.append(context.key)
        return f"paid {to}"

    made = tool(effect=effect, check=check)(pay) if effect == "once" else tool(effect=effect)(pay)
    agent = agent_of(made, journal=SqliteJournal(path))
    crashed(path, agent, effect=effect)
    agent.run_sync(None, session="session1")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT key, attempt FROM entry WHERE attempt > 0").fetchall() == [
            ("key0", 2)
        ]
    assert keys == (["key0", "key0"] if effect == "once" else ["key0"])
