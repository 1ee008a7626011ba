"""One bounded HTTP request to somebody else's server: where it may go, how long, how much. What it means is not here.

Each hop is resolved here, judged by the `AddressRule`, and connected to by the address that was judged, with the
original name for TLS and `Host`. So a name cannot mean another address a moment later.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.request import getproxies

from glassloop.core.visible import one_line
from glassloop.tools.builtin.web_address import (
    AddressRefused,
    AddressRule,
    checked_url,
    host_of,
    is_literal,
    origin_of,
)
from glassloop.tools.builtin.web_coding import ACCEPTED, BadCoding, Decoder

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from yarl import URL

FOLLOWING = frozenset(("GET", "HEAD"))
"""The methods that follow redirects: any other would be carried out a second time, somewhere else."""

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_CONNECT_SECONDS = 10.0
_HEADER_LIMIT = 16 * 1024
_SAID = 300
_ACCEPT = "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.5"
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host name (or of an address in any spelling) for a port. Raises `OSError` if there is none."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one request with all its redirects: seconds in all, decoded bytes of the body, how many redirects."""

    seconds: float = 30.0
    size: int = 5_000_000
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. `headers` win over ours, save `Host`.

    `stays`: no redirect to another host is followed. A person or a rule allowed this one, and whoever can be made to
    redirect from it could be used to carry something away.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `url` is where it came from in the end; the names in `headers` are in lower case.

    `cut`: the body went on beyond the limit.
    """

    url: str
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """As the operating system resolves, its hosts file included."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


@dataclass(frozen=True, slots=True)
class Client:
    """Asks within bounds. It holds nothing between two requests: no connection, no cookie.

    `proxy`: the URL of an HTTP proxy for every request. It resolves names itself, so that of the rule only what an
    address in the URL says can be kept; without one set here, none is used.
    """

    rule: AddressRule = field(default_factory=AddressRule)
    bounds: Bounds = field(default_factory=Bounds)
    resolve: Resolve = system_resolver
    proxy: str | None = None

    async def ask(self, request: Request) -> Answer:
        """Send the request and read its answer. GET and HEAD follow redirects, each hop judged anew; the request's
        headers, which may hold a key, do not go along to another origin.

        Raises `AddressRefused`, and `ConnectionError` when there is no answer, or none that can be used.
        """
        hops = self.bounds.redirects + 1 if request.method in FOLLOWING else 1
        where = checked_url(request.url)
        try:
            async with asyncio.timeout(self.bounds.seconds):
                for _ in range(hops):
                    answer = await self._hop(request, where)
                    if isinstance(answer, Answer):
                        return answer
                    if request.stays and not _is_same_site(where, answer):
                        raise ConnectionError(
                            f"{host_of(where)} redirects to another host, which was not asked: {answer}; "
                            "ask that URL if it is the right one"
                        )
                    if origin_of(answer) != origin_of(where):
                        request = replace(request, headers={})
                    where = answer
        except TimeoutError:
            seconds = f"{self.bounds.seconds:g} seconds"
            raise ConnectionError(f"{host_of(where)} did not answer in full within {seconds}") from None
        raise ConnectionError(
            f"{host_of(checked_url(request.url))} redirected more than {self.bounds.redirects} times, last to {where}; "
            "ask that URL if it is the right one"
        )

    async def _hop(self, request: Request, url: URL) -> Answer | URL:
        """The request at one URL: its answer, or where that points to."""
        async with _session() as session, await self._connected(session, request, url) as response:
            if request.method in FOLLOWING and (then := _redirection(response, url)):
                return then
            headers = {name.lower(): ", ".join(response.headers.getall(name)) for name in response.headers}
            data, cut = await _body(response, self.bounds.size, url)
            return Answer(str(url), response.status, response.reason or "", headers, data, cut)

    async def _connected(self, session: ClientSession, request: Request, url: URL) -> ClientResponse:
        """The head of the answer, from the first address that takes a connection."""
        import aiohttp

        host, error = host_of(url), Exception("it has no address")
        for address in await self._addresses(url):
            try:
                return await self._send(session, request, url, address)
            except aiohttp.ClientConnectorCertificateError as untrusted:
                raise ConnectionError(
                    f"the certificate of {host} is not trusted: {_said(untrusted)}"
                ) from None
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as unreached:
                error = unreached
            except (aiohttp.ClientError, OSError) as broken:
                raise ConnectionError(f"{host} gave no valid answer: {_said(broken)}") from None
        raise ConnectionError(f"{host} could not be reached: {_said(error)}{self._proxy_hint(url)}")

    async def _send(self, session: ClientSession, request: Request, url: URL, address: str) -> ClientResponse:
        by_name = url.scheme == "https" and not self.proxy and not is_literal(host_of(url))
        return await session.request(
            request.method,
            url.with_host(address),
            headers={**request.headers, "Host": url.host_port_subcomponent or ""},
            data=request.body,
            allow_redirects=False,
            proxy=self.proxy,
            server_hostname=host_of(url) if by_name else None,
        )

    async def _addresses(self, url: URL) -> Sequence[str]:
        """The addresses to connect to, judged; with a proxy the host as it is."""
        host = host_of(url)
        if self.proxy:
            self.rule.check_unresolved(url)
            return (host,)
        try:
            found = await self.resolve(host, url.port or 0)
        except (OSError, UnicodeError) as error:
            raise ConnectionError(
                f"the host {host} is not known: {_said(error)}; check the URL and the network{self._proxy_hint(url)}"
            ) from None
        return tuple(map(str, self.rule.permitted(url, found)))

    def _proxy_hint(self, url: URL) -> str:
        """Said where the network may let nothing through but its proxy."""
        known = getproxies()
        if self.proxy or not (known.get(url.scheme) or known.get("all")):
            return ""
        return (
            ". The environment names a proxy. It is not used, because it resolves names itself and addresses could not "
            "be checked; the user can allow it (web_proxy)"
        )


def _session() -> ClientSession:
    """A session for one request: no cookies, no credentials or proxy from the environment, nothing kept."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "glassloop", "Accept": _ACCEPT, "Accept-Encoding": ACCEPTED},
        auto_decompress=False,
        trust_env=False,
        max_line_size=_HEADER_LIMIT,
        max_field_size=_HEADER_LIMIT,
    )


async def _body(response: ClientResponse, limit: int, url: URL) -> tuple[bytes, bool]:
    """The decoded body as far as the limit, and whether there was more. Nothing beyond it is read."""
    import aiohttp

    decoder = Decoder(",".join(response.headers.getall("Content-Encoding", ())))
    body = bytearray()
    arrived = 0
    try:
        async for piece in response.content.iter_any():
            arrived += len(piece)
            body += decoder.feed(piece, limit + 1 - len(body))
            if max(len(body), arrived) > limit:
                return bytes(body[:limit]), True
    except BadCoding as error:
        raise ConnectionError(f"the answer of {host_of(url)} cannot be read: {error}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionError(
            f"{host_of(url)} hung up before its answer was complete: {_said(error)}"
        ) from None
    return bytes(body), False


def _redirection(response: ClientResponse, url: URL) -> URL | None:
    """Where a redirect points to, judged by its text. Raises `AddressRefused`."""
    from yarl import URL

    location = response.headers.get("Location", "").strip().replace(" ", "%20")
    if response.status not in _REDIRECTS or not location:
        return None
    if _WITH_SCHEME.match(location):
        return checked_url(location)
    try:
        return checked_url(str(url.join(URL(location))))
    except ValueError as error:
        raise AddressRefused(f"{host_of(url)} redirects to what is no URL: {_said(error)}") from None


def _is_same_site(one: URL, other: URL) -> bool:
    """The same host, `www.` or not."""
    return host_of(one).removeprefix("www.") == host_of(other).removeprefix("www.")


def _said(error: BaseException) -> str:
    return one_line(str(error))[:_SAID] or type(error).__name__
