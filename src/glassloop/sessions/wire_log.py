"""`WireLog`: a `Recorder` that keeps each exchange in the sessions' file, without its secrets, and gives it back."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from glassloop.core.errors import SessionError
from glassloop.core.secrets import MASK, SECRET_HEADERS
from glassloop.sessions import masking
from glassloop.sessions.claiming import now_ms

Submit = Callable[[Callable[[sqlite3.Connection], None]], "Future[None]"]
"""Hands work to the thread that writes, with nobody waiting for it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer. `chunks`: milliseconds since the request, and how many bytes arrived then."""

    run_id: str
    n: int
    method: str
    url: str
    request_headers: Mapping[str, str]
    request: bytes
    status: int | None
    response_headers: Mapping[str, str]
    response: bytes
    chunks: tuple[tuple[int, int], ...]
    error: str | None
    started_ms: int
    ended_ms: int


@dataclass(slots=True)
class _Open:
    """An exchange that goes on."""

    method: str
    url: str
    request_headers: dict[str, str]
    request: bytes
    started_ms: int = field(default_factory=now_ms)
    began: float = field(default_factory=time.monotonic)
    status: int | None = None
    response_headers: dict[str, str] = field(default_factory=dict)
    received: list[bytes] = field(default_factory=list)
    chunks: list[tuple[int, int]] = field(default_factory=list)
    stored: tuple[int, bytes] | None = None  # its number and masked request, once they are in the file

    def milliseconds(self) -> int:
        return round((time.monotonic() - self.began) * 1000)


class WireLog:
    """The log of one run. It never raises: what kept it from writing is in `failure`, and the run goes on.

    Nobody waits for it: an exchange is written together with the journal's next commit.
    """

    def __init__(self, submit: Submit, run_id: str, secrets: Callable[[], Iterable[str]] = tuple) -> None:
        self.run_id = run_id
        self.failure: BaseException | None = None
        self._submit = submit
        self._secrets = secrets
        self._open: _Open | None = None
        self._last: _Open | None = None

    def sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """A request went out. One that has no end yet is over with that."""
        self.ended("no end was reported")
        self._open = _Open(method, url, dict(headers), bytes(body))

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The answer's head arrived."""
        if self._open:
            self._open.status, self._open.response_headers = status, dict(headers)

    def received(self, data: bytes) -> None:
        """Some of the answer's body arrived."""
        if self._open:
            self._open.received.append(bytes(data))
            self._open.chunks.append((self._open.milliseconds(), len(data)))

    def ended(self, error: str | None = None) -> None:
        """The exchange is over: from here on it is stored."""
        exchange, self._open = self._open, None
        if exchange is None:
            return
        ended_ms = exchange.started_ms + exchange.milliseconds()
        try:
            secrets = tuple(self._secrets())
            work = partial(
                self._store,
                exchange=exchange,
                before=self._last,
                error=error,
                ended_ms=ended_ms,
                secrets=secrets,
            )
            self._last = exchange
            self._submit(work).add_done_callback(partial(self._note, exchange))
        except Exception as failure:
            self.failure = failure

    def _note(self, exchange: _Open, done: Future[None]) -> None:
        if error := done.exception():
            self.failure, exchange.stored = error, None

    def _store(
        self,
        connection: sqlite3.Connection,
        exchange: _Open,
        before: _Open | None,
        *,
        error: str | None,
        ended_ms: int,
        secrets: tuple[str, ...],
    ) -> None:
        """In the writer's thread. Bodies are masked as a whole: a key may be split over two chunks."""
        request = masking.body(exchange.request, secrets)
        received = b"".join(exchange.received)
        response = masking.body(received, secrets)
        chunks = exchange.chunks if response == received else [(exchange.chunks[-1][0], len(response))]
        base, shared = None, 0
        if before and before.stored:
            base, shared = before.stored[0], _shared(before.stored[1], request)
        (n,) = connection.execute(
            "SELECT coalesce(max(n), 0) + 1 FROM exchange WHERE run_id = ?", (self.run_id,)
        ).fetchone()
        connection.execute(
            "INSERT INTO exchange VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.run_id,
                n,
                exchange.method,
                masking.address(exchange.url, secrets),
                json.dumps(masking.headers(exchange.request_headers, secrets)),
                base,
                shared,
                request[shared:],
                exchange.status,
                json.dumps(masking.headers(exchange.response_headers, secrets)),
                response,
                json.dumps(chunks),
                None if error is None else masking.body(error.encode("utf-8", "replace"), secrets).decode(),
                exchange.started_ms,
                ended_ms,
            ),
        )
        exchange.stored = n, request


def _shared(before: bytes, now: bytes) -> int:
    """How many bytes two requests have in common at their beginning."""
    low, high = 0, min(len(before), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def exchanges(connection: sqlite3.Connection, run_id: str) -> list[Exchange]:
    """All exchanges of a run, in order. Raises `SessionError` for a row that is damaged."""
    rows = connection.execute(
        "SELECT n, method, url, request_headers, base, shared, request, status, response_headers, response, "
        "chunks, error, started_ms, ended_ms FROM exchange WHERE run_id = ? ORDER BY n",
        (run_id,),
    )
    found: list[Exchange] = []
    requests: dict[int | None, bytes] = {None: b""}
    for n, method, url, sent, base, shared, new, status, got, response, chunks, error, started, ended in rows:
        try:
            requests[n] = requests[base][:shared] + new
            head = (_headers(sent), requests[n], status, _headers(got), response, _chunks(chunks))
        except (KeyError, ValueError, TypeError, RecursionError) as damage:
            raise SessionError(f"exchange {n} of run {run_id} is damaged: {damage}") from damage
        found.append(Exchange(run_id, n, method, url, *head, error, started, ended))
    return found


def _headers(text: str) -> dict[str, str]:
    return {str(name): str(value) for name, value in dict(json.loads(text)).items()}


def _chunks(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(at), int(size)) for at, size in json.loads(text))


# ── the same again ───────────────────────────────────────────────────────────────────────────────────

_LEFT_TO_CURL = frozenset(
    {"host", "content-length", "accept-encoding", "transfer-encoding", "connection", "user-agent"}
)
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def curl(exchange: Exchange, variable: str = "API_KEY") -> str:
    """A shell command that sends the same request again. Where a secret stood, it takes `$variable`."""
    if not _SHELL_NAME.fullmatch(variable):
        raise SessionError(f"{variable!r} cannot be the name of a variable")
    lines = [f"curl -sS -N -X {shlex.quote(exchange.method)} {_quoted(exchange.url, variable)}"]
    for name, value in exchange.request_headers.items():
        if name.lower() not in _LEFT_TO_CURL:
            lines.append(f"-H {_quoted(f'{name}: {_shown(name, value)}', variable)}")
    if not exchange.request:
        return " \\\n  ".join(lines)
    text = exchange.request.decode("utf-8", "surrogateescape")
    # Through a pipe, for no command line is as long as a conversation.
    return f"printf '%s' {shlex.quote(text)} |\n" + " \\\n  ".join([*lines, "--data-binary @-"])


def _shown(name: str, value: str) -> str:
    bearer = name.lower() in ("authorization", "proxy-authorization") and value == MASK
    return f"Bearer {MASK}" if bearer else value if name.lower() not in SECRET_HEADERS else MASK


def _quoted(text: str, variable: str) -> str:
    """Quoted for a shell, with the variable where the mask stands."""
    pieces = [shlex.quote(piece) if piece else "" for piece in text.split(MASK)]
    return f'"${variable}"'.join(pieces) or "''"
