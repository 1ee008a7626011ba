"""How long an endpoint asks us to wait, from headers, bodies and prose. In seconds; the clock is an argument."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from glassloop.core.entries import JSON

_MILLISECONDS_SINCE_1970 = 1e11
_SECONDS_SINCE_1970 = 1e9
_LONGEST = 10 * 365 * 86400.0

_UNITS = {
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds", "毫秒"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "分", "分钟"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时"), 3600.0),
    **dict.fromkeys(("d", "day", "days", "天"), 86400.0),
}
_ONE = (
    r"(\d+(?:\.\d+)?)\s*(" + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True)) + r")(?![a-z])"
)
_DURATION = re.compile(_ONE, re.IGNORECASE)
_DURATIONS = re.compile(rf"\s*(?:{_ONE}[\s,]*(?:and\s+)?)+", re.IGNORECASE)
_IN_WORDS = re.compile(
    r"(?:(?:try(?:\s+your\s+request)?\s+again|retry(?:\s+your\s+request)?|retry[_ -]?after|wait(?:ing)?|resets?"
    r"|available(?:\s+again)?|cool-?down)(?:\s+later)?,?"
    r"\s*(?:in|after|for|at\s+least|about|:|=|\s)*\s*|请(?:在|等待)?\s*)(?:at\s+least\s+|about\s+)?"
    rf"(\d+(?::\d\d){{1,2}}|(?:{_ONE}[\s,]*(?:and\s+)?)+|\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_TOMORROW = re.compile(
    r"\b(?:try|retry|resets?|available|come back|wait)\b[^\n]{0,30}\b(?:tomorrow|next day|midnight)\b"
    r"|明天|明日|次日|第二天",
    re.IGNORECASE,
)
_BODY_FIELDS = re.compile(
    r"(?:retry[_-]?(?:after|delay|in)|resets?[_-]?(?:after|in|at)|reset[_-]?time|estimated_time)"
    r"(?:[_-]?(ms|milliseconds|s|sec|seconds))?",
    re.IGNORECASE,
)
_LIMITS = re.compile(r"(?:^|[\s,;])(reset|remaining|t|r)\s*=\s*(\d{1,12})")
"""The one `RateLimit` header in its two forms: `remaining=0, reset=9` and `"name";r=0;t=9`."""
_RESET = re.compile(
    r"(?:x-)?(?:[a-z]+-)?ratelimit-(?:[a-z]+-)*?reset(?:-(?P<a>.+))?|(?:[a-z]+-)?ratelimit-(?P<b>.+)-reset"
)


def wait_of(headers: Mapping[str, str], payload: JSON, text: str, now: float) -> float | None:
    """The wait asked for, None if none was. What is past is 0.

    In this order: `retry-after-ms`, `Retry-After` (seconds, or a date that is read against the `Date` header, or
    against `now` in seconds since 1970), a field of the body, the prose, `*ratelimit-reset*`.
    """
    lower = {name.lower(): str(value).strip() for name, value in (*_carried(payload), *headers.items())}
    now = _date(lower.get("date", ""), 0.0, now) or now
    found = (
        _number(lower.get("retry-after-ms"), 0.001),
        _moment(lower.get("retry-after", ""), now),
        next(_in_body(payload, now), None),
        in_words(text),
        _reset(lower, now),
    )
    wait = next((each for each in found if each is not None), None)
    return None if wait is None else min(max(wait, 0.0), _LONGEST)


def in_words(text: str) -> float | None:
    """The wait that prose names: "Please try again in 1m2.5s". "Tomorrow" is taken for a day."""
    if not (match := _IN_WORDS.search(text)):
        return _UNITS["day"] if _TOMORROW.search(text) else None
    named = match.group(1)
    if ":" in named:
        return _clock(named)
    return _duration(named) if _DURATION.search(named) else _number(named, 1.0)


def _clock(text: str) -> float:
    """ "1:30" or "00:01:30" in seconds."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds


def _duration(text: str) -> float | None:
    """ "1m30.5s", "57ms", "2 minutes and 3 seconds" in seconds; None if it is anything else."""
    if not _DURATIONS.fullmatch(text):
        return None
    return math.fsum(float(number) * _UNITS[unit.lower()] for number, unit in _DURATION.findall(text))


def _number(text: str | None, unit: float) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value * unit if math.isfinite(value) else None


def _moment(text: str, now: float) -> float | None:
    """Seconds from now, whether it is a delta, a time since 1970, a duration or a date."""
    value = _number(text, 1.0)
    if value is None:
        duration = _duration(text)
        return duration if duration is not None else _date(text, now, None)
    return value / _scale(value) - now if value > _SECONDS_SINCE_1970 else value


def _date(text: str, now: float, default: float | None) -> float | None:
    from email.utils import parsedate_to_datetime

    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        try:
            return moment.timestamp() - now
        except (OverflowError, ValueError):
            continue
    return default


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset among the limits that are used up, else the shortest of all."""
    waits: list[tuple[float, bool]] = []
    for name, value in headers.items():
        match = _RESET.fullmatch(name)
        if match and (wait := _moment(value, now)) is not None:
            remaining = headers.get(name.replace("reset", "remaining"))
            waits.append((wait, _number(remaining, 1.0) == 0))
    said = dict(_LIMITS.findall(headers.get("ratelimit", "")))
    if reset := said.get("reset", said.get("t")):
        waits.append((float(reset), said.get("remaining", said.get("r")) == "0"))
    used_up = [wait for wait, empty in waits if empty]
    if used_up:
        return max(used_up)
    return min((wait for wait, _ in waits), default=None)


def _carried(payload: JSON) -> Iterator[tuple[str, str]]:
    """Headers of an endpoint behind the endpoint, which some gateways put in the body."""
    for key, value in _walk(payload):
        if key.lower() == "headers" and isinstance(value, Mapping):
            yield from ((str(name), str(each)) for name, each in value.items())


def _scale(value: float) -> float:
    return 1000.0 if value > _MILLISECONDS_SINCE_1970 else 1.0


def _in_body(payload: JSON, now: float) -> Iterator[float]:
    for key, value in _walk(payload):
        match = _BODY_FIELDS.fullmatch(key)
        if not match or isinstance(value, bool):
            continue
        unit = 0.001 if (match.group(1) or "").startswith("m") else 1.0
        if isinstance(value, (int, float)) and math.isfinite(value):
            yield value * unit if value < _SECONDS_SINCE_1970 else value / _scale(value) - now
        elif isinstance(value, str):
            wait = _moment(value, now) if unit == 1.0 else _number(value, unit)
            if wait is not None:
                yield wait


def _walk(payload: JSON) -> Iterator[tuple[str, JSON]]:
    """Every key and value of a JSON value, at any depth, outermost first. Items of lists have no key."""
    waiting: list[JSON] = [payload]
    for value in waiting:
        if isinstance(value, Mapping):
            for key, each in value.items():
                yield str(key), each
                waiting.append(each)
        elif isinstance(value, list):
            for each in value:
                yield "", each
                waiting.append(each)
