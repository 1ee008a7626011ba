"""What the tests against other people's servers share: starting one, running an agent at it, and what went by."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassloop import Agent, Endpoint, GlassloopError, Result, TextDelta, tool
from glassloop.core.entries import ToolResult
from glassloop.models.deadlines import Retries

QUICK = Retries(base=0.02)


@dataclass(frozen=True)
class Peer:
    """A running server. `model` is one that it answers for, `key` the key that it wants, if any."""

    root: str
    model: str
    key: str | None = None

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"

    def endpoint(self, model: str | None = None, **options: Any) -> Endpoint:
        given = {"key": self.key, "retries": QUICK, "proxy": "", **options}
        return Endpoint(given.pop("base_url", self.base_url), model or self.model, **given)

    def ask(self, path: str, body: Any = None, *, method: str | None = None) -> Any:
        """The server's own control interface: JSON there and back."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(self.root + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text.strip() else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str | Path], root: str, ready: str, log: Path, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server in a process of its own, from when it is `ready` to answer until the block ends."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**os.environ, **(env or {})},
        )
    try:
        deadline = time.monotonic() + 300
        while not _answers(root + ready):
            assert process.poll() is None, f"{command[0]} ended:\n{log.read_text(errors='replace')[-3000:]}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer at {root}{ready}"
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


class Wire:
    """A `Recorder` that keeps every exchange: what was sent, the status, and the bytes that came back."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.answers: list[bytes] = []

    def sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self.requests.append(json.loads(body))
        self.answers.append(b"")

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        self.statuses.append(status)

    def received(self, data: bytes) -> None:
        self.answers[-1] += data

    def ended(self, error: str | None = None) -> None: ...


@dataclass
class Ran:
    """A run that is over: its (perhaps partial) result, its error, its events, and the wire."""

    result: Result[Any]
    error: GlassloopError | None
    events: list[Any]
    wire: Wire

    @property
    def shown(self) -> str:
        """The text on the screen at the end."""
        text = ""
        for event in self.events:
            text = "" if getattr(event, "discard", False) else text
            text += event.text if isinstance(event, TextDelta) else ""
        return text

    @property
    def tool_results(self) -> list[tuple[str, str]]:
        """State and text of each call's result."""
        return [(one.state, one.text) for one in self.result.entries if isinstance(one, ToolResult)]

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def run(endpoint: Endpoint, task: str, *, close: bool = True, **options: Any) -> Ran:
    """An agent's run of this task at this endpoint."""
    wire = Wire()
    session, history = options.pop("session", None), options.pop("history", None)
    agent: Agent[Any] = Agent(endpoint, recorder=lambda _: wire, **options)
    events: list[Any] = []
    error = None
    try:
        async with agent.stream(task, session=session, history=history) as running_one:
            try:
                async for event in running_one:
                    events.append(event)
            except GlassloopError as raised:
                error = raised
    finally:
        if close:
            await endpoint.close()
    return Ran(error.result if error else running_one.result, error, events, wire)


@dataclass
class Weather:
    """A tool that says where it was asked about."""

    cities: list[str] = field(default_factory=list)

    @property
    def tools(self) -> list[Any]:
        @tool(effect="read")
        def get_weather(city: str) -> str:
            """Current weather in a city. Use it for any question about weather."""
            self.cities.append(city)
            return f"{city}: 20 °C"

        return [get_weather]


class Relay:
    """Passes TCP connections on to a server, and counts them: the only way to see how many a client opens."""

    def __init__(self, root: str) -> None:
        self._target = ("127.0.0.1", int(root.rsplit(":", 1)[1]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.root = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(self._target)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with source:
            try:
                while data := source.recv(65536):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                return
