"""Refusals that others reported, each with the request that was refused: the right thing is done about every one."""

import pytest
from tests.wire.reports import REPORTS, WORDINGS, fulfils, outcome


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: f"{report['id']} {report['provider']}")
def test_a_reported_refusal_is_dealt_with(report):
    done, right = outcome(report)
    assert right, f"{done}, where {report['expect']} was due"


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording["id"])
def test_other_words_for_the_same_are_understood(wording):
    done, right = outcome(wording)
    assert right, f"{done}, where {wording['expect']} was due for {wording['body']}"


def test_every_report_names_its_source_and_is_counted_once():
    assert all(report["source"].startswith("https://") for report in REPORTS)
    assert len({report["id"] for report in REPORTS}) == len(REPORTS) >= 100


def test_a_wish_can_fail():
    assert not fulfils({"messages": [], "tools": [{"x": 1}]}, {"absent": ["tools.*.x"]})
    assert not fulfils({"messages": []}, {"present": ["tools"]})
