"""The tables of words are complete and say something to people."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from glassloop.doctor.probes import PROBES, QUICK
from glassloop.doctor.words import ADAPTATIONS, MENDS, adaptation
from glassloop.wire import relaxed
from glassloop.wire.profile import Profile

WIRE = Path(relaxed.__file__).parent


def test_every_mend_of_the_wire_has_words() -> None:
    """A new mend is one row more in `doctor/words.py`."""
    codes = {
        code
        for file in WIRE.rglob("*.py")
        for code in re.findall(r'Mend\(\s*"(\w+)"', file.read_text("utf-8"))
    }
    assert codes
    assert sorted(codes - MENDS.keys()) == []


def test_every_profile_field_that_refusals_teach_has_words() -> None:
    taught = {each.name for each in fields(Profile)} - {
        "drop_fields",
        "rename_fields",
        "max_values",
        "min_values",
    }
    assert sorted(taught - ADAPTATIONS.keys()) == []


@pytest.mark.parametrize(
    ("code", "does"),
    [
        ("drop:temperature", "does not send temperature"),
        ("tool_mode:text", "describes tools in text, and reads calls from text"),
        ("never-heard-of:it", ""),
    ],
)
def test_an_adaptation_is_said_in_words(code: str, does: str) -> None:
    assert adaptation(code)[1] == does


def test_probes_have_names_of_their_own_and_need_only_earlier_ones() -> None:
    names = [probe.name for probe in PROBES]
    assert len(set(names)) == len(names)
    assert all(needed in names[: names.index(probe.name)] for probe in PROBES for needed in probe.needs)
    assert {needed for probe in QUICK for needed in probe.needs} <= {probe.name for probe in QUICK}
