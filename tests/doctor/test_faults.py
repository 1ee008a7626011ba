"""The doctor names the faults that a server plays, and none that it does not play. The whole table: `table.py`."""

from __future__ import annotations

import asyncio

import pytest
from tests.doctor.expected import HARMLESS, NAMES, NEVER_MET
from tests.doctor.healthy import DIALECTS
from tests.doctor.table import A_FAMILY, QUIRKS, Outcome, alone, catalogue, drawn, grouped, healthy, together
from tests.doctor.ward import ward

from glassloop.testing.quirks import Quirk

pytestmark = pytest.mark.skipif(not QUIRKS.exists(), reason=f"the shared catalogue is not at {QUIRKS}")

A_FAMILY_HERE = 2
GROUPS_HERE = 3


def _one(quirk: Quirk) -> Outcome:
    async def examine() -> Outcome:
        async with ward([quirk]) as server:
            return await alone(server, quirk)

    return asyncio.run(examine())


def _here() -> list[Quirk]:
    return drawn(catalogue().values(), A_FAMILY_HERE) if QUIRKS.exists() else []


def _groups() -> list[list[Quirk]]:
    return grouped(catalogue().values(), GROUPS_HERE) if QUIRKS.exists() else []


@pytest.mark.parametrize("quirk", _here(), ids=lambda quirk: quirk.id)
def test_a_fault_is_named_and_no_other_is(quirk: Quirk) -> None:
    outcome = _one(quirk)
    assert outcome.met
    assert (outcome.missed, outcome.false) == ((), ())


@pytest.mark.parametrize("quirks", _groups(), ids=lambda quirks: "+".join(quirk.id for quirk in quirks))
def test_several_faults_of_one_endpoint_are_each_named(quirks: list[Quirk]) -> None:
    async def examine() -> Outcome:
        async with ward(quirks) as server:
            return await together(server, quirks)

    outcome = asyncio.run(examine())
    assert (outcome.missed, outcome.false) == ((), ())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_is_wrong_with_a_healthy_server(dialect: str) -> None:
    outcome = asyncio.run(healthy(dialect))
    assert outcome.false == ()


@pytest.mark.parametrize("name", ["C1", "D72"])
def test_what_only_looks_like_a_fault_is_none(name: str) -> None:
    outcome = _one(catalogue()[name])
    assert outcome.met
    assert outcome.false == ()


def test_every_quirk_of_the_catalogue_has_its_name_or_a_reason_for_none() -> None:
    assert {*NAMES, *HARMLESS, *NEVER_MET} == set(catalogue())


def test_at_least_six_of_each_family_and_sixty_in_all_are_drawn() -> None:
    families = [quirk.family for quirk in drawn(catalogue().values(), A_FAMILY)]
    assert len(families) >= 60
    assert all(families.count(family) >= 6 for family in "ABCDEFG")
