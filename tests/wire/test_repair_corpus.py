"""Broken JSON texts that other projects mend, through our ladder: what was cut off is refused, whatever they make of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.wire.reading import json_lines, shared

from glassloop.wire.arguments import read_arguments

KEPT = {"r-json-repair-a8bfee46f3": "a raw line break in a key is kept, as one in a value is; peers strip it"}


def records() -> list[dict[str, Any]]:
    return json_lines(shared("GLASSLOOP_CORPORA", "corpora", "repair.jsonl"))


def is_whole(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_what_was_cut_off_is_refused_although_peers_mend_it() -> None:
    cut = [one for one in records() if one["mode"] == "partial" and not is_whole(one["text"])]
    assert cut
    assert [one["id"] for one in cut if not read_arguments(one["text"]).problem] == []


def test_what_is_mended_is_mended_as_peers_mend_it_or_refused() -> None:
    outcomes: Counter[str] = Counter()
    others = []
    for one in (each for each in records() if each["mode"] == "repair"):
        read = read_arguments(one["text"])
        if read.problem:
            outcomes["refused"] += 1
        elif read.value == one["expected"]:
            outcomes["same"] += 1
        elif one["id"] not in KEPT:
            others.append((one["id"], one["text"], one["expected"], read.value))
    assert others == []
    assert outcomes["same"] > 20


def test_two_strings_without_a_comma_are_not_joined_as_python_would() -> None:
    for text in ("{'a': ['x' 'y']}", '{"a": "x" "y"}', "{'a':\n'x'\n'y'}"):
        assert read_arguments(text).problem
