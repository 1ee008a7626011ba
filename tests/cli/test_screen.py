"""What a run looks like: events in, lines out. No terminal is needed for that."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from glassloop.cli.events_json import event_object, json_line
from glassloop.cli.printing import Printer
from glassloop.cli.safe_text import width_of
from glassloop.cli.screen import Screen
from glassloop.core.entries import Image, Mend, Note, Reply, Text, ToolCall, ToolResult, Usage, User
from glassloop.core.errors import RateLimited
from glassloop.core.events import (
    ApprovalAsked,
    Event,
    Finished,
    Learned,
    Mended,
    ModelFinished,
    ModelGaveUp,
    ModelStarted,
    Noted,
    Received,
    Retrying,
    Switched,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Warned,
)
from glassloop.core.tools import Verdict

CALL = ToolCall("c1", "get_weather", {"city": "北京"})
CUT_OFF = ToolCall("c2", "get\x1b[2Kmail", None, '{"to": "a', "the reply was cut off")
STARTED = ToolStarted(1, CALL, CALL.arguments or {})


def result(text: str, state: str = "ok", call: ToolCall = CALL, seconds: float = 0.5) -> ToolFinished:
    return ToolFinished(1, call, ToolResult(call.id, call.name, (Text(text),), state, seconds))  # type: ignore[arg-type]


def outcome(**facts: object) -> SimpleNamespace:
    usual = {
        "text": "",
        "stop_reason": "answered",
        "rounds": 1,
        "usage": Usage(),
        "cost": None,
        "seconds": 2.0,
    }
    return SimpleNamespace(**{**usual, **facts})


TWO_CALLS = (
    *(User((Text("before"),)), result("0").result),
    *(User((Text("go"),)), result("1").result, User((Text("on"),), "steer"), result("2").result),
)
CASES: dict[str, tuple[list[Event], list[str]]] = {
    "a call and its result": (
        [STARTED, result("24 °C")],
        ['→ get_weather(city="北京")', "← get_weather: 24 °C  0.50 s"],
    ),
    "a call that never ran is shown with its result": (
        [result("Not run.", "refused", CUT_OFF)],
        ['→ get\\x1b[2Kmail({"to": "a)', "✗ get\\x1b[2Kmail: Not run."],
    ),
    "a long result is cut after three lines": (
        [STARTED, result("a\n\n\tb\r\nc\nd\ne")],
        [
            '→ get_weather(city="北京")',
            "← get_weather: a  0.50 s",
            "      b",
            "  c",
            "  … 2 more lines",
        ],
    ),
    "nothing came out": ([STARTED, result(" \n")], ['→ get_weather(city="北京")', "← get_weather: (no output)  0.50 s"]),
    "each run has sums of its own": (
        [
            *(ModelStarted(1, 1), STARTED, result("24 °C"), ModelStarted(2, 2), Finished(outcome(rounds=2))),
            *(ModelStarted(1, 1), Finished(outcome(rounds=1))),
        ],
        [
            '→ get_weather(city="北京")',
            "← get_weather: 24 °C  0.50 s",
            "· 2 rounds, 1 tool call, 2.0 s",
        ],
    ),
    "an outcome nobody knows": (
        [STARTED, result("interrupted", "unknown")],
        ['→ get_weather(city="北京")', "? get_weather: interrupted  0.50 s"],
    ),
    "a mend": ([Mended(Mend("args.fence", "a fence\nwas removed"))], ["~ mended args.fence: a fence was removed"]),
    "a retry": (
        [Retrying("HTTP 503", 2, 1.5)],
        ["↻ asking again in 1.5 s (retry 2): HTTP 503"],
    ),
    "something learned": (
        [Learned("no_tools", "tools are described in text", "tools: unsupported")],
        ["↻ learned: tools are described in text (it said: tools: unsupported)"],
    ),
    "another model": ([Switched("a", "b", "HTTP 500")], ["↻ switched a → b: HTTP 500"]),
    "a round with its tokens": (
        [ModelStarted(1, 3), ModelFinished(1, Reply(usage=Usage(1200, 34)), 2.26)],
        ["· round 3: 2.3 s, tokens 1,200 in + 34 out"],
    ),
    "an endpoint that counts nothing": (
        [ModelStarted(1, 1), ModelFinished(1, Reply(), 2.26)],
        ["· round 1: 2.3 s"],
    ),
    "a last answer": (
        [ModelStarted(9, 5, "final"), ModelFinished(9, Reply(usage=Usage(total_tokens=7)), 1.0)],
        ["· last answer: 1.0 s, 7 tokens"],
    ),
    "a note": ([Noted(Note("stop repeating"))], ["✎ told the model: stop repeating"]),
    "steering": ([Received(User((Text("faster"),), "steer"))], ["✎ delivered: faster"]),
    "progress": ([ToolProgress(1, "half\rway")], ["  … half way"]),
    "a warning": ([Warned("tls", "certificates are not checked")], ["! certificates are not checked"]),
    "a model that gave up is told only if the run goes on": (
        [ModelGaveUp(1, "too long"), ModelStarted(2, 2)],
        ["✗ no reply: too long", "↻ asking again"],
    ),
    "its end says it otherwise, and what follows says nothing of it": (
        [
            *(ModelStarted(1, 1), ModelGaveUp(1, "x"), Finished(outcome(stop_reason="failed"), RateLimited("x"))),
            ModelStarted(1, 1),
        ],
        [],
    ),
    "one round needs no sums": ([ModelStarted(1, 1), Finished(outcome())], []),
    "the sums": (
        [
            *(ModelStarted(1, 1), STARTED, result("1"), ModelStarted(2, 2)),
            ModelFinished(2, Reply(usage=Usage(5, 6)), 1.0),
            Finished(outcome(rounds=2, cost=0.01, usage=Usage(5, 6))),
        ],
        [
            '→ get_weather(city="北京")',
            "← get_weather: 1  0.50 s",
            "· round 2: 1.0 s, tokens 5 in + 6 out",
            "· 2 rounds, 1 tool call, tokens 5 in + 6 out, $0.0100, 2.0 s",
        ],
    ),
    "the sums of a run that was taken up again are those of the whole run": (
        [
            *(STARTED, result("2"), ModelStarted(7, 3)),
            Finished(outcome(rounds=3, usage=Usage(9, 8), seconds=60.0, entries=TWO_CALLS)),
        ],
        [
            '→ get_weather(city="北京")',
            "← get_weather: 2  0.50 s",
            "· 3 rounds, 2 tool calls, tokens 9 in + 8 out, 60.0 s",
        ],
    ),
    "a limit": (
        [ModelStarted(1, 1), Finished(outcome(stop_reason="rounds"))],
        ["! stopped: the limit of rounds is reached"],
    ),
    "text and questions are shown by others": ([TextDelta("x"), ApprovalAsked(1, Verdict(CALL, "ask"))], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_event_has_its_lines(case: str) -> None:
    events, lines = CASES[case]
    screen = Screen(80)
    assert [line.text for event in events for line in screen.lines(event)] == lines


def test_rounds_are_counted_on_where_a_conversation_had_some_before() -> None:
    events = [ModelStarted(1, 1), ModelFinished(1, Reply(), 1.0)]
    screen = Screen(before=2)
    assert [line.text for event in events for line in screen.lines(event)] == ["· round 3: 1.0 s"]


@pytest.mark.parametrize("width", [1, 2, 10, 20, 79])
def test_calls_and_results_never_wrap(width: int) -> None:
    screen = Screen(width)
    long = ToolCall("c", "name", {"text": "天气" * 10_000, "more": ["x" * 10_000]})
    lines = [
        *screen.lines(ToolStarted(1, long, long.arguments or {})),
        *screen.lines(result("汉字 " * 9_000, call=long)),
    ]
    assert len(lines) == 2
    assert all(width_of(line.text) <= max(width, 12) for line in lines)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_notices_wrap_between_words_and_keep_every_word(width: int) -> None:
    text = (
        "The endpoint counted 9 prompt tokens where about 40000 were sent. 接口返回的内容不完整，已经修正。"
    )
    lines = Screen(width).lines(Warned("x", text))
    assert all(width_of(line.text) <= width for line in lines)
    assert {line.style for line in lines} == {"mend"}
    assert not [line for line in lines if line.text.strip()[0] in "，。"]
    told = [word for line in lines for word in line.text.split()]
    assert set("! The endpoint counted 9 prompt tokens where about 40000 were sent.".split()) <= set(told)
    assert [line.text for line in Screen(width, wraps=False).lines(Warned("x", text))] == [f"! {text}"]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ((Reply("Let me see."), Reply(tool_calls=(CALL,))), "The last that the model had said:"),
        ((Reply("Well."),), "The reply broke off. What had arrived of it:"),
    ],
    ids=["a whole reply", "half a reply"],
)
def test_the_text_of_a_run_that_failed_is_shown_for_what_it_is(
    capsys: pytest.CaptureFixture[str], entries: tuple[Reply, ...], words: str
) -> None:
    Printer(live=False).show(Finished(outcome(text="Let me see.", entries=entries), RateLimited("x")))
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"{words}\nLet me see.\n")


# ── --json ───────────────────────────────────────────────────────────────────────────────────────────


def test_events_are_plain_objects_with_their_type_first() -> None:
    event = ToolFinished(4, CALL, ToolResult("c1", "t", (Text("a"), Image(data=b"\xff")), "ok", 0.1))
    line = json.loads(json_line(event))
    assert next(iter(line)) == "type"
    assert line["type"] == "tool_finished"
    assert line["call"]["arguments"] == {"city": "北京"}
    assert line["result"]["type"] == "tool_result"
    assert [part["type"] for part in line["result"]["parts"]] == ["text", "image"]
    assert line["result"]["parts"][1]["data"] == "/w=="


def test_what_only_this_process_understands_is_left_out() -> None:
    verdict = Verdict(CALL, "ask", {"city": "x"}, text="would run", bound=object())
    assert "bound" not in event_object(ApprovalAsked(1, verdict))["verdict"]


def test_a_failed_run_says_with_what() -> None:
    line = json.loads(
        json_line(Finished(outcome(stop_reason="failed", text="part"), RateLimited("wait 60 s", status=429)))
    )
    assert (line["type"], line["stop_reason"], line["text"]) == ("finished", "failed", "part")
    assert line["error"]["type"] == "RateLimited"
    assert "wait 60 s" in line["error"]["message"]


@pytest.mark.parametrize("text", ["\x1b[2J", "\u202e", "\U000e0041", "\ud800", "a\nb\u2028c", "平假名 é"])
def test_a_json_line_is_one_line_and_exact(text: str) -> None:
    line = json_line(TextDelta(text))
    assert len(line.splitlines()) == 1
    assert not any(ord(one) < 32 or 0xD800 <= ord(one) < 0xE000 or ord(one) >= 0xE0000 for one in line)
    assert json.loads(line)["text"] == text
