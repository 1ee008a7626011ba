"""Every quirk of the shared catalogue, played over real HTTP to an `Agent`, streamed and not.

What must come out is the entry's `expect`, read by DESIGN's order of decisions and its error table; what was
learned is then tried by a new process. `glassloop quirks play` shows the same as a table.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from glassloop.testing.catalogue import WAYS, Outcome, play_catalogue, summary, table
from glassloop.testing.quirks import Quirk, QuirkServer, Run, load

CATALOGUE = Path(
    os.environ.get("GLASSLOOP_QUIRKS") or Path(__file__).parents[3] / "shared/quirks/quirks.jsonl"
)
QUIRKS = load(CATALOGUE) if CATALOGUE.exists() else []
FAR = 45 * 86_400

pytestmark = pytest.mark.skipif(not QUIRKS, reason=f"no catalogue at {CATALOGUE}; set GLASSLOOP_QUIRKS")

Played = dict[tuple[str, str], Outcome]


def with_a_reset_that_stays_far(line: str) -> str:
    """A moment in a header is moved with today's date, or an entry would mean something else next year."""
    entry: dict[str, Any] = json.loads(line)
    headers = entry["wire"].get("headers", {})
    moment = headers.get("x-ratelimit-reset", "")
    digits = len("1800000000")
    if len(moment) >= digits:
        headers["x-ratelimit-reset"] = str(int(time.time() + FAR)) + "0" * (len(moment) - digits)
    return json.dumps(entry)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    lines = CATALOGUE.read_text("utf-8").splitlines()
    today = tmp_path_factory.mktemp("quirks") / "today.jsonl"
    today.write_text("\n".join(map(with_a_reset_that_stays_far, lines)), "utf-8")
    return {(one.quirk.id, one.way): one for one in play_catalogue(today)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.id)
def test_a_quirk_ends_as_it_should(quirk: Quirk, way: str, played: Played) -> None:
    assert played[quirk.id, way].problem is None


def test_the_whole_catalogue_was_played_and_nearly_all_of_it_met(played: Played) -> None:
    assert len(played) >= 2 * 213
    assert sum(one.met for one in played.values()) >= 0.9 * len(played)


def test_the_table_has_a_row_a_quirk_and_counts_each_family(played: Played) -> None:
    outcomes = list(played.values())
    rows = table(outcomes, markdown=True).splitlines()
    assert sum(row.startswith("| ") for row in rows) == len(QUIRKS) + 2
    assert f"all: {len(outcomes)} of {len(outcomes)} right" in summary(outcomes)


def test_a_run_that_was_never_asked_is_empty() -> None:
    assert QuirkServer([]).run("none") == Run()
