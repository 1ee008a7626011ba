"""What a tool returned → what a model is shown: any type, never a crash, never more than the limit."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import gc
import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from glassloop.core.entries import File, Image, Mend, Text, text_of
from glassloop.tools.output import Spill, capped, parts_from, text_of_error


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Stop:
    city: str
    on: datetime.date


class Order(BaseModel):
    sku: str
    price: decimal.Decimal


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class Shouting(str):
    def __str__(self) -> str:
        return "SHOUT"


PICTURE = Image("image/png", b"x")

RESULTS = [
    ("plain", "plain"),
    ("", ""),
    (None, ""),
    (3, "3"),
    (1.5, "1.5"),
    (True, "true"),
    ({"城市": "北京"}, '{"城市": "北京"}'),
    ([1, "a", None], '[1, "a", null]'),
    ((), "[]"),
    ({3}, "[3]"),
    (Stop("Oslo", datetime.date(2024, 5, 31)), '{"city": "Oslo", "on": "2024-05-31"}'),
    ([Stop("Oslo", datetime.date(2024, 5, 31))], '[{"city": "Oslo", "on": "2024-05-31"}]'),
    (Order(sku="a", price=decimal.Decimal("1.10")), '{"sku": "a", "price": "1.10"}'),
    ([Mend("code", "a detail")], '[{"code": "code", "detail": "a detail"}]'),
    (Color.RED, "red"),
    ({"c": Color.RED}, '{"c": "red"}'),
    (datetime.datetime(2024, 5, 31, 18, tzinfo=datetime.UTC), "2024-05-31T18:00:00Z"),
    (Path("a/b"), "a/b"),
    (b"caf\xc3\xa9", "café"),
    (b"\xff\xfe\x00", "(3 bytes that are not text)"),
    (range(3), "[0, 1, 2]"),
    ((n * n for n in range(3)), "[0, 1, 4]"),
    (map(str, [1, 2]), '["1", "2"]'),
    (collections.Counter("aab"), '{"a": 2, "b": 1}'),
    (float("nan"), "NaN"),
    ({"x": float("inf")}, '{"x": Infinity}'),
    ("a\ud800b", "a\ufffdb"),
    (["\ud800"], '["\ufffd"]'),
    (ValueError("bad"), "ValueError: bad"),
    (Hostile(), "<Hostile that cannot be shown: RuntimeError>"),
    ({"h": Hostile()}, '{"h": "<Hostile that cannot be shown: RuntimeError>"}'),
    (Shouting("quiet"), "quiet"),
]


@pytest.mark.parametrize(("value", "text"), RESULTS, ids=lambda value: repr(type(value).__name__))
def test_a_result_of_any_type_becomes_text(value: Any, text: str) -> None:
    assert text_of(parts_from(value)) == text


def endless() -> Any:
    while True:
        yield 1


def circular() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def deep() -> Any:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    "value",
    [
        endless(),
        circular(),
        deep(),
        10**5000,
        {"\ud800": 1},
        {"b": b"\xff"},
        {(1, 2): 3},
        int,
        object(),
        print,
        Hostile,
        complex(1, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_carry_is_still_a_text(value: Any) -> None:
    text_of(parts_from(value)).encode("utf-8")


def test_parts_are_kept_as_parts() -> None:
    file = File("a.pdf", "application/pdf", b"x")
    assert parts_from(PICTURE) == (PICTURE,)
    assert parts_from(["look:", PICTURE, file, {"a": 1}]) == (Text("look:"), PICTURE, file, Text('{"a": 1}'))
    assert parts_from((Text("a"), Text("b"))) == (Text("a"), Text("b"))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.decimals()
    | st.uuids()
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(st.characters()) | st.integers() | st.binary(), inner)
    ),
    max_leaves=10,
)


@given(anything)
def test_any_value_becomes_a_text_that_can_be_sent(value: Any) -> None:
    text_of(parts_from(value)).encode("utf-8")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=4) | st.dictionaries(st.text(), json_values, max_size=4))
def test_a_json_value_comes_back_from_its_text(value: Any) -> None:
    assert json.loads(text_of(parts_from(value))) == value


def test_a_group_of_errors_is_told_by_its_members() -> None:
    group = ExceptionGroup("outer", [ValueError("a"), ExceptionGroup("inner", [OSError("b")])])
    assert text_of_error(group) == "ValueError: a; OSError: b"


# ── the limit ──────────────────────────────────────────────────────────────────────────────────────


def test_a_long_output_keeps_head_and_tail_and_the_whole_is_in_a_file(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(5000))
    (part,) = capped((Text(text),), 1000, Spill(tmp_path / "spill"), "read_file")
    assert isinstance(part, Text)
    assert part.text.startswith("line 0\nline 1\n")
    assert part.text.endswith("\nline 4998\nline 4999")
    head, note, tail = part.text.split("\n\n")
    assert re.fullmatch(r"line \d+", head.splitlines()[-1])
    assert re.fullmatch(r"line \d+", tail.splitlines()[0])
    left_out, total, path = re.search(
        r"(\d+) of (\d+) characters left out; the whole output is in (.+) …", note
    ).groups()
    assert int(total) == len(text) == int(left_out) + len(head) + len(tail)
    assert Path(path).read_text(encoding="utf-8") == text
    assert Path(path).parent == tmp_path / "spill"


@given(st.text(alphabet="ab\n", max_size=400), st.integers(100, 300))
def test_what_fits_is_untouched_and_what_does_not_is_no_longer_than_the_limit_and_its_note(
    text: str, limit: int
) -> None:
    spill = Spill()
    (part,) = capped((Text(text),), limit, spill, "t")
    assert isinstance(part, Text)
    if len(text) <= limit:
        assert part.text == text
        return
    before, after = part.text.split("\n\n[… ")[0], part.text.split(" …]\n\n")[-1]
    assert len(before) + len(after) <= limit
    assert text.startswith(before)
    assert text.endswith(after)


def test_pictures_survive_the_limit_and_texts_share_it(tmp_path: Path) -> None:
    parts = capped((Text("a" * 90), PICTURE, Text("b" * 90)), 100, Spill(tmp_path), "t")
    assert parts[1:] == (PICTURE,)
    assert isinstance(parts[0], Text)
    assert parts[0].text.startswith("a" * 60)
    assert parts[0].text.endswith("b" * 30)


def test_the_folder_is_private_and_goes_with_its_owner() -> None:
    spill = Spill()
    kept = spill.keep("x", "../../etc/passwd\n")
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.name.startswith("______etc_passwd_-")
    del spill
    gc.collect()
    assert not kept.parent.exists()


def test_an_output_that_cannot_be_saved_is_still_shown(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    (part,) = capped((Text("x" * 500),), 100, Spill(blocked), "t")
    assert isinstance(part, Text)
    assert "could not be saved" in part.text
