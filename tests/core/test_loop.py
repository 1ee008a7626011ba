"""The loop as a pure machine: it is fed records by hand and asked what comes next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import (
    Entry,
    Note,
    Reply,
    System,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
    parts_of,
)
from glassloop.core.journal import Cancelled, ModelFailed, Record, entries_of
from glassloop.core.limits import Limits
from glassloop.core.loop import Loop
from glassloop.core.steps import AskApproval, CallModel, CallTools, Finish, PrepareCalls
from glassloop.core.tools import Decision, Verdict
from glassloop.core.window import Window


def call(number: int, name: str = "look", problem: str | None = None, **arguments: object) -> ToolCall:
    return ToolCall(f"id{number}", name, None if problem else arguments, problem=problem)


def said(*calls: ToolCall, text: str = "", **more: object) -> Reply:
    return Reply(text=text, tool_calls=calls, **more)  # type: ignore[arg-type]


class Play:
    """Feeds a loop and keeps the records, as the driver does."""

    def __init__(self, limits: Limits | None = None, **options: object) -> None:
        self.loop = Loop((System("Be brief."),), limits, **options)  # type: ignore[arg-type]
        self.records: list[Record] = []
        self.feed(self.loop.next().seq, User(parts_of("Go")))

    def feed(self, seq: int, value: object, **stamp: float) -> None:
        record = Record(seq, value, **stamp)  # type: ignore[arg-type]
        self.records.append(record)
        self.loop.feed(record)

    def reply(self, reply: Reply, **stamp: float) -> None:
        step = self.loop.next()
        assert isinstance(step, CallModel), step
        for seq, note in step.notes:
            self.records.append(Record(seq, note))
        self.feed(step.seq, reply, **stamp)

    def prepare(self, outcome: str = "ready") -> None:
        step = self.loop.next()
        assert isinstance(step, PrepareCalls), step
        for seq, one in step.calls:
            state = "problem" if one.problem else outcome
            self.feed(seq, Verdict(one, state, text=one.problem or "may I?"))  # type: ignore[arg-type]

    def run_tools(self, text: str = "done") -> list[str]:
        """Give results last call first; tell which calls really ran."""
        step = self.loop.next()
        assert isinstance(step, CallTools), step
        ran = []
        for one in reversed(step.operations):
            if one.result is None:
                ran.append(one.call.id)
            self.feed(one.seq, one.result or ToolResult(one.call.id, one.call.name, (Text(text),)))
        return ran[::-1]

    def round(self, *calls: ToolCall, text: str = "done", **stamp: float) -> list[str]:
        self.reply(said(*calls), **stamp)
        self.prepare()
        return self.run_tools(text)

    @property
    def notes(self) -> list[str]:
        return [entry.reason for entry in self.loop.entries if isinstance(entry, Note)]


def test_calls_are_prepared_run_and_answered_in_order_whatever_order_they_finish_in() -> None:
    play = Play()
    assert play.round(call(1, city="Tokyo"), call(2, city="北京")) == ["id1", "id2"]
    results = [entry.call_id for entry in play.loop.entries if isinstance(entry, ToolResult)]
    assert results == ["id1", "id2"]
    play.reply(said(text="Sunny."))
    assert play.loop.next() == Finish(5 + 1, "answered", "Sunny.")


def test_next_changes_nothing_until_something_is_fed() -> None:
    play = Play()
    assert play.loop.next() is play.loop.next()
    play.reply(said(call(1)))
    assert play.loop.next() is play.loop.next()


def test_a_call_with_a_problem_gets_it_as_its_result_and_the_others_run() -> None:
    play = Play()
    assert play.round(call(1, problem="cut off"), call(2)) == ["id2"]
    first = next(entry for entry in play.loop.entries if isinstance(entry, ToolResult))
    assert (first.call_id, first.state, first.text) == ("id1", "error", "cut off")


def test_one_denial_does_not_cancel_the_batch_and_its_reason_reaches_the_model() -> None:
    play = Play()
    play.reply(said(call(1), call(2)))
    play.prepare("ask")
    step = play.loop.next()
    assert isinstance(step, AskApproval)
    play.feed(step.asks[0][0], Decision("id1", False, "use the other file"))
    assert isinstance(play.loop.next(), AskApproval)
    play.feed(step.asks[1][0], Decision("id2", True))
    assert play.run_tools() == ["id2"]
    refused = next(entry for entry in play.loop.entries if isinstance(entry, ToolResult))
    assert refused.state == "refused"
    assert "use the other file" in refused.text


def test_at_the_round_limit_one_last_answer_without_tools_is_asked_for() -> None:
    play = Play(Limits(rounds=2))
    play.round(call(1, n=1))
    play.round(call(2, n=2))
    step = play.loop.next()
    assert isinstance(step, CallModel)
    assert step.purpose == "final"
    assert [note.reason for _, note in step.notes] == ["limit"]
    play.reply(said(text="As far as I got."))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert (finish.stop_reason, finish.text) == ("rounds", "As far as I got.")


def test_a_call_in_the_last_answer_is_refused_and_what_was_said_before_is_handed_back() -> None:
    play = Play(Limits(rounds=1))
    play.reply(said(call(1), text="I will look."))
    play.prepare()
    play.run_tools()
    play.reply(said(call(2)))
    assert play.run_tools() == []
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert (finish.stop_reason, finish.text) == ("rounds", "I will look.")


@pytest.mark.parametrize(
    ("limits", "stamp", "reason"),
    [
        (Limits(tokens=100), {}, "tokens"),
        (Limits(cost=0.5), {"cost": 0.6}, "cost"),
        (Limits(seconds=10), {"seconds": 11.0}, "seconds"),
        (Limits(calls=1), {}, "calls"),
    ],
)
def test_every_limit_ends_the_run_with_its_own_reason(
    limits: Limits, stamp: dict[str, float], reason: str
) -> None:
    play = Play(limits)
    play.reply(said(call(1), usage=Usage(90, 20, 110)), **stamp)
    play.prepare()
    play.run_tools()
    play.reply(said(text="so far"))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert finish.stop_reason == reason


def test_calls_beyond_the_call_limit_do_not_run() -> None:
    play = Play(Limits(calls=2))
    assert play.round(call(1), call(2), call(3)) == ["id1", "id2"]
    assert play.loop.spent.calls == 2


def test_more_than_128_calls_in_one_reply_are_all_refused() -> None:
    play = Play()
    play.reply(said(*(call(i) for i in range(129))))
    assert play.run_tools() == []
    assert isinstance(play.loop.next(), CallModel)


def test_a_cost_limit_that_could_never_hold_is_a_configuration_error_after_the_first_reply() -> None:
    play = Play(Limits(cost=1.0))
    play.reply(said(call(1), call(2)))
    assert play.run_tools() == []
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert finish.failure.kind == "ConfigError"
    assert [one.call_id for one in play.loop.entries if isinstance(one, ToolResult)] == ["id1", "id2"]
    with_another = Play(Limits(cost=1.0, tokens=1000))
    with_another.reply(said(call(1)))
    assert isinstance(with_another.loop.next(), PrepareCalls)


@pytest.mark.parametrize("rhythm", ["AAAAA", "ABABABABAB", "ABCABCABCABCABC"])
def test_repetition_earns_a_note_then_ends_without_tools(rhythm: str) -> None:
    play = Play(Limits(rounds=50))
    for number, letter in enumerate(rhythm):
        play.round(call(number, letter))
    assert "repeated_calls" in play.notes
    play.reply(said(text="I give up."))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert finish.stop_reason == "repeated_calls"


def test_a_poll_whose_results_differ_is_no_repetition() -> None:
    play = Play(Limits(rounds=50))
    for number in range(20):
        play.round(call(number), text=f"{number} % done")
    assert play.notes == []


def test_argument_order_does_not_hide_a_repetition() -> None:
    play = Play()
    for number in range(3):
        pairs = [("a", 1), ("b", 2)] if number % 2 else [("b", 2), ("a", 1)]
        play.round(call(number, **dict(pairs)))
    assert play.notes == ["repeated_calls"]


def test_calls_that_are_cut_off_again_and_again_end_though_their_texts_differ() -> None:
    play = Play(Limits(rounds=50))
    for number in range(5):
        play.reply(said(ToolCall(f"id{number}", "write", None, text='{"a' * number, problem="cut off")))
        play.prepare()
        play.run_tools()
    step = play.loop.next()
    assert isinstance(step, CallModel)
    assert step.purpose == "final"


def test_an_empty_reply_is_asked_again_then_nudged_then_given_up() -> None:
    play = Play()
    play.reply(said())
    first = play.loop.next()
    assert isinstance(first, CallModel)
    assert first.notes == ()
    assert [mend.code for mend in first.mends] == ["empty_reply"]
    play.reply(said(finish_reason="tool_calls"))
    second = play.loop.next()
    assert isinstance(second, CallModel)
    assert [note.reason for _, note in second.notes] == ["empty_reply"]
    play.reply(said())
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert finish.failure.kind == "EmptyReply"


def test_reasoning_stands_as_the_answer_when_nothing_else_ever_comes() -> None:
    play = Play()
    for _ in range(3):
        play.reply(Reply(reasoning="The sum is 4."))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert (finish.stop_reason, finish.text) == ("answered", "The sum is 4.")
    assert [mend.code for mend in finish.mends] == ["reasoning_as_answer"]


def test_empty_replies_are_kept_but_never_sent() -> None:
    play = Play()
    play.reply(said(reasoning="hm"))
    step = play.loop.next()
    assert isinstance(step, CallModel)
    assert not any(isinstance(entry, Reply) for entry in step.entries)
    assert any(isinstance(entry, Reply) for entry in play.loop.entries)


def test_an_overflow_is_answered_with_less_history_twice_at_most() -> None:
    play = Play(window=Window("trim"))
    for number in range(8):
        play.round(call(number, n=number), text="long " * 500)
    sizes = []
    for _ in range(2):
        step = play.loop.next()
        assert isinstance(step, CallModel)
        sizes.append(sum(len(entry.text) for entry in step.entries))
        play.feed(step.seq, ModelFailed("ContextOverflow", "too long"))
    step = play.loop.next()
    assert isinstance(step, CallModel)
    sizes.append(sum(len(entry.text) for entry in step.entries))
    assert sizes[0] > sizes[1] > sizes[2]
    assert step.entries[0] == System("Be brief.")
    play.feed(step.seq, ModelFailed("ContextOverflow", "too long"))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert finish.stop_reason == "failed"


def test_a_failure_hands_back_the_partial_text() -> None:
    play = Play()
    step = play.loop.next()
    play.feed(step.seq, ModelFailed("ConnectionLost", "gone", Reply(text="Half an ans", cut_off=True)))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert (finish.stop_reason, finish.text) == ("failed", "Half an ans")


def test_a_message_before_the_call_takes_its_number_and_a_follow_up_reopens_the_run() -> None:
    play = Play()
    step = play.loop.next()
    play.feed(step.seq, User(parts_of("In Celsius, please"), "steer"))
    assert play.loop.next().seq == step.seq + 1
    play.reply(said(text="20 °C"))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    play.feed(finish.seq, User(parts_of("And Rome?"), "follow_up"))
    assert isinstance(play.loop.next(), CallModel)


def test_cancelling_ends_the_run() -> None:
    play = Play()
    play.feed(play.loop.next().seq, Cancelled())
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert finish.stop_reason == "cancelled"


def test_an_answer_that_does_not_fit_is_sent_back_twice_at_most() -> None:
    play = Play(accept=lambda text: None if text == "4" else "give a number")
    for _ in range(3):
        play.reply(said(text="four"))
    finish = play.loop.next()
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert (finish.failure.kind, finish.text) == ("OutputInvalid", "four")
    assert play.notes == ["output", "output"]


def test_what_was_said_in_an_earlier_run_is_never_this_runs_text() -> None:
    loop = Loop((User(parts_of("Hi")), Reply("Hello.")))
    loop.feed(Record(1, User(parts_of("Now?"))))
    loop.feed(Record(2, ModelFailed("ConnectionLost", "gone")))
    finish = loop.next()
    assert isinstance(finish, Finish)
    assert (finish.stop_reason, finish.text) == ("failed", "")


# ── properties ───────────────────────────────────────────────────────────

replies = st.one_of(
    st.builds(lambda text: said(text=text), st.sampled_from(["", "done", "more"])),
    st.builds(
        lambda names: said(*(call(i, name) for i, name in enumerate(names))),
        st.lists(st.sampled_from("ab"), min_size=1, max_size=4),
    ),
)
choices = st.lists(
    st.tuples(replies, st.sampled_from(["ready", "problem", "ask"]), st.booleans()), max_size=30
)


def play_out(play: Play, script: list[tuple[Reply, str, bool]]) -> None:
    for reply, outcome, allowed in script:
        if not isinstance(play.loop.next(), CallModel):
            return
        play.reply(reply)
        if isinstance(play.loop.next(), PrepareCalls):
            play.prepare(outcome)
        if isinstance(step := play.loop.next(), AskApproval):
            for seq, verdict in step.asks:
                play.feed(seq, Decision(verdict.call.id, allowed))
        if isinstance(play.loop.next(), CallTools):
            play.run_tools()


def unanswered(entries: list[Entry]) -> list[str]:
    """Calls without exactly one result directly after their turn."""
    wrong, expected = [], []
    for entry in entries:
        if isinstance(entry, ToolResult):
            if entry.call_id not in expected:
                wrong.append(entry.call_id)
            else:
                expected.remove(entry.call_id)
            continue
        wrong += expected
        expected = [one.id for one in entry.tool_calls] if isinstance(entry, Reply) else []
    return wrong + expected


@given(choices)
def test_any_script_leaves_every_call_with_exactly_one_result(script: list[tuple[Reply, str, bool]]) -> None:
    play = Play(Limits(rounds=6, calls=9))
    play_out(play, script)
    assert unanswered(play.loop.entries) == []


@given(choices)
def test_the_same_records_give_the_same_run_and_the_same_numbers(
    script: list[tuple[Reply, str, bool]],
) -> None:
    play = Play(Limits(rounds=6))
    play_out(play, script)
    again = Loop((System("Be brief."),), Limits(rounds=6))
    for record in play.records:
        again.feed(record)
    assert again.next() == play.loop.next()
    assert again.entries == play.loop.entries


@given(choices)
def test_no_number_is_used_twice_and_the_records_tell_the_conversation(
    script: list[tuple[Reply, str, bool]],
) -> None:
    play = Play(Limits(rounds=6))
    play_out(play, script)
    step = play.loop.next()
    told = list(entries_of(play.records))
    if isinstance(step, CallModel):
        told += [note for _, note in step.notes]
    assert told == play.loop.entries[1:]
    numbers = [r.seq for r in play.records if not isinstance(r.value, (Verdict, Decision, ToolResult))]
    assert len(numbers) == len(set(numbers))
