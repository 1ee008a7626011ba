"""What a round costs, in counts that do not wobble: `bench/counts.py` counts, here are the bounds.

The bounds are a ratchet. Lower them when the code becomes cheaper; a change that must raise one says why in
`docs/decisions.md`. Seconds are `make bench`'s business.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def counts() -> dict[str, dict[str, float]]:
    command = [sys.executable, str(ROOT / "bench" / "counts.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("mode", "most"), [("whole", 700), ("streamed", 880)])
def test_a_request_takes_no_more_function_calls_than_it_did(counts, mode, most):
    assert counts["glassloop"][f"calls a request, 10 rounds, {mode}"] <= most


@pytest.mark.parametrize(("mode", "most"), [("whole", 1.6), ("streamed", 1.9)])
def test_a_request_takes_no_more_instructions_than_it_did_against_the_floor(counts, mode, most):
    """Python's own, which differ from one version to the next: so both sides are counted by the same one."""
    ours, floor = (
        counts[side][f"instructions a request, 10 rounds, {mode}"] for side in ("glassloop", "floor")
    )
    assert ours / floor <= most


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_a_request_takes_few_turns_of_the_event_loop(counts, mode):
    """Each turn is a system call and a chance for a thousand other agents to go first."""
    assert counts["glassloop"][f"loop turns a request, 10 rounds, {mode}"] <= 4


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_a_round_does_not_grow_with_the_history(counts, mode):
    """Over the fifty rounds by which the runs differ, a request has 25 more rounds before it on average."""
    ours = counts["glassloop"]
    more = ours[f"calls a request, 60 rounds, {mode}"] - ours[f"calls a request, 10 rounds, {mode}"]
    assert more / 25 <= 2


def test_a_streamed_token_costs_no_more_calls_than_in_a_loop_written_by_hand(counts):
    assert counts["glassloop"]["calls a chunk"] <= counts["floor"]["calls a chunk"]


def test_an_agent_among_many_holds_little_memory(counts):
    assert counts["glassloop"]["KiB an agent"] <= 28


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_a_run_keeps_one_connection_and_asks_once_a_round(counts, mode):
    assert counts["requests"][f"connections, {mode}"] == 1
    assert counts["requests"][f"requests, {mode}"] == 21


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_each_request_begins_with_the_one_before_it(counts, mode):
    assert counts["requests"][f"prefix %, {mode}"] == 100


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_nothing_is_said_to_the_model_beyond_the_users_own_words(counts, mode):
    assert counts["requests"][f"added characters, {mode}"] == 0
