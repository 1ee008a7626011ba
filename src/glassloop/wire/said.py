"""What an error body says, wherever in it the words are: fields, lists, and JSON quoted inside text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from glassloop.core.entries import JSON

_QUOTED = 500
_SEARCHED = 8_000
_AT_ITS_END = 2_000
"""Of a longer text the beginning and the end are searched; what lies between repeats what we sent."""

_DEPTH = 12
_ECHOES = frozenset(
    (
        "input",
        "request",
        "ctx",
        "failed_generation",
        "headers",
        "request_id",
        "user_id",
        "url",
        "documentation_url",
    )
)
"""Fields in which servers repeat what we sent or what the model wrote; words in there are not theirs."""

_MESSAGE_FIELDS = (
    "message",
    "detail",
    "msg",
    "error_description",
    "error_msg",
    "status_msg",
    "title",
    "reason",
    "description",
)
_PLACES = ("loc", "param", "path", "field", "instancePath", "property", "additionalProperty", "location")
_REPORTS = ("base_resp", "response", "body", "data", "result", "fault", "cause", "metadata")
_INPUT_VALUE = re.compile(r"input_value=.*?(?=, input_type=|\]|$)", re.DOTALL)
_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Said:
    """An endpoint's words. `quote` is what to show a person, at most 500 characters; `text` all of it for searching."""

    quote: str
    text: str
    code: int | None
    payload: JSON
    is_empty: bool
    is_page: bool

    def value(self, *names: str) -> JSON:
        """The first value under one of these keys, at any depth, or None."""
        return _find(self.payload, names, 0)


def said(payload: JSON, text: str) -> Said:
    """Read an error body: `payload` is its JSON (None if it is none), `text` the whole of it as text."""
    if payload is None:
        payload = _unquoted(text)
    is_page = payload is None and text.lstrip()[:1] == "<"
    if payload is None:
        title = _TITLE.search(text[:_SEARCHED])
        plain = " ".join(_TAG.sub(" ", _ends(text)).split()) if is_page else text.strip()
        quote = " ".join(title.group(1).split()) if is_page and title else plain
        return Said(_short(quote), _ends(plain), None, None, not plain, is_page)
    strings: list[str] = []
    _collect(payload, strings, 0)
    searched = _ends(_INPUT_VALUE.sub("", "\n".join(strings)))
    quote = _message(payload, 0) or "\n".join(strings)
    return Said(_short(quote), searched, _code(payload), payload, not searched.strip(), False)


def _ends(text: str) -> str:
    return text if len(text) <= _SEARCHED else f"{text[: _SEARCHED - _AT_ITS_END]}\n{text[-_AT_ITS_END:]}"


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


def _unquoted(text: str) -> JSON:
    """The JSON object or list that a text holds, also after a few words ("Error from provider: {…}"), else None."""
    for opening in ("{", "["):
        start = text.find(opening)
        if 0 <= start < _SEARCHED:
            try:
                value, _ = json.JSONDecoder().raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) or (
                isinstance(value, list) and any(isinstance(each, dict) for each in value)
            ):
                return value
    return None


def _collect(value: JSON, strings: list[str], depth: int) -> None:
    """Every text in it. A list of plain values is a path ("body.temperature") and stays together."""
    if depth > _DEPTH:
        return
    if isinstance(value, str):
        strings.append(value)
        inner = _unquoted(value)
        if inner is not None:
            _collect(inner, strings, depth + 1)
    elif isinstance(value, Mapping):
        if placed := _placed(value):
            strings.append(placed)
        for key, each in value.items():
            if str(key).lower() not in _MESSAGE_FIELDS and (complaint := _complaint(each)):
                strings.append(f"{key}: {complaint}")
            if str(key).lower() not in _ECHOES:
                _collect(each, strings, depth + 1)
    elif isinstance(value, list):
        if value and all(isinstance(each, (str, int)) for each in value):
            strings.append(".".join(map(str, value)))
            return
        for each in value:
            _collect(each, strings, depth + 1)


def _complaint(value: JSON) -> str:
    """What is said of the field that is the key: a list of sentences, as form validators write them."""
    if not isinstance(value, list) or not all(isinstance(each, str) and " " in each for each in value):
        return ""
    return " ".join(value)


def _placed(value: Mapping[str, JSON]) -> str:
    """A validator's place and complaint on one line, as rules look for what belongs together in one line."""
    more = value.get("params")
    places = {**value, **more} if isinstance(more, Mapping) else value
    place = next((places[name] for name in _PLACES if places.get(name)), None)
    words = next(
        (value[name] for name in ("msg", "message", "detail") if isinstance(value.get(name), str)), None
    )
    if words is None or not isinstance(place, (str, list)):
        return ""
    return f"{place if isinstance(place, str) else '.'.join(map(str, place))}: {words}"


def _message(value: JSON, depth: int) -> str:
    """The words meant for people: the innermost message, since gateways wrap what their upstream said."""
    if depth > _DEPTH:
        return ""
    if isinstance(value, str):
        inner = _unquoted(value)
        return (_message(inner, depth + 1) if inner is not None else "") or value
    if isinstance(value, list):
        return next((found for each in value if (found := _message(each, depth + 1))), "")
    if not isinstance(value, Mapping):
        return ""
    raw = value.get("metadata")
    if isinstance(raw, Mapping) and isinstance(raw.get("raw"), (str, dict)) and raw["raw"]:
        return _message(raw["raw"], depth + 1)
    # A text under "error" is often no more than the status in words ("Bad Request").
    outer = (
        (*_MESSAGE_FIELDS, "error") if isinstance(value.get("error"), str) else ("error", *_MESSAGE_FIELDS)
    )
    for name in (*outer, "errors", *_REPORTS):
        if name in value and (found := _message(value[name], depth + 1)):
            return _placed(value) if "loc" in value and value.get(name) == found else found
    return ""


def _code(payload: JSON) -> int | None:
    """The HTTP status that the body itself names."""
    value = payload[0] if isinstance(payload, list) and payload else payload
    for _ in range(2):
        if not isinstance(value, Mapping):
            return None
        for name in ("code", "status", "status_code", "statusCode", "http_status"):
            each = value.get(name)
            if isinstance(each, (int, str)) and re.fullmatch(r"[1-5]\d\d", str(each)):
                return int(each)
        value = value.get("error")
    return None


def _find(value: JSON, names: tuple[str, ...], depth: int) -> JSON:
    if depth > _DEPTH:
        return None
    if isinstance(value, str):
        inner = _unquoted(value) if depth else None
        return _find(inner, names, depth + 1) if inner is not None else None
    if isinstance(value, Mapping):
        for name in names:
            if value.get(name) not in (None, ""):
                return value[name]
        items: list[JSON] = list(value.values())
    elif isinstance(value, list):
        items = value
    else:
        return None
    return next((found for each in items if (found := _find(each, names, depth + 1)) is not None), None)
