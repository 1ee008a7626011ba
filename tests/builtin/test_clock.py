"""The clock: which zone a name means, and that the answer is the time there."""

from __future__ import annotations

import calendar
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from glassloop.tools.builtin.clock import current_time

SHAPE = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d), (?P<weekday>\w+), (?P<time>\d\d:\d\d:\d\d) "
    r"\((?P<zone>[^)]*UTC(?P<offset>[+-]\d\d:\d\d))\); ISO 8601: (?P<iso>\S+)"
)


def told(zone: str | None) -> re.Match[str]:
    answer = current_time(zone)
    found = SHAPE.fullmatch(answer)
    assert found, answer
    return found


def zone_of(name: str) -> str:
    return told(name)["zone"].partition(",")[0]


@pytest.mark.parametrize(
    "zone", [None, "", "local", "Asia/Tokyo", "America/St_Johns", "Asia/Kathmandu", "UTC-3:30"]
)
def test_every_part_of_the_answer_tells_the_same_present_moment(zone: str | None) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    found = told(zone)
    moment = datetime.fromisoformat(found["iso"])
    assert before <= moment <= datetime.now(UTC)
    assert (found["date"], found["time"]) == (f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}")
    assert found["weekday"] == calendar.day_name[moment.weekday()]
    assert moment.isoformat().endswith(found["offset"])


@pytest.mark.parametrize("name", ["Asia/Tokyo", "Europe/Berlin", "Etc/GMT+8", "EST", "UTC"])
def test_a_zone_in_full_means_that_zone(name: str) -> None:
    assert datetime.fromisoformat(told(name)["iso"]).utcoffset() == datetime.now(ZoneInfo(name)).utcoffset()
    assert zone_of(name) == name


def test_zones_that_exist_can_be_asked_for() -> None:
    for name in sorted(available_timezones())[::8]:  # each is a file to be read
        assert zone_of(name) == name


@pytest.mark.parametrize(
    ("written", "zone"),
    [
        ("tokyo", "Asia/Tokyo"),
        ("TOKYO", "Asia/Tokyo"),
        ("asia/tokyo", "Asia/Tokyo"),
        ("Tokyo time", "Asia/Tokyo"),
        ("Tokyo, Japan", "Asia/Tokyo"),
        ("東京", "Asia/Tokyo"),
        ("北京", "Asia/Shanghai"),
        ("北京时间", "Asia/Shanghai"),
        ("北京市", "Asia/Shanghai"),
        ("Beijing", "Asia/Shanghai"),
        ("서울", "Asia/Seoul"),
        ("Москва", "Europe/Moscow"),
        ("new york", "America/New_York"),
        ("New_York", "America/New_York"),
        ("São Paulo", "America/Sao_Paulo"),
        ("Zürich", "Europe/Zurich"),
        ("San Francisco", "America/Los_Angeles"),
        ("Buenos Aires", "America/Buenos_Aires"),
        (" Paris ", "Europe/Paris"),
        ("JST", "Asia/Tokyo"),
    ],
)
def test_a_city_means_its_zone(written: str, zone: str) -> None:
    told_offset = datetime.fromisoformat(told(written)["iso"]).utcoffset()
    assert told_offset == datetime.now(ZoneInfo(zone)).utcoffset()
    assert zone_of(written).rpartition("/")[2] == zone.rpartition("/")[2]


@pytest.mark.parametrize(
    ("written", "hours"),
    [
        ("UTC+8", 8),
        ("GMT+8", 8),
        ("gmt -3", -3),
        ("+05:30", 5.5),
        ("UTC+0530", 5.5),
        ("UTC−2", -2),
        ("+14", 14),
    ],
)
def test_an_offset_means_what_people_mean_by_it(written: str, hours: float) -> None:
    assert datetime.fromisoformat(told(written)["iso"]).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Asia/Tokio", "the nearest are Asia/Tokyo"),
        ("Europe/Lundon", "Europe/London"),
        ("Nowhere at all", "give an IANA name such as Asia/Tokyo"),
        ("../../etc/passwd", "unknown time zone '../../etc/passwd'"),
        ("/etc/localtime", "unknown time zone"),
        ("\x00\x1b", r"unknown time zone '\x00\x1b'"),
        ("UTC+25", "offsets go from UTC-12:00 to UTC+14:00"),
        ("x" * 10_000, "too long"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_names(written: str, said: str) -> None:
    with pytest.raises(LookupError) as caught:
        current_time(written)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "zone"), [("Asia/Tokyo", "Asia/Tokyo"), (":Europe/Rome", "Europe/Rome")]
)
def test_without_a_zone_the_machines_own_is_named(variable: str, zone: str) -> None:
    script = "from glassloop.tools.builtin.clock import current_time; print(current_time())"
    environment = {**os.environ, "TZ": variable, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert f"({zone}, " in done.stdout
