"""A server as a child process: its messages over pipes, with bounds, and its certain end.

The SDK's own transport reads lines of any length and lets stderr through to the terminal; this one does neither.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from glassloop.tools.mcp.settings import ServerSettings

LARGEST_MESSAGE = 16_000_000
"""Bytes of one message, and so of one result, before it is held in memory."""

_MOST_UNASKED = 64_000_000
_CHUNK = 65_536
_SAID = 4_000
_GRACE = 1.0
_TERM_GRACE = 0.5

# What a server has of our environment: where things are and which language is spoken. No keys, no agent's socket.
_INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "TMPDIR", "TZ"),
    *("LANG", "LC_ALL", "LC_CTYPE"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)


class Flooded(Exception):
    """It sends more than is held in memory."""


@dataclass(slots=True)
class Heard:
    """What came from a server: its last words, how many answers, and why it ended (once it is `over`)."""

    answers: int = 0
    why: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _words: deque[str] = field(default_factory=lambda: deque(maxlen=64))

    def says(self, words: bytes) -> None:
        """It wrote this to stderr, or to stdout without it being a message."""
        self._words.append(words[-_SAID:].decode("utf-8", "replace"))

    def ends(self, why: str) -> None:
        """Nothing more will come."""
        self.why = self.why or why
        self.over.set()

    @property
    def last_words(self) -> str:
        """The end of what it said."""
        return "".join(self._words)[-_SAID:].strip()


def environment(settings: ServerSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """A server's environment: what is harmless of ours, and what its settings name."""
    inherited = {name: environ[name] for name in _INHERITED if name in environ}
    return {**inherited, **settings.env}


@asynccontextmanager
async def connection(settings: ServerSettings, heard: Heard) -> AsyncIterator[Any]:
    """A transport for the SDK: the process runs inside the block, and nothing of it is left after.

    Raises `OSError` where it cannot be started.
    """
    import anyio
    from mcp.shared.message import SessionMessage

    process = await asyncio.create_subprocess_exec(
        settings.command,
        *settings.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=settings.cwd or None,
        env=environment(settings, os.environ),
        start_new_session=True,
    )
    kill = partial(_signal_group, process.pid, signal.SIGKILL)
    atexit.register(kill)  # for a program that ends without closing anything
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(work)
        for work in (
            _read(process, to_session, heard),
            _write(process, from_session, heard),
            _listen(process, heard),
        )
    ]
    try:
        yield incoming, outgoing
    finally:
        try:
            await asyncio.shield(asyncio.ensure_future(_end(process)))
        finally:
            kill()
            atexit.unregister(kill)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────


async def _read(process: asyncio.subprocess.Process, to_session: Any, heard: Heard) -> None:
    """Lines into messages, until it ends or sends too much; closing the stream fails what waits for an answer."""
    from anyio import BrokenResourceError, ClosedResourceError
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

    assert process.stdout is not None
    unasked = 0
    with to_session, suppress(BrokenResourceError, ClosedResourceError):
        try:
            async for line in _lines(process.stdout):
                unasked += len(line)
                if unasked > _MOST_UNASKED:
                    raise Flooded(f"it sent {_MOST_UNASKED // 1_000_000} MB without an answer in them")
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    heard.says(line + b"\n")
                    continue
                if isinstance(message, (JSONRPCResponse, JSONRPCError)):
                    heard.answers += 1
                    unasked = 0
                await to_session.send(SessionMessage(message))
            heard.ends(await _how_it_ended(process))
        except Flooded as flood:
            heard.ends(str(flood))
            _signal_group(process.pid, signal.SIGKILL)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines that are not blank. Raises `Flooded` for one that is too long, before it is held whole."""
    held: list[bytes] = []
    size = 0
    while chunk := await stream.read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            line = b"".join((*held, piece))
            held, size = [], 0
            if line.strip():
                yield line
        if rest:
            held.append(rest)
            size += len(rest)
        if size > LARGEST_MESSAGE:
            raise Flooded(f"it sent a message of more than {LARGEST_MESSAGE // 1_000_000} MB")


async def _how_it_ended(process: asyncio.subprocess.Process) -> str:
    with suppress(TimeoutError):
        async with asyncio.timeout(_TERM_GRACE):
            await process.wait()
    if process.returncode is None:
        return "it closed its output"
    return f"it ended with exit code {process.returncode}"


async def _write(process: asyncio.subprocess.Process, from_session: Any, heard: Heard) -> None:
    assert process.stdin is not None
    try:
        async for sent in from_session:
            text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except (OSError, RuntimeError):  # it does not read any more, and so will not answer
        heard.ends(await _how_it_ended(process))


async def _listen(process: asyncio.subprocess.Process, heard: Heard) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(_CHUNK):
        heard.says(chunk)


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────


async def _end(process: asyncio.subprocess.Process) -> None:
    """As the protocol wants it: close its input, wait, ask it to end, end it. Its children go with it."""
    assert process.stdin is not None
    process.stdin.close()
    if not await _is_over(process, _GRACE):
        _signal_group(process.pid, signal.SIGTERM)
        await _is_over(process, _TERM_GRACE)
    _signal_group(process.pid, signal.SIGKILL)
    await _is_over(process, _GRACE)
    transport = getattr(process, "_transport", None)  # a grandchild may hold a pipe of it open for ever
    if transport is not None:
        transport.close()


async def _is_over(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether it ends within this time. Not `wait`, which also waits for whoever else holds its pipes."""
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
