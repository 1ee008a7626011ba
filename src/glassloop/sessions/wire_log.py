"""`WireLog`: a `Recorder` that keeps each exchange in the sessions' file, without its secrets, and gives it back."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from glassloop.core.errors import SessionError
from glassloop.core.secrets import MASK, SECRET_HEADERS
from glassloop.core.setup import AgentSetup, EndpointSetup
from glassloop.sessions import masking, setups
from glassloop.sessions.claiming import now_ms

Submit = Callable[[Callable[[sqlite3.Connection], None]], "Future[None]"]
"""Hands work to the thread that writes, with nobody waiting for it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer. `chunks`: milliseconds since the request, and how many bytes arrived then.

    `endpoint`: how it was set up, as JSON text; "" where an older Glassloop did not keep that. `after`, `epoch`: to
    which model call it belongs, see `core/heard.py`. `agent`: the one that had taken the run up, as JSON text; "" for
    the one that began it.
    """

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
    endpoint: str = ""
    after: int = 0
    epoch: int = 0
    agent: str = ""


@dataclass(slots=True)
class _Open:
    """An exchange that goes on."""

    method: str
    url: str
    request_headers: dict[str, str]
    request: bytes
    endpoint: EndpointSetup | None
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
    """The log of one run, by the process of this `epoch`. It never raises: what kept it from writing is in `failure`,
    and the run goes on.

    Nobody waits for it: an exchange is written together with the journal's next commit.
    """

    def __init__(
        self, submit: Submit, run_id: str, secrets: Callable[[], Iterable[str]] = tuple, epoch: int = 0
    ) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self.failure: BaseException | None = None
        self._submit = submit
        self._secrets = secrets
        self._open: _Open | None = None
        self._last: _Open | None = None
        self._asking: EndpointSetup | None = None
        self._agent = ""

    def began(self, agent: AgentSetup) -> None:
        """A run begins, or is taken up: its agent is stored with it."""
        try:
            self._agent = setups.agent_text(agent, tuple(self._secrets()))
            work = partial(setups.store_agent, run_id=self.run_id, text=self._agent)
            self._submit(work).add_done_callback(self._note_failure)
        except Exception as failure:
            self.failure = failure

    def asking(self, endpoint: EndpointSetup) -> None:
        """The next requests go to this endpoint: each is stored with what is known of it, where that is new."""
        self._asking = endpoint

    def sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """A request went out. One that has no end yet is over with that."""
        self.ended("no end was reported")
        self._open = _Open(method, url, dict(headers), bytes(body), self._asking)

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

    def _note_failure(self, done: Future[None]) -> None:
        self.failure = done.exception() or self.failure

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
        received = b"".join(exchange.received)
        response = masking.body(received, secrets)
        stored = before.stored if before else None
        known = before is not None and stored is not None and before.endpoint == exchange.endpoint
        exchange.stored = insert(
            connection,
            Exchange(
                self.run_id,
                0,
                exchange.method,
                masking.address(exchange.url, secrets),
                masking.headers(exchange.request_headers, secrets),
                masking.body(exchange.request, secrets),
                exchange.status,
                masking.headers(exchange.response_headers, secrets),
                response,
                fitting(exchange.chunks, received, response),
                None if error is None else masking.body(error.encode("utf-8", "replace"), secrets).decode(),
                exchange.started_ms,
                ended_ms,
                setups.endpoint_text(exchange.endpoint, secrets) if exchange.endpoint and not known else "",
                _latest(connection, self.run_id),
                self.epoch,
                "" if stored else self._new_agent(connection),
            ),
            stored,
        )

    def _new_agent(self, connection: sqlite3.Connection) -> str:
        """This agent, if the run was another one's before."""
        return "" if self._agent == setups.latest_agent(connection, self.run_id) else self._agent


def _latest(connection: sqlite3.Connection, run_id: str) -> int:
    """The highest number that the run has written down; what the model said with this exchange comes after it."""
    (seq,) = connection.execute("SELECT max(seq) FROM entry WHERE run_id = ?", (run_id,)).fetchone()
    return max(0, seq or 0)


def fitting(chunks: Sequence[tuple[int, int]], before: bytes, masked: bytes) -> tuple[tuple[int, int], ...]:
    """The chunks of a body once it is masked: where that changed it, it came in one piece, when the last one did."""
    return tuple(chunks) if masked == before else ((chunks[-1][0], len(masked)),)


def insert(
    connection: sqlite3.Connection, one: Exchange, before: tuple[int, bytes] | None
) -> tuple[int, bytes]:
    """Store an exchange as the next of its run, without what its request shares with the one `before` (its number
    and its request). Gives the same of this one. Nothing is masked here.
    """
    base, shared = (before[0], _shared(before[1], one.request)) if before else (None, 0)
    (n,) = connection.execute(
        "SELECT coalesce(max(n), 0) + 1 FROM exchange WHERE run_id = ?", (one.run_id,)
    ).fetchone()
    connection.execute(
        "INSERT INTO exchange(run_id, n, method, url, request_headers, base, shared, request, status, "
        "response_headers, response, chunks, error, started_ms, ended_ms, endpoint, after_seq, epoch, agent) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            one.run_id,
            n,
            one.method,
            one.url,
            json.dumps(dict(one.request_headers)),
            base,
            shared,
            one.request[shared:],
            one.status,
            json.dumps(dict(one.response_headers)),
            one.response,
            json.dumps(one.chunks),
            one.error,
            one.started_ms,
            one.ended_ms,
            one.endpoint or None,
            one.after,
            one.epoch,
            one.agent or None,
        ),
    )
    return n, one.request


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
        "chunks, error, started_ms, ended_ms, endpoint, after_seq, epoch, agent FROM exchange WHERE run_id = ? "
        "ORDER BY n",
        (run_id,),
    )
    found: list[Exchange] = []
    requests: dict[int | None, bytes] = {None: b""}
    endpoint = agent = ""
    for row in rows:
        n, method, url, sent, base, shared, new, status, got, response, chunks, *rest = row
        error, began, ended, setup, after, epoch, taken_up_by = rest
        try:
            requests[n] = requests[base][:shared] + new
            head = (_headers(sent), requests[n], status, _headers(got), response, _chunks(chunks))
        except (KeyError, ValueError, TypeError, RecursionError) as damage:
            raise SessionError(f"exchange {n} of run {run_id} is damaged: {damage}", "damaged") from damage
        endpoint, agent = setup or endpoint, taken_up_by or agent
        found.append(
            Exchange(run_id, n, method, url, *head, error, began, ended, endpoint, after, epoch, agent)
        )
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
