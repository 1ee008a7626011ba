"""One server's life: started, asked, started again where it died, and ended. Everything runs on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from glassloop.core.entries import JSON, Part, Text
from glassloop.tools.cleaning import cleaned
from glassloop.tools.mcp import http, stdio
from glassloop.tools.mcp.definitions import Definition, definitions_from
from glassloop.tools.mcp.lenient import Lenient
from glassloop.tools.mcp.protocol import greet, listed, sent_call
from glassloop.tools.mcp.results import parts_of_result
from glassloop.tools.mcp.settings import ServerSettings
from glassloop.tools.mcp.stdio import Heard

if TYPE_CHECKING:
    from mcp import ClientSession

_LAST_WORDS = 1_000
_PING = 5.0
_SETTLED = 0.2
_LONGEST_WAIT = 60.0


class ServerFailed(Exception):
    """The server cannot be started, or failed in a call. Says which one, what happened, and its last words."""


class CallFailed(Exception):
    """The tool itself said that it failed."""


class _Connection:
    """One connection that stands, or stood."""

    def __init__(self, session: ClientSession, heard: Heard) -> None:
        self.session = session
        self.heard = heard
        self.doubted_at: int | None = None

    @property
    def silent_since_doubted(self) -> bool:
        """Whether nothing was answered since a call was given up."""
        return self.doubted_at is not None and self.heard.answers == self.doubted_at


class Server:
    """`settings` with its variables put in. `definitions` is what it said of its tools when it was last asked."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.definitions: tuple[Definition, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self.failure = ""
        self.listings = 0
        self._connection: _Connection | None = None
        self._life: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[Any]] = set()
        self._lock = asyncio.Lock()
        self._closed = False
        self._failures = 0
        self._not_before = 0.0

    @property
    def runs(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None

    async def start(self) -> None:
        """Start it and ask for its tools. Raises `ServerFailed`."""
        async with self._lock:
            if self._connection is None:
                await self._connect()

    async def close(self) -> None:
        """End it, and all that it started."""
        self._closed = True
        self._let_go()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def call(
        self, tool: Definition, arguments: Mapping[str, JSON], progress: Callable[[str], None]
    ) -> list[Part]:
        """Call a tool. Raises `ServerFailed` and `CallFailed`; the call is sent once at most."""
        connection = await self._connected()
        self._check_unchanged(tool)
        sent = asyncio.create_task(sent_call(connection.session, tool.name, arguments, progress))
        try:
            result = await asyncio.shield(sent)
        except asyncio.CancelledError:
            connection.doubted_at = connection.heard.answers
            self._cancel(sent)
            raise
        except Exception as error:
            raise self._explained(error, connection) from error
        self._failures = 0
        parts = parts_of_result(result)
        if result.get("isError"):
            raise CallFailed("\n".join(part.text for part in parts if isinstance(part, Text)))
        return parts

    def _cancel(self, sent: asyncio.Task[Any]) -> None:
        """Tell the server that nobody waits any more; whoever gave up does not wait for that either."""
        sent.cancel()
        self._ending.add(sent)
        sent.add_done_callback(self._ending.discard)

    # ── the connection ───────────────────────────────────────────────────

    async def _connected(self) -> _Connection:
        """The connection that stands, or a new one: at most one start for a call, and fewer and fewer in time."""
        async with self._lock:
            if self._connection and self._connection.silent_since_doubted:
                await self._doubt(self._connection)
            if self._connection is None:
                wait = self._not_before - asyncio.get_running_loop().time()
                if wait > 0:
                    raise ServerFailed(f"{self.failure} It is not started again for {wait:.0f} seconds.")
                await self._connect()
            assert self._connection is not None
            return self._connection

    async def _doubt(self, connection: _Connection) -> None:
        """It left a call without an answer: end it, unless it answers now."""
        with suppress(Exception):
            async with asyncio.timeout(min(_PING, self.settings.timeout / 4)):
                await connection.session.send_ping()
                connection.doubted_at = None
                return
        self._let_go()

    async def _connect(self) -> None:
        if self._closed:
            raise ServerFailed(f"The MCP server {self.settings.name!r} is closed.")
        ready: asyncio.Future[_Connection] = asyncio.get_running_loop().create_future()
        heard = Heard()
        self._life = asyncio.create_task(self._live(ready, heard))
        self._ending.add(self._life)
        self._life.add_done_callback(self._ending.discard)
        try:
            async with asyncio.timeout(self.settings.timeout):
                self._connection = await asyncio.shield(ready)
        except TimeoutError:
            self._failed("it did not answer in time", heard)
            self._let_go()
            raise ServerFailed(self.failure) from None
        except BaseException:
            self._let_go()
            raise

    def _let_go(self) -> None:
        """Have the connection end, without waiting for that: its end may take a while, and another may begin."""
        if self._life is not None:
            self._life.cancel()
        self._life = self._connection = None

    async def _live(self, ready: asyncio.Future[_Connection], heard: Heard) -> None:
        """The whole life of one connection, in one task, as the SDK's scopes want it."""
        try:
            async with self._session(heard) as session:
                await self._list(session)
                self.failure = ""
                ready.set_result(_Connection(session, heard))
                await heard.over.wait()
                self._lost(heard.why, heard)
        except asyncio.CancelledError:
            ready.cancel()
            raise
        except BaseException as error:
            self._lost(heard.why or _told(error), heard)
        if not ready.done():
            ready.set_exception(ServerFailed(self.failure))
            ready.exception()  # seen, if nobody waits for it any more

    def _lost(self, why: str, heard: Heard) -> None:
        """The connection is no more, although nobody wanted that. Another may stand already."""
        if asyncio.current_task() is self._life:
            self._failed(why, heard)
            self._life = self._connection = None

    @asynccontextmanager
    async def _session(self, heard: Heard) -> AsyncIterator[ClientSession]:
        from mcp import ClientSession
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
        from mcp_types import Implementation

        changed = asyncio.Event()

        async def on_message(message: object) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                changed.set()

        connect = (
            http.connection(self.settings) if self.settings.url else stdio.connection(self.settings, heard)
        )
        async with connect as streams:
            session = ClientSession(
                dispatcher=Lenient(JSONRPCDispatcher(*streams)),
                message_handler=on_message,
                client_info=Implementation(name="glassloop", version=version("glassloop")),
            )
            async with session:
                await greet(session)
                watch = asyncio.create_task(self._watch(session, changed))
                try:
                    yield session
                finally:
                    watch.cancel()

    async def _watch(self, session: ClientSession, changed: asyncio.Event) -> None:
        """Ask again whenever it says that its tools have changed, however often it says so."""
        while True:
            await changed.wait()
            await asyncio.sleep(_SETTLED)
            changed.clear()
            with suppress(Exception):
                await self._list(session)

    async def _list(self, session: ClientSession) -> None:
        self.definitions, self.left_out = definitions_from(await listed(session))
        self.listings += 1

    # ── what went wrong ──────────────────────────────────────────────────

    def _failed(self, why: str, heard: Heard) -> None:
        self._failures += 1
        wait = 0.0 if self._failures == 1 else min(2.0**self._failures, _LONGEST_WAIT)
        self._not_before = asyncio.get_running_loop().time() + wait
        self.failure = self._with_last_words(f"The MCP server {self.settings.name!r} failed: {why}.", heard)

    def _with_last_words(self, text: str, heard: Heard) -> str:
        words = cleaned(heard.last_words)[-_LAST_WORDS:]
        return f"{text} It said last: {words}" if words else text

    def _explained(self, error: Exception, connection: _Connection) -> Exception:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR

        if not isinstance(error, MCPError) or error.code == PARSE_ERROR:
            said = cleaned(str(error)).split("\n", 1)[0]
            return ServerFailed(
                f"The MCP server {self.settings.name!r} gave no result that can be read: {said}"
            )
        if error.code == CONNECTION_CLOSED:
            why = connection.heard.why or str(error).rstrip(".")
            text = f"The MCP server {self.settings.name!r} failed during this call: {why}."
            return ServerFailed(self._with_last_words(text, connection.heard))
        if error.code == INVALID_REQUEST and self.settings.url and "Session terminated" in str(error):
            connection.heard.ends("it has forgotten the session")
        return CallFailed(
            f"{cleaned(str(error))} (error {error.code} of the MCP server {self.settings.name!r})"
        )

    def _check_unchanged(self, tool: Definition) -> None:
        now = next((one for one in self.definitions if one.name == tool.name), None)
        if now is None:
            raise ServerFailed(
                f"The MCP server {self.settings.name!r} does not offer {tool.name!r} any more."
            )
        if now.hash != tool.hash:
            raise ServerFailed(
                f"The MCP server {self.settings.name!r} has changed what it says of {tool.name!r}; a person has to "
                "accept that first."
            )


def _told(error: BaseException) -> str:
    """The reason in a group of errors, in its own words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = str(error).strip().rstrip(".")
    if isinstance(error, FileNotFoundError):
        return f"there is no program {error.filename!r}"
    return said or type(error).__name__
