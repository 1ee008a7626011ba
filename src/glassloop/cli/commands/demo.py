"""`glassloop demo`: the story of examples/minimal.py through the real loop, every request and reply shown. No key.

A demo that is kept is asked of a server on this machine, so that there is a wire to look at and to replay.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from glassloop.cli.failures import FAILED, exit_code_for
from glassloop.cli.keeping import Keeping, keeping_of
from glassloop.cli.options import Options
from glassloop.cli.printing import say
from glassloop.cli.screen import Line
from glassloop.cli.storytelling import Pace, Story
from glassloop.cli.wording import program
from glassloop.config import load
from glassloop.core.entries import Reply
from glassloop.core.recording import Recorder
from glassloop.models.model import Model, ModelRequest, Said
from glassloop.models.scripted import ScriptedModel, call, calls

if TYPE_CHECKING:
    from glassloop.testing.server import Completion

QUESTION = "How is the weather in Tokyo, what is (15 + 27) * 3, and what does my note on packing say?"
ANSWER = (
    "Tokyo has 18 °C and light rain, and (15 + 27) * 3 is 126. "
    "You have no note on packing; there are notes on visa and hotel."
)
_WEATHER = {"Tokyo": "18 °C, light rain", "Beijing": "24 °C, clear"}
_NOTES = {"visa": "Apply by the 3rd.", "hotel": "Two nights in Asakusa."}


async def get_weather(city: str) -> str:
    """Current weather in a city. Use it whenever the user asks about weather.

    Args:
        city: The city's name, such as "Tokyo".
    """
    await asyncio.sleep(0.3)  # as long as a weather service takes
    return _WEATHER.get(city, f"no weather station in {city}")


def read_note(title: str) -> str:
    """Read one of the user's notes. Use it when the user asks what a note says.

    Args:
        title: The note's title, such as "hotel".
    """
    if title not in _NOTES:
        raise LookupError(f"there is no note {title!r}; there are: {', '.join(_NOTES)}")
    return _NOTES[title]


def script() -> list[Reply | str]:
    """What the model says: two calls at once, a call that fails, the answer."""
    return [
        calls(
            call("get_weather", city="Tokyo"),
            call("calculator", expression="(15 + 27) * 3"),
            text="The weather and the sum do not depend on each other, so I ask for both at once.",
        ),
        calls(call("read_note", title="packing"), text="Now the note."),
        ANSWER,
    ]


@click.command()
@click.option("--fast", is_flag=True, help="Without the pauses.")
@click.option("--keep", is_flag=True, help="Keep it as a session, to look at, export and replay afterwards.")
def command(fast: bool, keep: bool) -> int:
    """See the loop at work: a model that plays a script, tools that really run. No key, no network."""
    pace = Pace.NONE if fast or not sys.stdout.isatty() else Pace.READING
    keeping, _ = keeping_of(Options(no_save=not keep), load())
    try:
        return asyncio.run(_tell(pace, keeping))
    finally:
        keeping.close()


async def _tell(pace: Pace, keeping: Keeping) -> int:
    from glassloop.agent import Agent
    from glassloop.cli.playing import on_interrupt
    from glassloop.tools.builtin.calculator import calculator

    tools = [get_weather, calculator, read_note]
    async with _model(keeping) as model:
        agent: Agent[str] = Agent(
            model, tools=tools, name="demo", journal=keeping.journal, recorder=keeping.recorder
        )
        story = Story(model.requests, agent.tools.specs, pace)
        story.begin()
        async with agent.stream(QUESTION) as run:
            with on_interrupt(run.cancel):
                async for event in run:
                    await story.show(event)
            story.end(run.result)
            code = exit_code_for(run.result.stop_reason)
    if keeping.keeps(run.session):
        say(Line(f"· kept: {program()} show {run.session.id} --wire", "quiet"))
        say(Line(f"· once more, offline: {program()} replay {run.session.id}", "quiet"))
    return code if run.result.text == ANSWER or code else FAILED


@dataclass
class _Overheard:
    """A model with a list of what it is asked, for the story."""

    model: Model
    requests: list[ModelRequest] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.model.name

    def stream(self, request: ModelRequest, recorder: Recorder) -> AsyncGenerator[Said, None]:
        self.requests.append(request)
        return self.model.stream(request, recorder)

    async def close(self) -> None:
        await self.model.close()


@asynccontextmanager
async def _model(keeping: Keeping) -> AsyncIterator[ScriptedModel | _Overheard]:
    """The script; where it is kept, played by a server of this machine."""
    if keeping.store is None:
        yield ScriptedModel(script(), name="a script")
        return
    from glassloop.models.endpoint import Endpoint
    from glassloop.testing.server import ChatServer

    async with ChatServer([_served(line) for line in script()]) as server:
        model = _Overheard(Endpoint(server.base_url, "a-script", name="a script"))
        try:
            yield model
        finally:
            await model.close()


def _served(line: Reply | str) -> Completion:
    """A line of the script, as a server says it."""
    from glassloop.testing import server

    if isinstance(line, str):
        return server.says(line)
    return server.calls(*((one.name, one.arguments) for one in line.tool_calls), text=line.text)
