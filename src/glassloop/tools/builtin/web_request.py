"""The `http_request` tool: one HTTP request as a model words it, such as a call of an API. A person is asked each time.

How it is sent is in `web_client`; where values of secrets come from is in `web_secrets`.
"""

from __future__ import annotations

import json as json_library
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from glassloop.core.entries import JSON
from glassloop.core.secrets import MASK
from glassloop.core.visible import exact, one_line, visible
from glassloop.tools.builtin.web_address import checked_url
from glassloop.tools.builtin.web_client import Answer, Client, Request
from glassloop.tools.builtin.web_options import client_from, secrets_from
from glassloop.tools.builtin.web_secrets import Secret, filled, names_in
from glassloop.tools.builtin.web_text import is_text, kind_of, text_of
from glassloop.tools.context import ToolContext
from glassloop.tools.targets import Address
from glassloop.tools.tool import Need, Tool, tool

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

MAX_HEADERS = 50
MAX_HEADER = 8_000
MAX_BODY = 1_000_000
_NEEDS: tuple[Need, ...] = ("network", "send")

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # a token of RFC 9110 §5.6.2
_OURS = frozenset(
    "host content-length transfer-encoding connection keep-alive upgrade te trailer expect accept-encoding".split()
)
"""Headers that say how a message is framed and where it goes: never a model's."""

_SHOWN = (
    "content-type location retry-after etag last-modified link allow www-authenticate content-disposition "
    "x-request-id x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset deprecation sunset"
).split()
"""Headers of an answer that say what to do next."""


_SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class _Content:
    """A request's body, and the media type that goes with it. No type: no body."""

    text: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Requests:
    """Sends what a model words, within what `client` allows."""

    client: Client = field(default_factory=Client)
    secrets: Mapping[str, Secret] = field(default_factory=dict, repr=False)

    async def http_request(
        self,
        url: str,
        method: Method = "GET",
        headers: dict[str, str] | None = None,
        body: str | None = None,
        json: dict[str, Any] | list[Any] | None = None,
        *,
        context: ToolContext,
    ) -> str:
        """Send one HTTP request and return the status, headers and body of the answer. Use it to call an API; to read
        a page use web_fetch.

        Args:
            url: The whole address with its query, beginning with https:// or http://.
            method: The HTTP method.
            headers: Headers by name. A secret of the user is written as ${NAME} and filled in when it is sent.
            body: The body as text.
            json: The body as JSON, in place of `body`.
        """
        request = self._request(url, method, headers or {}, _content(body, json))
        request = replace(request, stays=bool(context.outside))
        try:
            answer = await self.client.ask(request)
        except ConnectionError as error:
            doubt = "" if method in _SAFE else "; it may have been carried out, so check before you repeat it"
            raise ConnectionError(self._masked(f"{error}{doubt}")) from None
        return self._masked(_shown(answer))

    def why_asked(self, arguments: Mapping[str, JSON]) -> str:
        """Why a person is asked."""
        headers = arguments.get("headers") or {}
        used = dict.fromkeys(name for each in headers.values() for name in names_in(str(each), self.secrets))
        secrets = f", with your secret {', '.join(used)}" if used else ""
        return f"it sends a {arguments.get('method', 'GET')} request over the network{secrets}"

    def _request(self, url: str, method: str, headers: Mapping[str, str], content: _Content) -> Request:
        where = checked_url(url)
        if outside := names_in(url + content.text, self.secrets):
            raise ValueError(f"${{{outside[0]}}} is filled in within headers only; nothing was sent")
        _check_headers(headers)
        given = {name.lower(): filled(value, where, self.secrets) for name, value in headers.items()}
        ours = {"accept": "*/*"} | ({"content-type": content.kind} if content.kind else {})
        return Request(url, method, ours | given, content.text.encode() if content.kind else None)

    def _masked(self, text: str) -> str:
        for secret in self.secrets.values():
            text = text.replace(secret.value, MASK)
        return text


def http_request_tool(client: Client | None = None, *, secrets: Mapping[str, Secret] | None = None) -> Tool:
    """The `http_request` tool. `client` says where it may go, by default the public internet; `secrets` are what a
    model may refer to by name. It is asked about each time.
    """
    requests = Requests(client or Client(), secrets or {})
    return tool(
        effect="once",
        approve=requests.why_asked,
        timeout=90,
        untrusted=True,
        needs=_NEEDS,
        preview=_preview,
        targets=lambda arguments: (Address(str(arguments.get("url", "")).strip()),),
    )(requests.http_request)


def from_options(options: Mapping[str, str]) -> Tool:
    """The tool, as `web_options` reads the options."""
    return http_request_tool(client_from(options), secrets=secrets_from(options))


def _preview(arguments: Mapping[str, JSON]) -> str:
    """The request as it would be sent, secrets by their names."""
    headers = arguments.get("headers") or {}
    lines = [f"{arguments.get('method', 'GET')} {exact(str(arguments.get('url', '')))}"]
    lines += [f"{exact(str(name))}: {exact(str(value))}" for name, value in headers.items()]
    content = _content(arguments.get("body"), arguments.get("json"))
    return "\n".join([*lines, *(["", *map(exact, content.text.split("\n"))] if content.text else [])])


def _content(body: str | None, json: JSON) -> _Content:
    if body is not None and json is not None:
        raise ValueError("both body and json are given; give one of them")
    if json is not None:
        body = json_library.dumps(json, ensure_ascii=False)
    if body is None:
        return _Content()
    if len(body) > MAX_BODY:
        raise ValueError(f"the body has {len(body):,} characters, at most {MAX_BODY:,}")
    return _Content(body, "text/plain; charset=utf-8" if json is None else "application/json")


def _check_headers(headers: Mapping[str, str]) -> None:
    """Refuse what would break the request's framing, or is not a header at all."""
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"there are {len(headers)} headers, at most {MAX_HEADERS}")
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{exact(repr(name[:100]))} is no name of a header")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise ValueError(f"the header {name} cannot be set; leave it out")
        if len(value) > MAX_HEADER or not (value.isascii() and value.isprintable()):
            raise ValueError(f"the header {name} is not one line of at most {MAX_HEADER:,} ASCII characters")


def _shown(answer: Answer) -> str:
    """Status, the headers that matter, and the body if it is text."""
    head = [f"HTTP {answer.status} {one_line(answer.reason)}".rstrip(), f"URL: {answer.url}"]
    head += [f"{name}: {one_line(answer.headers[name])}" for name in _SHOWN if name in answer.headers]
    if not answer.body:
        return "\n".join([*head, "", "(no body)"])
    kind, size = kind_of(answer.body, answer.headers.get("content-type", "")), f"{len(answer.body):,} bytes"
    if answer.cut:
        head.append(f"Only the first {size} were read")
    if not is_text(kind):
        return "\n".join([*head, "", f"({size} of {one_line(kind)}, not text)"])
    text = text_of(answer.body, answer.headers.get("content-type", ""), answer.url)
    return "\n".join([*head, "", visible(text)])
