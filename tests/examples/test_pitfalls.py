"""`examples/pitfalls.py`: each mistake, run wrong and right."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "pitfalls.py"

EXPECTED = {
    "1. Arguments are a string": [
        ("raises TypeError", "18 °C, light rain"),
        ("raises TypeError", "Error: the arguments are not valid JSON"),
        ("raises TypeError", "Error: the arguments must be a JSON object"),
    ],
    "2. A tool's error belongs to the model": [
        ("raises LookupError: unknown city 'Tokio'", "answers after 6 messages: In Tokyo"),
    ],
    "3. finish_reason lies: look at the calls": [
        ("raises RuntimeError: five requests", "answers 'It rains.'"),
        ("raises TypeError", "answers 'It rains.'"),
        ("raises RuntimeError: five requests", "answers 'It rains.'"),
        ("raises RuntimeError: five requests", "says that 5 requests brought no answer"),
        ("answers ''", "answers 'It rains.'"),
        ("answers None", "answers 'It rains.'"),
        ("answers None", "answers 'It rains.'"),
        ("answers None", "answers 'It rains.'"),
        ("answers 'It rai'", "answers 'It rai', and says that it is cut off"),
        ("answers None", "answers 'It rains.'"),
    ],
    "4. A timeout that does not time out": [
        ("goes on after the tool was done", "goes on while the tool still hangs"),
    ],
}


@pytest.fixture(scope="module")
def pitfalls():
    return runpy.run_path(str(EXAMPLE), run_name="pitfalls")["PITFALLS"]


@pytest.mark.parametrize("title", EXPECTED)
def test_each_mistake_goes_wrong_and_its_remedy_right(pitfalls, title):
    shown = [(wrong, right) for _, wrong, right in pitfalls[title]()]
    assert len(shown) == len(EXPECTED[title])
    for (wrong, right), (wrong_starts, right_starts) in zip(shown, EXPECTED[title], strict=True):
        assert wrong.startswith(wrong_starts)
        assert right.startswith(right_starts)


def test_every_pitfall_is_shown_side_by_side():
    done = subprocess.run([sys.executable, "-I", EXAMPLE], capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert titles == list(EXPECTED)
    assert done.stdout.count("WRONG") == done.stdout.count("RIGHT") == len(EXPECTED)
    assert max(map(len, done.stdout.splitlines())) <= 100
