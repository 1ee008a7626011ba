"""Power that goes, disks that fail (F6 and F7 of the fault list): what was acknowledged is there, and nothing runs untold."""

import pytest
from tests.torture import disks


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    built = disks.shim(tmp_path_factory.mktemp("shim"))
    if built is None:
        pytest.skip(
            "needs Linux and a C compiler (cc) for a library that stands between a process and its disk"
        )
    return built


def check_power(lines):
    assert lines
    for line in lines:
        _, code, _, lost = line.split(maxsplit=3)
        assert code in ("66", "0"), line
        assert lost == "[]", line
    assert any(int(line.split()[2]) > 5 for line in lines)


def test_what_was_acknowledged_before_the_power_went_is_there(tmp_path, library):
    check_power(disks.run(library, tmp_path, "lose_power", 3, 19))


def test_the_disk_of_these_tests_does_lose_what_nobody_waited_for(tmp_path, library):
    lines = disks.run(library, tmp_path, "lose_power_carelessly", 2, 5)
    assert any("tool_result" in line for line in lines)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1000, 2000, 250))
def test_power_that_goes_at_a_thousand_syncs_takes_nothing_that_was_acknowledged(tmp_path, library, first):
    check_power(disks.run(library, tmp_path, "lose_power", first, first + 250))


WORDS = {"ENOSPC": ("disk is full", "disk failed or is full"), "EIO": ("disk failed", "disk I/O error")}


def check_failures(lines, error):
    for line in lines:
        _, rest = line.split(" ", 1)
        assert rest.endswith("[] resumed"), line
        if not rest.startswith("''"):
            assert any(words in rest for words in WORDS[error]), line
    assert sum("''" not in line for line in lines) > len(lines) // 2


@pytest.mark.parametrize("error", WORDS)
def test_a_disk_that_fails_stops_the_run_in_words_and_it_goes_on_later(tmp_path, library, error):
    check_failures(disks.run(library, tmp_path, "fail_everywhere", error, 1000, 9), error)


@pytest.mark.torture
@pytest.mark.parametrize("times", [1, 3, 1000])
@pytest.mark.parametrize("error", WORDS)
def test_a_disk_that_fails_at_any_operation_does(tmp_path, library, error, times):
    check_failures(disks.run(library, tmp_path, "fail_everywhere", error, times, 1), error)
