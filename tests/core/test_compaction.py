"""History that outgrows the window, played against a server that counts: what is sent, and that it always ends."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassloop.core.compacting import Compacting
from glassloop.core.context import Context
from glassloop.core.entries import (
    Entry,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
    parts_of,
)
from glassloop.core.errors import ConfigError, ConnectionLost
from glassloop.core.events import Compacted
from glassloop.core.journal import ModelFailed, Record, entries_of
from glassloop.core.limits import Limits
from glassloop.core.loop import Loop
from glassloop.core.steps import CallModel, CallTools, Finish, PrepareCalls
from glassloop.core.summary import SUMMARY_FAILED, failure_of, read_summary, settings_for, summary_request
from glassloop.core.tokens import estimate, estimate_entries
from glassloop.core.tools import Verdict
from glassloop.core.window import Window, sent, turns
from glassloop.wire.profile import Profile
from glassloop.wire.request import Encoder

ENGLISH = "The quick brown fox jumps over the lazy dog. "
CHINESE = "今天天气很好，我们去公园散步吧。"
SUMMARY = "GOAL: tidy the house\nDONE: looked into many rooms\nOPEN: the roof"


@dataclass
class House:
    """A server with a window, and a model that looks into `rounds` rooms before it answers."""

    window: int = 4_000
    scale: float = 1.0
    tools: int = 300
    tells: bool = True
    counts: bool = True
    rounds: int = 20
    words: str = ENGLISH
    length: int = 40
    summary: Reply | ModelFailed = field(default_factory=lambda: Reply(SUMMARY, usage=Usage(700, 40, 740)))
    asked: list[CallModel] = field(default_factory=list)
    refusals: int = 0

    def answer(self, step: CallModel) -> Reply | Summary | ModelFailed:
        self.asked.append(step)
        tokens = int(estimate_entries(step.entries) * self.scale) + self.tools * (step.purpose == "turn")
        if step.purpose == "summary":
            if tokens > self.window:
                return ModelFailed(SUMMARY_FAILED, "too long")
            return read_summary(self.summary, step) if isinstance(self.summary, Reply) else self.summary
        if tokens > self.window:
            self.refusals += 1
            return ModelFailed("ContextOverflow", "too long", window=self.window if self.tells else None)
        usage = Usage(tokens, 20, tokens + 20) if self.counts else Usage()
        done = sum(one.purpose == "turn" for one in self.asked) > self.rounds or step.purpose == "final"
        calls = () if done else (ToolCall(f"c{len(self.asked)}", "look", {"room": len(self.asked)}),)
        return Reply("All is tidy." if done else "", tool_calls=calls, usage=usage)

    @property
    def summaries(self) -> int:
        return sum(one.purpose == "summary" for one in self.asked)


class Play:
    """Feeds a loop until it finishes, and keeps the records as a journal does."""

    def __init__(self, house: House, loop: Loop, task: str = "Tidy the house.") -> None:
        self.house, self.loop = house, loop
        self.records: list[Record] = []
        self.compacted: list[Compacted] = []
        self.feed(loop.next().seq, User(parts_of(task)))

    def feed(self, seq: int, value: object) -> None:
        record = Record(seq, value)  # type: ignore[arg-type]
        self.records.append(record)
        self.loop.feed(record)

    def to_the_end(self) -> Finish:
        for _ in range(500):
            match self.loop.next():
                case CallModel() as step:
                    self.records += [Record(seq, note) for seq, note in step.notes]
                    self.compacted += [step.compacted] if step.compacted else []
                    self.feed(step.seq, self.house.answer(step))
                case PrepareCalls() as step:
                    for seq, call in step.calls:
                        self.feed(seq, Verdict(call, "ready"))
                case CallTools() as step:
                    for one in step.operations:
                        text = f"{one.seq}: {self.house.words * self.house.length}"
                        self.feed(one.seq, one.result or ToolResult(one.call.id, "look", (Text(text),)))
                case Finish() as step:
                    return step
        raise AssertionError("this never ends")


HISTORY = (System("Be brief."),)
LONG = Limits(rounds=100)


def played(house: House, window: Window = Window(), **more: object) -> tuple[Play, Finish]:  # noqa: B008
    play = Play(house, Loop(HISTORY, LONG, None, window, **more))  # type: ignore[arg-type]
    return play, play.to_the_end()


def sendable(entries: tuple[Entry, ...]) -> bool:
    """Every call has its result directly behind it, and every result its call."""
    open_calls: list[str] = []
    for entry in entries:
        if isinstance(entry, ToolResult):
            if entry.call_id not in open_calls:
                return False
            open_calls.remove(entry.call_id)
        elif open_calls:
            return False
        if isinstance(entry, Reply):
            open_calls = [call.id for call in entry.tool_calls]
    return not open_calls


houses = st.builds(
    House,
    window=st.integers(600, 6_000),
    scale=st.sampled_from([0.7, 1.0, 1.4]),
    tools=st.sampled_from([0, 200]),
    tells=st.booleans(),
    counts=st.booleans(),
    rounds=st.integers(0, 25),
    words=st.sampled_from([ENGLISH, CHINESE]),
    length=st.integers(1, 120),
    summary=st.sampled_from(
        [Reply(SUMMARY), Reply(""), Reply("long " * 20_000), Reply(tool_calls=(ToolCall("x", "look", {}),))]
    ),
)
windows = st.builds(
    Window,
    policy=st.sampled_from(["auto", "summarise", "trim"]),
    share=st.sampled_from([0.5, 0.8]),
    keep_last=st.integers(1, 6),
)


# ── what always holds ────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=20, deadline=None)
@given(houses, windows, st.booleans())
def test_it_ends_and_everything_that_is_sent_is_sendable(house: House, window: Window, known: bool) -> None:
    finish = played(house, window, size=house.window if known else None)[1]
    assert finish.stop_reason in ("answered", "failed")
    if finish.stop_reason == "failed":
        assert finish.failure is not None
        assert finish.failure.kind == "ContextOverflow"
        assert "larger context window" in finish.failure.message
    for step in house.asked:
        if step.purpose == "turn":
            assert sendable(step.entries)
            assert step.entries[0] == HISTORY[0]
            assert isinstance(step.entries[1], User)


@settings(max_examples=20, deadline=None)
@given(houses, windows, st.data())
def test_the_same_records_give_the_same_steps_wherever_the_run_broke_off(
    house: House, window: Window, data: st.DataObject
) -> None:
    play, finish = played(house, window, size=house.window)
    cut = data.draw(st.integers(0, len(play.records)))
    again = Loop(HISTORY, LONG, None, window, house.window)
    for record in play.records[:cut]:
        again.feed(record)
    resumed = Play.__new__(Play)
    resumed.house = replace(house, asked=house.asked[: sum(is_answer(one) for one in play.records[:cut])])
    resumed.loop, resumed.records, resumed.compacted = again, list(play.records[:cut]), []
    if not cut:
        resumed.feed(again.next().seq, play.records[0].value)
    assert resumed.to_the_end() == finish
    assert resumed.records == play.records or [r for r in resumed.records if is_answer(r)] == [
        r for r in play.records if is_answer(r)
    ]


def is_answer(record: Record) -> bool:
    return isinstance(record.value, Reply | Summary | ModelFailed)


@settings(max_examples=20, deadline=None)
@given(houses, windows)
def test_between_compactions_every_request_begins_with_the_bytes_of_the_one_before(
    house: House, window: Window
) -> None:
    played(house, window, size=house.window)
    encoder = Encoder(Profile())
    before = b""
    for step in house.asked:
        if step.purpose != "turn":
            continue
        body = encoder.encode("m", step.entries, (), {}, stream=False)
        if step.compacted:
            before = b""
        assert body.startswith(before)
        before = body.removesuffix(b"]}")


@settings(max_examples=20, deadline=None)
@given(houses)
def test_a_known_window_is_hardly_ever_overrun_and_not_emptied_every_round(house: House) -> None:
    house = replace(house, window=4_000, counts=True, length=house.length % 30, summary=Reply(SUMMARY))
    play, finish = played(house, size=house.window)
    assert finish.stop_reason == "answered"
    assert house.refusals <= 1
    for one in play.compacted:
        assert one.after < one.before
    assert len(play.compacted) <= 1 + house.rounds // 2


@settings(max_examples=20, deadline=None)
@given(houses, windows)
def test_the_next_run_of_a_session_sends_what_this_one_sent_last(house: House, window: Window) -> None:
    house = replace(house, length=house.length % 20, window=4_000, summary=Reply(SUMMARY))
    if window.policy == "trim":
        return
    play, _ = played(house, window, size=house.window)
    last = next(step for step in reversed(house.asked) if step.purpose == "turn")
    following = sent((*HISTORY, *entries_of(play.records)))
    if not any(one.how == "trim" for one in play.compacted):
        assert tuple(following[: len(last.entries)]) == last.entries


# ── how it goes ──────────────────────────────────────────────────────────────────────────────────────


def test_at_80_percent_old_turns_are_summed_up_and_the_task_and_the_last_turns_stay() -> None:
    house = House()
    play, finish = played(house, size=house.window)
    assert finish.stop_reason == "answered"
    assert house.refusals == 0
    at = next(i for i, step in enumerate(house.asked) if step.purpose == "summary")
    request, following = house.asked[at], house.asked[at + 1]
    assert "<transcript>\nUser: Tidy the house.\n\nAssistant calls look(" in request.entries[1].text
    assert [type(one).__name__ for one in following.entries[:3]] == ["System", "User", "Summary"]
    assert SUMMARY in following.entries[2].text
    assert 1 <= len(turns(following.entries)) - 3 <= 4
    assert following.compacted is not None
    assert following.compacted.after < 0.6 * house.window <= following.compacted.before
    assert len([one for one in play.loop.entries if isinstance(one, ToolResult)]) == house.rounds


def test_a_second_summary_folds_the_first_one_in() -> None:
    house = House(rounds=40)
    played(house, size=house.window)
    requests = [step for step in house.asked if step.purpose == "summary"]
    assert len(requests) >= 2
    assert SUMMARY in requests[1].entries[1].text
    later = [step for step in house.asked if step.seq > requests[1].seq and step.purpose == "turn"]
    assert all(sum(isinstance(one, Summary) for one in step.entries) == 1 for step in later)


def test_an_overflow_is_summed_up_once_and_then_trimmed() -> None:
    house = House(tells=False, counts=False)
    finish = played(house)[1]
    assert finish.stop_reason == "answered"
    purposes = [step.purpose for step in house.asked]
    assert purposes.count("summary") >= 1
    assert house.refusals >= 1
    refusing = House(window=4_000)
    stubborn = Play(refusing, Loop(HISTORY, LONG, None, Window(), None))
    refusing.window = 10**9
    for _ in range(6):
        for _ in range(3):
            step = stubborn.loop.next()
            if isinstance(step, CallModel):
                stubborn.feed(step.seq, refusing.answer(step))
            elif isinstance(step, PrepareCalls):
                stubborn.feed(step.calls[0][0], Verdict(step.calls[0][1], "ready"))
            elif isinstance(step, CallTools):
                one = step.operations[0]
                stubborn.feed(one.seq, ToolResult(one.call.id, "look", (Text(ENGLISH * 60),)))
    asked = []
    while isinstance(step := stubborn.loop.next(), CallModel):
        asked.append(step.purpose)
        failed = ModelFailed("ContextOverflow", "too long")
        stubborn.feed(step.seq, read_summary(Reply(SUMMARY), step) if step.purpose == "summary" else failed)
    assert asked == ["turn", "summary", "turn", "turn"]


@pytest.mark.parametrize(
    "summary",
    [
        Reply("   "),
        Reply(reasoning="hm", usage=Usage(500, 5, 505)),
        Reply(tool_calls=(ToolCall("x", "look", {}),)),
        ModelFailed(SUMMARY_FAILED, "the endpoint is gone"),
    ],
)
def test_a_summary_that_fails_or_is_empty_falls_back_to_trimming(summary: Reply | ModelFailed) -> None:
    house = House(summary=summary)
    play, finish = played(house, size=house.window)
    assert finish.stop_reason == "answered"
    assert {one.how for one in play.compacted} == {"trim"}
    assert not any(isinstance(one, Summary) for one in play.loop.entries)
    if isinstance(summary, Reply) and summary.usage.total_tokens:
        assert play.loop.spent.tokens >= summary.usage.total_tokens


def test_a_window_that_cannot_hold_what_must_stay_is_said_and_ends_the_run() -> None:
    house = House(window=500, tools=600)
    finish = played(house)[1]
    assert finish.failure is not None
    assert (finish.stop_reason, finish.failure.kind) == ("failed", "ContextOverflow")
    assert "fewer tools" in finish.failure.message
    assert len(house.asked) <= 3


def test_at_a_limit_nothing_is_spent_on_a_summary() -> None:
    house = House(rounds=50, length=80)
    loop = Loop(HISTORY, Limits(rounds=3), None, Window(), house.window)
    play = Play(house, loop)
    assert play.to_the_end().stop_reason == "rounds"
    assert house.asked[-1].purpose == "final"
    assert house.asked[-2].purpose == "turn"


def test_pinned_messages_and_the_task_at_hand_stay_word_for_word() -> None:
    history: list[Entry] = [System("Be brief."), User(parts_of("First of all"))]
    history += [
        Reply(ENGLISH * 20),
        User(parts_of("Always in metric units."), pinned=True),
        Reply(ENGLISH * 20),
    ]
    history += [User(parts_of("The task at hand")), *(Reply(ENGLISH * 20) for _ in range(6))]
    context = Context(history, Window(keep_last=2), 4_000)
    due = context.due()
    assert due is not None
    context.summarised(Summary("all of it", due.replaces))
    said = [one.text for one in context.sent if not isinstance(one, Reply)]
    assert said == ["Be brief.", "First of all", "Always in metric units.", "all of it", "The task at hand"]


def test_a_count_beyond_the_window_says_that_nobody_knows_the_window_unless_you_do() -> None:
    context = Context((*HISTORY, User(parts_of("Hi"))), Window(), 4_000)
    context.heard(Reply("Hello", usage=Usage(9_000, 3, 9_003)), 2)
    assert (context.size, context.is_full) == (None, False)
    fixed = Context((*HISTORY, User(parts_of("Hi"))), Window(size=4_000), 8_000)
    fixed.heard(Reply("Hello", usage=Usage(9_000, 3, 9_003), context_window=16_000), 2)
    assert (fixed.size, fixed.is_full) == (4_000, True)


def test_the_newest_reply_tells_the_window_where_the_model_does_not() -> None:
    history = [*HISTORY, User(parts_of("Hi")), Reply("Hello", context_window=3_000)]
    assert Context(history, Window()).size == 3_000
    assert Context(history, Window(), 5_000).size == 5_000


# ── asking for a summary ─────────────────────────────────────────────────────────────────────────────


def test_a_chinese_conversation_is_summed_up_in_chinese() -> None:
    entries = [User(parts_of("帮我查一下北京的天气，并写进 report.txt")), Reply("好的，已经写好了。")]
    system, user = summary_request(entries, 4_000, 500)
    assert "摘要" in system.text
    assert "目标：" in user.text
    summary = read_summary(
        Reply("目标：查天气\n已完成：写入 report.txt"), CallModel(1, "summary", (), (), 2, 500)
    )
    assert isinstance(summary, Summary)
    assert summary.text.startswith("到目前为止的对话摘要")
    for other in (ENGLISH, "今日は天気がいいから散歩しましょう。", "오늘 날씨가 좋으니 산책하러 갑시다."):
        assert "language of the conversation" in summary_request([User(parts_of(other))], 4_000, 500)[1].text


def test_a_hint_reaches_the_model() -> None:
    assert (
        "keep this: the port numbers"
        in summary_request([User(parts_of("Hi"))], 900, 200, "the port numbers")[1].text
    )


@given(
    st.lists(st.text("ab 北京\n", max_size=60).map(lambda text: text * 100), max_size=40),
    st.integers(800, 8_000),
)
def test_a_transcript_is_cut_to_its_room_and_begins_and_ends_as_the_conversation(
    texts: list[str], room: int
) -> None:
    entries = [User(parts_of(f"<{at}> {text}")) for at, text in enumerate(texts)]
    request = summary_request(entries, room, 300)
    assert estimate_entries(request) <= room * 1.1 + 60
    if texts:
        assert "User: <0>" in request[1].text
        assert f"User: <{len(texts) - 1}>" in request[1].text


def test_a_summary_that_is_far_too_long_is_cut() -> None:
    summary = read_summary(Reply(ENGLISH * 3_000), CallModel(1, "summary", (), (), 9, 500))
    assert isinstance(summary, Summary)
    assert estimate(summary.text) < 700
    assert "characters left out" in summary.text


def test_settings_that_shape_an_answer_do_not_shape_a_summary() -> None:
    given_settings = {"temperature": 0, "max_tokens": 20, "response_format": {"type": "json_object"}}
    assert settings_for("summary", given_settings) == {"temperature": 0}
    assert settings_for("turn", given_settings) is given_settings
    assert failure_of(ConnectionLost("gone"), "summary").kind == SUMMARY_FAILED
    assert failure_of(ConnectionLost("gone"), "turn").kind == "ConnectionLost"


def test_compacting_by_hand_asks_once_and_finishes_and_with_nothing_to_sum_up_at_once() -> None:
    history = [*HISTORY, *(one for at in range(6) for one in (User(parts_of(f"{at}?")), Reply(ENGLISH * 9)))]
    asked = Compacting(history, Window(), 4_000, "the figures")
    step = asked.next()
    assert isinstance(step, CallModel)
    assert "the figures" in step.entries[1].text
    asked.feed(Record(step.seq, read_summary(Reply(SUMMARY, usage=Usage(9, 9, 18)), step), cost=0.5))
    finish = asked.next()
    assert isinstance(finish, Finish)
    assert (finish.stop_reason, asked.spent.cost, asked.spent.tokens) == ("answered", 0.5, 18)
    assert finish.compacted is not None
    assert finish.compacted.after < finish.compacted.before
    assert Compacting(history[:3], Window()).next() == Finish(1, "answered")


@pytest.mark.parametrize(
    "values",
    [
        {"policy": "forget"},
        {"share": 0},
        {"share": 1.5},
        {"share": "half"},
        {"keep_last": 0},
        {"keep_last": True},
        {"size": 10},
        {"size": 4096.5},
    ],
)
def test_a_window_that_cannot_be_is_refused_by_name(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as refused:
        Window(**values)  # type: ignore[arg-type]
    assert f"Window({next(iter(values))}=" in str(refused.value)


def test_what_one_reads_of_a_transcript_is_what_happened() -> None:
    entries: list[Entry] = [
        User(parts_of("Look")),
        Reply("I look.", tool_calls=(ToolCall("1", "look", {"a": 1}, json.dumps({"a": 1})),)),
        ToolResult("1", "look", (Text("nothing there"),), "error"),
    ]
    text = summary_request(entries, 4_000, 500)[1].text
    told = 'User: Look\n\nAssistant: I look.\n\nAssistant calls look({"a": 1})\n\nResult of look (error): nothing there'
    assert told in text


def test_what_was_shortened_before_the_task_came_is_told_with_the_first_question() -> None:
    history = (*HISTORY, User(parts_of("Hi")), *(Reply(ENGLISH * 30) for _ in range(20)))
    loop = Loop(history, None, None, Window("trim"), 4_000)
    loop.feed(Record(1, User(parts_of("And now?"))))
    step = loop.next()
    assert isinstance(step, CallModel)
    assert step.compacted is not None
    loop.feed(Record(step.seq, Reply("", usage=Usage(1_800, 1, 1_801))))
    again = loop.next()
    assert isinstance(again, CallModel)
    assert again.compacted is None


def test_a_summary_that_is_no_shorter_than_what_it_stands_for_is_none() -> None:
    step = CallModel(1, "summary", (), (), 2, 500, worth=40)
    assert isinstance(read_summary(Reply("Goal: tea."), step), Summary)
    long = read_summary(Reply("Goal: tea. " * 30), step)
    assert isinstance(long, ModelFailed)
    assert "no shorter" in long.message


def test_a_conversation_summed_up_on_demand_says_what_its_turns_come_to() -> None:
    turns = [User(parts_of("Hi")), Reply("Hello."), *[User(parts_of("And tea?")), Reply("Yes. " * 60)] * 8]
    step = Compacting(turns, Window()).next()
    assert isinstance(step, CallModel)
    assert 0 < step.worth < estimate_entries(turns)
