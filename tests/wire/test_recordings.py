"""Bytes that real servers sent, read as they came: a reply, or what the error answer asks for."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.wire.reading import REPOSITORY
from tests.wire.recorded import OUTCOMES

from glassloop.core.entries import Reply, ToolCall
from glassloop.core.tools import ToolSpec
from glassloop.models.window import listed_models, model_id
from glassloop.wire.completion import Failure
from glassloop.wire.profile import Profile
from glassloop.wire.rejection import Adapt, Judgement, Overflow, Raise, Retry, Salvage, Sent, judge
from glassloop.wire.stream import StreamReader

FOLDER = Path(os.environ.get("GLASSLOOP_RECORDINGS") or REPOSITORY.parent / "shared" / "recordings")


@dataclass(frozen=True)
class Recorded:
    """One exchange. `asked` is the request's JSON, None where it was none."""

    name: str
    path: str
    asked: Any
    sent: bytes
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def tools(self) -> dict[str, ToolSpec]:
        offered = self.asked.get("tools") if isinstance(self.asked, dict) else None
        functions = [each.get("function", {}) for each in offered] if isinstance(offered, list) else []
        return {each["name"]: _spec(each) for each in functions if each.get("name")}

    @property
    def facts(self) -> Sent:
        """What was sent, where Glassloop could have sent it."""
        if not isinstance(self.asked, dict) or not isinstance(self.asked.get("tools", []), list):
            return Sent()
        return Sent.of(self.sent, Profile())


def _spec(function: Mapping[str, Any]) -> ToolSpec:
    schema = function.get("parameters")
    return ToolSpec(function["name"], "", schema if isinstance(schema, dict) else {})


@cache
def recordings() -> tuple[Recorded, ...]:
    """Every exchange that was recorded. Skips the test, saying so, where there are none."""
    responses = sorted(FOLDER.rglob("*.response.http"))
    if not responses:
        pytest.skip(f"{FOLDER} holds no recordings; set GLASSLOOP_RECORDINGS to the folder that does")
    return tuple(map(_read, responses))


def _read(response: Path) -> Recorded:
    start, headers, body = _http(response.read_bytes())
    asked, _, sent = _http(response.with_name(response.name.replace(".response.", ".request.")).read_bytes())
    name = response.relative_to(FOLDER).as_posix().removesuffix(".response.http")
    return Recorded(name, asked.split()[1], _json(sent), sent, int(start.split()[1]), headers, body)


def _http(message: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = message.partition(b"\r\n\r\n")
    start, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)
    }
    chunked = "chunked" in headers.get("transfer-encoding", "")
    return start, headers, b"".join(_chunks(body)) if chunked else body


def _chunks(body: bytes) -> Iterator[bytes]:
    """The chunks of a body, as far as it goes: some recordings end in the middle."""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        yield rest[:length]
        body = rest[length + 2 :] if length else b""


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def read_in_pieces(recorded: Recorded, size: int) -> Reply | Failure:
    reader = StreamReader(recorded.tools)
    for at in range(0, len(recorded.body), size):
        reader.feed(recorded.body[at : at + size])
    return reader.finish()


def verdict(recorded: Recorded, failure: Failure) -> Judgement:
    return judge(
        recorded.status, recorded.headers, failure.payload, failure.text, recorded.facts, now=1_796_000_000.0
    )


# ── an outcome in words, as in the table ─────────────────────────────────────


def outcome(recorded: Recorded) -> str:
    if recorded.path.endswith("/models"):
        return "models: " + ", ".join(map(model_id, listed_models(json.loads(recorded.body))))
    read = read_in_pieces(recorded, len(recorded.body))
    return _reply_in_words(read) if isinstance(read, Reply) else _failure_in_words(recorded, read)


def _reply_in_words(reply: Reply) -> str:
    end = f"{reply.finish_reason}{', cut off' if reply.cut_off else ''}"
    tokens = f"{reply.usage.prompt_tokens}+{reply.usage.completion_tokens}"
    said = [_shortened(reply.text)] if reply.text else []
    mends = [f"mended {', '.join(sorted({mend.code for mend in reply.mends}))}"] if reply.mends else []
    return " | ".join([*said, *map(_call_in_words, reply.tool_calls), end, tokens, *mends])


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 32 else line[:32] + "…"


def _call_in_words(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in (call.arguments or {}).items())
    return f"{'' if call.problem is None else 'never: '}{call.name}({arguments})"


def _failure_in_words(recorded: Recorded, failure: Failure) -> str:
    if failure.reason in ("cut_off", "broken_chunk"):
        partial = failure.partial.tool_calls if failure.partial else ()
        return " | ".join(["ended early", *map(_call_in_words, partial)])
    match verdict(recorded, failure):
        case Retry(after, _, limit):
            return "retry" + (f" after {after:g} s" if after else "") + (f", {limit} times" if limit else "")
        case Adapt(code):
            return f"adapt {code}"
        case Overflow(window):
            return f"overflow of {window}"
        case Raise(error):
            return type(error).__name__
        case Salvage():
            return "salvage"


# ── the rules ────────────────────────────────────────────────────────────────


def test_every_recorded_answer_comes_to_what_the_table_says() -> None:
    found = {one.name: outcome(one) for one in recordings()}
    if os.environ.get("GLASSLOOP_RECORDINGS") is None:
        assert set(found) == set(OUTCOMES)
    assert {name: found[name] for name in found if name in OUTCOMES} == {
        name: OUTCOMES[name] for name in found if name in OUTCOMES
    }


@pytest.mark.parametrize("size", [1, 7])
def test_no_recorded_answer_reads_differently_in_small_pieces(size: int) -> None:
    for recorded in recordings():
        whole, pieces = read_in_pieces(recorded, len(recorded.body) or 1), read_in_pieces(recorded, size)
        assert pieces == whole, recorded.name


def test_a_recorded_completion_is_a_reply_and_an_error_status_never_is() -> None:
    for recorded in recordings():
        if recorded.path.endswith("/models"):
            continue
        read = read_in_pieces(recorded, len(recorded.body))
        if recorded.status >= 400:
            assert isinstance(read, Failure), recorded.name
        elif isinstance(read, Failure):
            assert read.reason in ("cut_off", "broken_chunk", "error_object"), recorded.name
        else:
            assert read.text or read.reasoning or read.tool_calls, recorded.name


def test_every_recorded_error_that_is_raised_quotes_the_server() -> None:
    raised = 0
    for recorded in recordings():
        if recorded.status < 400:
            continue
        failure = read_in_pieces(recorded, len(recorded.body))
        assert isinstance(failure, Failure), recorded.name
        judged = verdict(recorded, failure)
        if isinstance(judged, Raise):
            raised += 1
            assert judged.error.status == recorded.status, recorded.name
            assert judged.error.provider_text, recorded.name
    assert raised > 0


def test_no_recorded_call_that_was_cut_off_may_run() -> None:
    for recorded in recordings():
        read = read_in_pieces(recorded, len(recorded.body) or 1)
        partial = read if isinstance(read, Reply) else read.partial
        if partial is not None and (partial.cut_off or isinstance(read, Failure)):
            assert all(call.problem for call in partial.tool_calls), recorded.name
