"""What is sent: connections for 21 requests, bytes of each, what we add to it, and how much of it a cache can keep."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import measure
from table import OURS, Outcome, Size, Target, main

ROUNDS = 20


def run(size: Size) -> Outcome:
    sides = (*OURS, *size.peers)
    figures = {}
    lines = []
    for stream in (False, True):
        mode = "streamed" if stream else "whole"
        for side in sides:
            found = figures[f"{side}, {mode}"] = figures_of(side, stream)
            words = "  ".join(f"{name} {value:,.6g}" for name, value in found.items())
            lines.append(f"  {side:14} {mode:9} {words}")
    ours = [figures[f"glassloop, {mode}"] for mode in ("whole", "streamed")]
    targets = (
        Target(f"connections for {ROUNDS + 1} requests", max(f["connections"] for f in ours), 1, ""),
        Target("byte-identical prefix", min(f["prefix %"] for f in ours), 100, "%", at_least=True),
        Target(
            "characters said to the model beyond the user's own",
            max(f["added characters"] for f in ours),
            0,
            "",
        ),
    )
    return Outcome("requests", sides, figures, tuple(lines), targets)


def figures_of(side: str, stream: bool) -> dict[str, float]:
    with measure.Server() as server:
        before = server.stats()
        measure.run_worker(side, "sent", {"server": server.url, "rounds": ROUNDS, "stream": stream})
        after = server.stats()
        bodies = [body.encode() for body in server.get("/bodies")]
    prefixes = [shared_prefix(a, b) for a, b in pairwise(bodies)]
    return {
        "requests": after["requests"] - before["requests"],
        "connections": after["connections"] - before["connections"] - 1,
        "bytes in all": sum(map(len, bodies)),
        "with heads": after["bytes_in"] - before["bytes_in"],
        "first body": len(bodies[0]),
        "prefix %": 100 * min(prefixes, default=0.0),
        "added characters": added_characters(json.loads(bodies[0])),
    }


def shared_prefix(one: bytes, following: bytes) -> float:
    """How much of a request, up to the end of its messages, is byte for byte the beginning of the next."""
    end = _end_of_messages(one)
    same = next((i for i, (a, b) in enumerate(zip(one[:end], following, strict=False)) if a != b), end)
    return same / end


def _end_of_messages(body: bytes) -> int:
    """Where the last message ends: what follows can only be other fields, wherever they stand."""
    last = json.loads(body)["messages"][-1]
    for spaced in (False, True):
        text = json.dumps(last, ensure_ascii=False, separators=None if spaced else (",", ":")).encode()
        if (found := body.rfind(text)) >= 0:
            return found + len(text)
    return body.rfind(b"]")


def added_characters(body: dict[str, Any]) -> int:
    """Characters of instructions and tools that the user did not write: every character is part of a token."""
    said = "".join(str(m["content"]) for m in body["messages"] if m["role"] in ("system", "developer"))
    expected = "You are a careful calculator."
    extra = len(said) - len(expected)
    for tool in body.get("tools", ()):
        function = tool["function"]
        extra += len(function.get("description", "")) - len("Add two numbers.")
        extra += len(json.dumps(function["parameters"])) - len(json.dumps(_EXPECTED))
        extra += sum(len(json.dumps({k: v})) for k, v in function.items() if k not in _FUNCTION_KEYS)
    return extra


_FUNCTION_KEYS = {"name", "description", "parameters"}
_EXPECTED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


if __name__ == "__main__":
    main(run, __doc__)
