"""Crashes at every point and by chance, in simulated time: what must hold holds whatever befalls a run."""

import asyncio

import pytest
from tests.simulator import experiments
from tests.simulator.stores import File


@pytest.mark.parametrize("quick_disk", [False, True], ids=["lazy disk", "quick disk"])
@pytest.mark.parametrize("effect", experiments.EFFECTS)
def test_a_crash_at_any_point_of_a_run_loses_and_repeats_nothing(effect, quick_disk):
    steps = 3 if quick_disk else 5
    assert experiments.strike_everywhere(effect, quick_disk=quick_disk, steps=steps) > 8 * steps


@pytest.mark.parametrize("effect", experiments.EFFECTS)
def test_a_crash_at_any_point_beside_parallel_calls_neither(effect):
    assert experiments.strike_everywhere(effect, quick_disk=False, steps=2, calls=3) > 25


@pytest.mark.parametrize("effect", experiments.EFFECTS)
def test_a_cancel_at_any_point_leaves_a_history_that_is_true_and_sendable(effect):
    assert experiments.strike_everywhere(effect, quick_disk=True, steps=2, calls=2, strikes="cancel") > 25


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_schedule_of_crashes_pauses_cancels_and_approvals_breaks_a_rule(first):
    for seed in range(first, first + 50):
        experiments.chaos(seed)


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_the_real_journal_keeps_the_same_rules(tmp_path, first):
    for seed in range(first, first + 4):
        on_disk(seed, tmp_path)


def on_disk(seed, folder):
    """Real time, real threads and a real file: the same chaos, but no two plays of a seed are quite alike."""
    experiments.chaos(seed, run=asyncio.run, store=File(folder / f"{seed}.db"), second=0.002)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_the_real_journal_keeps_the_same_rules_in_two_hundred_schedules(tmp_path, first):
    for seed in range(first, first + 20):
        on_disk(seed, tmp_path)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(0, 10_000, 500))
def test_none_of_ten_thousand_schedules_breaks_a_rule(first):
    for seed in range(first, first + 500):
        experiments.chaos(seed)
