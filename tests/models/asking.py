"""Asking one question of an endpoint and keeping all it said."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from glassloop.core.entries import Reply, User, parts_of
from glassloop.core.errors import EndpointError
from glassloop.core.events import ReasoningDelta, TextDelta
from glassloop.core.recording import NoRecorder
from glassloop.core.tools import ToolSpec
from glassloop.models.deadlines import Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.model import ModelRequest

WEATHER = ToolSpec(
    "get_weather",
    "Weather in a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
QUICK = Retries(base=0.001)


@dataclass
class Heard:
    events: list = field(default_factory=list)
    reply: Reply | None = None
    error: EndpointError | None = None

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def shown(self) -> str:
        """The text on the screen at the end."""
        text = ""
        for event in self.events:
            if getattr(event, "discard", False):
                text = ""
            if isinstance(event, TextDelta):
                text += event.text
        return text

    @property
    def kinds(self) -> list[str]:
        """What was said, deltas left out."""
        return [
            type(event).__name__
            for event in self.events
            if not isinstance(event, (TextDelta, ReasoningDelta))
        ]


def quick(server, **options) -> Endpoint:
    """An endpoint at a test server that does not wait long between retries."""
    return Endpoint(options.pop("base_url", None) or server.base_url, "m", **{"retries": QUICK, **options})


async def ask(endpoint, entries=None, *, tools=(WEATHER,), settings=None, recorder=None) -> Heard:
    heard = Heard()
    request = ModelRequest(tuple(entries or [User(parts_of("How is it in Oslo?"))]), tools, settings or {})
    try:
        async with aclosing(endpoint.stream(request, recorder or NoRecorder())) as said:
            async for one in said:
                heard.events.append(one)
                if isinstance(one, Reply):
                    heard.reply = one
    except EndpointError as error:
        heard.error = error
    return heard


async def heard_from(script, **options) -> tuple[Heard, list]:
    """What one question to a server with this script brings, and the requests that it took."""
    from glassloop.testing.server import ChatServer

    question = {
        key: options.pop(key) for key in ("entries", "tools", "settings", "recorder") if key in options
    }
    async with ChatServer(script) as server:
        endpoint = quick(server, **options)
        heard = await ask(endpoint, **question)
        await endpoint.close()
        return heard, server.requests
