"""The weather tool against a real server on loopback that answers as Open-Meteo does, and as it should not."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from glassloop.tools.builtin.openmeteo import MAX_ANSWER_BYTES
from glassloop.tools.builtin.weather import _CONDITIONS, weather_tool


def place(number: int, name: str, country: str, population: int | None, region: str = "") -> dict[str, Any]:
    found = {"id": number, "name": name, "country": country, "latitude": float(number), "longitude": -1.5}
    return found | ({"population": population} if population else {}) | ({"admin1": region} if region else {})


BEIJING = place(1, "北京市", "中国", 18_960_744, "北京市")
PARIS = place(3, "Paris", "France", 2_138_551, "Île-de-France")

# What the geocoder knows: (name, language) → matches. Native names match only under their language.
ATLAS: Mapping[tuple[str, str], list[dict[str, Any]]] = {
    ("北京", "zh"): [place(10, "北京", "中国", None, "重庆市"), place(11, "北京", "中国", None, "四川")],
    ("北京市", "zh"): [BEIJING],
    ("東京", "ja"): [place(2, "東京", "日本", 8_336_599)],
    ("Paris", "en"): [
        place(31, "Paris", "United States", 24_782, "Texas"),
        PARIS,
        place(32, "Parisville", "Canada", 9_000_000),
    ],
    ("Paris, Texas", "en"): [place(31, "Paris", "United States", 24_782, "Texas")],
    ("Zürich", "en"): [place(4, "Zurich", "Switzerland", 341_730, "Zurich")],
    ("Warszawa", "en"): [place(50, "Warszawa", "United States", None, "Ohio")],
    ("Warszawa", "pl"): [place(5, "Warszawa", "Polska", 1_702_139, "Mazowieckie")],
    ("Hallstatt", "en"): [place(6, "Hallstatt", "Austria", 731, "Upper Austria")],
    ("Москва", "ru"): [place(7, "Москва", "Россия", 10_381_222)],
}

CURRENT: Mapping[str, Any] = {
    "time": "2026-03-01T15:30",
    "temperature_2m": 18.3,
    "apparent_temperature": 17.0,
    "relative_humidity_2m": 65,
    "weather_code": 2,
    "wind_speed_10m": 12.4,
    "wind_direction_10m": 310,
}
DAILY: Mapping[str, Any] = {"temperature_2m_min": [9.1], "temperature_2m_max": [21.0]}


async def geocode(request: web.Request) -> web.Response:
    matches = ATLAS.get((request.query["name"], request.query["language"]))
    return web.json_response({"results": matches} if matches else {"generationtime_ms": 0.5})


async def forecast(request: web.Request) -> web.Response:
    asked = dict(request.query)
    fahrenheit = asked["temperature_unit"] == "fahrenheit" and asked["wind_speed_unit"] == "mph"
    now = {**CURRENT, "temperature_2m": 65.0} if fahrenheit else CURRENT
    return web.json_response({"current": now, "daily": DAILY, "latitude": asked["latitude"]})


def answering(body: bytes, status: int = 200, **headers: str) -> Any:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(body=body, status=status, headers=headers)

    return handler


async def silent(_request: web.Request) -> web.Response:
    await asyncio.sleep(30)
    return web.Response()


def ask(city: str, units: str | None = None, *, geocoder: Any = geocode, forecaster: Any = forecast) -> str:
    """One question to the real tool, over a real socket."""

    async def talk() -> str:
        app = web.Application()
        app.router.add_get("/search", geocoder)
        app.router.add_get("/forecast", forecaster)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            base = f"http://{host}:{port}"
            tool = weather_tool(
                geocoding_url=f"{base}/search", forecast_url=f"{base}/forecast", request_seconds=0.5
            )
            answer: str = await tool.function(city, **({"units": units} if units else {}))
            return answer
        finally:
            await runner.cleanup()

    return asyncio.run(talk())


@pytest.fixture(autouse=True)
def _no_proxy_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_the_answer_is_one_line_with_all_that_people_ask_for() -> None:
    assert ask("Zürich") == (
        "Zurich, Switzerland: partly cloudy, 18.3 °C (feels like 17 °C), wind 12.4 km/h from the northwest, "
        "humidity 65 %; local time 2026-03-01 15:30; today 9.1 to 21 °C"
    )


def test_fahrenheit_is_asked_of_the_service_with_miles_per_hour() -> None:
    answer = ask("Zürich", "fahrenheit")
    assert "65 °F" in answer
    assert "12.4 mph" in answer


@pytest.mark.parametrize(
    ("city", "label"),
    [
        ("北京", "北京市, 中国"),
        ("東京", "東京, 日本"),
        ("Москва", "Москва, Россия"),
        ("Warszawa", "Warszawa, Mazowieckie, Polska"),
        ("Paris", "Paris, Île-de-France, France"),
        ("Paris, Texas", "Paris, Texas, United States"),
        ("Paris， Texas", "Paris, Texas, United States"),
        ("Hallstatt", "Hallstatt, Upper Austria, Austria"),
        ("  Paris\n", "Paris, Île-de-France, France"),
    ],
)
def test_a_name_in_any_script_means_the_largest_place_that_bears_it(city: str, label: str) -> None:
    assert ask(city).startswith(f"{label}: ")


def test_namesakes_are_named_but_not_names_that_only_begin_so() -> None:
    answer = ask("Paris")
    assert answer.endswith(". The largest place of that name was taken; others: Paris, Texas, United States")


@pytest.mark.parametrize("code", [0, 48, 65, 77, 99])
def test_a_weather_code_is_told_in_words(code: int) -> None:
    now = json.dumps({"current": {**CURRENT, "weather_code": code}, "daily": DAILY}).encode()
    assert f": {_CONDITIONS[code]}, " in ask("Paris", forecaster=answering(now))


def test_figures_that_are_missing_are_said_to_be_unknown() -> None:
    now = json.dumps({"current": {"temperature_2m": None, "weather_code": 42}}).encode()
    answer = ask("Hallstatt", forecaster=answering(now))
    assert "unknown sky, unknown °C (feels like unknown °C), wind unknown km/h, humidity unknown %" in answer
    assert "local time unknown; today unknown to unknown °C" in answer


@pytest.mark.parametrize(
    ("city", "said"),
    [
        ("Nowhereville", "no place called 'Nowhereville' is known; check the spelling"),
        ("西西西西", "no place called '西西西西'"),
        (
            "Paris, Mars",
            "no 'Paris' is known in 'Mars'; there are: Paris, Île-de-France, France; Paris, Texas",
        ),
        ("Nowhereville, Mars", "no 'Nowhereville' is known in 'Mars'; check the spelling"),
        ("\x00\x1b[31m", r"no place called '\\x00\\x1b"),
    ],
)
def test_an_unknown_city_is_said_to_be_unknown(city: str, said: str) -> None:
    with pytest.raises(LookupError, match=said):
        ask(city)


@pytest.mark.parametrize(
    ("city", "said"),
    [("", "empty"), (" \n", "empty"), ("x" * 5000, "5000 characters, at most")],
)
def test_a_city_that_cannot_be_one_is_refused_without_a_request(city: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ask(city, geocoder=answering(b"", 500))


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (answering(b"", 500), r"127\.0\.0\.1 failed with HTTP 500"),
        (answering(b"Bad gateway", 502), "HTTP 502"),
        (answering(b"{}", 429), "throttling"),
        (
            answering(b'{"error":true,"reason":"Parameter x is wrong"}', 400),
            r"refused: Parameter x is wrong \(HTTP 400\)",
        ),
        (answering(b'{"error":true,"reason":"Daily limit"}'), "refused: Daily limit"),
        (answering(b"", 302, Location="http://192.0.2.1/"), "HTTP 302"),
        (
            answering(b"<html>Log in</html>", 200, **{"Content-Type": "text/html"}),
            r"no JSON object \(text/html\)",
        ),
        (answering(b"[1]"), "no JSON object"),
        (answering(b""), "no JSON object"),
        (answering(b"[" * 100_000), "no JSON object"),
        (answering(b" " * (MAX_ANSWER_BYTES + 1)), "larger than 1000000 bytes"),
        (
            answering(gzip.compress(b" " * 50_000_000), **{"Content-Encoding": "gzip"}),
            "larger than 1000000 bytes",
        ),
    ],
)
@pytest.mark.parametrize("part", ["geocoder", "forecaster"])
def test_a_service_that_fails_is_quoted(handler: Any, said: str, part: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        ask("Paris", **{part: handler})


def test_a_forecast_without_current_weather_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="sent no current weather"):
        ask("Paris", forecaster=answering(b"{}"))


@pytest.mark.parametrize("part", ["geocoder", "forecaster"])
def test_a_service_that_stays_silent_is_given_up(part: str) -> None:
    with pytest.raises(ConnectionError, match="did not answer in time"):
        ask("Paris", **{part: silent})


def test_a_service_out_of_reach_is_named_with_what_to_check() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    tool = weather_tool(geocoding_url=f"http://127.0.0.1:{port}/search", request_seconds=2)
    with pytest.raises(
        ConnectionError, match=r"cannot reach the weather service 127\.0\.0\.1: .*; check the network"
    ):
        asyncio.run(tool.function("Paris"))
