"""What a child prints, read as it comes: the beginning and the end are kept, people are shown it now and then.

However much it is, no more than `HEAD` + 2 · `TAIL` bytes are held.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

HEAD = 256 << 10
TAIL = 256 << 10
_CHUNK = 256 << 10

_TOLD = 2_000
"""Bytes of output that people are shown at once, the newest ones."""
_TELL_EVERY = 0.1
"""Seconds."""


class Output:
    """A pipe whose other end a child writes to. A context manager, inside a running loop; reads by itself."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._head, self._tail, self._untold = bytearray(), bytearray(), bytearray()
        self._size = 0
        self._told_at = 0.0
        self._ended = asyncio.Event()

    def __enter__(self) -> Output:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux; a larger pipe takes fewer turns of the loop
            with suppress(OSError):
                fcntl.fcntl(self._read_end, fcntl.F_SETPIPE_SZ, _CHUNK)
        self._loop.add_reader(self._read_end, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close_write_end()
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)

    def close_write_end(self) -> None:
        """Close our copy, so that the pipe ends with the last process that writes to it."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def rest(self, seconds: float) -> None:
        """Wait for the end of the output, or as long: a process that nobody can kill may hold the pipe open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        self._tell()

    def text(self) -> str:
        """All that was printed, or its beginning and end with a word on how much is missing."""
        tail = self._tail[-TAIL:]
        left_out = self._size - len(self._head) - len(tail)
        note = f"\n[… {left_out:,} bytes left out …]\n".encode() if left_out else b""
        return (self._head + note + tail).decode("utf-8", "replace")

    def _take(self) -> None:
        try:
            data = os.read(self._read_end, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._read_end)
            self._ended.set()
            return
        self._keep(data)
        self._untold = (self._untold + data[-_TOLD:])[-_TOLD:]
        if self._loop.time() - self._told_at >= _TELL_EVERY:
            self._tell()

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    def _tell(self) -> None:
        if self._untold:
            self._progress(self._untold.decode("utf-8", "replace"))
            self._untold = bytearray()
            self._told_at = self._loop.time()
