"""Is a history sendable? An independent reading of what Chat Completions servers insist on, on the encoded bytes."""

import json

from glassloop.core.entries import Reply, ToolResult
from glassloop.wire.profile import Profile
from glassloop.wire.request import Encoder


def body_of(entries, tools=()):
    """The request as it would go over the wire."""
    return json.loads(Encoder(Profile()).encode("m", entries, tools, {}, stream=False))


def problems(entries, tools=()):
    """What a strict server would refuse; empty if it would take it."""
    found = _in_entries(entries) + _in_messages(body_of(entries, tools)["messages"])
    return [one for one in found if one]


def _in_entries(entries):
    """Every call has one result, behind its reply and before anything else is said."""
    called, answered, found = [], [], []
    for entry in entries:
        match entry:
            case Reply(tool_calls=made):
                found += [f"calls without result: {called}"] if called else []
                called = [one.id for one in made]
                answered += called
            case ToolResult(call_id=call_id) if call_id in called:
                called.remove(call_id)
            case ToolResult(call_id=call_id):
                found.append(f"a result of no open call: {call_id}")
            case _ if called:
                found.append(f"{type(entry).__name__} between a call and its result")
    if called:
        found.append(f"calls without result at the end: {called}")
    if len(set(answered)) != len(answered):
        found.append("two calls have one id")
    return found


def _in_messages(messages):
    found, waiting = [], []
    for number, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"message {number} answers no open call")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            found.append(f"message {number} ({role}) stands before the results of {waiting}")
            waiting = []
        if role == "system" and number:
            found.append(f"message {number} is a second system message")
        if role == "assistant":
            waiting = [one["id"] for one in message.get("tool_calls") or ()]
            if not waiting and not message.get("content"):
                found.append(f"message {number} says nothing")
    if waiting:
        found.append(f"the last calls have no result: {waiting}")
    return found
