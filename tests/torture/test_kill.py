"""SIGKILL at random moments, during the first run and during each resume (F3 and F4 of the fault list)."""

import pytest
from tests.torture import kills

from glassloop.testing.server import ChatServer


@pytest.fixture(scope="module")
def server():
    with ChatServer(kills.script) as server:
        yield server


def test_ten_kills_lose_and_repeat_nothing(tmp_path, server):
    done, seed = 0, 0
    while done < 10:
        done += kills.play(seed, tmp_path / str(seed), server, deep=4).kills
        seed += 1


@pytest.mark.torture
@pytest.mark.parametrize("first", range(100, 900, 100))
def test_two_hundred_kills_lose_and_repeat_nothing(tmp_path, server, first):
    done, seed = 0, first
    while done < 25:
        done += kills.play(seed, tmp_path / str(seed), server, deep=4).kills
        seed += 1
