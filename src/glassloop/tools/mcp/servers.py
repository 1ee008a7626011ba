"""Many servers and their tools, on a thread of their own, so that any event loop and plain code can call them."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from glassloop.core.entries import JSON, Part
from glassloop.core.errors import ConfigError
from glassloop.tools.context import ToolContext
from glassloop.tools.mcp.definitions import Definition, offered, wire_names
from glassloop.tools.mcp.server import Server, ServerFailed
from glassloop.tools.mcp.settings import ServerSettings, read_servers
from glassloop.tools.tool import Tool

T = TypeVar("T")

INSTALL = 'MCP servers need the official SDK, which is not installed: pip install "glassloop[mcp]"'
_CLOSING = 10.0


@dataclass(frozen=True, slots=True)
class ServerState:
    """How one server stands. `definitions`: what it says of its tools. `failure`: why it does not run ("": it does)."""

    settings: ServerSettings
    definitions: tuple[Definition, ...] = ()
    failure: str = ""
    left_out: tuple[str, ...] = ()
    listings: int = 0


class McpTools:
    """The tools of MCP servers: iterate it, or give it to an agent as `tools=`.

    A tool is offered from the first listing of its server on; one that is defined in another way later, or that
    comes later, is left out until it is given to `accept`. Use it as a context manager (`async with` or `with`),
    which raises `ConfigError` for a server that cannot be started; `start` says so in `states` instead.
    `variables` are what `${VAR}` stands for (the environment), and `data_variables` what it stands for too where it
    cannot say what is run.
    """

    def __init__(
        self,
        servers: Iterable[ServerSettings],
        *,
        variables: Mapping[str, str] | None = None,
        data_variables: Mapping[str, str] | None = None,
    ) -> None:
        self._variables = os.environ if variables is None else variables
        self._data_variables = data_variables or {}
        self._settings = tuple(one for one in servers if not one.disabled)
        self._servers: dict[str, Server] = {}
        self._unfit: dict[str, str] = {}
        self._accepted: dict[tuple[str, str], str] = {}
        self._thread: _Thread | None = None
        self.warnings: tuple[str, ...] = ()

    # ── starting and ending ──────────────────────────────────────────────

    def start(self, said: Callable[[ServerState], None] = lambda state: None) -> None:
        """Start all servers, at the same time; one that fails is in `states`. `said` is told of each, as it comes.

        Raises `ConfigError` without the SDK.
        """
        if self._settings:
            self._begun().start(self._start_all(said)).result()

    def close(self) -> None:
        """End all servers and the thread. May be called twice."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end(self._close_all())

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        self._require_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        if self._settings:
            starting = self._begun().start(self._start_all(lambda state: None))
            try:
                await asyncio.wrap_future(starting)
            except BaseException:
                self.close()
                raise
        self._require_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    # ── what there is ────────────────────────────────────────────────────

    @property
    def states(self) -> tuple[ServerState, ...]:
        """Each server as it stands now."""
        return tuple(self._state(one) for one in self._settings)

    @property
    def listings(self) -> int:
        """How often servers have said what their tools are: another number means that there may be others."""
        return sum(one.listings for one in self._servers.values())

    def unaccepted(self) -> list[tuple[str, Definition]]:
        """What is listed and not offered, since it is new or another now; each with its server's name."""
        return [
            (state.settings.name, one)
            for state in self.states
            for one in state.definitions
            if self._accepted.get((state.settings.name, one.name)) != one.hash
        ]

    def accept(self, server: str, definitions: Iterable[Definition]) -> None:
        """Offer these from now on, as they are defined."""
        self._accepted |= {(server, one.name): one.hash for one in definitions}

    def only(self, server: str, definitions: Iterable[Definition]) -> None:
        """Of this server, offer these alone."""
        self._accepted = {pair: known for pair, known in self._accepted.items() if pair[0] != server}
        self.accept(server, definitions)

    def __iter__(self) -> Iterator[Tool]:
        pairs = self._offered()
        names = wire_names([(server, one.name) for server, one in pairs])
        tools = []
        warnings = [f"{state.settings.name}: {one}" for state in self.states for one in state.left_out]
        for server, one in pairs:
            try:
                tools.append(self._tool(names[server, one.name], server, one))
            except ValueError as error:
                warnings.append(f"{server}: the tool {one.name!r} is left out: {error}")
        self.warnings = tuple(warnings)
        return iter(tools)

    def _offered(self) -> list[tuple[str, Definition]]:
        return [
            (state.settings.name, one)
            for state in self.states
            for one in state.definitions
            if self._accepted.get((state.settings.name, one.name)) == one.hash
        ]

    def _tool(self, name: str, server: str, definition: Definition) -> Tool:
        settings = self._servers[server].settings
        description, parameters = offered(definition, server)
        return Tool(
            name,
            description,
            parameters,
            partial(self._call, server, definition),
            effect=definition.effect if settings.trusted else "once",
            timeout=settings.timeout,
            origin="mcp",
            untrusted=True,
            needs=("network", "send"),
            bind=lambda arguments: {"arguments": arguments},
            context_parameter="context",
        )

    async def _call(
        self, server: str, definition: Definition, arguments: Mapping[str, JSON], context: ToolContext
    ) -> list[Part] | str:
        """Where a tool's calls arrive, on whatever loop its agent runs."""
        if self._thread is None:
            raise ServerFailed(f"The MCP server {server!r} is closed.")
        work = self._servers[server].call(definition, arguments, context.progress)
        return await asyncio.wrap_future(self._thread.start(work)) or ""

    # ── on the thread ────────────────────────────────────────────────────

    def _begun(self) -> _Thread:
        """The thread. Raises `ConfigError` without the SDK."""
        try:
            import mcp_types  # noqa: F401
        except ImportError as error:
            raise ConfigError(INSTALL) from error
        # The SDK reports each wrong message at length; without this, Python writes that to standard error.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self._thread = self._thread or _Thread()
        return self._thread

    async def _start_all(self, said: Callable[[ServerState], None]) -> None:
        async def one(settings: ServerSettings) -> None:
            await self._start_one(settings)
            said(self._state(settings))

        await asyncio.gather(*(one(each) for each in self._settings))

    async def _start_one(self, settings: ServerSettings) -> None:
        try:
            server = self._servers[settings.name] = Server(
                settings.expanded(self._variables, self._data_variables)
            )
            await server.start()
        except (ConfigError, ServerFailed) as error:
            self._unfit[settings.name] = str(error)
        else:
            self.accept(settings.name, server.definitions)

    async def _close_all(self) -> None:
        await asyncio.gather(*(one.close() for one in self._servers.values()), return_exceptions=True)

    def _state(self, settings: ServerSettings) -> ServerState:
        server = self._servers.get(settings.name)
        if server is None:
            return ServerState(settings, failure=self._unfit.get(settings.name, "It is not started."))
        failure = "" if server.runs else server.failure or "It is not started."
        return ServerState(server.settings, server.definitions, failure, server.left_out, server.listings)

    def _require_all(self) -> None:
        if self._unfit:
            self.close()
            raise ConfigError("\n".join(self._unfit.values()))


def mcp_tools(
    servers: Mapping[str, Any] | str | Path, *, variables: Mapping[str, str] | None = None
) -> McpTools:
    """The tools of MCP servers, for an agent: `async with mcp_tools({...}) as tools: Agent(model, tools=tools)`.

    `servers`: the common `mcpServers` shape (`{"files": {"command": "npx", "args": [...]}}`, or with a `url`), or
    the path of a JSON file that holds it. In plain code: `with`. Raises `ConfigError` where that cannot be read.
    """
    if isinstance(servers, Mapping):
        return McpTools(read_servers(servers, "mcp_tools()"), variables=variables)
    return McpTools(read_servers(_document(Path(servers)), str(servers)), variables=variables)


def _document(path: Path) -> Any:
    import json

    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read as JSON: {error}") from error


class _Thread:
    """An event loop that runs in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="glassloop mcp", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run it there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def end(self, last: Coroutine[Any, Any, None]) -> None:
        """Run this there, stop what still runs, and end."""
        try:
            with suppress(TimeoutError):
                self.start(last).result(_CLOSING)
                self.start(_stop_others()).result(_CLOSING)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSING)
            if not self._thread.is_alive():
                self._loop.close()


async def _stop_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
