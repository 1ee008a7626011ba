"""Every refusal (F), failed transport (G) and refused replay (E) of the shared catalogue, through `judge`.

For `adapt_request` the request is built again under the changed profile, and what triggered the refusal must be
gone from its bytes. Where our requests never hold the trigger, that is what is asserted.
"""

import itertools
import json
import os
import random
import re
from pathlib import Path

import pytest

from glassloop.core.entries import Reply, System, Text, ToolCall, ToolResult, User
from glassloop.core.tools import ToolSpec
from glassloop.wire.judgement import Adapt, Overflow, Raise, Retry, Salvage
from glassloop.wire.profile import Profile
from glassloop.wire.rejection import judge
from glassloop.wire.request import Encoder
from glassloop.wire.sent import Sent

QUIRKS = Path(os.environ.get("GLASSLOOP_QUIRKS", Path(__file__).parents[3] / "shared" / "quirks"))
CATALOGUE = QUIRKS / "quirks.jsonl"
NOW = 1_790_000_000.0

NESTED = {
    "type": "object",
    "properties": {
        "stop": {"$ref": "#/$defs/Stop"},
        "code": {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 5000, "description": "The code."},
    },
    "$defs": {"Stop": {"type": "object", "properties": {"name": {"type": "string"}}}},
}
TOOLS = (
    ToolSpec("get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}}),
    ToolSpec("3d_view", "Shows.", NESTED),
    ToolSpec("list_cities", "Lists.", {}),
    ToolSpec("nothing", "Does nothing.", {"type": "object", "properties": []}),
)
HISTORY = (
    System("s"),
    System("more"),
    User((Text("q"),)),
    Reply(),
    Reply(
        tool_calls=(ToolCall("call_1", "get_weather", None, text=""),),
        reasoning="hm",
        reasoning_field="reasoning_content",
        raw={"reasoning_content": "hm", "content": None},
    ),
    User((Text("hurry"),)),
    ToolResult("call_1", "get_weather", ()),
)


def entries():
    """The catalogue's entries about refusals; none where it is not beside this repository."""
    if not CATALOGUE.exists():
        return []
    read = [json.loads(line) for line in CATALOGUE.read_text(encoding="utf-8").splitlines()]
    return [each for each in read if each["wire"]["mode"] == "http"]


if not entries():
    pytest.skip(f"the shared catalogue is not at {CATALOGUE}; set GLASSLOOP_QUIRKS", allow_module_level=True)


# ── does a request hold what triggers the refusal? ───────────────────────────────────────────────────────────────


def field_anywhere(name):
    return lambda body: f'"{name}":' in json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def any_message(holds):
    return lambda body: any(holds(message) for message in body["messages"])


def any_tool(holds):
    return lambda body: any(holds(tool["function"]) for tool in body.get("tools", []))


def each_call(holds):
    return any_message(lambda message: any(map(holds, message.get("tool_calls", []))))


def role(name):
    return any_message(lambda message: message["role"] == name)


def role_after_call(body):
    roles = [(message["role"], bool(message.get("tool_calls"))) for message in body["messages"]]
    return any(called and after[0] != "tool" for (_, called), after in itertools.pairwise(roles))


SCHEMAS = {
    "$ref": lambda function: "$ref" in json.dumps(function["parameters"]),
    "{}": lambda function: "type" not in function["parameters"],
    "properties []": lambda function: not isinstance(function["parameters"]["properties"], dict),
    "nested pattern, large maxLength/maxItems": lambda function: (
        "pattern" in json.dumps(function["parameters"])
    ),
    "certain description text": lambda function: "description" in json.dumps(function["parameters"]),
}


def trigger(when):
    """A predicate over request bodies, read from the catalogue's `when`."""
    ((key, value),) = when.items()
    match key:
        case "has":
            return field_anywhere(value)
        case "role":
            return role(value)
        case "assistant_with":
            return any_message(lambda m: value in m)
        case "tool_call_without":
            return each_call(lambda call: value not in call)
        case "content":
            return any_message(lambda m: m["role"] == "assistant" and m.get("content", "absent") == value)
        case "assistant_empty":
            return any_message(
                lambda m: m["role"] == "assistant" and not m.get("content") and "tool_calls" not in m
            )
        case "tool_content":
            return any_message(
                lambda m: (
                    m["role"] == "tool" and (isinstance(m["content"], list) if value else not m["content"])
                )
            )
        case "tool_name" if value == "absent":
            return any_message(lambda m: m["role"] == "tool" and "name" not in m)
        case "tool_name":
            return any_tool(lambda function: not re.match("[A-Za-z_]", function["name"]))
        case "between":
            return role_after_call
        case "history_arguments":
            return each_call(lambda call: call["function"]["arguments"] == value)
        case "schema":
            return any_tool(SCHEMAS[value if isinstance(value, str) else json.dumps(value)])
        case "system_count":
            return lambda body: sum(m["role"] == "system" for m in body["messages"]) >= value
        case "max_completion_tokens":
            return lambda body: body.get(key, 0) > 12288
        case _:
            return lambda body: key in body and body[key] == value


SETUPS = {
    "developer": {"system": "developer"},
    "null": {"call_content": "null"},
    "absent": {"tool_name": False},
    "list": {"images_in_tools": True},
}
"""What makes our request hold a trigger that the neutral profile avoids."""

OPTIONAL = {"max_tokens": 32000, "frequency_penalty": 0.5, "enable_thinking": True}


def setup_for(when):
    ((key, value),) = when.items()
    name = "null" if value is None and key == "content" else value
    changes = SETUPS.get(name, {}) if isinstance(name, str) else {}
    settings = {key: value} if key in {"temperature", "tool_choice", "max_completion_tokens"} else {}
    if key == "has" and value in OPTIONAL:
        settings = {value: OPTIONAL[value]}
    return Profile().merged(changes), settings


NEVER_SENT = {"F9", "F17", "F25", "F27", "F28", "F29", "F35", "F42", "F49", "F56", "F57", "F64"}
"""Entries whose trigger no profile of ours can produce from any history."""

OF_THE_ENDPOINT = {"G25": "redirects", "G58": "proxies"}
"""Decided in `models/` before an error is judged."""

REJECTIONS = [each for each in entries() if each["id"] not in OF_THE_ENDPOINT]
ADAPTED = [
    each
    for each in REJECTIONS
    if each["expect"]["action"] == "adapt_request"
    and each["wire"].get("when")
    and each["id"] not in NEVER_SENT
]


def judged(entry, sent):
    wire = entry["wire"]
    body = wire["body"]
    payload, text = (None, body) if isinstance(body, str) else (body, json.dumps(body))
    return judge(wire["status"], wire.get("headers") or {}, payload, text, sent, now=NOW)


def encoded(profile, settings):
    return Encoder(profile).encode("m", HISTORY, TOOLS, settings, stream=True)


def test_the_catalogue_was_read():
    assert len(REJECTIONS) >= 55
    assert {each["id"] for each in REJECTIONS} >= NEVER_SENT


@pytest.mark.parametrize("entry", REJECTIONS, ids=lambda entry: entry["id"])
def test_the_outcome_is_the_right_one(entry):
    profile, settings = setup_for(entry["wire"].get("when") or {"any": True})
    judgement = judged(entry, Sent.of(encoded(profile, settings), profile))
    match entry["expect"]["action"]:
        case "adapt_request" if entry["id"] in NEVER_SENT:
            assert isinstance(judgement, (Adapt, Raise, Retry))
        case "adapt_request":
            assert isinstance(judgement, (Adapt, Overflow))
        case "retry":
            assert isinstance(judgement, Retry)
        case "raise":
            assert isinstance(judgement, Raise)
        case "execute":
            assert isinstance(judgement, Salvage)


@pytest.mark.parametrize("entry", ADAPTED, ids=lambda entry: entry["id"])
def test_after_a_few_changes_the_trigger_is_gone(entry):
    holds = trigger(entry["wire"]["when"])
    profile, settings = setup_for(entry["wire"]["when"])
    body = encoded(profile, settings)
    assert holds(json.loads(body)), "the request must hold the trigger to begin with"
    tried = set()
    while holds(json.loads(body)):
        judgement = judged(entry, Sent.of(body, profile, tried))
        assert isinstance(judgement, Adapt)
        tried.add(judgement.code)
        assert len(tried) <= 3
        profile = profile.merged(judgement.changes)
        body = encoded(profile, settings)


@pytest.mark.parametrize("name", sorted(NEVER_SENT))
def test_what_our_requests_never_hold_is_not_there(name):
    (entry,) = (each for each in REJECTIONS if each["id"] == name)
    holds = trigger(entry["wire"]["when"])
    _, settings = setup_for(entry["wire"]["when"])
    for changes in (
        {},
        {"system": "user"},
        {"images_in_tools": True},
        {"alternate": True},
        {"tool_name": False},
    ):
        assert not holds(json.loads(encoded(Profile().merged(changes), settings)))


@pytest.mark.parametrize("entry", REJECTIONS, ids=lambda entry: entry["id"])
def test_a_rejection_with_lost_or_foreign_characters_is_judged_too(entry):
    wire, sent = entry["wire"], Sent.of(encoded(Profile(), {}), Profile())
    text = wire["body"] if isinstance(wire["body"], str) else json.dumps(wire["body"])
    chance = random.Random(entry["id"])
    for _ in range(8):
        start = chance.randrange(len(text) + 1)
        foreign = chance.choice(["", "\0", '"', "{", "]", "\n", "\\u12", "\ud800", "9" * 400, text])
        mutant = text[:start] + foreign + text[start + chance.choice([0, 1, 7, 60]) :]
        try:
            payload = json.loads(mutant)
        except ValueError:
            payload = None
        judgement = judge(wire["status"], wire.get("headers") or {}, payload, mutant, sent, now=NOW)
        assert isinstance(judgement, (Adapt, Overflow, Raise, Retry, Salvage))
