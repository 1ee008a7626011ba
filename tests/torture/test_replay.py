"""SIGKILL at random moments, then taken up again: what was recorded on the way replays byte for byte."""

from itertools import count

import pytest
from tests.torture import kills

from glassloop.testing.server import ChatServer, fails


@pytest.fixture
def server():
    """It says something new each time that it is asked, and is overloaded now and then."""
    number = count(1)

    def script(request):
        now = next(number)
        if now % 5 == 0:
            return fails(503, "overloaded", {"retry-after": "0.05"})
        return kills.script(request, f"Answer {now}.")

    with ChatServer(script) as server:
        yield server


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(2000, 2070))
def test_a_run_that_was_killed_and_taken_up_again_replays_byte_for_byte(tmp_path, server, seed):
    scene = kills.play(seed, tmp_path / str(seed), server, deep=6)
    code, said = scene.replayed()
    assert code == 0, f"seed {seed}: {said}"
