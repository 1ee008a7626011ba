"""Undoing a body's content coding while it arrives, never more than is asked for. Only what we ask for is undone."""

from __future__ import annotations

import zlib

ACCEPTED = "gzip, deflate"
"""What the standard library can undo with a bound on what comes out, on every Python that we run on."""

_GZIP = 31
_ZLIB = 15
_RAW = -15


class BadCoding(Exception):
    """The body cannot be decoded; the text says why."""


class Decoder:
    """Decodes one body by its `Content-Encoding`: one coding at most, RFC 9110 §8.4."""

    def __init__(self, header: str) -> None:
        names = (name.strip().lower() for name in header.split(","))
        self._codings = [name.removeprefix("x-") for name in names if name not in ("", "identity")]
        self._inflater: zlib._Decompress | None = None

    def feed(self, data: bytes, room: int) -> bytes:
        """At most `room` decoded bytes of the next piece; what is beyond them is dropped. Raises `BadCoding`."""
        if not self._codings:
            return data[:room]
        out = bytearray()
        while data and len(out) < room:
            inflater = self._inflater or self._start(data)
            try:
                out += inflater.decompress(data, room - len(out))
            except zlib.error as error:
                raise BadCoding(f"the compressed answer is damaged ({error})") from error
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            self._inflater = None if inflater.eof else inflater  # what follows is another member
        return bytes(out)

    def _start(self, data: bytes) -> zlib._Decompress:
        match self._codings:
            case ["gzip"]:
                return zlib.decompressobj(_GZIP)
            case ["deflate"]:  # zlib by the standard, raw by some servers
                return zlib.decompressobj(_ZLIB if data[0] & 0x0F == zlib.DEFLATED else _RAW)
            case [one]:
                raise BadCoding(f"the answer is encoded as {one!r}, which was not asked for")
        raise BadCoding(f"the answer is encoded more than once ({', '.join(self._codings)})")
