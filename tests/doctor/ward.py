"""A quirk server whose other half is healthy: where no quirk is played, a willing model answers every question well.

    async with ward(quirks) as server:
        report = await examined(server.base_url("A2+C46"))

Several quirks share one endpoint when their ids are joined by "+"; each is then played in its turn.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from tests.doctor.healthy import BAD_REQUEST, completion_for

from glassloop import Endpoint
from glassloop.core.entries import JSON
from glassloop.doctor.examination import examine
from glassloop.doctor.findings import Report
from glassloop.doctor.patient import Budget, Patient
from glassloop.doctor.probe import Probe
from glassloop.doctor.probes import PROBES
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.profiles import ProfileStore
from glassloop.testing import quirks as playing
from glassloop.testing.quirks import Quirk, QuirkServer
from glassloop.testing.rawhttp import send
from glassloop.testing.server import Request
from glassloop.testing.triggers import triggered

IMPATIENT = Deadlines(first_byte=10, silence=5)
MODELS = {"object": "list", "data": [{"id": "m", "object": "model"}]}


class Ward(QuirkServer):
    """Plays quirks where they can show, and is healthy elsewhere."""

    def __init__(self, quirks: Iterable[Quirk]) -> None:
        super().__init__(quirks)
        self.played: dict[str, Counter[str]] = {}
        """How often each quirk was played, by place."""
        self.just_played: dict[tuple[str, str], bool] = {}

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        body = request.body if isinstance(request.body, dict) else {}
        if request.method != "POST" or not isinstance(body.get("messages"), list):
            status, said = (
                (200, MODELS) if request.path.endswith("/v1/models") else (404, {"error": "no such path"})
            )
            if "messages" in body:
                status, said = 400, BAD_REQUEST
            return await send(writer, status, _JSON, [json.dumps(said).encode()])
        place = request.path.strip("/").removesuffix("/chat/completions").removesuffix("/v1").strip("/")
        quirk = self._turn(place, body)
        if quirk is None:
            return await playing._play_normal(writer, body, completion_for(body))
        self.played.setdefault(place, Counter())[quirk.id] += 1
        return await playing._play(writer, quirk.wire, streamed=body.get("stream") is True)

    def _turn(self, place: str, body: Mapping[str, JSON]) -> Quirk | None:
        """Of the quirks at this place that the request triggers, the one that was played least."""
        names = [name for name in place.partition("/")[0].split("+") if name in self.quirks]
        counts = self.played.get(place, Counter[str]())
        ready = []
        for name in names:
            quirk = self.quirks[name]
            before = self.just_played.get((place, name), False)
            fires = _shows(quirk, body) and triggered(
                quirk.action, _general(quirk, body), body, played_before=before
            )
            if fires:
                ready.append(quirk)
            elif before:
                self.just_played[place, name] = False
        chosen = min(ready, key=lambda one: counts[one.id], default=None)
        if chosen is not None:
            self.just_played[place, chosen.id] = True
        return chosen


_JSON = {"content-type": "application/json"}


def _general(quirk: Quirk, body: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """The catalogue's `when` as the rule that its example stands for: any number there, any odd name."""
    when = quirk.when
    if when is None:
        return None
    given = {name: body[name] if _is_met(quirk, name, value, body) else value for name, value in when.items()}
    names = [tool["function"]["name"] for tool in body.get("tools") or ()]
    odd = next((name for name in names if not name[0].isalpha()), None)
    if given.get("tool_name") not in (None, "absent") and odd:
        given["tool_name"] = odd
    if given.get("has") == "strict" and any("strict" in tool["function"] for tool in body.get("tools") or ()):
        given["has"] = "tools"
    return given


def _is_met(quirk: Quirk, name: str, value: JSON, body: Mapping[str, JSON]) -> bool:
    """Whether the request has a number where the quirk has one; a limit that is refused is not below it."""
    if name not in body or not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return quirk.action != "adapt_request" or not name.startswith("max") or bool(body[name] >= value)


def _shows(quirk: Quirk, body: Mapping[str, JSON]) -> bool:
    """Whether what the quirk says could be an answer to this question at all."""
    if quirk.wire["mode"] == "sse" and not body.get("stream"):
        return False
    offered = {tool["function"]["name"] for tool in body.get("tools") or ()}
    choice = body.get("tool_choice", "auto")
    if quirk.action in ("execute", "feed_back"):
        named = {call["name"] for call in quirk.expect["calls"]} or {"get_weather"}
        return named <= offered and choice != "none"
    if quirk.action == "answer":
        return not offered or choice == "none"
    return '"function"' not in json.dumps(quirk.wire) or (bool(offered) and choice != "none")


@asynccontextmanager
async def ward(quirks: Sequence[Quirk]) -> AsyncIterator[Ward]:
    """Serve these quirks for as long as the block runs."""
    server = Ward(quirks)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.connected(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def endpoint_at(base_url: str, model: str = "m", **options: object) -> Endpoint:
    """An endpoint that learns for itself alone, and does not wait long."""
    given = {
        "retries": Retries(base=0.001),
        "deadlines": IMPATIENT,
        "learned": ProfileStore(None),
        "proxy": "",
    }
    return Endpoint(base_url, model, **{**given, **options})  # type: ignore[arg-type]


async def examined(
    base_url: str,
    probes: Sequence[Probe] = PROBES,
    *,
    model: str = "m",
    budget: Budget | None = None,
    tries: int = 3,
    **options: object,
) -> Report:
    """The doctor's report on an endpoint."""
    patient = Patient(endpoint_at(base_url, model, **options), budget=budget or Budget(), tries=tries)
    try:
        return await examine(patient, probes)
    finally:
        await patient.endpoint.close()
