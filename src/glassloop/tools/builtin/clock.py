"""The `current_time` tool, and how a time zone is found from what a model writes."""

from __future__ import annotations

import datetime
import difflib
import os
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from glassloop.tools.tool import tool

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_HERE = frozenset({"", "local", "here"})

# What has no zone named after it: large cities, names in other scripts, abbreviations with one meaning only
# (CST and IST have several). Every other city is found in the zone names themselves.
_ALSO_KNOWN_AS: Mapping[str, tuple[str, ...]] = {
    "Asia/Shanghai": (
        "Beijing",
        "Shenzhen",
        "Guangzhou",
        "China",
        "北京",
        "上海",
        "广州",
        "深圳",
        "中国",
        "中國",
    ),
    "Asia/Hong_Kong": ("香港", "HKT"),
    "Asia/Taipei": ("台北", "臺北", "Taiwan"),
    "Asia/Tokyo": ("Osaka", "Kyoto", "东京", "東京", "大阪", "京都", "日本", "JST"),
    "Asia/Seoul": ("Busan", "Korea", "South Korea", "首尔", "首爾", "서울", "KST"),
    "Asia/Singapore": ("新加坡", "SGT"),
    "Asia/Kolkata": ("Mumbai", "Delhi", "New Delhi", "Bangalore", "Bengaluru", "Chennai", "India"),
    "Asia/Ho_Chi_Minh": ("Hanoi", "Ho Chi Minh City", "Vietnam"),
    "Asia/Dubai": ("Abu Dhabi", "迪拜"),
    "Europe/Moscow": ("Saint Petersburg", "莫斯科", "Москва", "MSK"),
    "Europe/London": ("Manchester", "Edinburgh", "UK", "England", "伦敦", "倫敦", "BST"),
    "Europe/Paris": ("Lyon", "Marseille", "France", "巴黎"),
    "Europe/Berlin": ("Munich", "München", "Hamburg", "Frankfurt", "Germany", "柏林", "CEST"),
    "Europe/Zurich": ("Geneva", "Bern", "Switzerland"),
    "Europe/Rome": ("Milan", "Italy", "罗马"),
    "Europe/Madrid": ("Barcelona", "Spain", "马德里"),
    "America/New_York": ("Washington", "Washington DC", "Boston", "Miami", "NYC", "纽约", "紐約", "EDT"),
    "America/Chicago": ("Houston", "Dallas", "Austin", "芝加哥", "CDT"),
    "America/Denver": ("MDT",),
    "America/Los_Angeles": (
        "San Francisco",
        "Seattle",
        "San Diego",
        "Las Vegas",
        "洛杉矶",
        "旧金山",
        "PST",
        "PDT",
    ),
    "America/Toronto": ("Ottawa", "多伦多"),
    "America/Sao_Paulo": ("Rio de Janeiro", "Brasilia"),
    "Australia/Sydney": ("Canberra", "悉尼", "AEST", "AEDT"),
}

# What may stand behind a city's name: "Tokyo time", "北京市", "北京时间".
_SUFFIXES = (" time", "时间", "時間", "市")

_OFFSET = re.compile(r"(?:utc|gmt)?\s*([-+−])\s*([0-9]{1,2})(?::?([0-5][0-9]))?", re.IGNORECASE)


@tool(effect="read", timeout=10)
def current_time(timezone: str | None = None) -> str:
    """Current date, weekday and time. Use it whenever the answer depends on what day or time it is now.

    Args:
        timezone: An IANA time zone such as "Asia/Tokyo", a large city such as "Tokyo" or "北京", or an offset
            such as "UTC+8". Leave it out for the zone of the user's machine.
    """
    wanted = (timezone or "").strip()
    zone = _local() if wanted.casefold() in _HERE else _zone(wanted)
    return _described(datetime.datetime.now(zone))


def _described(now: datetime.datetime) -> str:
    offset = now.strftime("%z")
    facts = [str(now.tzinfo), now.tzname() or "", f"UTC{offset[:3]}:{offset[3:5]}"]
    # Many zones have no letters of their own and give the offset once more.
    facts = [fact for fact in dict.fromkeys(facts) if fact and fact[0] not in "+-"]
    return (
        f"{now:%Y-%m-%d}, {_WEEKDAYS[now.weekday()]}, {now:%H:%M:%S} ({', '.join(facts)})"
        f"; ISO 8601: {now.isoformat(timespec='seconds')}"
    )


def _local() -> datetime.tzinfo | None:
    """The machine's zone, by its IANA name where that can be told."""
    linked = os.path.realpath("/etc/localtime").rpartition("/zoneinfo/")[2]
    for name in (os.environ.get("TZ", "").lstrip(":"), linked):
        if name in available_timezones():
            return ZoneInfo(name)
    return datetime.datetime.now().astimezone().tzinfo


def _zone(wanted: str) -> datetime.tzinfo:
    """The zone meant. What a model wrote reaches the zone files only as one of the names known to exist.

    Raises `LookupError` with the nearest names.
    """
    if len(wanted) > 100:
        raise LookupError("the name of the time zone is too long; give one such as Asia/Tokyo")
    if wanted in available_timezones():
        return ZoneInfo(wanted)
    if offset := _OFFSET.fullmatch(wanted):
        return _fixed(wanted, *offset.groups())
    for key in (_key(wanted), _key(wanted.partition(",")[0])):
        if names := _zones_by_key().get(key):
            return _the_one(wanted, names)
    raise LookupError(f"unknown time zone {wanted!r}; {_nearest(wanted)}")


def _fixed(wanted: str, sign: str, hours: str, minutes: str | None) -> datetime.tzinfo:
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes or 0))
    if offset > datetime.timedelta(hours=14):
        raise LookupError(f"{wanted} is no time zone: offsets go from UTC-12:00 to UTC+14:00")
    return datetime.timezone(offset if sign == "+" else -offset)


def _the_one(wanted: str, names: tuple[str, ...]) -> datetime.tzinfo:
    """The only zone of that name. Several that show the same time now are aliases for our purpose."""
    zones = [ZoneInfo(name) for name in names]
    now = datetime.datetime.now(datetime.UTC)
    if len({now.astimezone(zone).utcoffset() for zone in zones}) > 1:
        raise LookupError(f'"{wanted}" may mean any of {", ".join(names)}; give one of these')
    return zones[0]


def _key(name: str) -> str:
    """Spelling without case, accents, separators and what may stand behind a city's name."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    key = " ".join(re.split(r"[\s_.-]+", plain)).strip()
    for suffix in _SUFFIXES:
        key = key.removesuffix(suffix)
    return key


@lru_cache(maxsize=1)
def _zones_by_key() -> Mapping[str, tuple[str, ...]]:
    """Zones by whole name and by last part. `Etc/GMT+8` and its like count only when written in full: their
    sign is the reverse of what people mean by GMT+8."""
    found: dict[str, set[str]] = {}
    for name in available_timezones():
        if not name.startswith("Etc/"):
            for key in (name, name.rpartition("/")[2]):
                found.setdefault(_key(key), set()).add(name)
    for name, others in _ALSO_KNOWN_AS.items():
        for other in others:
            found[_key(other)] = {name}
    return {
        key: tuple(sorted(names, key=lambda name: (-name.count("/"), name))) for key, names in found.items()
    }


def _nearest(wanted: str) -> str:
    close = difflib.get_close_matches(_key(wanted), list(_zones_by_key()), n=3, cutoff=0.7)
    names = dict.fromkeys(_zones_by_key()[key][0] for key in close)
    if names:
        return f"the nearest are {', '.join(names)}"
    return "give an IANA name such as Asia/Tokyo, a large city, or an offset such as UTC+8"
