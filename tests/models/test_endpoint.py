"""One question over real HTTP: replies, retries, adaptations, errors."""

import asyncio
import json

import pytest
from tests.models.asking import WEATHER, ask, heard_from, quick

from glassloop import Agent, tool
from glassloop.core.entries import Reply, Text, ToolCall, ToolResult, User, parts_of
from glassloop.core.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    ContentFiltered,
    ContextOverflow,
    EmptyReply,
    EndpointError,
    ModelNotFound,
    OutOfCredit,
    RateLimited,
    RequestRejected,
    StreamStalled,
)
from glassloop.core.events import Learned, Retrying, TextDelta, Warned
from glassloop.core.recording import NoRecorder
from glassloop.core.tools import ToolSpec
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.model import ModelRequest
from glassloop.models.profiles import Learnt, ProfileStore
from glassloop.models.providers import Provider
from glassloop.testing.server import ChatServer, Completion, Raw, calls, events, fails, says

OVERLOADED = fails(503, "The server is overloaded")
CHUNK = json.dumps({"id": "c1", "choices": [{"index": 0, "delta": {"content": "It is"}}]})


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 20 °C"


BOTH_WAYS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def heard(script, **options):
    return asyncio.run(heard_from(script, **options))


# ── replies ──────────────────────────────────────────────────────────────


@BOTH_WAYS
def test_a_reply_is_the_same_streamed_or_whole(stream):
    said, requests = heard([says("It is 4 degrees.", reasoning="Let me see.")], stream=stream)
    assert (said.reply.text, said.reply.reasoning) == ("It is 4 degrees.", "Let me see.")
    assert said.reply.usage.total_tokens == 18
    assert requests[0].body.get("stream", False) is stream
    assert said.shown == ("It is 4 degrees." if stream else "")


@BOTH_WAYS
def test_calls_come_with_their_arguments(stream):
    said, _ = heard(
        [calls(("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "北京"}))], stream=stream
    )
    assert [call.arguments for call in said.reply.tool_calls] == [{"city": "Oslo"}, {"city": "北京"}]


def test_an_id_that_was_used_before_is_replaced():
    before = ToolCall("call_get_weather_0", "get_weather", {"city": "Rome"})
    entries = [
        User(parts_of("Rome and Oslo?")),
        Reply(tool_calls=(before,)),
        ToolResult(before.id, before.name, (Text("20"),)),
    ]

    async def story():
        async with ChatServer([calls(("get_weather", {"city": "Oslo"})), says("Warm.")]) as server:
            agent = Agent(quick(server), tools=[get_weather])
            return await agent.run("And Oslo now?", history=entries)

    [call] = [
        call
        for entry in asyncio.run(story()).entries
        if isinstance(entry, Reply)
        for call in entry.tool_calls
    ][1:]
    assert call.id not in ("", before.id)


def test_a_tool_is_called_by_its_real_name_whatever_was_sent():
    tool = ToolSpec("天气.look-up", "Weather", WEATHER.parameters)
    sent = []

    def script(request):
        sent.append(request.body["tools"][0]["function"]["name"])
        return calls((sent[0], {"city": "Oslo"}))

    said, _ = heard(script, tools=(tool,))
    assert sent[0].isascii()
    assert said.reply.tool_calls[0].name == tool.name


def test_a_stream_that_breaks_after_its_last_word_is_whole():
    finished = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    said, requests = heard([events(CHUNK, finished, done=False, end="reset")])
    assert said.reply.text == "It is"
    assert len(requests) == 1


def test_a_connection_that_stays_open_after_done_is_not_waited_for():
    stays_open = events(
        json.dumps({"choices": [{"index": 0, "delta": {"content": "4"}, "finish_reason": "stop"}]}),
        end="stall",
    )
    said, _ = heard([stays_open], deadlines=Deadlines(silence=600))
    assert said.reply.text == "4"


# ── again ────────────────────────────────────────────────────────────────

BROKEN = {
    "503": OVERLOADED,
    "429 with Retry-After": fails(429, "slow down", {"retry-after": "0"}),
    "408": fails(408, "timeout"),
    "an error object under 200": fails(200, {"error": {"message": "upstream died", "code": 502}}),
    "cut JSON": Raw([b'{"choices": [{"mess']),
    "an empty body": Raw([b""]),
    "no choices": fails(200, {"id": "c1", "choices": []}),
    "a reset": Raw([b'{"choi'], end="reset"),
    "a turn that ended in an error": Completion({"role": "assistant", "content": "x"}, "error"),
    "a half stream": events(CHUNK, end="reset", done=False),
}


@BOTH_WAYS
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_what_passes_by_itself_is_asked_again(broken, stream):
    said, requests = heard([broken, says("fine")], stream=stream)
    assert said.reply is not None, said.error
    assert said.reply.text == "fine"
    assert said.kinds == ["Retrying", "Reply"]
    assert requests[0].body == requests[1].body


def test_text_of_a_broken_stream_is_taken_back():
    said, _ = heard([events(CHUNK, end="reset", done=False), says("It is 4.")])
    assert said.of(Retrying)[0].discard
    assert said.shown == "It is 4."


def test_retries_end_and_the_error_quotes_the_endpoint():
    said, requests = heard(lambda request: OVERLOADED)
    assert len(requests) == 5
    assert said.error.status == 503
    assert "The server is overloaded" in str(said.error)


def test_a_throttle_that_does_not_end_is_a_rate_limit():
    said, _ = heard(lambda request: fails(429, "slow down"), retries=Retries(attempts=1, base=0.001))
    assert isinstance(said.error, RateLimited)


def test_a_wait_beyond_the_cap_is_raised_at_once_and_named():
    said, requests = heard(lambda request: fails(429, "slow down", {"retry-after": "3600"}))
    assert isinstance(said.error, RateLimited)
    assert said.error.wait_seconds == 3600
    assert "3600" in str(said.error)
    assert len(requests) == 1


def test_a_wait_of_months_is_a_wrong_clock_and_no_wait():
    reset = {"x-ratelimit-reset": "99999999999"}
    said, _ = heard([fails(429, "slow down", reset), says("fine")])
    assert said.reply.text == "fine"


@pytest.mark.parametrize("draw", [0.0, 0.999])
def test_backoff_grows_and_never_comes_before_what_was_asked(draw):
    retries = Retries(base=1, ceiling=8, draw=lambda: draw)
    part = (2 + draw) / 3
    assert [retries.pause(attempt, None) for attempt in (1, 2, 3, 4)] == pytest.approx(
        [2 * part, 4 * part, 8 * part, 8 * part]
    )
    assert 5 <= retries.pause(1, 5) <= 6


def test_when_retries_end_the_partial_text_is_kept_and_said_to_be_partial():
    said, _ = heard(
        lambda request: events(CHUNK, end="reset", done=False), retries=Retries(attempts=1, base=0.001)
    )
    assert isinstance(said.error, ConnectionLost)
    assert said.error.partial.text == "It is"
    assert said.error.partial.cut_off


def test_a_stall_is_broken_off_and_asked_again():
    stall = events(CHUNK, end="stall", done=False)
    said, requests = heard([stall, says("fine")], deadlines=Deadlines(silence=0.05))
    assert said.reply.text == "fine"
    assert said.shown == "fine"
    assert len(requests) == 2


STALLS = {
    "first_byte": (Deadlines(first_byte=0.05), lambda request: asyncio.sleep(5, says("late"))),
    "silence": (Deadlines(silence=0.05), lambda request: events(CHUNK, end="stall", done=False)),
    "content": (
        Deadlines(silence=5, content=0.1),
        lambda request: Raw(
            [b": still here\n\n"] * 50, headers={"content-type": "text/event-stream"}, pause=0.02
        ),
    ),
    "whole": (Deadlines(whole=0.15), lambda request: events(*[CHUNK] * 50, pause=0.02)),
}


@pytest.mark.parametrize("name", STALLS)
def test_each_deadline_is_kept_and_named(name):
    deadlines, script = STALLS[name]
    said, _ = heard(script, deadlines=deadlines, retries=Retries(attempts=0))
    assert isinstance(said.error, StreamStalled)
    assert f"Deadlines.{name}" in str(said.error)


def test_a_caller_that_takes_its_time_is_no_stall():
    async def story():
        async with ChatServer([events(CHUNK, *[CHUNK] * 3, pause=0.02)]) as server:
            endpoint = quick(
                server, deadlines=Deadlines(silence=0.1, content=0.1, whole=0.3), retries=Retries(attempts=0)
            )
            seen = []
            request = ModelRequest((User(parts_of("hi")),))
            try:
                async for one in endpoint.stream(request, NoRecorder()):
                    seen.append(one)
                    await asyncio.sleep(0.15)
            except EndpointError as error:
                return error
            finally:
                await endpoint.close()

    assert not isinstance(asyncio.run(story()), StreamStalled)


def test_a_stream_without_any_end_mark_is_asked_again_once_then_taken_and_remembered():
    async def story():
        async with ChatServer(lambda request: events(CHUNK, done=False)) as server:
            endpoint = quick(server)
            first = await ask(endpoint)
            second = await ask(endpoint)
            await endpoint.close()
            again = quick(server)
            third = await ask(again)
            await again.close()
            return first, second, third, len(server.requests)

    first, second, third, requests = asyncio.run(story())
    assert first.kinds == ["Retrying", "Learned", "Reply"]
    assert second.kinds == third.kinds == ["Reply"]
    assert {each.reply.text for each in (first, second, third)} == {"It is"}
    assert not first.reply.cut_off
    assert requests == 4


def half_call(arguments):
    function = {"name": "get_weather", "arguments": arguments}
    delta = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    return events(json.dumps({"choices": [{"index": 0, "delta": delta}]}), done=False)


def test_calls_of_an_endpoint_whose_streams_never_say_that_they_end_run_if_they_are_complete():
    said, requests = heard(lambda request: half_call('{"city": "Oslo"}'))
    [call] = said.reply.tool_calls
    assert (call.arguments, call.problem) == ({"city": "Oslo"}, None)
    assert len(requests) == 2


@pytest.mark.parametrize("arguments", ['{"city": "Os', '{"city": "Oslo"', ""])
def test_a_call_that_may_lack_its_end_never_runs_however_often_it_comes(arguments):
    said, _ = heard(lambda request: half_call(arguments))
    assert isinstance(said.error, ConnectionLost)
    assert all(call.problem for call in said.error.partial.tool_calls)


def test_a_garbled_streamed_call_is_asked_for_whole_and_that_is_remembered():
    garbled = calls(('"}', '[ARGS]{"city": "Oslo"}'))

    def script(request):
        return garbled if request.body.get("stream") else calls(("get_weather", {"city": "Oslo"}))

    async def story():
        async with ChatServer(script) as server:
            endpoint = quick(server)
            heard = [await ask(endpoint), await ask(endpoint)]
            await endpoint.close()
            return heard, len(server.requests)

    (first, second), requests = asyncio.run(story())
    assert first.kinds == ["Retrying", "Learned", "Reply"]
    assert second.kinds == ["Reply"]
    assert first.reply.tool_calls[0].name == "get_weather"
    assert requests == 3


def test_the_name_of_an_offered_tool_is_no_debris_whatever_it_looks_like():
    tools = (ToolSpec("2nd-opinion", "", {"type": "object", "properties": {}}),)

    async def story():
        async with ChatServer(lambda request: calls(("2nd-opinion", {}))) as server:
            endpoint = quick(server)
            heard = await ask(endpoint, tools=tools)
            await endpoint.close()
            return heard

    assert asyncio.run(story()).kinds == ["Reply"]


# ── adapting ─────────────────────────────────────────────────────────────


def refuses_temperature(request):
    if "temperature" in request.body:
        return fails(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    return says("fine")


def test_what_is_refused_is_left_out_and_never_sent_again():
    async def story():
        async with ChatServer(refuses_temperature) as server:
            heard = []
            for _ in range(2):  # the second is a new process, as far as an endpoint can tell
                endpoint = quick(server)
                heard.append(await ask(endpoint, settings={"temperature": 0}))
                await endpoint.close()
            return heard, len(server.requests), endpoint.learnt

    (first, second), requests, learnt = asyncio.run(story())
    assert first.kinds == ["Learned", "Reply"]
    assert second.kinds == ["Reply"]
    assert requests == 3
    assert "temperature" in learnt.lessons[0].words
    assert learnt.lessons[0].date


def test_many_requests_may_learn_the_same_at_once():
    async def story():
        async with ChatServer(refuses_temperature) as server:
            endpoint = quick(server)
            heard = await asyncio.gather(*(ask(endpoint, settings={"temperature": 0}) for _ in range(20)))
            later = await ask(endpoint, settings={"temperature": 0})
            await endpoint.close()
            return heard, later, endpoint.learnt

    heard, later, learnt = asyncio.run(story())
    assert all(each.reply.text == "fine" for each in heard)
    assert later.kinds == ["Reply"]
    assert len(learnt.lessons) == 1


def test_a_second_identical_rejection_raises_and_teaches_nothing():
    async def story():
        refuse = fails(400, "Unsupported parameter: 'temperature' is not supported with this model.")
        async with ChatServer(lambda request: refuse) as server:
            endpoint = quick(server)
            heard = await ask(endpoint, settings={"temperature": 0})
            await endpoint.close()
            return heard, len(server.requests), endpoint.learnt

    said, requests, learnt = asyncio.run(story())
    assert isinstance(said.error, RequestRejected)
    assert requests == 2
    assert not learnt.lessons


def test_settings_of_the_user_win_over_what_was_learned_and_that_over_the_providers_facts():
    store = ProfileStore(None)
    store.save("http://localhost/v1", "m", Learnt({"tool_name": False, "system": "user", "max_tools": 9}))
    row = Provider("row", "http://localhost/v1", profile={"system": "developer", "stream_options": True})
    profile = Endpoint(
        "http://localhost/v1", "m", learned=store, provider=row, profile={"max_tools": 3}
    ).profile
    assert profile.to_json() == {"tool_name": False, "system": "user", "max_tools": 3, "stream_options": True}


def test_a_profile_that_cannot_be_raises_when_the_endpoint_is_made():
    with pytest.raises(ConfigError, match="no_such_field"):
        Endpoint("http://localhost/v1", "m", profile={"no_such_field": 1})


# ── errors ───────────────────────────────────────────────────────────────

RAISED = {
    "wrong key": (fails(401, "Incorrect API key provided"), AuthenticationFailed),
    "no credit": (fails(402, "Insufficient Balance"), OutOfCredit),
    "quota under 429": (
        fails(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
        OutOfCredit,
    ),
    "unknown model": (fails(404, "The model `m` does not exist"), ModelNotFound),
    "overflow": (
        fails(400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
        ContextOverflow,
    ),
    "filter": (Completion({"role": "assistant", "content": ""}, "content_filter"), ContentFiltered),
    "nothing there": (
        Raw([b"<html><title>Not Found</title></html>"], 404, {"content-type": "text/html"}),
        RequestRejected,
    ),
    "refused": (fails(400, "messages.1.content: invalid"), RequestRejected),
}


@BOTH_WAYS
@pytest.mark.parametrize("name", RAISED)
def test_what_waiting_does_not_help_is_raised_at_once(name, stream):
    reply, kind = RAISED[name]
    said, requests = heard([reply, says("never asked")], stream=stream)
    assert type(said.error) is kind
    assert len(requests) == 1
    assert said.error.url.endswith("/chat/completions")


def test_an_overflow_names_the_window():
    said, _ = heard([RAISED["overflow"][0]])
    assert said.error.window == 8192


def test_a_web_page_instead_of_json_says_so():
    page = Raw([b"<html><title>Welcome to nginx</title></html>"], 200, {"content-type": "text/html"})
    said, requests = heard(lambda request: page)
    assert isinstance(said.error, RequestRejected)
    assert "web page" in str(said.error)
    assert len(requests) == 2


def test_an_endpoint_that_never_says_anything_is_an_empty_reply():
    said, _ = heard(lambda request: fails(200, {"choices": []}))
    assert isinstance(said.error, EmptyReply)


def test_nobody_there_is_said_with_a_hint():
    async def story():
        endpoint = Endpoint("http://127.0.0.1:9/v1", "m", retries=Retries(attempts=1, base=0.001))
        heard = await ask(endpoint)
        await endpoint.close()
        return heard

    said = asyncio.run(story())
    assert isinstance(said.error, ConnectionLost)
    assert said.kinds == ["Retrying"]
    assert "port" in str(said.error)


def test_the_key_is_in_no_error_no_event_and_no_record():
    key = "sk-secretsecretsecret"
    kept = []

    class Keeper:
        def sent(self, method, url, headers, body):
            kept.append((url, dict(headers), body))

        def answered(self, status, headers):
            kept.append(dict(headers))

        def received(self, data):
            kept.append(data)

        def ended(self, error=None):
            kept.append(error)

    parrot = fails(401, f"Incorrect API key provided: {key}", {"x-request-id": "req-7"})
    said, requests = heard([fails(503, f"busy, {key}"), parrot], key=key, recorder=Keeper())
    assert requests[0].headers["Authorization"] == f"Bearer {key}"
    assert key not in str(said.error) + repr(vars(said.error)) + repr(said.events)
    assert key not in repr([each for each in kept if not isinstance(each, bytes)])
    assert said.error.request_id == "req-7"


def test_extra_headers_win_and_bad_ones_are_refused():
    _, requests = heard(
        [says("fine")], key="k" * 8, headers={"authorization": "Basic abc", "X-Title": "Glass"}
    )
    sent = {name.lower(): value for name, value in requests[0].headers.items()}
    assert (sent["authorization"], sent["x-title"]) == ("Basic abc", "Glass")
    with pytest.raises(ConfigError, match="X-Title"):
        Endpoint("http://localhost/v1", "m", headers={"X-Title": "a\r\nHost: evil"})
    with pytest.raises(ConfigError) as refused:
        Endpoint("http://localhost/v1", "m", key="schlüssel\n1")
    assert "schlüssel" not in str(refused.value)


def test_a_certificate_that_is_not_checked_is_said_once():
    async def story():
        async with ChatServer([says("a"), says("b")]) as server:
            endpoint = quick(server, verify=False)
            heard = [await ask(endpoint), await ask(endpoint)]
            await endpoint.close()
            return heard

    first, second = asyncio.run(story())
    assert [warning.code for warning in first.of(Warned)] == ["unverified_tls"]
    assert not second.of(Warned)


def test_the_recorder_is_told_of_each_exchange_in_order():
    told = []

    class Keeper:
        def sent(self, method, url, headers, body):
            told.append(("sent", json.loads(body)["model"]))

        def answered(self, status, headers):
            told.append(("answered", status))

        def received(self, data):
            told.append(("received", b"fine" in data or b"busy" in data))

        def ended(self, error=None):
            told.append(("ended", error))

    heard([fails(503, "busy"), says("fine")], stream=False, recorder=Keeper())
    one = [("sent", "m"), ("answered", 503), ("received", True), ("ended", None)]
    assert told == [*one, ("sent", "m"), ("answered", 200), *one[2:]]


def test_nothing_optional_is_sent_unasked():
    _, requests = heard([says("fine")], tools=())
    assert set(requests[0].body) == {"model", "messages", "stream"}
    assert requests[0].headers["Accept-Encoding"] == "identity"


def test_learned_is_said_with_the_endpoints_words():
    said, _ = heard(refuses_temperature, settings={"temperature": 0})
    [learned] = said.of(Learned)
    assert "temperature" in learned.change
    assert "not supported" in learned.words


def test_deltas_come_while_the_endpoint_still_speaks():
    async def story():
        async with ChatServer([events(*[CHUNK] * 3, end="stall", done=False)]) as server:
            endpoint = quick(server)
            said = endpoint.stream(ModelRequest((User(parts_of("hi")),)), NoRecorder())
            first = await asyncio.wait_for(anext(said), 5)
            await said.aclose()
            await endpoint.close()
            return first

    assert isinstance(asyncio.run(story()), TextDelta)


def test_a_change_that_the_users_own_profile_overrides_is_not_tried():
    """Of what a wordless refusal makes us leave out, the one thing that was sent is what the user insists on."""
    thought = Reply("4", reasoning="hm", reasoning_field="reasoning", raw={"content": "4", "reasoning": "hm"})
    entries = [User(parts_of("2 + 2?")), thought, User(parts_of("And 3 + 3?"))]
    profile = {"reasoning_back": "always", "reasoning_name": "reasoning"}
    heard, requests = asyncio.run(
        heard_from(lambda request: fails(400, None), profile=profile, tools=(), entries=entries)
    )
    assert "hm" in json.dumps(requests[0].body)
    assert isinstance(heard.error, RequestRejected)
    assert len(requests) == 1


def test_after_a_change_that_changes_no_byte_the_next_one_is_tried():
    def answer(request):
        return fails(400, None) if "seed" in request.body else says("fine")

    heard, requests = asyncio.run(
        heard_from(answer, profile={"stream_options": True}, tools=(), settings={"seed": 1})
    )
    assert heard.reply.text == "fine"
    assert len(requests) == 2
