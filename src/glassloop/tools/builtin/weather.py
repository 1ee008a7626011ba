"""The `weather` tool: what Open-Meteo says of a city, in one line. Finding the city is in `openmeteo`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from glassloop.tools.builtin.openmeteo import Place, fetch_json, find_places
from glassloop.tools.tool import Tool, tool

GEOCODING_URL = "https://geocoding-api.open-meteo.com/v1/search"
FORECAST_URL = "https://api.open-meteo.com/v1/forecast"
REQUEST_SECONDS = 10.0

Units = Literal["celsius", "fahrenheit"]

_CURRENT = (
    "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m,wind_direction_10m"
)
_SPEED_UNITS: Mapping[Units, tuple[str, str]] = {"celsius": ("kmh", "km/h"), "fahrenheit": ("mph", "mph")}
_WINDS = ("north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest")
_MAX_OTHERS = 4

# WMO code table 4677, as far as Open-Meteo uses it (https://open-meteo.com/en/docs).
_CONDITIONS: Mapping[int, str] = {
    0: "clear sky",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "fog with rime",
    51: "light drizzle",
    53: "drizzle",
    55: "heavy drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "violent showers",
    85: "light snow showers",
    86: "heavy snow showers",
    95: "thunderstorm",
    96: "thunderstorm with light hail",
    99: "thunderstorm with heavy hail",
}


def weather_tool(
    *,
    geocoding_url: str = GEOCODING_URL,
    forecast_url: str = FORECAST_URL,
    request_seconds: float = REQUEST_SECONDS,
) -> Tool:
    """The `weather` tool against other addresses than Open-Meteo's public ones, such as a server of one's own."""

    @tool(effect="read", timeout=40)
    async def weather(city: str, units: Units = "celsius") -> str:
        """Current weather in a city and today's range. Use it for any question about weather now or today.

        Args:
            city: The city's name in any script, such as "Tokyo", "北京" or "Zürich". Where several bear the
                name, add the region or country after a comma: "Paris, Texas".
            units: "celsius" (wind in km/h) or "fahrenheit" (wind in mph).
        """
        import aiohttp

        name = _city(city)
        timeout = aiohttp.ClientTimeout(total=request_seconds)
        async with aiohttp.ClientSession(trust_env=True, timeout=timeout) as session:
            places = await find_places(session, geocoding_url, name)
            answer = await fetch_json(session, forecast_url, _parameters(places[0], units))
        return f"{places[0].label}: {_report(answer, units)}{_others(places)}"

    return weather


def _city(city: str) -> str:
    name = city.replace("，", ",").strip()
    if not name:
        raise ValueError("the city is empty; give a name such as Tokyo")
    if len(name) > 100:
        raise ValueError(f"the city's name has {len(name)} characters, at most 100; give only the name")
    return name


def _parameters(place: Place, units: Units) -> Mapping[str, str]:
    return {
        "latitude": f"{place.latitude}",
        "longitude": f"{place.longitude}",
        "current": _CURRENT,
        "daily": "temperature_2m_max,temperature_2m_min",
        "forecast_days": "1",
        "timezone": "auto",
        "temperature_unit": units,
        "wind_speed_unit": _SPEED_UNITS[units][0],
    }


def _report(answer: Mapping[str, Any], units: Units) -> str:
    now = answer.get("current")
    if not isinstance(now, dict):
        raise RuntimeError("the weather service sent no current weather for this place; try again later")
    degrees = "°C" if units == "celsius" else "°F"
    today = answer.get("daily") or {}
    return (
        f"{_CONDITIONS.get(now.get('weather_code', -1), 'unknown sky')}, "
        f"{_figure(now.get('temperature_2m'))} {degrees} "
        f"(feels like {_figure(now.get('apparent_temperature'))} {degrees}), "
        f"wind {_figure(now.get('wind_speed_10m'))} {_SPEED_UNITS[units][1]}{_from(now.get('wind_direction_10m'))}, "
        f"humidity {_figure(now.get('relative_humidity_2m'))} %; local time {_time(now.get('time'))}; "
        f"today {_figure(_first(today.get('temperature_2m_min')))} to "
        f"{_figure(_first(today.get('temperature_2m_max')))} {degrees}"
    )


def _figure(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "unknown"


def _first(values: object) -> object:
    return values[0] if isinstance(values, list) and values else None


def _from(degrees: object) -> str:
    if not isinstance(degrees, int | float):
        return ""
    return f" from the {_WINDS[round(degrees / 45) % len(_WINDS)]}"


def _time(written: object) -> str:
    try:
        return f"{datetime.datetime.fromisoformat(str(written)):%Y-%m-%d %H:%M}"
    except ValueError:
        return "unknown"


def _others(places: Sequence[Place]) -> str:
    """Which place was taken, where the name alone does not say."""
    same = [place.label for place in places[1:] if place.exact == places[0].exact]
    others = [label for label in dict.fromkeys(same) if label != places[0].label][:_MAX_OTHERS]
    if not others:
        return ""
    return f". The largest place of that name was taken; others: {'; '.join(others)}"


weather = weather_tool()
