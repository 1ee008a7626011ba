"""Open-Meteo over HTTP: one bounded JSON request, and which place a city's name means. What weather says is not here.

Rules of its geocoder (https://open-meteo.com/en/docs/geocoding-api): names in a language match only when that
language is asked for; two letters match exactly, three or more also as a beginning; a region or a country may
follow after a comma.
"""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

MAX_ANSWER_BYTES = 1_000_000
"""Of the decoded answer, so that a small compressed one cannot grow without end."""

_NAMESAKE_POPULATION = 20_000
"""A match smaller than this may be a village that shares the name of a city known under another language."""

_MAX_SUGGESTIONS = 5

# In which languages a name of a script is looked up: first these, and when only villages match, then those.
_LANGUAGES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "LATIN": (("en",), ("de", "fr", "es", "it", "pt", "pl")),
    "CJK": (("zh", "en"), ("ja",)),
    "HIRAGANA": (("ja", "en"), ()),
    "KATAKANA": (("ja", "en"), ()),
    "HANGUL": (("ko", "en"), ()),
    "CYRILLIC": (("ru", "en"), ("uk", "bg", "sr")),
    "GREEK": (("el", "en"), ()),
    "ARABIC": (("ar", "en"), ("fa", "ur")),
    "HEBREW": (("he", "en"), ()),
    "THAI": (("th", "en"), ()),
    "DEVANAGARI": (("hi", "en"), ("ne", "mr")),
}
_ANY_SCRIPT: tuple[tuple[str, ...], tuple[str, ...]] = (("en",), ())


@dataclass(frozen=True, slots=True)
class Place:
    """One match of the geocoder. `exact`: it bears the name that was asked for, not only one that begins so."""

    id: int
    name: str
    region: str
    country: str
    latitude: float
    longitude: float
    population: int
    exact: bool

    @property
    def label(self) -> str:
        """Name, region and country, as far as they differ."""
        return ", ".join(dict.fromkeys(part for part in (self.name, self.region, self.country) if part))


async def fetch_json(session: ClientSession, url: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object at `url`. No redirect is followed.

    Raises `ConnectionError` when the service cannot be reached in time, `RuntimeError` when it answers with
    an error or with anything but a JSON object.
    """
    import aiohttp
    from yarl import URL

    host = URL(url).host
    try:
        async with session.get(url, params=parameters, allow_redirects=False) as response:
            status, kind = response.status, response.content_type
            body = await _bounded_body(response, f"{host}")
    except TimeoutError as error:
        raise ConnectionError(
            f"the weather service {host} did not answer in time; try again later"
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        detail = str(error) or type(error).__name__
        raise ConnectionError(
            f"cannot reach the weather service {host}: {detail}; check the network"
        ) from error
    return _object(body, status, kind, f"{host}")


async def _bounded_body(response: ClientResponse, host: str) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise RuntimeError(
                f"the answer of {host} is larger than {MAX_ANSWER_BYTES} bytes; it was dropped"
            )
    return bytes(body)


def _object(body: bytes, status: int, kind: str, host: str) -> Mapping[str, Any]:
    """Read the answer: the service's own reason comes first, then the status, then the content."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    reason = answer.get("reason") if isinstance(answer, dict) else None
    if reason:
        raise RuntimeError(f"the weather service {host} refused: {str(reason)[:200]} (HTTP {status})")
    if status == 429:
        raise RuntimeError(f"the weather service {host} is throttling (HTTP 429); try again in a minute")
    if status != 200:
        raise RuntimeError(f"the weather service {host} failed with HTTP {status}; try again later")
    if not isinstance(answer, dict):
        raise RuntimeError(
            f"the weather service {host} answered with no JSON object ({kind}); "
            "a proxy or a login page may stand between"
        )
    return answer


async def find_places(session: ClientSession, url: str, city: str) -> Sequence[Place]:
    """What `city` may mean, the likeliest first: the exact name before others, then the most populous.

    Raises `LookupError` if nothing matches, and what `fetch_json` raises.
    """
    first, then = _languages(city)
    places = await _search(session, url, ((city, language) for language in first))
    if not places or places[0].population < _NAMESAKE_POPULATION:
        spellings = [*((city, language) for language in then)]
        spellings += [(other, language) for other in _other_spellings(city) for language in first]
        places = _ranked([*places, *await _search(session, url, spellings)])
    if not places:
        raise LookupError(await _unknown(session, url, city))
    return places


async def _unknown(session: ClientSession, url: str, city: str) -> str:
    """Why nothing matches: the name, or only the region or country after the comma."""
    name, comma, region = (part.strip() for part in city.partition(","))
    if not comma:
        return f"no place called {city!r} is known; check the spelling, or give a larger city nearby"
    places = await _search(session, url, ((name, language) for language in _languages(name)[0]))
    labels = "; ".join(place.label for place in places[:_MAX_SUGGESTIONS])
    return f"no {name!r} is known in {region!r}; " + (
        f"there are: {labels}" if labels else "check the spelling"
    )


async def _search(session: ClientSession, url: str, spellings: Iterable[tuple[str, str]]) -> list[Place]:
    """All matches of several spellings and languages, asked at once."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_matches(session, url, *spelling)) for spelling in spellings]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # one reason is enough: they share it
    return _ranked(place for task in tasks for place in task.result())


async def _matches(session: ClientSession, url: str, name: str, language: str) -> list[Place]:
    parameters = {"name": name, "language": language, "count": "10", "format": "json"}
    answer = await fetch_json(session, url, parameters)
    found = answer.get("results") or []
    wanted = _plain(name.partition(",")[0])
    return [_place(result, wanted) for result in found if isinstance(result, dict) and "latitude" in result]


def _place(result: Mapping[str, Any], wanted: str) -> Place:
    name = str(result.get("name", ""))
    return Place(
        id=int(result.get("id", 0)),
        name=name,
        region=str(result.get("admin1") or ""),
        country=str(result.get("country") or ""),
        latitude=float(result["latitude"]),
        longitude=float(result["longitude"]),
        population=int(result.get("population") or 0),
        exact=_plain(name) == wanted,
    )


def _ranked(places: Iterable[Place]) -> list[Place]:
    """Best first, each place once."""
    best = sorted(places, key=lambda place: (place.exact, place.population), reverse=True)
    return list({place.id: place for place in reversed(best)}.values())[::-1]


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold().strip())
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).removesuffix("市")


def _languages(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return _LANGUAGES.get(_script(name), _ANY_SCRIPT)


def _script(name: str) -> str:
    """The script of the name, by its rarest sort of letter: kana beside Han is Japanese."""
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()}
    return next((script for script in reversed(tuple(_LANGUAGES)) if script in scripts), "")


def _other_spellings(city: str) -> tuple[str, ...]:
    """Chinese cities are listed under their name with or without 市."""
    if _script(city) != "CJK" or "," in city:
        return ()
    return (city.removesuffix("市"),) if city.endswith("市") else (city + "市",)
