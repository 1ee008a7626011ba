"""Undoing a body's content coding, with a limit on what comes out. Bodies are believed, headers are not."""

from __future__ import annotations

import zlib
from typing import Protocol

_GZIP = b"\x1f\x8b"
_SNIFFED = 2


class BadCoding(Exception):
    """The body cannot be decoded; the text says why."""


class TooLarge(BadCoding):
    """More decoded bytes than the limit allows."""

    def __init__(self) -> None:
        super().__init__("The endpoint's answer is larger than the limit, and was not read further")


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


class Decoder:
    """Decodes one body as it arrives. `cut` says afterwards that the compressed data ended early.

    A gzip body is known by its first bytes, since some proxies send it without the header and others
    the header without it; deflate, which has no mark of its own, by the header. One coding at most.
    """

    __slots__ = ("_coding", "_held", "_inflater", "_left", "_limit", "_plain", "_raw")

    def __init__(self, coding: str, limit: int) -> None:
        self._coding = _named(coding) if coding else ""
        self._limit = self._left = limit
        self._inflater: _Inflater | None = None
        self._plain = False
        self._held = b""
        self._raw = False

    @property
    def cut(self) -> bool:
        return self._inflater is not None and not self._inflater.eof

    def feed(self, data: bytes) -> bytes:
        """The decoded bytes of the next piece. Raises `TooLarge` or `BadCoding`."""
        if self._inflater is None and not self._plain:
            data = self._held + data
            if len(data) < _SNIFFED and self._might_be_coded(data):
                self._held = data
                return b""
            self._held = b""
            self._plain = not self._start(data)
        return self._counted(data) if self._plain else self._inflate(data)

    def finish(self) -> bytes:
        """A first byte that was held back for sniffing."""
        held, self._held = self._held, b""
        return held

    def _might_be_coded(self, data: bytes) -> bool:
        return self._coding == "deflate" or _GZIP.startswith(data)

    def _start(self, data: bytes) -> bool:
        """Choose by the first bytes how to decode; False if the body is plain."""
        if data.startswith(_GZIP):
            self._inflater = zlib.decompressobj(31)
            return True
        if self._coding == "deflate" and data[:1] not in (b"{", b"[", b"d", b"e", b":", b" ", b"\n", b"<"):
            is_zlib = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            self._inflater = zlib.decompressobj(15 if is_zlib else -15)
            return True
        if self._coding in ("", "gzip", "deflate") or data[:1] in (b"{", b"[", b"d", b":"):
            return False
        raise BadCoding(f"The answer is encoded as {self._coding!r}, which was not asked for")

    def _inflate(self, data: bytes) -> bytes:
        out: list[bytes] = []
        while data:
            assert self._inflater is not None
            try:
                piece = self._inflater.decompress(data, self._left + 1)
            except zlib.error as error:
                raise BadCoding(f"The compressed answer is damaged ({error})") from error
            if piece and self._left == self._limit and piece.startswith(_GZIP):
                raise BadCoding("The answer is compressed more than once")
            out.append(self._counted(piece))
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data = self._inflater.unused_data
                if not data.startswith(_GZIP):
                    break
                self._inflater = zlib.decompressobj(31)
        return b"".join(out)

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge
        return data


def _named(coding: str) -> str:
    """The one coding that the header names; "" for none."""
    codings = [name.strip().lower() for name in coding.split(",") if name.strip()]
    codings = [name for name in codings if name != "identity"]
    if len(codings) > 1:
        raise BadCoding(f"The answer is encoded more than once ({coding})")
    return codings[0].removeprefix("x-") if codings else ""
