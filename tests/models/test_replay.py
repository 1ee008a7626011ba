"""A recorded run, played again: recorded over real HTTP, replayed with nobody there."""

import asyncio
import json
import re
import socket
from dataclasses import replace

import pytest
from tests.models.asking import QUICK

from glassloop import Agent, Endpoint, ReplayMismatch
from glassloop.cli.commands.demo import ANSWER, QUESTION, read_note
from glassloop.core.errors import ConnectionLost, GlassloopError, SessionError
from glassloop.core.events import Retrying, Switched
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.differences import differences
from glassloop.models.fallback import Fallback
from glassloop.models.recorded import read
from glassloop.models.replay import ReplayModel
from glassloop.testing.server import ChatServer, Raw, calls, events, fails, says
from glassloop.testing.tape import TapedModel

KEY = "planted-Zq8x7Vt2Lm4Nk6Rp"
BOTH = calls(("get_weather", {"city": "北京"}), ("read_note", {"title": "packing"}), text="Both at once.")
LOOK = calls(("get_weather", {"city": "Tokyo"}))
AS_TEXT = says('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Tokyo"}}\n</tool_call>')
HALF = events('{"choices": [{"index": 0, "delta": {"content": "It is"}}]}', end="reset", done=False)
CUT = Raw([b'{"choices": [{"ind'], end="reset")
TEMPERATURE = fails(400, "Unsupported parameter: 'temperature' is not supported with this model.")


def get_weather(city: str) -> str:
    """Current weather in a city."""
    return f"{city}: 18 °C, 小雨"


def agent_of(model, **options):
    return Agent(
        model,
        tools=[get_weather, read_note],
        instructions="Be brief.",
        **{"settings": {"temperature": 0}, **options},
    )


async def play(agent, question):
    """All that was said, without times; the result; the error."""
    said, error = [], None
    async with agent.stream(question) as run:
        try:
            async for event in run:
                said.append(event)
        except GlassloopError as failed:
            error = failed
        return said, run.result, error


class Wire:
    """A recorder that keeps everything as it went by."""

    def __init__(self):
        self.told = []

    def sent(self, method, url, headers, body):
        self.told.append(("sent", method, url, body))

    def answered(self, status, headers):
        self.told.append(("answered", status))

    def received(self, data):
        self.told.append(("received", data))

    def ended(self, error=None):
        self.told.append(("ended", error))


def record(path, script, *, question=QUESTION, options=None, agent=None):
    """Ask a real server; gives what was said, the result, the error, and the wire as it went by."""
    wire = Wire()

    async def story():
        async with ChatServer(script) as server:
            endpoint = Endpoint(server.base_url, "m", key=KEY, **{"retries": QUICK, **(options or {})})
            taped = TapedModel(endpoint, "m")
            told = await play(agent_of(taped, recorder=lambda _: wire, **(agent or {})), question)
            await taped.close()
        taped.save(path)
        return told

    return *asyncio.run(story()), wire.told


def replay(path, *, question=QUESTION, agent=None):
    """The same from the recording alone."""
    wire = Wire()
    model = ReplayModel.from_file(path)
    told = asyncio.run(play(agent_of(model, recorder=lambda _: wire, **(agent or {})), question))
    return *told, wire.told, model.unplayed


def plain(event):
    """An event without times, ids of runs and waits, and without what is masked."""
    text = repr(event).split("Finished(")[0].replace(KEY, "***")
    return re.sub(r"(seconds|wait_seconds|run_id)=[^,)]+", r"\1", text)


RUNS = {
    "the demo's three rounds": ([BOTH, calls(("read_note", {"title": "visa"})), says(ANSWER)], {}),
    "whole replies": ([BOTH, says(ANSWER)], {"stream": False}),
    "overloaded once": ([BOTH, fails(503, "overloaded"), says("fine")], {}),
    "told to wait": ([fails(429, "slow down", {"retry-after": "0.01"}), says("fine")], {}),
    "refused, adapted, learned": ([TEMPERATURE, LOOK, says("fine")], {}),
    "tools refused, so in text": ([fails(400, "tools are not supported by this model"), AS_TEXT, says("fine")], {}),
    "a text family": ([AS_TEXT, says("fine")], {"tool_mode": "text"}),
    "a stream broken and retried": ([HALF, LOOK, says("fine")], {}),
    "a body broken and retried": ([CUT, says("fine")], {"stream": False}),
    "a stream that stalls": ([events(end="stall", done=False), says("fine")], {"deadlines": Deadlines(silence=0.15)}),
    "redirected": ([Raw(status=307, headers={"location": "/v2/chat/completions"}), LOOK, says("fine")], {}),
    "garbage, then fine": ([Raw([b"<html>busy</html>"], 502), says("fine")], {}),
    "thinking, and odd characters": ([says("fine\u2028\u0085 \U0001f9ca", reasoning="hm, 嗯")], {}),
    "refused for good": ([fails(401, f"bad key {KEY}")], {}),
    "compressed wrongly": ([Raw([b"\xff\x00\x01"], headers={"content-encoding": "br"})], {}),
    "compressed and damaged": ([Raw([b"\x1f\x8b\x08\x00" + b"\xff" * 40])], {}),
    "too large": ([says("long " * 99)], {"limit": 200}),
    "never a first byte": ([Raw(end="close")] * 5, {"retries": Retries(attempts=1, base=0.001)}),
    "out of patience": ([fails(503, "overloaded")] * 9, {"retries": Retries(attempts=2, base=0.001)}),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_run_replays_byte_for_byte_with_nobody_there(tmp_path, name):
    script, options = RUNS[name]
    path = tmp_path / "run.jsonl"
    said, result, error, wire = record(path, script, options=options)
    said_again, result_again, error_again, wire_again, left = replay(path)
    # The mask is all that may differ: the key was in no request, and what a body said of it is masked.
    assert [one for one in wire_again if one[0] == "sent"] == [one for one in wire if one[0] == "sent"]
    assert _bodies(wire_again) == [body.replace(KEY.encode(), b"***") for body in _bodies(wire)]
    assert left == ()
    assert result_again.text == result.text
    assert result_again.stop_reason == result.stop_reason
    assert result_again.messages == result.messages
    assert sorted(map(plain, said_again)) == sorted(map(plain, said))
    assert (type(error_again), str(error_again)) == (type(error), str(error))
    assert KEY not in path.read_text("utf-8")


def _bodies(wire):
    bodies, now = [], b""
    for one in wire:
        now += one[1] if one[0] == "received" else b""
        if one[0] == "ended":
            bodies.append(now)
            now = b""
    return bodies


def test_waits_are_not_waited_for(tmp_path):
    path = tmp_path / "run.jsonl"
    record(path, [fails(503, "overloaded"), fails(429, "slow down"), says("fine")])
    text = path.read_text("utf-8").replace('"content-type": "application/json"', '"retry-after": "59"')
    path.write_text(text, "utf-8")
    said, result, error, *_ = replay(path)
    assert [one.wait_seconds for one in said if isinstance(one, Retrying)] == [0.0, 0.0]
    assert (result.text, error) == ("fine", None)


def test_a_date_to_wait_for_is_read_against_the_time_of_the_answer(tmp_path):
    path = tmp_path / "run.jsonl"
    far = {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT", "date": "Fri, 31 Dec 1999 22:59:59 GMT"}
    _, _, error, _ = record(path, [fails(429, "slow down", far)])
    *_, error_again, _, _ = replay(path)
    assert error.wait_seconds == error_again.wait_seconds == 3600


def test_an_endpoint_that_is_not_there_is_not_there_again(tmp_path):
    path = tmp_path / "run.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def story():
        taped = TapedModel(Endpoint(f"http://127.0.0.1:{port}/v1", "m", retries=QUICK), "m")
        told = await play(agent_of(taped), QUESTION)
        taped.save(path)
        return told

    said, _, error = asyncio.run(story())
    said_again, _, error_again, _, left = replay(path)
    assert isinstance(error, ConnectionLost)
    assert str(error_again).splitlines()[0] == str(error).splitlines()[0]
    assert len(read(path.read_text("utf-8").split("\n")).exchanges) == 2
    assert [type(one) for one in said_again] == [type(one) for one in said]
    assert left == ()


def test_when_another_model_took_over_it_takes_over_again(tmp_path):
    path = tmp_path / "run.jsonl"
    once = Retries(attempts=0)

    async def story():
        busy = [fails(503, "overloaded")] * 2
        async with ChatServer(busy) as bad, ChatServer([BOTH, says(ANSWER)]) as good:
            servers = {"a": bad, "b": good}
            models = [Endpoint(each.base_url, name, retries=once) for name, each in servers.items()]
            taped = TapedModel(Fallback(models), "m")
            told = await play(agent_of(taped), QUESTION)
            await taped.close()
        taped.save(path)
        return told

    said, result, _ = asyncio.run(story())
    said_again, result_again, _, _, left = replay(path)
    assert (result.text, result_again.text, left) == (ANSWER, ANSWER, ())
    switches = [[one for one in each if isinstance(one, Switched)] for each in (said, said_again)]
    assert len(switches[0]) == 2
    assert switches[0] == switches[1]


def test_runs_side_by_side_replay_in_any_order(tmp_path):
    path = tmp_path / "run.jsonl"
    towns = ["Oslo", "Rome", "北京", "Lima"]

    async def answer(request):
        town = request.body["messages"][1]["content"]
        if request.body["messages"][-1]["role"] == "tool":
            return says(f"{town} is fine.")
        await asyncio.sleep(0.02 * towns.index(town))
        return calls(("get_weather", {"city": town}))

    async def all_of(agent, names):
        return [result.text for result in await asyncio.gather(*(agent.run(name) for name in names))]

    async def story():
        async with ChatServer(answer) as server:
            taped = TapedModel(Endpoint(server.base_url, "m"), "m")
            texts = await all_of(agent_of(taped), towns)
            await taped.close()
        taped.save(path)
        return texts

    texts = asyncio.run(story())
    model = ReplayModel.from_file(path)
    assert asyncio.run(all_of(agent_of(model), towns[::-1])) == texts[::-1]
    assert model.unplayed == ()


def test_what_was_learned_meanwhile_elsewhere_is_learned_again(tmp_path):
    """Two agents share an endpoint: the second one's first request already heeds what the first one taught it."""
    path = tmp_path / "run.jsonl"

    async def story():
        async with ChatServer([TEMPERATURE, says("one"), says("two")]) as server:
            endpoint = Endpoint(server.base_url, "m", retries=QUICK)
            await agent_of(endpoint).run("first")
            taped = TapedModel(endpoint, "m")
            result = await agent_of(taped).run("second")
            await taped.close()
        taped.save(path)
        return result.text

    assert asyncio.run(story()) == "two"
    _, result, error, *_ = replay(path, question="second")
    assert (result.text, error) == ("two", None)


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "run.jsonl"
    record(path, [BOTH, says(ANSWER)])
    return path


CHANGES = {
    "the task": ({"question": QUESTION + " 谢谢"}, ["(request 1 of 2)", "messages[1].content", 'say?"', '谢谢"']),
    "a setting": ({"agent": {"settings": {"temperature": 1}}}, ["  temperature\n", "recorded: 0", "now:      1"]),
    "a field more": ({"agent": {"settings": {"seed": 7}}}, ["  seed", "recorded: (nothing)", "now:      7"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_request_is_shown_where_it_changed(recording, name):
    changed, shown = CHANGES[name]
    *_, error, _, _ = replay(recording, **changed)
    assert isinstance(error, ReplayMismatch)
    assert [words for words in shown if words not in str(error)] == []
    assert "record the run again" in str(error)


def test_a_tool_that_answers_otherwise_is_a_mismatch_in_the_next_request(recording, monkeypatch):
    monkeypatch.setattr("glassloop.cli.commands.demo._NOTES", {"packing": "伞、鞋"})
    *_, error, _, left = replay(recording)
    assert "(request 2 of 2)" in str(error)
    assert "messages[4].content" in str(error)
    assert 'now:      "伞、鞋"' in str(error)
    assert len(left) == 1


def test_a_tampered_request_is_a_mismatch_that_names_the_path(recording):
    text = recording.read_text("utf-8")
    recording.write_text(text.replace("Be brief.", "Be very brief.", 1), "utf-8")
    *_, error, _, _ = replay(recording)
    assert "messages[0].content" in str(error)
    assert "Be very brief." in str(error)


def test_more_requests_than_were_recorded_are_a_mismatch(tmp_path):
    path = tmp_path / "run.jsonl"
    record(path, [says("fine")])

    async def twice():
        agent = agent_of(ReplayModel.from_file(path))
        await agent.run(QUESTION)
        await agent.run(QUESTION)

    with pytest.raises(ReplayMismatch, match="more requests than the 1 that were recorded"):
        asyncio.run(twice())


def test_where_the_recorded_run_was_interrupted_the_replay_says_so(tmp_path):
    path = tmp_path / "run.jsonl"

    async def story():
        async with ChatServer([replace(HALF, end="stall")]) as server:
            taped = TapedModel(Endpoint(server.base_url, "m"), "m")
            async with agent_of(taped).stream(QUESTION) as run:
                async for event in run:
                    if type(event).__name__ == "TextDelta":
                        break
            await taped.close()
        taped.save(path)

    asyncio.run(story())
    *_, error, _, _ = replay(path)
    assert isinstance(error, ReplayMismatch)
    assert "was interrupted here" in str(error)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────

HEAD = '{"format": "glassloop-recording", "version": 1, "model": "m"}\n'
UNREADABLE = {
    "nothing": ("", "this is no recording"),
    "another format": ('{"format": "har", "version": 1}', "this is no recording"),
    "a later version": ('{"format": "glassloop-recording", "version": 9}', "version 9"),
    "no JSON": (HEAD + "{", "line 2 of the recording is no JSON"),
    "no object": (HEAD + "[]", "line 2 of the recording is no object"),
    "an answer to nothing": (HEAD + '{"response": 200, "headers": {}}', "line 2"),
    "a request to nobody": (HEAD + '{"request": "POST http://h", "headers": {}, "json": {}}', "line 2"),
    "no endpoint": (HEAD + '{"endpoint": 3}', "an endpoint is an object"),
    "half an endpoint": (HEAD + '{"endpoint": {"name": "x"}}', "needs the field 'base_url'"),
    "a wrong endpoint": (HEAD + '{"endpoint": {"name": "x", "base_url": "u", "model": 3}}', "'model' cannot be 3"),
    "a session without its wire": ('{"format": "glassloop-session", "version": 1}', "--wire"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_is_no_recording_is_said_to_be_none(tmp_path, name):
    text, words = UNREADABLE[name]
    path = tmp_path / "x.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(SessionError, match=re.escape(words)) as caught:
        ReplayModel.from_file(path)
    assert "x.jsonl" in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SessionError, match=r"gone\.jsonl"):
        ReplayModel.from_file(tmp_path / "gone.jsonl")


def test_recording_the_same_run_again_gives_the_same_file(tmp_path, recording):
    again = tmp_path / "again.jsonl"
    record(again, [BOTH, says(ANSWER)])
    texts = [re.sub(r"127.0.0.1:\d+", "HOST", each.read_text("utf-8")) for each in (recording, again)]
    pieces = [re.findall(r'^{"text": "(.*)"}$', text, re.MULTILINE) for text in texts]
    assert "".join(pieces[0]) == "".join(pieces[1])  # how TCP cuts a stream is chance
    rest = [re.sub(r'^{"text": .*\n', "", text, flags=re.MULTILINE) for text in texts]
    assert rest[0] == rest[1]


def test_a_recording_can_be_read_by_people(recording):
    lines = [json.loads(line) for line in recording.read_text("utf-8").splitlines()]
    asked = [line for line in lines if "request" in line]
    assert [line["json"]["messages"][0]["content"] for line in asked] == ["Be brief.", "Be brief."]
    assert "北京" in recording.read_text("utf-8")


@pytest.mark.parametrize(("before", "now", "lines"), [
    (b'{"a": {"b": [1, 2]}}', b'{"a": {"b": [1, 3]}}', ["  a.b[1]", "    recorded: 2", "    now:      3"]),
    (b'{"a": [1]}', b'{"a": [1, 2]}', ["  a[1]", "    recorded: (nothing)", "    now:      2"]),
    (b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}', ["  the bytes", '    recorded: "{\\"a\\": 1, \\"b\\": 2}"', '    now:      "{\\"b\\": 2, \\"a\\": 1}"']),
    (b"\xff\xfe", b"\xff", ["  the bytes", '    recorded: "\ufffd\ufffd"', '    now:      "\ufffd"']),
    (b"[1]", b"{}", ["  the whole", "    recorded: [1]", "    now:      {}"]),
    (b"true", b"1", ["  the whole", "    recorded: true", "    now:      1"]),
])  # fmt: skip
def test_differences_name_the_path_and_both_sides(before, now, lines):
    assert differences(before, now) == lines


def test_long_values_are_cut_around_their_first_difference():
    before, now = ({"text": "天" * 5000 + each + "地" * 5000} for each in ("晴", "雨"))
    lines = differences(*(json.dumps(each, ensure_ascii=False).encode() for each in (before, now)))
    assert lines[0] == "  text"
    assert lines[1].startswith("    recorded: …天")
    assert "天晴地" in lines[1]
    assert "天雨地" in lines[2]
    assert max(map(len, lines)) < 130


def test_many_differences_are_counted():
    lines = differences(json.dumps(list(range(20))).encode(), json.dumps(list(range(1, 21))).encode())
    assert lines[-1] == "  and 14 more"


def test_a_request_that_was_sent_again_on_a_new_connection_is_so_again(recording):
    lines = recording.read_text("utf-8").split("\n")
    asked = next(place for place, line in enumerate(lines) if line.startswith('{"request"'))
    lines[asked:asked] = [lines[asked], '{"end": "the kept connection was dead; sent again"}']
    recording.write_text("\n".join(lines), "utf-8")
    said, result, error, wire, left = replay(recording)
    assert (result.text, error, left) == (ANSWER, None, ())
    assert [one[0] for one in wire].count("sent") == 3
    assert [one for one in said if isinstance(one, Retrying)] == []


def test_a_window_that_the_server_told_meanwhile_is_known_at_the_same_moment(tmp_path):
    """Only what it taught is recorded; the question itself is no part of the run."""
    path = tmp_path / "run.jsonl"

    def long_note(title: str) -> str:
        """A long note."""
        return "word " * 3000

    def agent(model):
        return Agent(model, tools=[long_note])

    async def story():
        more = [calls(("long_note", {"title": str(number)})) for number in range(3)]
        listed = {"/v1/models": {"data": [{"id": "m", "max_model_len": 9000}]}}
        async with ChatServer([*more, *[says("fine")] * 4], gets=listed) as server:
            taped = TapedModel(Endpoint(server.base_url, "m"), "m")
            told = await play(agent(taped), QUESTION)
            await taped.close()
        taped.save(path)
        return told

    _, result, _ = asyncio.run(story())
    model = ReplayModel.from_file(path)
    _, result_again, error = asyncio.run(play(agent(model), QUESTION))
    assert (result_again.text, error, model.unplayed) == (result.text, None, ())
    windows = [
        [getattr(one, "context_window", None) for one in each.entries] for each in (result, result_again)
    ]
    assert 9000 in windows[0]
    assert windows[0][:-1] == windows[1][:-1]
